//! Finding patterns.

use super::{
    attributes,
    part::{Match, NodePart, Part, Pattern},
};
use crate::analysis::{number_of, rounded};
use pt2onnx_ir::{Model, Node, NodeId, OpSet, Use, Value};
use smallvec::SmallVec;

impl Pattern {
    /// The operators that the last node of the pattern may have.
    pub fn last_operators(&self) -> Vec<&str> {
        self.0.ends()
    }

    /// The operators without which it finds nothing.
    pub(crate) fn needed(&self) -> OpSet {
        self.0.needed()
    }

    /// The operators of all its nodes, in all alternatives.
    pub(crate) fn operators(&self) -> OpSet {
        self.0.operators()
    }

    /// Finds the pattern whose last node is `last`. All nodes are in one region, and the outputs of
    /// all nodes but the last are used by nodes of the pattern only. No operand is such an output:
    /// in `Add(m, m)` of a product `m`, the pattern `Add(MatMul(a, b), c)` finds nothing.
    pub fn find(&self, model: &Model, last: NodeId) -> Option<Match<'_>> {
        self.find_if(model, last, |found| {
            let inside = |u: Use| matches!(u, Use::Input(node, _) if found.nodes.contains(&node));
            found.nodes.iter().all(|&node| {
                let outputs = model[node].outputs().iter();
                let mut inner = outputs.filter(|&&v| v != found.output);
                model[node].region() == model[last].region()
                    && inner.all(|&v| model[v].uses().all(inside))
            }) && found.names.iter().all(|&(name, value)| {
                let made = model.producer(value).is_some_and(|id| found.nodes.contains(&id));
                !made || self.0.labels(name)
            })
        })
    }

    /// As [`find`](Self::find), if other nodes use what the pattern computes in between.
    pub(crate) fn find_shared(&self, model: &Model, last: NodeId) -> Option<Match<'_>> {
        self.find_if(model, last, |_| true)
    }

    fn find_if<'p>(
        &'p self,
        model: &Model,
        last: NodeId,
        complete: impl Fn(&Match<'p>) -> bool,
    ) -> Option<Match<'p>> {
        let place = match &self.0 {
            Part::Node(node) => node.output,
            _ => 0,
        };
        let output = *model[last].outputs().get(place)?;
        if !self.0.may_be(model, output, LOOKED_AHEAD) {
            return None;
        }
        let empty = Match {
            names: SmallVec::new(),
            nodes: SmallVec::new(),
            output,
            attributes: Vec::new(),
            constants: None,
            of: &self.0,
        };
        solve(model, &[(&self.0, output)], empty, &complete)
    }
}

/// How many steps before the last node are looked at first: most nodes fit no pattern.
const LOOKED_AHEAD: usize = 2;

impl Part {
    /// Whether the value may match the part, as far as nodes up to `depth` steps before show.
    fn may_be(&self, model: &Model, value: Value, depth: usize) -> bool {
        match self {
            Self::Any { constant, .. } => !constant || model[value].constant().is_some(),
            Self::Number(number) => is_number(model, value, *number),
            Self::Constant { .. } => model[value].constant().is_some(),
            Self::Absent => false,
            Self::Either(all) => all.iter().any(|part| part.may_be(model, value, depth)),
            Self::Node(part) => {
                let producer = model.producer(value).filter(|&id| model.may_be(id, part.ops));
                producer.map(|id| &model[id]).is_some_and(|node| {
                    let fits = |order: &[usize; 2]| {
                        operands(node, &part.inputs, *order).all(|(p, v)| match v {
                            Some(v) => p.may_be(model, v, depth - 1),
                            None => matches!(p, Self::Absent),
                        })
                    };
                    // Texts are compared last: mostly, something else differs.
                    part.has_arity_of(node)
                        && node.outputs().get(part.output) == Some(&value)
                        && (depth == 0 || orders(node, part.commutes).iter().any(fits))
                        && node.op() == part.op
                        && node.domain == part.domain.as_str()
                        && node.overload == part.overload.as_str()
                })
            }
        }
    }

    /// Whether an output of a node has the name.
    fn labels(&self, name: &str) -> bool {
        self.any(&|part| matches!(part, Self::Node(node) if node.has_label(name)))
    }

    fn operators(&self) -> OpSet {
        match self {
            Self::Any { .. } | Self::Number(_) | Self::Constant { .. } | Self::Absent => {
                OpSet::default()
            }
            Self::Either(all) => {
                all.iter().map(Self::operators).fold(OpSet::default(), OpSet::union)
            }
            Self::Node(node) => {
                node.inputs.iter().map(Self::operators).fold(node.ops, OpSet::union)
            }
        }
    }

    fn needed(&self) -> OpSet {
        match self {
            Self::Any { .. } | Self::Number(_) | Self::Constant { .. } | Self::Absent => {
                OpSet::default()
            }
            Self::Either(all) => {
                all.iter().map(Self::needed).reduce(OpSet::intersection).unwrap_or_default()
            }
            Self::Node(node) => node.inputs.iter().map(Self::needed).fold(node.ops, OpSet::union),
        }
    }

    pub(super) fn ends(&self) -> Vec<&str> {
        match self {
            Self::Node(node) => vec![&node.op],
            Self::Either(all) => all.iter().flat_map(Self::ends).collect(),
            Self::Any { .. } | Self::Number(_) | Self::Constant { .. } | Self::Absent => Vec::new(),
        }
    }
}

impl NodePart {
    /// Whether a node has as many inputs and outputs as the pattern wants.
    fn has_arity_of(&self, node: &Node) -> bool {
        let (wanted, inputs) = (self.inputs.len(), node.inputs());
        node.outputs().len() == self.labels.len()
            && if self.exactly.is_some() {
                inputs.iter().skip(wanted).all(Option::is_none)
            } else {
                inputs.len() >= wanted
            }
    }
}

/// Finds all goals in addition to what is found, where each value [may be](Part::may_be) its part.
fn solve<'p>(
    model: &Model,
    goals: &[(&'p Part, Value)],
    mut found: Match<'p>,
    complete: &dyn Fn(&Match<'p>) -> bool,
) -> Option<Match<'p>> {
    let Some((&(part, value), rest)) = goals.split_first() else {
        return complete(&found).then_some(found);
    };
    match part {
        Part::Any { name, .. } => {
            found.bind(name, value).then(|| solve(model, rest, found, complete))?
        }
        Part::Number(_) => solve(model, rest, found, complete),
        Part::Constant { name, wanted } => {
            let holds = found.bind(name, value)
                && attributes::is_constant(model, value, wanted, &mut found);
            holds.then(|| solve(model, rest, found, complete))?
        }
        Part::Absent => None,
        Part::Either(all) => all.iter().filter(|p| p.may_be(model, value, 0)).find_map(|p| {
            let goals: Vec<_> = [(p, value)].into_iter().chain(rest.iter().copied()).collect();
            solve(model, &goals, found.clone(), complete)
        }),
        Part::Node(part) => {
            let id = model.producer(value)?;
            let node = &model[id];
            let labelled = part.labels.iter().zip(node.outputs());
            let mut labelled = labelled.filter_map(|(label, v)| Some((label.as_deref()?, *v)));
            if !labelled.all(|(label, v)| found.bind(label, v)) {
                return None;
            }
            if let Some(wanted) = &part.exactly
                && !attributes::hold(node, wanted, &mut found)
            {
                return None;
            }
            if !found.nodes.contains(&id) {
                found.nodes.push(id);
            }
            orders(node, part.commutes).iter().find_map(|order| {
                let mut goals: Vec<(&Part, Value)> = Vec::with_capacity(part.inputs.len());
                for (part, value) in operands(node, &part.inputs, *order) {
                    match value {
                        Some(value) if part.may_be(model, value, 0) => goals.push((part, value)),
                        None if matches!(part, Part::Absent) => {}
                        _ => return None,
                    }
                }
                goals.extend_from_slice(rest);
                solve(model, &goals, found.clone(), complete)
            })
        }
    }
}

/// The orders in which the first two inputs of a node may stand.
fn orders(node: &Node, commutes: bool) -> &'static [[usize; 2]] {
    match commutes {
        true if node.inputs().len() != 2 => &[],
        true => &[[0, 1], [1, 0]],
        false => &[[0, 1]],
    }
}

fn operands<'p>(
    node: &Node,
    inputs: &'p [Part],
    order: [usize; 2],
) -> impl Iterator<Item = (&'p Part, Option<Value>)> {
    let place = move |i: usize| order.get(i).copied().unwrap_or(i);
    inputs.iter().enumerate().map(move |(i, part)| (part, node.input(place(i))))
}

/// Whether a value is a constant with one element, equal to the number rounded to its type.
fn is_number(model: &Model, value: Value, number: f64) -> bool {
    let Some((dtype, element)) = number_of(model, value) else { return false };
    let rounded = rounded(dtype, number);
    element == rounded || (element - rounded).abs() <= rounded.abs() * 1e-12
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use pt2onnx_ir::Model;

    #[test]
    fn domains_are_distinguished() {
        let text = r#"<ir_version: 9, opset_import: ["" : 20, "com.example" : 1]>
            main_graph (float[n] x) => (float[n] y) { a = Relu (x) b = com.example.Relu (a) y = Relu (b) }"#;
        let model: Model = text.parse().unwrap();
        let found = |pattern: &str| {
            let pattern: Pattern = pattern.parse().unwrap();
            let nodes = model.nodes(Model::MAIN).enumerate();
            let found = nodes.filter(|(_, id)| pattern.find(&model, *id).is_some());
            found.map(|(i, _)| i).collect::<Vec<_>>()
        };
        assert_eq!(found("Relu(x)"), [0, 2]);
        assert_eq!(found("com.example.Relu(x)"), [1]);
        assert_eq!(found("Relu(com.example.Relu(Relu(x)))"), [2]);
        assert!(found("Relu(Relu(x))").is_empty());
    }

    #[test]
    fn constants_are_found_in_either_order() {
        let text = r#"<ir_version: 9, opset_import: ["" : 20]>
            main_graph (float[n] x) => (float[n] y, float[n] z) <float[1] two = {2.0}> {
                y = Mul (two, x) z = Mul (x, x) }"#;
        let model: Model = text.parse().unwrap();
        let pattern: Pattern = "Mul(a, #b)".parse().unwrap();
        let found: Vec<_> =
            model.nodes(Model::MAIN).map(|node| pattern.find(&model, node)).collect();
        let x = model.inputs()[0];
        assert_eq!(found[0].as_ref().and_then(|found| found.value("a")), Some(x));
        assert!(found[1].is_none());
    }
}
