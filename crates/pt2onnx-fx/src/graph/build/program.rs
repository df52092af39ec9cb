//! Builds a program and its signature.

use super::{
    builder::{Builder, Built},
    values::Begun,
};
use crate::{
    error::Invalid,
    graph::{
        ConstantValue, ExportedProgram, GraphSignature, InputSpec, ModuleCallEntry,
        ModuleCallSignature, OutputSpec,
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
        let ranges = p.range_constraints.0.iter().map(|(expr, r)| {
            let range = Range { min: r.min_val, max: r.max_val };
            (expr.to_string(), range)
        });
        let range_constraints: Vec<_> = ranges.collect();
        let owner = || "range_constraints".to_owned();
        let mut constraints = Constraints::new();
        for ((text, _), (_, range)) in p.range_constraints.0.iter().zip(&range_constraints) {
            constraints.constrain(&self.expr(text, owner)?, *range);
        }
        let strings = |texts: &[s::Text]| texts.iter().map(|t| t.to_string()).collect();
        Ok(ExportedProgram {
            graph,
            signature,
            constraints,
            range_constraints,
            guards: strings(&p.guards_code),
            module_call_graph: self.all(&module.module_call_graph, Self::module_call)?,
            state: Default::default(),
            constants: Default::default(),
            mutations: Vec::new(),
            torch_version: p.torch_version.to_string(),
            schema_version: (p.schema_version.major, p.schema_version.minor),
            verifiers: strings(&p.verifiers),
            opset_version: p.opset_version.0.iter().map(|(k, v)| (k.to_string(), *v)).collect(),
        })
    }

    pub(super) fn input_spec(&mut self, spec: &s::InputSpec) -> Built<InputSpec> {
        Ok(match spec {
            s::InputSpec::UserInput(u) => InputSpec::UserInput(self.argument(&u.arg)?),
            s::InputSpec::Parameter(p) => InputSpec::Parameter {
                name: self.tensor(&p.arg),
                target: self.name(&p.parameter_name),
            },
            s::InputSpec::Buffer(b) => InputSpec::Buffer {
                name: self.tensor(&b.arg),
                target: self.name(&b.buffer_name),
                persistent: b.persistent,
            },
            s::InputSpec::TensorConstant(c) => InputSpec::TensorConstant {
                name: self.tensor(&c.arg),
                target: self.name(&c.tensor_constant_name),
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

    pub(super) fn output_spec(&mut self, spec: &s::OutputSpec) -> Built<OutputSpec> {
        Ok(match spec {
            s::OutputSpec::UserOutput(u) => OutputSpec::UserOutput(self.argument(&u.arg)?),
            s::OutputSpec::Loss(l) => OutputSpec::Loss(self.tensor(&l.arg)),
            s::OutputSpec::Token(t) => OutputSpec::Token(self.tensor(&t.arg)),
            s::OutputSpec::BufferMutation(m) => OutputSpec::BufferMutation {
                name: self.tensor(&m.arg),
                target: self.name(&m.buffer_name),
            },
            s::OutputSpec::ParameterMutation(m) => OutputSpec::ParameterMutation {
                name: self.tensor(&m.arg),
                target: self.name(&m.parameter_name),
            },
            s::OutputSpec::UserInputMutation(m) => OutputSpec::UserInputMutation {
                name: self.tensor(&m.arg),
                target: self.name(&m.user_input_name),
            },
            s::OutputSpec::GradientToParameter(m) => OutputSpec::GradientToParameter {
                name: self.tensor(&m.arg),
                target: self.name(&m.parameter_name),
            },
            s::OutputSpec::GradientToUserInput(m) => OutputSpec::GradientToUserInput {
                name: self.tensor(&m.arg),
                target: self.name(&m.user_input_name),
            },
        })
    }

    pub(super) fn module_call(&mut self, entry: &s::ModuleCallEntry) -> Built<ModuleCallEntry> {
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
