//! Registers closures as translations: of an op of your own, and in place of a built-in
//! translation.

use pt2onnx::{
    Exporter, Registry,
    aten::{Cx, Lowered},
    fx::{archive, graph::OpName},
    ir::Value,
};
use std::{error::Error, path::Path, sync::Arc};

fn main() -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/mlp.pt2");
    let mut program = archive::read(path)?;

    // The archive has four `aten::sigmoid`. Let the first one be an op of a library of ours.
    let sigmoid = program.graph.nodes.iter_mut().find(|node| &*node.name == "sigmoid");
    let sigmoid = Arc::make_mut(sigmoid.ok_or("the program has no node `sigmoid`")?);
    sigmoid.target = OpName::parse("torch.ops.mylib.squash.default");
    sigmoid.args[0].name = "x".into();

    // Without a translation of it, there is an error that names the op.
    let Err(error) = Exporter::new().export(program.clone()) else {
        return Err("an unknown op was translated".into());
    };
    assert!(error.to_string().contains("mylib.squash"), "{error}");

    let mut registry = Registry::default();
    // The schema is what `torch.ops.mylib.squash.default._schema` prints. The closure takes its
    // parameters in order, and a closure can capture what it needs.
    let half = 0.5;
    registry.register(
        "mylib::squash(Tensor x, float scale=2.0) -> Tensor",
        move |cx: &Cx, x: Value, scale: f64| -> Lowered {
            let dtype = cx.out_dtype()?;
            Ok(cx.tanh(cx.mul(x, cx.scalar(scale * half, dtype))))
        },
    )?;
    // A closure that does not fit its schema is refused at once: `scale` is a float, not a list of
    // integers.
    let wrong = registry.register(
        "mylib::squash(Tensor x, float scale=2.0) -> Tensor",
        |_: &Cx, x: Value, _: Vec<i64>| -> Lowered { Ok(x) },
    );
    let Err(error) = wrong else {
        return Err("a closure of other types was registered".into());
    };
    assert!(error.to_string().contains("cannot take `float scale`"), "{error}");

    // This one replaces the built-in translation. It writes sigmoid(x) as 1 / (1 + exp(-x)).
    registry.register("aten::sigmoid(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        let one = cx.scalar(1.0, cx.out_dtype()?);
        Ok(cx.reciprocal(cx.add(one, cx.exp(cx.neg(x)))))
    })?;
    assert!(registry.is_registered("mylib::squash"));

    let converted = Exporter::new().registry(registry).export(program)?;
    let model = converted.model();
    let count = |op: &str| model.graph_nodes().iter().filter(|node| model[**node].is(op)).count();
    assert_eq!((count("Tanh"), count("Exp"), count("Sigmoid")), (1, 3, 0));
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
