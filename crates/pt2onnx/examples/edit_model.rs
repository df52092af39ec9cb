//! Changes a converted model before it is saved: one node becomes another operator.

use pt2onnx::{Exporter, ir::Model, writer};
use std::{error::Error, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/mlp.pt2");
    let mut program = Exporter::new().export(archive)?;

    // Let the first Sigmoid be a HardSigmoid, which is cheaper.
    let model: &mut Model = program.model_mut();
    let count = |model: &Model, op: &str| {
        model.graph_nodes().iter().filter(|node| model[**node].is(op)).count()
    };
    let before = count(model, "Sigmoid");
    let first = model.graph_nodes().into_iter().find(|node| model[*node].is("Sigmoid"));
    let first = first.ok_or("the model has no Sigmoid")?;
    model.set_op(first, "HardSigmoid");
    model[first].name = Some("cheaper".into());

    // A changed model is verified before it is written.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("mlp.onnx");
    program.save(&path)?;
    let read = writer::read(&path)?;
    assert_eq!((count(&read, "Sigmoid"), count(&read, "HardSigmoid")), (before - 1, 1));

    // A model that is not valid ONNX is not written.
    program.model_mut().set_op(first, "NoSuchOperator");
    let refused = folder.path().join("refused.onnx");
    assert!(program.save(&refused).is_err() && !refused.exists());
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
