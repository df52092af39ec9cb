//! Follows docs/adding-an-op.md: made-up ops of each kind, each a row and functions of one file,
//! and the page's examples, which are code of this crate.

use crate::checks::translated_by;
use pt2onnx_aten::{
    AtenOp, Cx, Lowered, Registry,
    infer::{Facts, Outcome},
    op,
};
use pt2onnx_fx::{ValueMeta, graph::Node, text};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_lowering::meta::{fresh, sized, with_size};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::{fs, path::Path};

static OPS: &[AtenOp] = &[
    op!("mylib::column(Tensor(a) self, int index) -> Tensor(a)", column, parts),
    op!("mylib::halves(Tensor self) -> Tensor[]", halves, parts, meta = meta_halves),
    op!("mylib::positive(Tensor self) -> Tensor", positive, meta = meta_positive),
    op!("mylib::scaled(Tensor self, float factor=2.) -> Tensor", scaled, parts),
];

/// A view: `x[:, index]`.
fn column(cx: &Cx, x: Value, index: i64) -> Lowered {
    Ok(cx.take(x, 1, &Expr::int(index)))
}

/// A list: the first and the second half of the rows.
fn halves(cx: &Cx, x: Value) -> Lowered<Vec<Value>> {
    let half = cx.dim(x, 0).floor_div(&Expr::int(2));
    Ok(cx.split(x, 0, &[half.clone(), cx.dim(x, 0) - half]))
}

fn meta_halves(cx: &Cx, x: Value) -> Lowered<Vec<Value>> {
    let half = cx.dim(x, 0).floor_div(&Expr::int(2));
    let sizes = [half.clone(), cx.dim(x, 0) - half];
    Ok(sizes.map(|size| sized(cx, x, &with_size(cx, x, 0, size))).into())
}

/// A size that depends on data: the elements of a vector that are above 0.
fn positive(cx: &Cx, x: Value) -> Lowered {
    let kept = cx.compress(x, cx.greater(x, 0), attrs::Compress::default());
    cx.set_type(kept, Type::tensor(cx.dtype(x), cx.out_shape()?));
    Ok(kept)
}

fn meta_positive(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &[fresh(cx)]))
}

/// Element by element.
fn scaled(cx: &Cx, x: Value, factor: f64) -> Lowered {
    Ok(cx.mul(x, factor))
}

/// The types of a call's results without their records.
fn inferred_by(registry: &Registry, call: &str) -> String {
    let program = text::parse_call(call).unwrap();
    let node = Node { outputs: Vec::new(), ..Node::clone(&program.graph.nodes[0]) };
    let facts = Facts {
        values: &program.graph.values,
        contents: &FxHashMap::default(),
        constraints: &program.constraints,
        default_dtype: DType::F32,
    };
    let results = registry.infer(&node, &facts, &mut |_| Expr::symbol("u0")).unwrap();
    let one = |meta: &ValueMeta| {
        let meta = meta.tensor().unwrap();
        let sizes: Vec<String> = meta.sizes.iter().map(ToString::to_string).collect();
        format!("{}[{}]", meta.dtype.name(), sizes.join(", "))
    };
    let types = results.iter().flat_map(Outcome::typed).map(|typed| one(&typed.meta));
    types.collect::<Vec<_>>().join(" ")
}

#[test]
fn made_up_ops_are_translated_and_typed() {
    let registry = Registry::with(OPS).unwrap();
    for (call, operators, types) in [
        ("mylib.column(x: f32[s0, 4], 1) -> f32[s0]", "Gather", "float32[s0]"),
        ("mylib.column(x: c64[s0, 4], 1) -> c64[s0]", "Gather", "complex64[s0]"),
        (
            "mylib.halves(x: f32[4, 3]) -> [f32[2, 3], f32[2, 3]]",
            "Split",
            "float32[2, 3] float32[2, 3]",
        ),
        ("mylib.positive(x: i64[s0]) -> i64[u0]", "Compress", "int64[u0]"),
        ("mylib.scaled(x: f16[s0], 3.0) -> f16[s0]", "Mul", "float16[s0]"),
    ] {
        let graph = translated_by(&registry, call);
        assert!(graph.contains(operators), "{call}: {graph}");
        assert_eq!(inferred_by(&registry, call), types, "{call}");
    }
    assert!(OPS.iter().all(|op| op.check().is_ok()));
}

/// The functions and rows on the page stand in the sources as the page shows them.
#[test]
fn the_pages_examples_are_code_of_this_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/adding-an-op.md")).unwrap();
    let mut sources = String::new();
    for path in glob::glob(&format!("{}/src/ops/**/*.rs", root.display())).unwrap() {
        sources += &fs::read_to_string(path.unwrap()).unwrap();
    }
    let mut blocks = page.split("```rust\n").skip(1).filter_map(|b| b.split("```").next());
    let functions = blocks.clone().flat_map(|block| block.split("\n\n")).filter(|part| {
        part.lines().any(|line| line.starts_with("fn ")) && !part.contains("/* ... */")
    });
    let mut shown: Vec<&str> = functions.map(str::trim).collect();
    let rows = page.lines().filter_map(|line| line.split("`op!(").nth(1)?.split('`').next());
    shown.extend(rows);
    assert!(shown.len() > 5 && blocks.any(|block| block.contains("meta =")));
    for code in shown {
        assert!(sources.contains(code), "no file of `ops/` has\n{code}");
    }
}
