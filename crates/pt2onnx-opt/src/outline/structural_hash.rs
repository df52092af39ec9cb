//! Skeletons of bodies: bodies with the same skeleton can become one function.

use pt2onnx_ir::{Attribute, Def, Model, NodeId, RegionId, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// A place of a body with a value that may differ between bodies of one skeleton.
#[derive(Clone, Copy)]
pub(super) enum Slot {
    /// An attribute of a node, by its position.
    Attribute(NodeId, usize),
    Constant(Value),
}

/// The nodes of a body and how they are connected, without the values of attributes and constants.
#[derive(Default)]
pub(super) struct Skeleton {
    /// Equal for bodies of the same nodes.
    pub(super) key: Vec<u8>,
    /// The values that were left out, in order.
    pub(super) slots: Vec<Slot>,
    /// The values that the bodies of nodes define, in order. Files declare their types.
    pub(super) typed: Vec<Value>,
    numbers: FxHashMap<Value, usize>,
}

impl Skeleton {
    pub(super) fn of(model: &Model, body: RegionId) -> Self {
        let mut skeleton = Self::default();
        skeleton.region(model, body);
        let inputs = model[body].inputs().iter();
        let own: FxHashSet<Value> = inputs
            .copied()
            .chain(model.nodes(body).flat_map(|n| model[n].outputs().to_vec()))
            .collect();
        skeleton.typed.retain(|v| !own.contains(v));
        skeleton
    }

    fn number(&mut self, number: usize) {
        self.key.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.key.extend(text.as_bytes());
    }

    fn define(&mut self, value: Value) {
        let next = self.numbers.len() + 1;
        self.numbers.insert(value, next);
        self.typed.push(value);
    }

    fn ty(&mut self, ty: Option<&Type>) {
        match ty {
            Some(Type::Tensor(ty)) => self.text(&ty.dtype.to_string()),
            Some(other) => self.text(&other.to_string()),
            None => self.text(""),
        }
    }

    fn region(&mut self, model: &Model, region: RegionId) {
        let data = &model[region];
        self.number(data.inputs().len());
        data.inputs().iter().for_each(|v| self.define(*v));
        self.number(model.nodes(region).count());
        for node in model.nodes(region) {
            self.node(model, node);
        }
        self.number(data.outputs().len());
        for value in data.output_values() {
            self.value(model, Some(value));
        }
    }

    fn types(&mut self, model: &Model, region: RegionId) {
        model[region].inputs().iter().for_each(|v| self.ty(model[*v].ty.as_ref()));
        for value in model.nodes(region).flat_map(|n| model[n].outputs()) {
            self.ty(model[*value].ty.as_ref());
        }
    }

    fn node(&mut self, model: &Model, id: NodeId) {
        let node = &model[id];
        self.text(&node.domain);
        self.text(node.op());
        self.text(&node.overload);
        self.number(node.inputs().len());
        for input in node.inputs() {
            self.value(model, *input);
        }
        self.number(node.attributes.len());
        for (i, (name, value)) in node.attributes.iter().enumerate() {
            self.text(name);
            self.number(value.kind() as usize);
            match value {
                Attribute::Region(_) | Attribute::Regions(_) => {
                    self.number(value.regions().len());
                    for &region in value.regions() {
                        self.region(model, region);
                        self.types(model, region);
                    }
                }
                Attribute::Reference { name, .. } => self.text(name),
                _ => self.slots.push(Slot::Attribute(id, i)),
            }
        }
        self.number(node.outputs().len());
        for &output in node.outputs() {
            self.number(model[output].is_left_out().into());
            self.define(output);
        }
    }

    fn value(&mut self, model: &Model, value: Option<Value>) {
        let Some(value) = value else {
            return self.number(0);
        };
        if let Some(&known) = self.numbers.get(&value) {
            return self.number(known);
        }
        let next = self.numbers.len() + 1;
        self.numbers.insert(value, next);
        self.number(next);
        if let Def::Constant(tensor) = model[value].def() {
            self.text(&tensor.dtype().to_string());
            self.number(tensor.shape().len());
            self.slots.push(Slot::Constant(value));
        }
    }
}

impl Slot {
    /// The value there.
    pub(super) fn get(self, model: &Model) -> Option<Attribute> {
        match self {
            Self::Attribute(node, i) => model[node].attributes.get(i).map(|(_, a)| a.clone()),
            Self::Constant(value) => model[value].constant().cloned().map(Attribute::Tensor),
        }
    }
}
