//! State: inputs and outputs for the values that a program writes into buffers, parameters and
//! inputs.

use super::{
    lower_graph::Driver,
    metadata::{Output, Role},
    options::Mutations,
    types::onnx_type,
};
use crate::SignatureError;
use pt2onnx_fx::graph::{ExportedProgram, InputSpec, Mutation, MutationKind, Name, ValueMeta};
use pt2onnx_ir::Model;

/// Whether the program writes into the value of this placeholder.
pub(super) fn is_written(program: &ExportedProgram, placeholder: &Name) -> bool {
    program.mutations.iter().any(|m| m.input == *placeholder)
}

impl<'a> Driver<'a> {
    /// Adds an input for the value that a buffer or parameter has before the program runs.
    pub(super) fn state_input(
        &mut self,
        spec: &InputSpec,
        placeholder: &'a Name,
        target: &Name,
    ) -> Result<(), SignatureError> {
        let Some(ValueMeta::Tensor(meta)) = self.scope.meta(placeholder) else {
            return Err(SignatureError::new("state", target, "the archive does not give its type"));
        };
        let value = self.builder.edit(|model| {
            let value = model.add_input(Model::MAIN, Some(onnx_type(meta)));
            model[value].name = Some(target.clone());
            value
        });
        self.note(value, Role::Input(spec, target));
        self.builder.bind_dims(value);
        self.scope.define(placeholder, value);
        Ok(())
    }

    /// Adds the final values to the outputs. Returns the errors.
    pub(super) fn state_outputs(
        &self,
        program: &ExportedProgram,
        state: Mutations,
        outputs: &mut Vec<Output>,
    ) -> Vec<SignatureError> {
        let mut errors = Vec::new();
        for mutation in &program.mutations {
            let mut fail =
                |reason: &str| errors.push(SignatureError::new("state", &mutation.target, reason));
            match state {
                Mutations::Drop => continue,
                Mutations::Error => {
                    fail(&format!("the program writes into {mutation}"));
                    continue;
                }
                Mutations::Outputs | Mutations::Pairs => {}
            }
            let Some(value) = self.scope.value(&mutation.value) else {
                if !self.partial {
                    fail("nothing in the program computes its new value");
                }
                continue;
            };
            let next = state == Mutations::Pairs || mutation.kind == MutationKind::UserInput;
            let name = if next {
                format!("{}.next", mutation.target)
            } else {
                mutation.target.to_string()
            };
            outputs.push(Output { name: Some(name.into()), value, kind: kind(mutation) });
        }
        errors
    }
}

/// PyTorch's name for this kind of output.
fn kind(mutation: &Mutation) -> &'static str {
    match mutation.kind {
        MutationKind::Parameter => "PARAMETER_MUTATION",
        MutationKind::Buffer | MutationKind::Constant => "BUFFER_MUTATION",
        MutationKind::UserInput => "USER_INPUT_MUTATION",
    }
}
