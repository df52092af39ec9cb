//! Lists the ATen ops that have a translation, and asks about single ops.

#![expect(clippy::print_stdout, reason = "its purpose")]

use pt2onnx::Registry;

fn main() {
    let registry = Registry::default();
    let ops = registry.ops();
    for op in &ops {
        println!("{}", op.schema);
    }
    println!("{} ops", ops.len());

    // Names are those of PyTorch: `aten::add.Tensor` is the overload `Tensor` of
    // `torch.ops.aten.add`.
    assert!(ops.len() > 1000);
    assert!(registry.is_registered("aten::add.Tensor"));
    assert!(!registry.is_registered("mylib::squash"));
    let relu = registry.get("aten::relu").map(|op| op.schema);
    assert_eq!(relu, Some("aten::relu(Tensor self) -> Tensor"));
}

#[test]
fn it_runs() {
    main();
}
