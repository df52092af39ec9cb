//! Attributes read as Rust types.
use super::model;
use pt2onnx_ir::{Attribute, Model, Node, Reduction, attrs, schema};

/// The only node of `y = NODE`.
fn read<R>(node: &str, read: impl FnOnce(&Node) -> R) -> R {
    let text = format!("<opset_import: [\"\" : 26]> g (float[2,3] x) => () {{ y = {node} (x) }}");
    let model = model(&text);
    read(&model[model.nodes(Model::MAIN).next().unwrap()])
}

#[test]
fn given_attributes_and_defaults() {
    let gemm = read("Gemm <alpha: float = 2.0, transB: int = 1>", attrs::Gemm::read).unwrap();
    assert_eq!((gemm.alpha, gemm.beta, gemm.trans_a, gemm.trans_b), (2.0, 1.0, false, true));
    read("Resize <mode: string = \"cubic\">", |node| {
        let resize = attrs::Resize::read(node).unwrap();
        assert_eq!((resize.mode, resize.nearest_mode), ("cubic", "round_prefer_floor"));
        assert_eq!((resize.antialias, resize.axes), (false, None));
    });
    read("Conv <strides: ints = [2, 1]>", |node| {
        let conv = attrs::Conv::read(node).unwrap();
        assert_eq!((conv.group, conv.strides, conv.pads), (1, Some(vec![2, 1]), None));
    });
    assert_eq!(read("Cast <to: int = 7>", attrs::Cast::to), Ok(7));
    assert_eq!(read("Concat <axis: int = -1>", attrs::Concat::axis), Ok(-1));
}

#[test]
fn what_cannot_be_read() {
    let refers = "refers to attribute a of the function, so each call has another value";
    for (node, error) in [
        ("Concat <axis: ints = [1]>", "attribute axis of Concat must be Int, but is Ints"),
        ("Concat <axis: int = @a>", &format!("attribute axis of Concat {refers}")),
        ("Concat", "Concat needs the attribute axis"),
        ("Elu <alpha: int = 1>", "attribute alpha of Elu must be Float, but is Int"),
        ("Elu <alpha: float = @a>", &format!("attribute alpha of Elu {refers}")),
    ] {
        let found = if node.starts_with("Elu") {
            read(node, attrs::Elu::read).unwrap_err()
        } else {
            read(node, attrs::Concat::axis).unwrap_err()
        };
        assert_eq!(found.to_string(), error);
    }
    let error = read("Pad", |node| {
        let mut node = node.clone();
        node.set_attribute("mode", Attribute::Bytes(vec![0xff]));
        attrs::Pad::read(&node).unwrap_err().to_string()
    });
    assert_eq!(error, "attribute mode of Pad is not UTF-8");
}

#[test]
fn setting_and_removing() {
    read("Gemm <transA: int = 1, alpha: float = 2.0>", |node| {
        let mut node = node.clone();
        node.set_attribute("transA", 0);
        node.set_attribute("beta", 0.5);
        assert!(node.remove_attribute("alpha").is_some());
        assert!(node.remove_attribute("alpha").is_none());
        let names: Vec<&str> = node.attributes.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["transA", "beta"]);
        let gemm = attrs::Gemm::read(&node).unwrap();
        assert_eq!((gemm.trans_a, gemm.alpha, gemm.beta), (false, 1.0, 0.5));
    });
}

#[test]
fn reductions_are_operators() {
    for reduction in Reduction::ALL {
        assert!(schema::lookup(reduction.name(), schema::CANONICAL_OPSET).is_some());
    }
}
