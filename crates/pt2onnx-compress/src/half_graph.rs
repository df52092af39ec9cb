//! A graph in float16: each float32 tensor becomes one of float16, except around nodes that need float32.

use crate::{
    cast::Casting,
    edit::{Edit, dtype, with_dtype},
    error::Error,
    numbers::{STAND_IN, floats},
    options::Options,
};
use pt2onnx_ir::{
    Attribute, Def, Model, Name, NodeId, RegionId, Type, Value,
    schema::{self, OpSchema},
};
use pt2onnx_tensor::{DType, Tensor};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Operators that stay in float32: sums and powers that leave the range of float16, random numbers, and what counts positions.
const FULL: &[&str] = &[
    "Bernoulli",
    "CumProd",
    "CumSum",
    "DFT",
    "Det",
    "EyeLike",
    "GlobalLpPool",
    "GroupNormalization",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MelWeightMatrix",
    "Multinomial",
    "NegativeLogLikelihoodLoss",
    "NonMaxSuppression",
    "Pow",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Range",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Resize",
    "RoiAlign",
    "STFT",
    "SoftmaxCrossEntropyLoss",
    "Upsample",
];

/// The largest number of float16.
const LARGEST: f32 = 65504.0;

/// Elements that are looked at together.
const READ: usize = 1 << 18;

/// Converts the main graph and its bodies. Returns what each new constant is in float32.
pub(crate) fn convert(
    model: &mut Model,
    options: &Options,
) -> Result<FxHashMap<Value, Tensor>, Error> {
    let constants = constants(model)?;
    let mut work = Work {
        full: FxHashSet::default(),
        halves: FxHashSet::default(),
        made: FxHashMap::default(),
        originals: FxHashMap::default(),
        edit: Edit::new(model),
        constants,
        options,
    };
    work.choose();
    work.inputs();
    let nodes = work.edit.model.graph_nodes();
    for node in &nodes {
        work.outputs_of(*node);
    }
    for node in nodes {
        work.inputs_of(node);
    }
    work.regions();
    Ok(work.originals)
}

/// What is known of a float32 constant.
#[derive(Clone, Copy, Default)]
struct Known {
    /// It has numbers that float16 has not, or it is one number that becomes 0.
    unfit: bool,
    /// It has numbers that stand for infinity.
    stand_in: bool,
}

/// Reads all float32 constants of the graph.
fn constants(model: &Model) -> Result<FxHashMap<Value, Known>, Error> {
    let used = |(value, data): (Value, &pt2onnx_ir::ValueData)| {
        let tensor = data.constant().filter(|t| t.dtype() == DType::F32)?;
        (data.uses().len() > 0).then(|| (value, tensor.clone()))
    };
    let all: Vec<(Value, Tensor)> = model.values().filter_map(used).collect();
    let name = |value: Value| model[value].name.as_deref().unwrap_or_default();
    if let Some((value, _)) = all.iter().find(|(_, t)| !t.has_data() && t.numel() > 0) {
        return Err(Error::NoValues(name(*value).to_owned()));
    }
    Ok(all.into_iter().map(|(value, tensor)| (value, known(name(value), &tensor))).collect())
}

fn known(name: &str, tensor: &Tensor) -> Known {
    let count = tensor.numel();
    let chunk = |i: usize| {
        let numbers = floats(name, tensor, i * READ, READ.min(count - i * READ));
        let finite = |x: &f32| if x.is_finite() { x.abs() } else { 0.0 };
        // What cannot be read is an error when it is written.
        let all = numbers.unwrap_or_default();
        let (mut large, mut stand_in) = (false, false);
        for x in all.iter().map(finite) {
            large |= (LARGEST + 16.0..STAND_IN).contains(&x);
            stand_in |= x >= STAND_IN;
        }
        let vanishes = count == 1
            && all.iter().any(|x| *x != 0.0 && half::f16::from_f32(*x) == half::f16::ZERO);
        Known { unfit: large || vanishes, stand_in }
    };
    (0..count.div_ceil(READ)).into_par_iter().map(chunk).reduce(Known::default, |a, b| Known {
        unfit: a.unfit || b.unfit,
        stand_in: a.stand_in || b.stand_in,
    })
}

struct Work<'a> {
    edit: Edit<'a>,
    options: &'a Options,
    constants: FxHashMap<Value, Known>,
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
        dtype(self.model(), value) == Some(DType::F32) || self.halves.contains(&value)
    }

    /// Finds the nodes that stay in float32, in the order of the graph.
    fn choose(&mut self) {
        let mut counted: FxHashSet<Value> = FxHashSet::default();
        let owners = self.owners();
        for id in self.model().graph_nodes() {
            let owner = owners.get(&self.model()[id].region());
            let owner_is_full = owner.is_some_and(|owner| self.full.contains(owner));
            let counts = self.counts(id, &counted);
            if counts {
                counted.extend(self.model()[id].outputs());
            }
            if owner_is_full || counts || self.needs_full(id) {
                self.full.insert(id);
            }
        }
    }

    /// The nodes that own bodies.
    fn owners(&self) -> FxHashMap<RegionId, NodeId> {
        let nodes = self.model().graph_nodes().into_iter();
        nodes
            .flat_map(|id| self.model()[id].regions().map(move |r| (r, id)).collect::<Vec<_>>())
            .collect()
    }

    /// Whether a node computes with what was an integer, such as a position: float16 has only those up to 2048.
    fn counts(&self, id: NodeId, counted: &FxHashSet<Value>) -> bool {
        let node = &self.model()[id];
        if node.is("Cast") {
            let whole =
                node.input(0).and_then(|v| dtype(self.model(), v)).is_some_and(DType::is_int);
            let float = node.outputs().first().is_some_and(|v| self.is_float(*v));
            if whole && float {
                return true;
            }
        }
        let floats = node.inputs().iter().flatten().filter(|v| self.is_float(**v));
        let (constant, computed): (Vec<&Value>, Vec<&Value>) =
            floats.partition(|v| self.constants.contains_key(v));
        let stand_in = constant.iter().any(|v| self.constants.get(v).is_some_and(|k| k.stand_in));
        !stand_in
            && !computed.is_empty()
            && computed.iter().all(|v| counted.contains(v))
            && node.regions().next().is_none()
    }

    /// Whether an operator must compute in float32.
    fn needs_full(&self, id: NodeId) -> bool {
        let model = self.model();
        let node = &model[id];
        if matches!(node.op(), "If" | "Loop" | "Scan") && node.domain.is_empty() {
            return false;
        }
        let excluded = |patterns: &[String]| patterns.iter().any(|p| p == node.op());
        let given = !self.options.include.is_empty() && !excluded(&self.options.include);
        if given
            || excluded(&self.options.exclude)
            || FULL.contains(&node.op())
            || !node.domain.is_empty()
        {
            return true;
        }
        let Some(schema) = schema::lookup(node.op(), model.opset) else {
            return true;
        };
        let inputs = node.inputs().iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
        let mut variables = Vec::new();
        for (i, value) in inputs {
            if contains_float(model[value].ty.as_ref()) && !self.is_float(value) {
                return true;
            }
            if !self.is_float(value) {
                continue;
            }
            let Some(variable) = schema.input(i).map(|p| p.ty) else {
                return true;
            };
            let unfit = self.constants.get(&value).is_some_and(|k| k.unfit);
            if unfit || !takes_half(schema, variable) {
                return true;
            }
            variables.push(variable);
        }
        node.outputs().iter().enumerate().any(|(i, value)| {
            let other = contains_float(model[*value].ty.as_ref()) && !self.is_float(*value);
            let variable = schema.output(i).map_or("", |p| p.ty);
            let own = self.is_float(*value) && !node.is("Cast") && !variables.contains(&variable);
            other || own && takes_half(schema, variable)
        })
    }

    /// Inputs of the graph and of bodies.
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
        if dtype(self.model(), value) == Some(DType::F32) && self.model()[value].default.is_none() {
            self.edit.model[value].ty = with_dtype(self.model(), value, DType::F16);
            self.halves.insert(value);
        }
    }

    /// The outputs of a node that computes in float16.
    fn outputs_of(&mut self, id: NodeId) {
        if self.full.contains(&id) {
            return;
        }
        let is_float =
            |a: &Attribute| matches!(a, Attribute::Int(i) if *i == schema::data_type(DType::F32));
        let node = &self.model()[id];
        let schema = schema::lookup(node.op(), self.model().opset);
        let fits = |i: usize| {
            let variable = schema.and_then(|s| Some((s, s.output(i)?.ty)));
            variable.is_none_or(|(schema, ty)| takes_half(schema, ty))
        };
        let outputs = node.outputs().iter().enumerate();
        let outputs: Vec<Value> = outputs.filter(|(i, _)| fits(*i)).map(|(_, v)| *v).collect();
        if node.is("Cast") {
            for (name, attribute) in &mut self.edit.model[id].attributes {
                if name == "to" && is_float(attribute) {
                    *attribute = Attribute::Int(schema::data_type(DType::F16));
                }
            }
        }
        for value in outputs {
            self.halve(value);
        }
    }

    /// Gives a node its inputs in the type that it computes in.
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

    /// A value in float16 or float32.
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
                let at = self.edit.after(value);
                self.edit.cast(at, like, value, if half { DType::F16 } else { DType::F32 })
            }
        };
        self.made.insert(value, made);
        if half {
            self.halves.insert(made);
        }
        made
    }

    fn half_constant(&mut self, value: Value, tensor: &Tensor) -> Value {
        let name = self.model()[value].name.as_deref().unwrap_or("constant").to_owned();
        let casting = Casting {
            name: name.clone(),
            source: tensor.clone(),
            to: DType::F16,
            clamp: true,
            losses: Arc::default(),
        };
        let made = Tensor::computed(DType::F16, tensor.shape(), Arc::new(casting));
        // Small ones are read by others, such as ONNX's checker.
        let made =
            made.ok().and_then(|t| if t.numel() <= 64 { t.evaluated().ok() } else { Some(t) });
        match made {
            Some(half) => {
                let made = self.edit.constant(half, &name, "float16");
                self.originals.insert(made, tensor.clone());
                made
            }
            None => value,
        }
    }

    /// Outputs of the graph keep their type, unless they are to be cast; those of bodies are float16.
    fn regions(&mut self) {
        let mut regions = vec![(Model::MAIN, self.options.cast_io)];
        for id in self.model().graph_nodes() {
            let half = !self.full.contains(&id);
            regions.extend(self.model()[id].regions().map(|r| (r, half)));
        }
        for (region, half) in regions {
            let old: Vec<Value> = self.model()[region].output_values().collect();
            let new: Vec<Value> = old
                .iter()
                .map(|v| if self.is_float(*v) { self.as_type(*v, half, None) } else { *v })
                .collect();
            if old != new {
                self.set_outputs(region, &old, &new);
            }
        }
    }
}

impl Work<'_> {
    /// Puts other values into output slots, which keep their names.
    fn set_outputs(&mut self, region: RegionId, old: &[Value], new: &[Value]) {
        let model = &mut *self.edit.model;
        let slots = model[region].outputs().iter();
        let names: Vec<Option<Name>> = slots.map(|slot| model.output_name(slot).cloned()).collect();
        model.set_outputs(region, new);
        for (i, (name, (old, new))) in names.into_iter().zip(old.iter().zip(new)).enumerate() {
            if old != new {
                if model[*old].name == name {
                    model[*old].name = None;
                }
                model[*new].metadata = std::mem::take(&mut model[*old].metadata);
            }
            if let Some(name) = name {
                model.set_output_name(region, i, name);
            }
        }
    }
}

fn takes_half(schema: &OpSchema, variable: &str) -> bool {
    schema.type_set(variable).is_some_and(|set| set.has_tensor(DType::F16))
}

/// Whether a type has float32 inside, as a sequence of tensors.
fn contains_float(ty: Option<&Type>) -> bool {
    match ty {
        Some(Type::Tensor(tensor)) => tensor.dtype == DType::F32,
        Some(Type::Sequence(inner) | Type::Optional(inner)) => contains_float(Some(inner)),
        Some(_) => true,
        None => false,
    }
}
