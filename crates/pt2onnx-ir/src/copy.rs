//! Copies the bodies of functions, to another model or to the places where they are called, and the
//! graphs of other models.

use crate::{
    Attribute, Attributes, Def, Function, InsertPoint, Model, ModuleCall, ModuleId, NodeId, Origin,
    OriginId, RegionId, Type, Value, is_unknown,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// No model gets more nodes than these by inlining: functions that call each other twice grow
/// without bound.
const MAX_INLINED: usize = 1 << 20;

impl Model {
    /// Copies a function of another model, and the functions that it calls, unless this model has
    /// them already.
    pub fn copy_function(&mut self, from: &Model, function: &Function) {
        self.copy_functions(from, [function]);
    }

    /// As [`copy_function`](Self::copy_function), for several functions.
    pub fn copy_functions<'a>(
        &mut self,
        from: &'a Model,
        functions: impl IntoIterator<Item = &'a Function>,
    ) {
        let (own, index) = (self.function_index(), from.function_index());
        let mut todo: Vec<&Function> = functions.into_iter().collect();
        todo.reverse();
        let mut copied = FxHashSet::default();
        while let Some(function) = todo.pop() {
            if own.same_as(self, function).is_some() || !copied.insert(function.body) {
                continue;
            }
            let mut copy = Copier::new(from, self);
            let body = copy.region(function.body);
            self.functions.push(Function { body, ..function.clone() });
            let nodes = from.nodes_in(&[function.body]).into_iter();
            todo.extend(nodes.filter_map(|n| index.called(from, &from[n])));
        }
    }

    /// Puts the main graph of another model behind that of this one, with its functions. The
    /// other's inputs that are `given` become values of this model; the others become inputs. The
    /// other's outputs follow the outputs of this model that are not given away. Names that clash
    /// are changed by [`assign_names`](Self::assign_names). Nodes, values and bodies keep their
    /// metadata and documentation.
    ///
    /// ```
    /// use pt2onnx_ir::Model;
    ///
    /// let mut model: Model = "a (float[2] x) => (float[2] y) { y = Relu (x) }".parse()?;
    /// let other: Model = "b (float[2] y, float[2] x) => (float[2] z) { z = Add (y, x) }".parse()?;
    /// let output = model.output_values().next().unwrap();
    /// model.append_graph(&other, &[(other.inputs()[0], output)]);
    /// assert_eq!((model.inputs().len(), model.output_values().len()), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn append_graph(&mut self, other: &Model, given: &[(Value, Value)]) {
        self.finish_all_outputs();
        self.copy_functions(other, &other.functions);
        let mut outputs: Vec<Value> = self.output_values().collect();
        outputs.retain(|output| given.iter().all(|(_, value)| value != output));
        let mut copy = Copier::new(other, self);
        for &input in other.inputs() {
            match given.iter().find(|(known, _)| *known == input) {
                Some((_, value)) => _ = copy.values.insert(input, Some(*value)),
                None => {
                    let value = copy.to.add_input(Self::MAIN, None);
                    copy.describe(input, value);
                    copy.to[value].default.clone_from(&other[input].default);
                }
            }
        }
        copy.nodes(Self::MAIN, InsertPoint::End(Self::MAIN));
        let made: Vec<Value> = other.output_values().filter_map(|v| copy.value(v)).collect();
        let names = other[Self::MAIN].outputs().iter().map(|slot| other.output_name(slot).cloned());
        let names: Vec<_> = names.collect();
        let first = outputs.len();
        outputs.extend(made);
        self.set_outputs(Self::MAIN, &outputs);
        for (i, name) in names.into_iter().enumerate() {
            if let Some(name) = name {
                self.set_output_name(Self::MAIN, first + i, name);
            }
        }
    }

    /// Copies the nodes of another model's main graph to a place, with the functions that they
    /// call. Inputs and constants of the other that are `given` become values of this
    /// model; all its inputs must be. Returns what the other's outputs become.
    ///
    /// ```
    /// use pt2onnx_ir::{InsertPoint, Model};
    ///
    /// let mut model: Model = "a (float[2] x) => (float[2] y) { y = Relu (x) }".parse()?;
    /// let other: Model = "b (float[2] v) => (float[2] z) { z = Exp (v) }".parse()?;
    /// let given = [(other.inputs()[0], model.output_values().next().unwrap())];
    /// let outputs = model.copy_nodes(&other, &given, InsertPoint::End(Model::MAIN));
    /// model.set_outputs(Model::MAIN, &outputs);
    /// assert!(model.to_string().contains("(y)"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy_nodes(
        &mut self,
        other: &Model,
        given: &[(Value, Value)],
        at: InsertPoint,
    ) -> Vec<Value> {
        self.copy_functions(other, &other.functions);
        let mut copy = Copier::new(other, self);
        copy.values.extend(given.iter().map(|&(old, new)| (old, Some(new))));
        copy.nodes(Self::MAIN, at);
        other.output_values().filter_map(|v| copy.value(v)).collect()
    }

    /// Replaces calls of the model's functions by their bodies, at any depth, and removes the
    /// functions. Nodes and values of the bodies get new names, except for those of the calls'
    /// results. Types of inner values are not inferred.
    ///
    /// ```
    /// use pt2onnx_ir::Model;
    ///
    /// let text = r#"<ir_version: 9, opset_import: ["" : 20, "my" : 1]>
    /// main_graph (float[2] x) => (float[2] y) { y = my.twice <by: float = 3.0> (x) }
    /// <domain: "my", opset_import: ["" : 20]>
    /// twice <by> (x) => (y) { b = Constant <value_float: float = @by> () y = Mul (x, b) }"#;
    /// let mut model: Model = text.parse()?;
    /// model.inline_functions()?;
    /// assert!(model.functions.is_empty() && model.to_string().contains("y = Mul"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A function calls itself, there would be more than a million nodes, or a call does not fit
    /// its function. The model is then of no use.
    pub fn inline_functions(&mut self) -> Result<(), InlineError> {
        if self.functions.is_empty() {
            return Ok(());
        }
        let library = self.clone();
        let index = library.function_index();
        let mut todo = self.graph_nodes();
        todo.reverse();
        let mut inlined = 0;
        while let Some(id) = todo.pop() {
            // Bodies that are given to a function are gone with the call.
            let call = self.contains(id).then(|| &self[id]);
            let Some(function) = call.and_then(|call| index.called(&library, call)) else {
                continue;
            };
            let made = self.inline(&library, function, id)?;
            inlined += made.len();
            if inlined > MAX_INLINED {
                return Err(InlineError::Endless(function.called()));
            }
            let bodies = made.iter().flat_map(|n| self[*n].attributes.iter());
            let bodies: Vec<RegionId> = bodies.flat_map(|(_, a)| a.regions()).copied().collect();
            todo.extend(self.nodes_in(&bodies));
            todo.extend(made.into_iter().rev());
        }
        self.functions.clear();
        Ok(())
    }

    /// Puts the body of a function in the place of a call. Returns its nodes.
    fn inline(
        &mut self,
        library: &Model,
        function: &Function,
        call: NodeId,
    ) -> Result<Vec<NodeId>, InlineError> {
        let node = self[call].clone();
        let body = &library[function.body];
        let given = node.inputs().iter().rposition(Option::is_some);
        let taken = node.outputs().iter().rposition(|v| !self[*v].is_left_out());
        for (what, last, has) in
            [("inputs", given, body.inputs().len()), ("outputs", taken, body.outputs().len())]
        {
            let given = last.map_or(0, |last| last + 1);
            if given > has {
                return Err(InlineError::Call { function: function.called(), what, given, has });
            }
        }
        let mut attributes = node.attributes.clone();
        for (name, default) in &function.defaults {
            if !attributes.iter().any(|(given, _)| given == name) {
                attributes.push((name.clone(), default.clone()));
            }
        }
        let mut copy = Copier::new(library, self);
        copy.call = Some(Call { attributes, origins: node.origins.clone() });
        for (i, &input) in body.inputs().iter().enumerate() {
            copy.values.insert(input, node.inputs().get(i).copied().flatten());
        }
        let made = copy.nodes(function.body, InsertPoint::Before(call));
        let outputs: Vec<_> = body.output_values().map(|v| copy.value(v)).collect();
        for (&result, output) in node.outputs().iter().zip(outputs) {
            let Some(output) = output else {
                if self[result].uses().len() == 0 {
                    continue;
                }
                return Err(InlineError::Omitted(function.called()));
            };
            let own = self.producer(output).is_some_and(|n| made.contains(&n));
            if own && self[output].name.is_none() {
                self[output].name = self[result].name.take();
            }
            // A body is for any shape, so the call knows more of its result.
            if self[output].ty.is_none()
                || (own && self[result].ty.as_ref().is_some_and(Type::has_shape))
            {
                self[output].ty = self[result].ty.clone();
            }
            self.replace_all_uses(result, output);
        }
        self.erase(call);
        Ok(made)
    }
}

/// Functions that cannot be inlined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum InlineError {
    #[error(
        "the function {0} cannot be inlined: it calls itself, or the model would have more than a million nodes"
    )]
    Endless(String),
    #[error(
        "the function {function} cannot be inlined: it has {has} {what}, and a call has {given}"
    )]
    Call { function: String, what: &'static str, given: usize, has: usize },
    #[error("the function {0} cannot be inlined: a result is an input that a call leaves out")]
    Omitted(String),
}

/// Copies regions of one model into another.
struct Copier<'a> {
    from: &'a Model,
    to: &'a mut Model,
    /// The copy of each value; `None` for an input that a call does not give.
    values: FxHashMap<Value, Option<Value>>,
    /// The copy of each origin.
    origins: FxHashMap<OriginId, OriginId>,
    /// The copy of each call of a module.
    modules: FxHashMap<ModuleId, ModuleId>,
    /// State of a copy to the place of a call instead of to a function.
    call: Option<Call>,
    /// Whether a body is copied within its model: what it uses from outside stays.
    within: bool,
}

/// A call whose place a body takes.
struct Call {
    /// The attributes that the body may refer to.
    attributes: Attributes,
    origins: SmallVec<[OriginId; 1]>,
}

impl<'a> Copier<'a> {
    fn new(from: &'a Model, to: &'a mut Model) -> Self {
        let (values, origins) = (FxHashMap::default(), FxHashMap::default());
        Self { from, to, values, origins, modules: FxHashMap::default(), call: None, within: false }
    }

    fn region(&mut self, region: RegionId) -> RegionId {
        let copy = self.to.add_region();
        let data = &self.from[region];
        self.to[copy].name.clone_from(&data.name);
        self.to[copy].metadata.clone_from(&data.metadata);
        for &input in data.inputs() {
            let value = self.to.add_input(copy, None);
            self.describe(input, value);
        }
        self.nodes(region, InsertPoint::End(copy));
        let outputs: Vec<_> = data.output_values().filter_map(|v| self.value(v)).collect();
        self.to.set_outputs(copy, &outputs);
        for (i, output) in data.outputs().iter().enumerate() {
            if let Some(name) = &output.name {
                self.to.set_output_name(copy, i, name.clone());
            }
        }
        copy
    }

    /// Copies the nodes of a region to a place. Returns the copies.
    fn nodes(&mut self, region: RegionId, at: InsertPoint) -> Vec<NodeId> {
        let mut made = Vec::new();
        for node in self.from.nodes(region) {
            let node = &self.from[node];
            let inputs: Vec<_> =
                node.inputs().iter().map(|v| v.and_then(|v| self.value(v))).collect();
            let attributes = node.attributes.iter();
            let attributes = attributes
                .filter_map(|(name, value)| Some((name.clone(), self.attribute(value)?)))
                .collect();
            let (op, outputs) = (node.op.clone(), node.outputs());
            let id = self.to.add_node(at, op, &inputs, attributes, outputs.len());
            self.to[id].domain.clone_from(&node.domain);
            self.to[id].overload.clone_from(&node.overload);
            self.to[id].origins = self.origins(&node.origins);
            if self.call.is_none() {
                self.to[id].name.clone_from(&node.name);
            }
            let results = self.to[id].outputs().to_vec();
            for (&output, value) in outputs.iter().zip(results) {
                self.describe(output, value);
            }
            made.push(id);
        }
        made
    }

    /// The origins of a copied node. Those of a call stand for a body's node that has none.
    fn origins(&mut self, old: &[OriginId]) -> SmallVec<[OriginId; 1]> {
        match &self.call {
            Some(call) if old.is_empty() => call.origins.clone(),
            // The body is one of the same model.
            Some(_) => old.into(),
            None if self.within => old.into(),
            None => old.iter().map(|origin| self.origin(*origin)).collect(),
        }
    }

    fn origin(&mut self, old: OriginId) -> OriginId {
        if let Some(&known) = self.origins.get(&old) {
            return known;
        }
        let origin = &self.from[old];
        let module = origin.module.map(|module| self.module(module));
        let copy = self.to.add_origin(Origin { module, ..origin.clone() });
        self.origins.insert(old, copy);
        copy
    }

    /// Copies a call of a module, and the calls around it.
    fn module(&mut self, old: ModuleId) -> ModuleId {
        let around: Vec<ModuleId> = self.from.modules_around(old).collect();
        let mut parent = None;
        for id in around.into_iter().rev() {
            let made = match self.modules.get(&id) {
                Some(&known) => known,
                None => self.to.add_module(ModuleCall { parent, ..self.from[id].clone() }),
            };
            self.modules.insert(id, made);
            parent = Some(made);
        }
        // A call is around itself.
        parent.unwrap_or(old)
    }

    /// An attribute, with that of the call for a reference. `None` if the call has none.
    fn attribute(&mut self, value: &Attribute) -> Option<Attribute> {
        Some(match (value, &self.call) {
            (Attribute::Reference { name, .. }, Some(call)) => {
                let given = &call.attributes.iter().find(|(given, _)| given == name)?.1;
                match given.regions().first() {
                    // The call is erased, with its bodies. Others may take the same ones.
                    Some(_) => {
                        let given = given.clone();
                        let around = self.to.clone();
                        let mut copy = Copier::new(&around, self.to);
                        copy.within = true;
                        return copy.attribute(&given);
                    }
                    None => given.clone(),
                }
            }
            (Attribute::Region(r), _) => Attribute::Region(self.region(*r)),
            (Attribute::Regions(rs), _) => {
                Attribute::Regions(rs.iter().map(|r| self.region(*r)).collect())
            }
            (other, _) => other.clone(),
        })
    }

    fn describe(&mut self, old: Value, new: Value) {
        self.name(old, new);
        let ty = self.from[old].ty.clone().map(|ty| self.ty(ty));
        self.to[new].ty = ty;
        self.values.insert(old, Some(new));
    }

    /// Replaces unknown dimensions by new ones of this model, which are equal to no other.
    fn ty(&mut self, ty: Type) -> Type {
        match ty {
            Type::Tensor(mut t) => {
                for dim in t.shape.iter_mut().flatten().filter(|d| is_unknown(d)) {
                    *dim = self.to.unknown_dim();
                }
                Type::Tensor(t)
            }
            Type::Sequence(t) => Type::Sequence(Box::new(self.ty(*t))),
            Type::Optional(t) => Type::Optional(Box::new(self.ty(*t))),
            other => other,
        }
    }

    fn value(&mut self, value: Value) -> Option<Value> {
        if let Some(&known) = self.values.get(&value) {
            return known;
        }
        let copy = match self.from[value].def() {
            _ if self.within => return Some(value),
            Def::Constant(tensor) => self.to.add_constant(tensor.clone()),
            // Nodes and inputs are copied before their uses, so the function is not valid: it uses
            // a value before it is defined. The copy does so, too, and `verify` reports it.
            Def::Node(..) | Def::Input(..) => {
                let undefined = self.to.add_erased_node();
                self.to.add_value(Def::Node(undefined, 0), None)
            }
        };
        self.name(value, copy);
        self.values.insert(value, Some(copy));
        Some(copy)
    }

    /// Copies name, type and metadata of a value. Values of an inlined body get new names.
    fn name(&mut self, old: Value, new: Value) {
        let old = &self.from[old];
        if self.call.is_none() {
            self.to[new].name.clone_from(&old.name);
        }
        self.to[new].metadata.clone_from(&old.metadata);
        self.to[new].doc_string.clone_from(&old.doc_string);
    }
}
