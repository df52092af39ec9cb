//! Changes an attribute of one node, and fixes the types that follow from it.
//! `cargo run -p pt2onnx-opt --example attribute`

use pt2onnx_ir::{Model, attrs, verify};
use pt2onnx_opt::infer_types;
use std::io::Write;

const MODEL: &str = r#"<ir_version: 9, opset_import: ["" : 20]>
main_graph (float[n,3,32,32] x) => (float[n,8,?,?] y)
<float[8,3,1,1] w = {...}>
{
  c = Conv (x, w)
  y = MaxPool <kernel_shape: ints = [2, 2], strides: ints = [1, 1]> (c)
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut model: Model = MODEL.parse()?;
    let pool = model.all_nodes().into_iter().find(|&n| model[n].is("MaxPool"));
    let pool = pool.ok_or("no MaxPool")?;

    assert_eq!(attrs::MaxPool::read(&model[pool])?.strides, Some(vec![1, 1]));
    model[pool].set_attribute("strides", vec![2, 2]);
    infer_types(&mut model);

    write!(std::io::stdout(), "{model}")?;
    assert!(verify(&model).is_ok());
    assert_eq!(attrs::MaxPool::read(&model[pool])?.strides, Some(vec![2, 2]));
    let ty = model.outputs().first().and_then(|o| model.output_type(o)).map(ToString::to_string);
    assert_eq!(ty.as_deref(), Some("float[n,8,16,16]"));
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
