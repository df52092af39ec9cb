//! What runtimes lack of the standard, and what they have beside it.
//!
//! The standard is the default. For ONNX Runtime, casts go around nodes whose element type it has no kernel for
//! ([`kernels`]); for runtimes that have less of ONNX ([`runtime`]), nodes that they cannot run are errors, all of which
//! are told.

mod kernels;
mod runtime;
mod tensorrt;
mod tract;

use pt2onnx_ir::{
    Attribute, Attributes, InsertPoint, Model, NodeId, Type, Value,
    schema::{self, OpSchema},
};
use pt2onnx_tensor::DType;
use runtime::Runtime;
use rustc_hash::FxHashMap;
use std::{fmt, ops::RangeInclusive};

/// The runtime that a model is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Target {
    /// The standard, whatever runs it.
    #[default]
    Standard,
    /// ONNX Runtime with its own operator for attention; its kernels as [`Target::OrtCpu`] takes them.
    Ort,
    /// ONNX Runtime on the CPU, in the standard's operators: casts around nodes whose element type it has no kernel for.
    OrtCpu,
    /// NVIDIA TensorRT.
    #[serde(rename = "tensorrt")]
    TensorRt,
    /// tract, in Rust.
    Tract,
}

impl Target {
    fn runtime(self) -> Option<&'static Runtime> {
        match self {
            Self::TensorRt => Some(&tensorrt::TENSORRT),
            Self::Tract => Some(&tract::TRACT),
            Self::Standard | Self::Ort | Self::OrtCpu => None,
        }
    }

    /// The opsets that the runtime reads, of those that can be written.
    pub fn opsets(self) -> RangeInclusive<u32> {
        let newest = self.runtime().map(|r| r.newest_opset);
        let (first, last) = (*crate::OPSETS.start(), *crate::OPSETS.end());
        first..=newest.unwrap_or(last).min(last)
    }

    /// Whether the runtime has no operator for the node, or one that does not take it, whatever the types.
    pub(crate) fn lacks(self, model: &Model, id: NodeId) -> bool {
        let lacks = |r: &Runtime| r.lacks(model, id).is_some();
        self.runtime().is_some_and(lacks)
    }

    /// Whether the runtime reads an opset.
    ///
    /// # Errors
    /// It does not.
    pub fn reads(self, opset: u32) -> Result<(), TargetError> {
        match self.opsets().contains(&opset) {
            true => Ok(()),
            false => Err(TargetError::Opset { target: self, opset }),
        }
    }
}

/// The name, as the command takes it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Ort => "ort",
            Self::OrtCpu => "ort-cpu",
            Self::TensorRt => "tensorrt",
            Self::Tract => "tract",
        })
    }
}

/// Why a runtime cannot run a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It does not read that opset.
    #[error("{target} reads opsets {} to {}, not {opset}", target.opsets().start(), target.opsets().end())]
    Opset {
        /// The runtime.
        target: Target,
        /// The model's.
        opset: u32,
    },
    /// It does not run these nodes.
    #[error("{target} cannot run the model:{}", List(failures))]
    Nodes {
        /// The runtime.
        target: Target,
        /// All of them.
        failures: Vec<Unrunnable>,
    },
}

/// A node that a runtime cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrunnable {
    /// The node, with the source line it comes from if that is known.
    pub place: String,
    /// What is in the way.
    pub reason: String,
}

struct List<'a>(&'a [Unrunnable]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Unrunnable { place, reason } in self.0 {
            write!(f, "\n  {place}: {reason}")?;
        }
        Ok(())
    }
}

/// Makes a legal model one that the runtime runs, and tells what a caller should know.
///
/// # Errors
/// The runtime has not what the model needs.
pub fn fit(model: &mut Model, target: Target) -> Result<Vec<String>, TargetError> {
    target.reads(model.opset)?;
    if let Some(runtime) = target.runtime() {
        let failures = runtime.fit(model);
        return match failures.is_empty() {
            true => Ok(Vec::new()),
            false => Err(TargetError::Nodes { target, failures }),
        };
    }
    if target == Target::Standard {
        let lacking = kernels::lacking(model);
        let warning = || {
            let what = lacking.join(", ");
            format!("ONNX Runtime has no CPU kernel for {what}; --target ort-cpu inserts casts")
        };
        return Ok((!lacking.is_empty()).then(warning).into_iter().collect());
    }
    Ok(kernels::bridge_all(model).into_iter().collect())
}

/// The element type that a variable stands for in a node.
pub(crate) fn bound(model: &Model, id: NodeId, schema: &OpSchema, variable: &str) -> Option<DType> {
    let node = &model[id];
    let inputs = node.inputs().iter().enumerate();
    let inputs = inputs
        .filter(|(i, _)| schema.input(*i).is_some_and(|p| p.ty == variable))
        .filter_map(|(_, v)| *v);
    let outputs = node.outputs().iter().enumerate();
    let outputs = outputs
        .filter(|(i, _)| schema.output(*i).is_some_and(|p| p.ty == variable))
        .map(|(_, v)| *v);
    inputs.chain(outputs).find_map(|v| dtype(model, v))
}

pub(crate) fn dtype(model: &Model, value: Value) -> Option<DType> {
    Some(model[value].ty.as_ref()?.as_tensor()?.dtype)
}

/// Lets the node compute in `to` where its variable stands for `from`.
pub(crate) fn bridge(
    model: &mut Model,
    id: NodeId,
    schema: &OpSchema,
    variable: &str,
    from: DType,
    to: DType,
) {
    let mut cast: FxHashMap<Value, Value> = FxHashMap::default();
    for i in 0..model[id].inputs().len() {
        let Some(value) =
            model[id].input(i).filter(|_| schema.input(i).is_some_and(|p| p.ty == variable))
        else {
            continue;
        };
        if dtype(model, value) == Some(from) {
            let wide = *cast
                .entry(value)
                .or_insert_with(|| insert_cast(model, InsertPoint::Before(id), value, to, id));
            model.replace_input(id, i, Some(wide));
        }
    }
    retarget(model, id, from, to);
    for (i, value) in model[id].outputs().to_vec().into_iter().enumerate() {
        let affected =
            schema.output(i).is_some_and(|p| p.ty == variable) && dtype(model, value) == Some(from);
        if !affected {
            continue;
        }
        // The node's own output becomes the wide one, so everybody else moves to the cast behind it.
        let after = match model.next(id) {
            Some(next) => InsertPoint::Before(next),
            None => InsertPoint::End(model[id].region()),
        };
        let narrow = insert_cast(model, after, value, from, id);
        let (name, ty) = (model[value].name.take(), model[value].ty.clone());
        let metadata = std::mem::take(&mut model[value].metadata);
        model.replace_all_uses(value, narrow);
        if let Some(cast) = model.producer(narrow) {
            model.replace_input(cast, 0, Some(value));
        }
        (model[narrow].name, model[narrow].ty, model[narrow].metadata) = (name, ty, metadata);
        if let Some(Type::Tensor(t)) = &mut model[value].ty {
            t.dtype = to;
        }
    }
}

/// Attributes that say of which type the outputs are.
fn retarget(model: &mut Model, id: NodeId, from: DType, to: DType) {
    for (name, attribute) in &mut model[id].attributes {
        let names_type = matches!(&**name, "to" | "dtype" | "output_dtype" | "output_datatype");
        if names_type && matches!(attribute, Attribute::Int(i) if *i == schema::data_type(from)) {
            *attribute = Attribute::Int(schema::data_type(to));
        }
    }
}

fn insert_cast(
    model: &mut Model,
    at: InsertPoint,
    value: Value,
    to: DType,
    origin: NodeId,
) -> Value {
    let attributes: Attributes =
        [("to".into(), Attribute::Int(schema::data_type(to)))].into_iter().collect();
    let node = model.add_node(at, "Cast", &[Some(value)], attributes, 1);
    model[node].origins = model[origin].origins.clone();
    let output = model[node].outputs()[0];
    let mut ty = model[value].ty.clone();
    if let Some(Type::Tensor(t)) = &mut ty {
        t.dtype = to;
    }
    model[output].ty = ty;
    output
}
