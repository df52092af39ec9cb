//! Copies functions from one model to another.

use crate::{Attribute, Def, Function, InsertPoint, Model, RegionId, Type, Value, is_unknown};
use rustc_hash::FxHashMap;

impl Model {
    /// Copies a function of another model, and the functions that it calls, unless this model has them already.
    pub fn copy_function(&mut self, from: &Model, function: &Function) {
        let mut todo = vec![function];
        while let Some(function) = todo.pop() {
            if self.functions.iter().any(|f| f.is_same_as(function)) {
                continue;
            }
            let mut copy = Copier { from, to: self, values: FxHashMap::default() };
            let body = copy.region(function.body);
            self.functions.push(Function { body, ..function.clone() });
            let called = from.nodes_in(&[function.body]).into_iter().filter_map(|n| {
                let mut functions = from.functions.iter();
                functions.find(|f| f.is_called_by(&from[n]))
            });
            todo.extend(called);
        }
    }
}

/// Copies regions of one model into another.
struct Copier<'a> {
    from: &'a Model,
    to: &'a mut Model,
    /// The copy of each value.
    values: FxHashMap<Value, Value>,
}

impl Copier<'_> {
    fn region(&mut self, region: RegionId) -> RegionId {
        let copy = self.to.add_region();
        let data = &self.from[region];
        self.to[copy].name.clone_from(&data.name);
        for &input in data.inputs() {
            let value = self.to.add_input(copy, None);
            self.describe(input, value);
        }
        for node in self.from.nodes(region) {
            let node = &self.from[node];
            let inputs: Vec<_> = node.inputs().iter().map(|v| v.map(|v| self.value(v))).collect();
            let attributes = node.attributes.iter().map(|(name, value)| {
                let value = match value {
                    Attribute::Region(r) => Attribute::Region(self.region(*r)),
                    Attribute::Regions(rs) => {
                        Attribute::Regions(rs.iter().map(|r| self.region(*r)).collect())
                    }
                    other => other.clone(),
                };
                (name.clone(), value)
            });
            let attributes = attributes.collect();
            let at = InsertPoint::End(copy);
            let (op, outputs) = (node.op.clone(), node.outputs());
            let id = self.to.add_node(at, op, &inputs, attributes, outputs.len());
            self.to[id].domain.clone_from(&node.domain);
            self.to[id].overload.clone_from(&node.overload);
            self.to[id].name.clone_from(&node.name);
            let made = self.to[id].outputs().to_vec();
            for (&output, value) in outputs.iter().zip(made) {
                self.describe(output, value);
            }
        }
        let outputs: Vec<_> = data.output_values().map(|v| self.value(v)).collect();
        self.to.set_outputs(copy, &outputs);
        for (i, output) in data.outputs().iter().enumerate() {
            if let Some(name) = &output.name {
                self.to.set_output_name(copy, i, name.clone());
            }
        }
        copy
    }

    fn describe(&mut self, old: Value, new: Value) {
        self.to[new].name.clone_from(&self.from[old].name);
        let ty = self.from[old].ty.clone().map(|ty| self.ty(ty));
        self.to[new].ty = ty;
        self.values.insert(old, new);
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

    fn value(&mut self, value: Value) -> Value {
        if let Some(&known) = self.values.get(&value) {
            return known;
        }
        let copy = match self.from[value].def() {
            Def::Constant(tensor) => self.to.add_constant(tensor.clone()),
            // Nodes and inputs are copied before their uses, so the function is not valid: it uses a value before it is
            // defined. The copy does so, too, and `verify` reports it.
            Def::Node(..) | Def::Input(..) => {
                let undefined = self.to.add_erased_node();
                self.to.add_value(Def::Node(undefined, 0), None)
            }
        };
        self.to[copy].name.clone_from(&self.from[value].name);
        self.values.insert(value, copy);
        copy
    }
}
