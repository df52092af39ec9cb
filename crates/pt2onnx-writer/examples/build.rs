//! Builds a model, optimises it and writes it: `relu(x @ w.T + 0 * b)`, whose second term folds
//! into a constant. `cargo run -p pt2onnx-writer --example build OUT.onnx`

use pt2onnx_ir::{Builder, InsertPoint, Model, Type, attrs, verify};
use pt2onnx_opt::{Options, optimize};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::{DType, Tensor};
use pt2onnx_writer::{Weights, save};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("no OUT.onnx")?;
    let mut model = Model::new(20);
    let input = Type::tensor(DType::F32, [Expr::symbol("batch"), Expr::int(3)]);
    let x = model.add_input(Model::MAIN, Some(input));
    model[x].name = Some("x".into());

    let cx = Builder::new(&mut model, InsertPoint::End(Model::MAIN), Constraints::new());
    let weight = cx.constant(Tensor::from_slice(vec![2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?);
    let zero = cx.constant(Tensor::vector(&[0.0f32, 0.0]));
    let bias = cx.mul(zero, cx.constant(Tensor::vector(&[7.0f32, 8.0])));
    let options = attrs::Gemm { trans_b: true, ..Default::default() };
    let y = cx.relu(cx.gemm(x, weight, bias, options));
    if let Some(fault) = cx.take_diagnostics().first() {
        return Err(fault.to_string().into());
    }
    drop(cx);
    model[y].name = Some("y".into());
    model.set_outputs(Model::MAIN, &[y]);

    optimize(&mut model, &Options::default());
    model.assign_names();
    if let Err(errors) = verify(&model) {
        return Err(errors.iter().map(|e| format!("{e}\n")).collect::<String>().into());
    }
    save(&model, &path, Weights::Embed)?;
    write!(std::io::stdout(), "{model}")?;
    Ok(())
}
