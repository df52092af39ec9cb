//! `checks!`: calls beside the lowerings, and the ONNX nodes that they become.
//! `tests/it/checks.rs` reads them from the sources.

/// Calls as PyTorch prints them, with types (`pt2onnx_fx::text`), and the ONNX nodes or the error
/// of each, before any pass over them. Constants stand where they are used: `2.0` is a float32,
/// `2` and `[2, 3]` are int64. It expands to nothing, so checks cost no time to compile.
/// `UPDATE_CASES=1 cargo test -p pt2onnx-aten checks` writes what comes out.
///
/// ```ignore
/// checks! {
///     // What they show.
///     "aten.relu(x: f32[s0, 8]) -> f32[s0, 8]" => "relu = Relu (x)";
///     "aten.amax(x: f32[s0, 8]) -> f32[]", assume_finite => "...";
///     "aten.sort(x: f32[8]) -> (f32[8], i64[8])", from = "aten.isin.Tensor_Tensor" => "...";
/// }
/// ```
macro_rules! checks {
    ($($checks:tt)*) => {};
}

pub(crate) use checks;

checks! {
    // A graph or an error.
    "aten.add.Tensor(x: f32[s0, 8], y: i64[8], alpha = 2) -> f32[s0, 8]" => "
    val_0 = Cast <to: int = 1> (y)
    val_1 = Mul (val_0, 2.0)
    add = Add (x, val_1)
    ";
    "aten.no_such_op(x: f32[2]) -> f32[2]" => "
    parts of the program cannot be translated:
      aten.no_such_op.default (node `no_such_op`): no translation is registered for aten.no_such_op.default
    ";
    "aten.add.Tensor(x: f32[2)" => "
    expected `,` or `]`, found `)` (line 1, column 25)
        aten.add.Tensor(x: f32[2)
                                ^
    ";
}
