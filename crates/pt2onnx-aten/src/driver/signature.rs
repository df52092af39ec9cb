//! The program's signature as inputs, constants and outputs of the model.

use super::{
    lower_graph::Driver,
    metadata::{Output, Role},
    options::Mutations,
    state::is_written,
    types::{onnx_type, python_number},
};
use crate::{SignatureError, args::brief};
use pt2onnx_fx::graph::{
    Argument, ConstantValue, ExportedProgram, InputSpec, Name, OutputKind, SymArg, ValueMeta,
};
use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_tensor::{DType, Scalar, Tensor};
use rustc_hash::FxHashMap;

/// The weights that are constants already, by the address of their memory.
type Weights<'a> = FxHashMap<usize, Vec<(&'a Tensor, Value)>>;

impl<'a> Driver<'a> {
    /// Writes the metadata of an input, weight or output.
    pub(super) fn note(&self, value: Value, role: Role) {
        self.builder.edit(|model| self.annotator.value(model, value, role));
    }

    /// Adds the model's inputs and weights.
    pub(super) fn inputs(&mut self, program: &'a ExportedProgram, state: Mutations) {
        let mut weights = Weights::default();
        let mut pairs = Vec::new();
        for spec in &program.signature.inputs {
            match spec {
                InputSpec::Parameter { name, target }
                | InputSpec::Buffer { name, target, .. }
                | InputSpec::TensorConstant { name, target } => {
                    if state == Mutations::Pairs && is_written(program, name) {
                        pairs.push((spec, name, target));
                    } else if let Some(tensor) = program.tensor_of(spec) {
                        let value = self.weight(tensor, target, &mut weights);
                        self.note(value, Role::Input(spec, target));
                        self.scope.define(name, value);
                    } else {
                        let reason = "the archive holds no tensor of this name";
                        self.errors.signature.push(SignatureError::new("weight", target, reason));
                    }
                }
                InputSpec::UserInput(arg) => {
                    let done = self.user_input(spec, arg);
                    self.errors.signature.extend(done.err());
                }
                InputSpec::Constant { name, value } => self.constant_input(name, value),
                InputSpec::CustomObj { .. } | InputSpec::Token(_) => {}
            }
        }
        // Inputs of state follow those of the program.
        for (spec, name, target) in pairs {
            let done = self.state_input(spec, name, target);
            self.errors.signature.extend(done.err());
        }
    }

    /// A constant of a weight. Tied weights are one constant, which has the first of their names.
    fn weight(&self, tensor: &'a Tensor, target: &Name, known: &mut Weights<'a>) -> Value {
        let views = known.entry(tensor.address()).or_default();
        let tied = views.iter().find(|(other, _)| other.numel() > 0 && other.same(tensor));
        if let Some(&(_, value)) = tied {
            return value;
        }
        let value = self.builder.edit(|model| {
            let value = model.add_constant(tensor.view_as_real());
            model[value].name = Some(target.clone());
            value
        });
        views.push((tensor, value));
        value
    }

    /// Adds the input for an argument of the user.
    fn user_input(&mut self, spec: &InputSpec, arg: &'a Argument) -> Result<(), SignatureError> {
        let unsupported = |name: &str, reason: &str| SignatureError::new("input", name, reason);
        let Some(name) = arg.name() else {
            return Ok(());
        };
        let (ty, number) = match self.scope.meta(name) {
            Some(ValueMeta::Tensor(meta)) => (onnx_type(meta), None),
            Some(ValueMeta::SymInt { expr, .. }) => {
                (Type::tensor(DType::I64, []), Some(expr.clone()))
            }
            Some(ValueMeta::SymFloat { expr, .. }) => {
                (Type::tensor(DType::F64, []), Some(expr.clone()))
            }
            Some(ValueMeta::SymBool { .. }) => (Type::tensor(DType::Bool, []), None),
            Some(ValueMeta::CustomObj { .. }) => {
                return Err(unsupported(name, "objects cannot be inputs of an ONNX model"));
            }
            None => return Err(unsupported(name, "the archive does not give its type")),
        };
        let value = self.builder.edit(|model| {
            let value = model.add_input(Model::MAIN, Some(ty));
            model[value].name = Some(name.clone());
            value
        });
        self.note(value, Role::Input(spec, name));
        match number {
            Some(expr) => {
                self.builder.bind_scalar(expr, value);
            }
            None => {
                self.builder.bind_dims(value);
                self.scope.define(name, value);
            }
        }
        Ok(())
    }

    /// Makes a constant of a Python value that was fixed at export.
    fn constant_input(&mut self, name: &'a Name, value: &ConstantValue) {
        let scalar = match value {
            ConstantValue::Int(i) => Scalar::Int(*i),
            ConstantValue::Float(f) => Scalar::Float(*f),
            ConstantValue::Bool(b) => Scalar::Bool(*b),
            ConstantValue::None | ConstantValue::String(_) => return,
        };
        self.scope.define(name, python_number(&self.builder, scalar));
    }

    /// Sets the model's outputs. Returns warnings.
    pub(super) fn outputs(&mut self, program: &ExportedProgram, state: Mutations) -> Vec<String> {
        let (mut outputs, mut warnings, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (i, spec) in program.signature.outputs.iter().enumerate() {
            match spec.kind {
                OutputKind::UserOutput => match self.output(&spec.value) {
                    // If nodes failed, this error only follows from theirs.
                    Err(error) => errors.extend((!self.partial).then_some(error)),
                    Ok(Some(value)) => {
                        let name = spec.name().cloned();
                        outputs.push(Output { name, value, kind: spec.kind.name() });
                    }
                    Ok(None) => warnings.push(format!(
                        "output {i} is {} in the program and left out of the model",
                        brief(&spec.value)
                    )),
                },
                // `state_outputs` adds these.
                kind if kind == OutputKind::Token || kind.is_mutation() => {}
                _ => {
                    let name = spec.name().map_or("", |name| name);
                    let reason =
                        "losses and gradients are not supported: export the program for inference";
                    errors.push(SignatureError::new("output", name, reason));
                }
            }
        }
        errors.extend(self.state_outputs(program, state, &mut outputs));
        let diagnostics = self.builder.take_diagnostics();
        let diagnostics = diagnostics.into_iter().take(if self.partial { 0 } else { 1 });
        errors.extend(
            diagnostics.map(|found| SignatureError::new("output", "sizes", &found.to_string())),
        );
        self.errors.signature.extend(errors);
        self.set_outputs(&outputs);
        warnings
    }

    /// Gives the model its outputs, with their names and metadata.
    fn set_outputs(&self, outputs: &[Output]) {
        let values: Vec<Value> = outputs.iter().map(|output| output.value).collect();
        self.builder.edit(|model| {
            model.set_outputs(Model::MAIN, &values);
            for (i, output) in outputs.iter().enumerate() {
                if let Some(name) = &output.name {
                    model.set_output_name(Model::MAIN, i, name.clone());
                }
            }
            model.finish_outputs(Model::MAIN);
            let values: Vec<Value> = model.output_values().collect();
            for (value, output) in values.into_iter().zip(outputs) {
                self.annotator.value(model, value, Role::Output(output.kind));
            }
        });
    }

    /// The value of an output; none for what the model leaves out.
    fn output(&self, arg: &Argument) -> Result<Option<Value>, SignatureError> {
        let known = |s: Scalar| Ok(Some(python_number(&self.builder, s)));
        match arg {
            // PyTorch knows strings at export, and ONNX Runtime cannot compute them.
            Argument::None | Argument::OptionalTensor(None) | Argument::String(_) => Ok(None),
            Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => known(Scalar::Int(*i)),
            Argument::Float(f) | Argument::SymFloat(SymArg::Value(f)) => known(Scalar::Float(*f)),
            Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => known(Scalar::Bool(*b)),
            _ => {
                let unsupported = |reason: &str| SignatureError::new("output", &brief(arg), reason);
                let name =
                    arg.name().ok_or_else(|| unsupported("it is neither a tensor nor a number"))?;
                if let Some(value) = self.scope.value(name) {
                    return Ok(Some(value));
                }
                match self.scope.meta(name) {
                    Some(ValueMeta::SymInt { expr, .. }) => Ok(Some(self.builder.size(expr))),
                    Some(ValueMeta::SymFloat { expr, .. }) => {
                        Ok(Some(self.builder.cast(self.builder.number(expr), DType::F32)))
                    }
                    _ => Err(unsupported("nothing in the program computes it")),
                }
            }
        }
    }
}
