//! A graph in float16: each float32 tensor becomes one of float16, except around nodes that need
//! float32.

use crate::{
    Edit, Error, Options,
    cast::Casting,
    float32_nodes::{self, takes_half},
    numbers::WeightName,
    with_dtype,
};
use pt2onnx_ir::{Attribute, Def, Model, Name, NodeId, Output, RegionId, Use, Value, schema};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Converts the main graph and its bodies. Returns what each new constant is in float32.
pub(crate) fn convert(
    model: &mut Model,
    options: &Options,
) -> Result<FxHashMap<Value, Tensor>, Error> {
    let mut work = Work {
        full: float32_nodes::nodes(model, options)?,
        halves: FxHashSet::default(),
        made: FxHashMap::default(),
        originals: FxHashMap::default(),
        edit: Edit::new(model),
        options,
    };
    work.inputs();
    let nodes = work.edit.model.graph_nodes();
    nodes.iter().for_each(|node| work.outputs_of(*node));
    nodes.iter().for_each(|node| work.inputs_of(*node));
    work.regions();
    Ok(work.originals)
}

struct Work<'a> {
    edit: Edit<'a>,
    options: &'a Options,
    /// Nodes that compute in float32.
    full: FxHashSet<NodeId>,
    /// Values that became float16.
    halves: FxHashSet<Value>,
    /// The same value in the other type.
    made: FxHashMap<Value, Value>,
    /// New constants in float32.
    originals: FxHashMap<Value, Tensor>,
}

impl Work<'_> {
    fn model(&self) -> &Model {
        self.edit.model
    }

    fn is_float(&self, value: Value) -> bool {
        self.model().dtype(value) == Some(DType::F32) || self.halves.contains(&value)
    }

    fn inputs(&mut self) {
        let mut regions: Vec<RegionId> = Vec::new();
        for id in self.model().graph_nodes() {
            if !self.full.contains(&id) {
                regions.extend(self.model()[id].regions());
            }
        }
        regions.extend(self.options.cast_io.then_some(Model::MAIN));
        for region in regions {
            for value in self.model()[region].inputs().to_vec() {
                self.halve(value);
            }
        }
    }

    fn halve(&mut self, value: Value) {
        if self.model().dtype(value) == Some(DType::F32) && self.model()[value].default.is_none() {
            self.edit.model[value].ty = with_dtype(self.model(), value, DType::F16);
            self.halves.insert(value);
        }
    }

    fn outputs_of(&mut self, id: NodeId) {
        if self.full.contains(&id) {
            return;
        }
        let node = &self.model()[id];
        let schema = schema::lookup(node.op(), self.model().opset);
        let fits = |i: usize| {
            let variable = schema.and_then(|s| Some((s, s.output(i)?.ty)));
            variable.is_none_or(|(schema, ty)| takes_half(schema, ty))
        };
        let outputs = node.outputs().iter().enumerate();
        let outputs: Vec<Value> = outputs.filter(|(i, _)| fits(*i)).map(|(_, v)| *v).collect();
        if node.is("Cast") && node.int("to") == Some(schema::data_type(DType::F32)) {
            let half = Attribute::Int(schema::data_type(DType::F16));
            self.edit.model[id].set_attribute("to", half);
        }
        outputs.into_iter().for_each(|value| self.halve(value));
    }

    fn inputs_of(&mut self, id: NodeId) {
        let half = !self.full.contains(&id);
        for (i, value) in self.model()[id].inputs().to_vec().into_iter().enumerate() {
            if let Some(value) = value.filter(|v| self.is_float(*v)) {
                let other = self.as_type(value, half, Some(id));
                if other != value {
                    self.edit.model.replace_input(id, i, Some(other));
                }
            }
        }
    }

    fn as_type(&mut self, value: Value, half: bool, like: Option<NodeId>) -> Value {
        if self.halves.contains(&value) == half {
            return value;
        }
        if let Some(made) = self.made.get(&value) {
            return *made;
        }
        let made = match self.model()[value].def() {
            Def::Constant(tensor) if half => self.half_constant(value, &tensor.clone()),
            _ => {
                let like = self.model().producer(value).or(like);
                let place = (self.edit.after(value), like);
                self.edit.cast(place, value, if half { DType::F16 } else { DType::F32 })
            }
        };
        self.made.insert(value, made);
        if half {
            self.halves.insert(made);
        }
        made
    }

    fn half_constant(&mut self, value: Value, tensor: &Tensor) -> Value {
        let name = self.model()[value].name.clone();
        let weight = name.as_deref().unwrap_or_default().to_owned();
        let casting = Casting {
            name: WeightName::new(weight, self.options.spelling),
            source: tensor.clone(),
            to: DType::F16,
            clamp: true,
            losses: Arc::default(),
        };
        // Small ones are read by others, such as ONNX's checker.
        let made = casting
            .tensor()
            .and_then(|t| if t.numel() <= 64 { t.evaluated().ok() } else { Some(t) });
        match made {
            Some(half) => {
                let is_output = |used| matches!(used, Use::Output(Model::MAIN, _));
                let is_output = self.model()[value].uses().any(is_output);
                let suffix = if is_output { "float16" } else { "float32" };
                let made = self.edit.constant(half, name.as_deref().unwrap_or("constant"), suffix);
                // The weight keeps its name, unless it is an output. Nodes that still compute with
                // the old one get the other.
                if name.is_some() && !is_output {
                    let other = std::mem::replace(&mut self.edit.model[made].name, name);
                    self.edit.model[value].name = other;
                }
                self.originals.insert(made, tensor.clone());
                made
            }
            None => value,
        }
    }

    /// Outputs of the graph keep their type, unless they are cast; those of bodies are float16.
    fn regions(&mut self) {
        let mut regions = vec![(Model::MAIN, self.options.cast_io)];
        for id in self.model().graph_nodes() {
            let half = !self.full.contains(&id);
            regions.extend(self.model()[id].regions().map(|r| (r, half)));
        }
        for (region, half) in regions {
            let slots: Vec<(Value, Option<Name>)> = {
                let model = self.model();
                let named = |slot: &Output| (slot.value(), model.output_name(slot).cloned());
                model[region].outputs().iter().map(named).collect()
            };
            let new: Vec<Value> = { slots.iter() }
                .map(|&(v, _)| if self.is_float(v) { self.as_type(v, half, None) } else { v })
                .collect();
            self.set_outputs(region, slots, &new);
        }
    }

    /// Puts other values into output slots, which keep their names.
    fn set_outputs(&mut self, region: RegionId, old: Vec<(Value, Option<Name>)>, new: &[Value]) {
        let model = &mut *self.edit.model;
        if !old.iter().map(|(value, _)| value).eq(new) {
            model.set_outputs_as_written(region, new);
        }
        for (i, ((old, name), &new)) in old.into_iter().zip(new).enumerate() {
            if old == new {
                continue;
            }
            if model[old].name == name {
                model[old].name = None;
            }
            model[new].metadata = std::mem::take(&mut model[old].metadata);
            if let Some(name) = name {
                model.set_output_name(region, i, name);
            }
        }
    }
}
