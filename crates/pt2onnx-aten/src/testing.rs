//! `check!`: tests beside the lowerings, which compare the ONNX graph of one call with a text.

use crate::{Detail, Options, Registry, lower};
use pt2onnx_fx::{graph::ExportedProgram, passes, text};
use std::sync::Arc;

/// Compares the ONNX graph of a call with a text. `cargo insta review`, or `INSTA_UPDATE=always`, writes the text.
///
/// ```ignore
/// check!("aten.relu(x: f32[s0, 8]) -> f32[s0, 8]", @"...");
/// check!("aten.amax(x: f32[s0, 8]) -> f32[]", assume_finite, @"...");
/// check!("aten.sort(x: f32[8]) -> (f32[8], i64[8])", from = "aten.isin.Tensor_Tensor", @"...");
/// ```
macro_rules! check {
    ($call:literal, @$expected:literal) => {
        insta::assert_snapshot!($crate::testing::translated($call), @$expected)
    };
    ($call:literal, from = $op:literal, @$expected:literal) => {
        insta::assert_snapshot!($crate::testing::translated_from($call, $op), @$expected)
    };
    ($call:literal, assume_finite, @$expected:literal) => {
        insta::assert_snapshot!($crate::testing::translated_if_finite($call), @$expected)
    };
}

pub(crate) use check;

/// The ONNX graph of a call, before any pass over it, or the error.
pub(crate) fn translated(call: &str) -> String {
    translated_by(&Registry::default(), call)
}

/// [`translated`] with [`Options::assume_finite`].
pub(crate) fn translated_if_finite(call: &str) -> String {
    let options = Options { assume_finite: true, metadata: Detail::None, ..Options::default() };
    translated_with(&Registry::default(), options, call)
}

/// [`translated`] of a call that is a part of a decomposed operator.
pub(crate) fn translated_from(call: &str, op: &str) -> String {
    let options = Options { metadata: Detail::None, ..Options::default() };
    let mut program = match text::parse_call(call) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    for node in &mut program.graph.nodes {
        Arc::make_mut(&mut node.meta).from_node = Some(op.into());
    }
    translated_program(program, &Registry::default(), options)
}

/// [`translated`] with other translations.
pub(crate) fn translated_by(registry: &Registry, call: &str) -> String {
    let options = Options { metadata: Detail::None, ..Options::default() };
    translated_with(registry, options, call)
}

fn translated_with(registry: &Registry, options: Options, call: &str) -> String {
    match text::parse_call(call) {
        Ok(program) => translated_program(program, registry, options),
        Err(error) => error.to_string(),
    }
}

fn translated_program(
    mut program: ExportedProgram,
    registry: &Registry,
    options: Options,
) -> String {
    if let Err(error) = passes::prepare(&mut program) {
        return error.to_string();
    }
    match lower(&program, registry, options) {
        Ok(mut lowering) => {
            lowering.model.assign_names();
            let text = lowering.model.to_string();
            text.split_once("main_graph ").map(|(_, graph)| graph.to_owned()).unwrap_or(text)
        }
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_call_and_what_it_becomes() {
        check!("aten.add.Tensor(x: f32[s0, 8], y: i64[8], alpha = 2) -> f32[s0, 8]", @"
        (float[s0,8] x, int64[8] y) => (float[s0,8] add)
        <
          float val_0 = {2.0}
        >
        {
          val_1 = Cast <to: int = 1> (y)
          val_2 = Mul (val_1, val_0)
          add = Add (x, val_2)
        }
        ");
        check!("aten.no_such_op(x: f32[2]) -> f32[2]", @"
        parts of the program cannot be translated:
          aten.no_such_op.default (node `no_such_op`): no translation is registered for aten.no_such_op.default
        ");
        check!("aten.add.Tensor(x: f32[2)", @"
        expected `,` or `]`, found `)` (line 1, column 25)
            aten.add.Tensor(x: f32[2)
                                    ^
        ");
    }
}
