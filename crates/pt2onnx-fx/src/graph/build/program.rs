//! Builds a program and its signature.

use super::{
    builder::{Builder, Built},
    values::Begun,
};
use crate::{
    error::Invalid,
    graph::{
        Argument, ConstantValue, ExportedProgram, GraphSignature, InputSpec, ModuleCallEntry,
        ModuleCallSignature, Name, OutputKind, OutputSpec,
    },
    schema as s,
};
use pt2onnx_symbolic::{Constraints, Range};

impl Builder {
    /// The program whose graph is begun.
    pub(super) fn program(
        &mut self,
        p: &s::ExportedProgram,
        begun: Begun,
    ) -> Built<ExportedProgram> {
        let module = &p.graph_module;
        let graph = self.graph_of(&module.graph, begun)?;
        let signature = GraphSignature {
            inputs: self.all(&module.signature.input_specs, Self::input_spec)?,
            outputs: self.all(&module.signature.output_specs, Self::output_spec)?,
        };
        for (what, specs, of_graph) in [
            ("input", signature.inputs.len(), graph.inputs.len()),
            ("output", signature.outputs.len(), graph.outputs.len()),
        ] {
            if specs != of_graph {
                return Err(Invalid::Arity { what, specs, graph: of_graph });
            }
        }
        let owner = || "range_constraints".to_owned();
        let (mut constraints, mut range_constraints) = (Constraints::new(), Vec::new());
        for (text, range) in &p.range_constraints.0 {
            let range = Range { min: range.min_val, max: range.max_val };
            constraints.constrain(&self.expr(text, owner)?, range);
            range_constraints.push((text.to_string(), range));
        }
        let strings = |texts: &[s::Text]| texts.iter().map(|t| t.to_string()).collect();
        Ok(ExportedProgram {
            graph,
            signature,
            constraints,
            range_constraints,
            guards: strings(&p.guards_code),
            module_call_graph: self.all(&module.module_call_graph, Self::module_call)?,
            torch_version: p.torch_version.to_string(),
            schema_version: (p.schema_version.major, p.schema_version.minor),
            verifiers: strings(&p.verifiers),
            opset_version: p.opset_version.0.iter().map(|(k, v)| (k.to_string(), *v)).collect(),
            ..ExportedProgram::default()
        })
    }

    fn input_spec(&mut self, spec: &s::InputSpec) -> Built<InputSpec> {
        Ok(match spec {
            s::InputSpec::UserInput(u) => InputSpec::UserInput(self.argument(&u.arg)?),
            s::InputSpec::Parameter(p) => {
                InputSpec::Parameter { name: self.tensor(&p.arg), target: self.name(&p.target) }
            }
            s::InputSpec::Buffer(b) => InputSpec::Buffer {
                name: self.tensor(&b.arg),
                target: self.name(&b.buffer_name),
                persistent: b.persistent,
            },
            s::InputSpec::TensorConstant(c) => InputSpec::TensorConstant {
                name: self.tensor(&c.arg),
                target: self.name(&c.target),
            },
            s::InputSpec::CustomObj(c) => InputSpec::CustomObj {
                object: self.custom_obj(&c.arg),
                target: self.name(&c.custom_obj_name),
            },
            s::InputSpec::Token(t) => InputSpec::Token(self.tensor(&t.arg)),
            s::InputSpec::Constant(c) => InputSpec::Constant {
                name: self.name(&c.name),
                value: match &c.value {
                    s::ConstantValue::None(_) => ConstantValue::None,
                    s::ConstantValue::Int(i) => ConstantValue::Int(*i),
                    s::ConstantValue::Float(f) => ConstantValue::Float(f.0),
                    s::ConstantValue::String(t) => ConstantValue::String(self.name(t)),
                    s::ConstantValue::Bool(b) => ConstantValue::Bool(*b),
                },
            },
        })
    }

    fn output_spec(&mut self, spec: &s::OutputSpec) -> Built<OutputSpec> {
        let (kind, spec) = match spec {
            s::OutputSpec::UserOutput(u) => return Ok(OutputSpec::user(self.argument(&u.arg)?)),
            s::OutputSpec::Loss(t) | s::OutputSpec::Token(t) => {
                let loss = matches!(spec, s::OutputSpec::Loss(_));
                let kind = if loss { OutputKind::Loss } else { OutputKind::Token };
                let value = Argument::Tensor(self.tensor(&t.arg));
                return Ok(OutputSpec { kind, value, target: Name::default() });
            }
            s::OutputSpec::BufferMutation(m) => (OutputKind::BufferMutation, m),
            s::OutputSpec::ParameterMutation(m) => (OutputKind::ParameterMutation, m),
            s::OutputSpec::UserInputMutation(m) => (OutputKind::UserInputMutation, m),
            s::OutputSpec::GradientToParameter(m) => (OutputKind::GradientToParameter, m),
            s::OutputSpec::GradientToUserInput(m) => (OutputKind::GradientToUserInput, m),
        };
        let (value, target) = (Argument::Tensor(self.tensor(&spec.arg)), self.name(&spec.target));
        Ok(OutputSpec { kind, value, target })
    }

    fn module_call(&mut self, entry: &s::ModuleCallEntry) -> Built<ModuleCallEntry> {
        let strings = |texts: &Vec<s::Text>| texts.iter().map(|t| t.to_string()).collect();
        let signature = match &entry.signature {
            None => None,
            Some(sig) => Some(ModuleCallSignature {
                inputs: self.all(&sig.inputs, Self::argument)?,
                outputs: self.all(&sig.outputs, Self::argument)?,
                in_spec: sig.in_spec.to_string(),
                out_spec: sig.out_spec.to_string(),
                forward_arg_names: sig.forward_arg_names.as_ref().map(strings),
            }),
        };
        Ok(ModuleCallEntry { fqn: entry.fqn.to_string(), signature })
    }
}
