//! Moves nodes of a region into a new body, for a function: the opposite of inlining.

use crate::{Attributes, Def, InsertPoint, Model, NodeId, RegionId, Use, Value, ValueData};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

/// Nodes that were moved into a new body.
#[derive(Clone, Copy, Debug)]
pub struct Outlined {
    /// The node that stands in their place. Its operator is empty; the caller gives it one.
    pub call: NodeId,
    /// Where they are now. Inputs and outputs correspond to those of the call.
    pub body: RegionId,
}

/// Uses and definitions of nodes.
struct Cut {
    nodes: FxHashSet<NodeId>,
    /// The regions of the nodes' bodies, at any depth.
    regions: FxHashSet<RegionId>,
    /// Values from outside, and where the nodes and their bodies use them.
    captured: IndexMap<Value, Vec<Use>, FxBuildHasher>,
}

impl Cut {
    fn new(model: &Model, nodes: &[NodeId], inside: impl Fn(&ValueData) -> bool) -> Self {
        let mut cut = Self {
            nodes: nodes.iter().copied().collect(),
            regions: FxHashSet::default(),
            captured: IndexMap::default(),
        };
        // A node comes before the nodes of its bodies.
        let mut todo: Vec<NodeId> = nodes.iter().rev().copied().collect();
        let mut all = Vec::with_capacity(todo.len());
        while let Some(node) = todo.pop() {
            all.push(node);
            let regions: Vec<RegionId> = model[node].regions().collect();
            let inner = regions.iter().rev().flat_map(|r| model.nodes_rev(*r));
            todo.extend(inner);
            cut.regions.extend(regions);
        }
        let note = |cut: &mut Self, value: Value, at: Use| {
            let outside = match model[value].def() {
                Def::Node(..) | Def::Input(..) => !cut.contains_value(model, value),
                Def::Constant(_) => !inside(&model[value]),
            };
            if outside {
                cut.captured.entry(value).or_default().push(at);
            }
        };
        for node in all {
            for (i, input) in model[node].inputs().iter().enumerate() {
                if let Some(value) = input {
                    note(&mut cut, *value, Use::Input(node, i as u32));
                }
            }
            for region in model[node].regions() {
                for (i, value) in model[region].output_values().enumerate() {
                    note(&mut cut, value, Use::Output(region, i as u32));
                }
            }
        }
        // Values that are computed come first, then weights.
        let is_weight = |value: &Value| model[*value].constant().is_some();
        let (weights, computed): (Vec<_>, Vec<_>) =
            cut.captured.drain(..).partition(|(value, _)| is_weight(value));
        cut.captured = computed.into_iter().chain(weights).collect();
        cut
    }

    fn contains(&self, model: &Model, node: NodeId) -> bool {
        self.nodes.contains(&node) || self.regions.contains(&model[node].region())
    }

    fn contains_value(&self, model: &Model, value: Value) -> bool {
        match model[value].def() {
            Def::Node(node, _) => model.contains(*node) && self.contains(model, *node),
            Def::Input(region, _) => self.regions.contains(region),
            Def::Constant(_) => false,
        }
    }

    fn contains_use(&self, model: &Model, at: Use) -> bool {
        match at {
            Use::Input(node, _) => self.contains(model, node),
            Use::Output(region, _) => self.regions.contains(&region),
        }
    }
}

impl Model {
    /// Puts the nodes of a region in another order. Returns false, and changes nothing, if these
    /// are not all of them.
    pub fn reorder(&mut self, region: RegionId, order: &[NodeId]) -> bool {
        let all: FxHashSet<NodeId> = self.nodes(region).collect();
        let given: FxHashSet<NodeId> = order.iter().copied().collect();
        if all != given || given.len() != order.len() {
            return false;
        }
        let mut last = None;
        for &node in order {
            self.link(region, last, Some(node));
            last = Some(node);
        }
        self.link(region, last, None);
        if last.is_none() {
            self.link(region, None, None);
        }
        true
    }

    /// Moves neighbouring nodes of a region, given in order, into a new region. A node that can
    /// call it takes their place. Values that the nodes use from outside become inputs: first
    /// computed values, then constants, except for those for which `inside` is true. Their values
    /// that are used outside become outputs. Both are in the order of the nodes. Output slots must
    /// be finished ([`Model::finish_outputs`]).
    ///
    /// ```
    /// use pt2onnx_ir::{Function, Model};
    ///
    /// let text = r#"<ir_version: 9, opset_import: ["" : 20]>
    /// main_graph (float[2] x) => (float[2] y) { a = Exp (x) b = Mul (a, x) y = Neg (b) }"#;
    /// let mut model: Model = text.parse()?;
    /// let nodes: Vec<_> = model.nodes(Model::MAIN).take(2).collect();
    /// let Some(made) = model.outline(&nodes, |_| true) else { panic!() };
    /// model.set_op(made.call, "f");
    /// model[made.call].domain = "my".into();
    /// model.functions.push(Function::new("my", "f", made.body));
    /// model.assign_names();
    /// assert!(model.to_string().contains("b = my.f (x)"));
    /// # Ok::<(), pt2onnx_ir::ParseError>(())
    /// ```
    ///
    /// `None` if nothing of them is used, and then nothing is changed.
    pub fn outline(
        &mut self,
        nodes: &[NodeId],
        inside: impl Fn(&ValueData) -> bool,
    ) -> Option<Outlined> {
        let first = *nodes.first()?;
        let cut = Cut::new(self, nodes, inside);
        let made = nodes.iter().flat_map(|n| self[*n].outputs().to_vec());
        let used = |v: &Value| self[*v].uses().any(|u| !cut.contains_use(self, u));
        let results: Vec<Value> = made.filter(used).collect();
        if results.is_empty() {
            return None;
        }
        let operands: Vec<Option<Value>> = cut.captured.keys().copied().map(Some).collect();
        let at = InsertPoint::Before(first);
        let call = self.add_node(at, "", &operands, Attributes::new(), results.len());
        let body = self.add_region();
        for (&value, uses) in &cut.captured {
            let input = self.add_input(body, self[value].ty.clone());
            uses.iter().for_each(|at| self.replace_use(*at, value, input));
        }
        for (i, &value) in results.iter().enumerate() {
            let result = self[call].outputs()[i];
            let (name, ty) = (self[value].name.clone(), self[value].ty.clone());
            self[result].name.clone_from(&name);
            self[result].ty.clone_from(&ty);
            let outside = self[value].uses().filter(|at| !cut.contains_use(self, *at));
            for at in outside.collect::<Vec<_>>() {
                self.replace_use(at, value, result);
            }
            (self[value].name, self[value].ty) = (name, ty);
        }
        for &node in nodes {
            self.append(node, body);
        }
        self.set_outputs_as_written(body, &results);
        Some(Outlined { call, body })
    }

    fn replace_use(&mut self, at: Use, old: Value, new: Value) {
        match at {
            Use::Input(node, i) => _ = self.replace_input(node, i as usize, Some(new)),
            Use::Output(region, i) => {
                self.drop_use(Some(old), at);
                self.note_use(Some(new), at);
                self.replace_output(region, i as usize, old, new);
            }
        }
    }

    /// Moves a node to the end of another region.
    fn append(&mut self, node: NodeId, to: RegionId) {
        self.unlink(node);
        let last = self[to].last;
        self[node].region = to;
        self.link(to, last, Some(node));
        self.link(to, Some(node), None);
    }

    /// Moves a node to the place before another node, which may be in another region. Its inputs
    /// must be in scope there. Returns false, and changes nothing, if both are the same node.
    pub fn move_before(&mut self, node: NodeId, before: NodeId) -> bool {
        if node == before {
            return false;
        }
        self.unlink(node);
        let (to, last) = (self[before].region(), self.prev(before));
        self[node].region = to;
        self.link(to, last, Some(node));
        self.link(to, Some(node), Some(before));
        true
    }

    /// Erases the nodes, inputs and outputs of a region that nothing refers to.
    pub fn discard(&mut self, region: RegionId) {
        self.clear(region);
        self[region].inputs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Function, verify};

    /// Outlines the nodes from `first` to `last` of a model.
    fn outlined(text: &str, first: usize, last: usize) -> (Model, Option<Outlined>) {
        let mut model: Model = text.parse().unwrap();
        let nodes: Vec<NodeId> = model.nodes(Model::MAIN).collect();
        let small = |data: &ValueData| data.constant().is_some_and(|t| t.numel() == 1);
        let made = model.outline(&nodes[first..=last], small);
        if let Some(Outlined { call, body }) = made {
            model.set_op(call, "f");
            model[call].domain = "my".into();
            model.functions.push(Function::new("my", "f", body));
        }
        model.assign_names();
        assert_eq!(verify(&model), Ok(()), "{model}");
        (model, made)
    }

    const TEXT: &str = r#"<ir_version: 9, opset_import: ["" : 20]>
        main_graph (float[2] x, bool c) => (float[2] y, float[2] e)
        <float[2] w = {1.0, 2.0}, float one = {1.0}> {
            a = Add (x, one)
            b = If (c) <
                then_branch = t () => (float[2] r) { p = Mul (a, w) r = Add (p, x) },
                else_branch = f () => (float[2] s) { s = Neg (a) }>
            e = Exp (b)
            y = Mul (e, a) }"#;

    #[test]
    fn values_become_inputs_and_outputs() {
        let (model, made) = outlined(TEXT, 0, 2);
        let made = made.unwrap();
        let text = model.to_string();
        assert!(text.contains("a, e = my.f (x, c, w)"), "{text}");
        assert!(!text.contains("(x, one, c"), "{text}");
        assert_eq!(model.nodes(made.body).count(), 3);
        assert_eq!(model[made.body].inputs().len(), 3);
        let mut flat = model.clone();
        flat.inline_functions().unwrap();
        flat.assign_names();
        assert_eq!(verify(&flat), Ok(()), "{flat}");
        let ops =
            |m: &Model| m.all_nodes().iter().map(|n| m[*n].op().to_owned()).collect::<Vec<_>>();
        assert_eq!(ops(&flat), ops(&TEXT.parse().unwrap()));
    }

    #[test]
    fn bodies_capture_values_of_a_function() {
        let (model, _) = outlined(TEXT, 1, 1);
        assert!(model.to_string().contains("b = my.f (c, a, x, w)"), "{model}");
    }

    #[test]
    fn what_is_not_used_stays() {
        let text = r#"<ir_version: 9, opset_import: ["" : 20]>
            main_graph (float[2] x) => (float[2] y) { a = Exp (x) y = Neg (x) }"#;
        let (model, made) = outlined(text, 0, 0);
        assert!(made.is_none() && model.nodes(Model::MAIN).count() == 2);
    }

    #[test]
    fn nodes_in_another_order() {
        let text = r#"<ir_version: 9, opset_import: ["" : 20]>
            main_graph (float[2] x) => (float[2] y) { a = Exp (x) b = Neg (x) y = Add (a, b) }"#;
        let mut model: Model = text.parse().unwrap();
        let mut nodes: Vec<NodeId> = model.nodes(Model::MAIN).collect();
        nodes.swap(0, 1);
        assert!(!model.reorder(Model::MAIN, &nodes[1..]));
        assert!(!model.reorder(Model::MAIN, &[nodes[0], nodes[0], nodes[2]]));
        assert!(model.reorder(Model::MAIN, &nodes));
        assert_eq!(model.nodes(Model::MAIN).collect::<Vec<_>>(), nodes);
        assert_eq!(model.nodes_rev(Model::MAIN).count(), 3);
        assert_eq!(verify(&model), Ok(()));
    }
}
