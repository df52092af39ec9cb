//! A table of ops of a library, checked: each function takes what its schema says.
//! `cargo run -p pt2onnx-lowering --example table`

use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, Lowered, op};
use std::io::Write;

static OPS: &[AtenOp] = &[
    op!("mylib::mix(Tensor x, Tensor y, float weight=0.5) -> Tensor", mix),
    op!("mylib::swish(Tensor x) -> Tensor", swish),
];

/// `x + weight * (y - x)`.
fn mix(cx: &Cx, x: Value, y: Value, weight: f64) -> Lowered {
    Ok(cx.add(x, cx.mul(cx.sub(y, x), weight)))
}

fn swish(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.mul(x, cx.sigmoid(x)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for op in OPS {
        op.check()?;
        writeln!(std::io::stdout(), "{}", op.schema)?;
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
