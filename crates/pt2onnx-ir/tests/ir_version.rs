//! The IR version that a model is written in.

use pt2onnx_ir::Model;

#[test]
fn the_lowest_that_serves() {
    let pass = |ty: &str| format!("g ({ty}[N] x) => ({ty}[N] y) {{ y = Identity (x) }}");
    let function = "g (float[N] x) => (float[N] y) { y = own.f (x) }
        <domain: \"own\", opset_import: [\"\" : 9]> f (x) => (y) { y = Relu (x) }";
    for (opset, imports, graph, expected) in [
        (9, "", pass("float"), 4),
        (10, "", pass("float"), 5),
        (13, "", pass("float"), 7),
        (18, "", pass("float"), 8),
        (26, "", pass("float"), 13),
        (13, "", pass("float8e5m2"), 9),
        (9, "", pass("uint4"), 10),
        (24, "", pass("uint4"), 12),
        (9, ", \"own\" : 1", function.to_owned(), 8),
    ] {
        let head = format!("<ir_version: 99, opset_import: [\"\" : {opset}{imports}]>\n");
        let mut model: Model = (head + &graph).parse().unwrap();
        assert_eq!(model.ir_version(), 99);
        model.ir_version = None;
        assert_eq!(model.ir_version(), expected, "{model}");
    }
}
