//! Two fusions of your own: one into an operator of another domain, one into an existing value.
//! `cargo run -p pt2onnx-opt --example pattern`

use pt2onnx_ir::{Attributes, Model, verify};
use pt2onnx_opt::{Because, Fusion, GraphMut, Options, fuse};
use std::io::Write;

/// `x * sigmoid(x)`, twice: once by `Sigmoid`, once by its formula; and a `Relu` of a `Relu`.
const MODEL: &str = r#"<ir_version: 9, opset_import: ["" : 20]>
main_graph (float[n,4] x) => (float[n,4] y)
<float one = {1.0}>
{
  s = Sigmoid (x)
  a = Mul (s, x)
  negative = Neg (a)
  e = Exp (negative)
  sum = Add (one, e)
  b = Div (a, sum)
  r = Relu (b)
  y = Relu (r)
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut model: Model = MODEL.parse()?;

    let silu = Fusion::new("{Mul(x, Sigmoid(x)) | Div(x, Add(Exp(Neg(x)), 1))}", |cx, found| {
        let (x, ty) = (found.get("x")?, cx.type_of(found.output()));
        // A constant with more dimensions than `x` would broadcast it.
        found.keeps_shape(cx, x).because("a constant broadcasts the operand")?;
        let made = cx.emit_custom("com.example", "Silu", &[Some(x)], Attributes::new(), &[ty]);
        Ok(made[0])
    })?;

    let relu = Fusion::new("Relu(r:Relu(x))", |_, found| found.get("r"))?;

    let mut graph = GraphMut::main(&mut model);
    assert!(fuse(&mut graph, &Options::default(), &[silu, relu]));

    write!(std::io::stdout(), "{model}")?;
    assert!(verify(&model).is_ok());
    assert_eq!(model.imports.get("com.example"), Some(&1));
    let operators: Vec<&str> = model.nodes(Model::MAIN).map(|n| model[n].op()).collect();
    assert_eq!(operators, ["Silu", "Silu", "Relu"]);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
