//! The registry: tables that hold to PyTorch's schemas, translations of users, and what it is asked
//! for.

use crate::checks::translated_by;
use pt2onnx_aten::{AtenOp, Cx, Lowered, Registry, Schema, arguments, op, ops_used, tables};
use pt2onnx_fx::graph::{Argument, Graph, Node, NodeMeta, OpName};
use pt2onnx_ir::Value;
use pt2onnx_lowering::table::Complexity;
use std::collections::{BTreeSet, HashSet};

#[test]
fn tables_are_sorted_and_unique() {
    let mut seen = HashSet::new();
    for family in tables() {
        for pair in family.windows(2) {
            let (a, b) = (pair[0].name(), pair[1].name());
            assert!(a < b, "{a} before {b}");
        }
        for op in family {
            assert!(seen.insert(op.name()), "{} stands twice", op.name());
        }
    }
}

/// Rows of ops in PyTorch's list have the list's schema.
#[test]
fn schemas_are_those_of_the_list() {
    let list = include_str!("../../../pt2onnx-schemas/src/schemas.txt");
    let schemas: HashSet<&str> = list.lines().collect();
    let names: HashSet<&str> = list.lines().filter_map(|l| l.split('(').next()).collect();
    for op in tables().flatten().filter(|op| !schemas.contains(op.schema)) {
        assert!(Schema::parse(op.schema).is_ok(), "no schema: {}", op.schema);
        assert!(!names.contains(op.name()), "not PyTorch's schema: {}", op.schema);
    }
}

#[test]
fn parameters_fit_the_schemas() {
    let wrong: Vec<String> = tables().flatten().filter_map(|op| op.check().err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of the tensors of ops that run on each part of complex numbers. Beside a complex tensor, a
/// real one has an imaginary part of 0, but not one that says where: a new name here belongs to
/// `PLACES` (pt2onnx-lowering, `args/bind.rs`) if it does.
#[test]
fn tensors_of_ops_by_parts() {
    let by_parts = tables().flatten().filter(|op| matches!(op.complexity, Complexity::ByParts));
    let schemas = by_parts.filter_map(|op| Schema::parse(op.schema).ok());
    let tensors = schemas.flat_map(|schema| {
        schema.params.into_iter().filter(|p| p.ty.base == "Tensor").map(|p| p.name)
    });
    let names: BTreeSet<String> = tensors.collect();
    let names = Vec::from_iter(names).join(" ");
    let known = "A a append condition end flat index indices mask other prepend repeats self sequences shape source spacing src \
                 start tensor_indices_or_sections tensors the_template value values weight y";
    assert_eq!(names, known);
}

arguments! {
    struct ScaleArgs {
        input: Value,
        bias: Option<Value>,
        factor: f64,
    }
}

/// `input * factor + bias`.
fn scale(cx: &Cx, args: ScaleArgs) -> Lowered {
    let product = cx.mul(args.input, args.factor);
    Ok(args.bias.map_or(product, |bias| cx.add(product, bias)))
}

static OPS: &[AtenOp] = &[
    op!("mylib::biased(float factor, Tensor bias, Tensor input) -> Tensor", scale),
    op!("mylib::doubled(Tensor self) -> Tensor", scale, factor = 2.0),
    op!("mylib::scaled(Tensor self, float factor=1.) -> Tensor", scale),
];

#[test]
fn fields_are_bound_by_name() {
    assert!(OPS.iter().all(|op| op.check().is_ok()));
    let registry = Registry::with(OPS).unwrap();
    let calls = [
        "mylib.biased(3.0, b: f32[2], x: f32[2]) -> f32[2]",
        "mylib.doubled(x: f32[2]) -> f32[2]",
        "mylib.scaled(x: f32[2]) -> f32[2]",
    ];
    insta::assert_snapshot!(calls.map(|call| translated_by(&registry, call)).concat(), @"
    val_0 = Mul (x, 3.0)
    biased = Add (val_0, b)
    doubled = Mul (x, 2.0)
    scaled = Identity (x)
    ");
}

#[test]
fn rows_that_do_not_fit_their_schemas() {
    static ROWS: &[AtenOp] = &[
        op!("mylib::missing(Tensor self) -> Tensor", scale),
        op!("mylib::mistyped(Tensor self, str factor) -> Tensor", scale),
        op!("mylib::untaken(Tensor self, float factor, int n) -> Tensor", scale),
        op!("mylib::given_twice(Tensor self, float factor) -> Tensor", scale, factor = 2.0),
        op!("mylib::given_in_vain(Tensor self, float factor) -> Tensor", scale, n = 2),
        op!("mylib::unreadable", scale),
        op!("nameless(Tensor self, float factor) -> Tensor", scale),
    ];
    for row in ROWS.chunks(1) {
        let error = Registry::with(row).map(drop).unwrap_err();
        assert_eq!(Some(error.to_string()), row[0].check().err());
    }
    let errors: Vec<String> = ROWS.iter().filter_map(|row| row.check().err()).collect();
    assert_eq!(errors.len(), ROWS.len());
    insta::assert_snapshot!(errors.join("\n"), @"
    mylib::missing: the function takes `factor`, which the schema does not have
    mylib::mistyped: a parameter of type f64 cannot take `str factor`
    mylib::untaken: the function does not take `n`, which has no default
    mylib::given_twice: the row gives a value for `factor`, which is a parameter of the schema
    mylib::given_in_vain: the function does not take `n`, which has no default
    `mylib::unreadable` is not the schema of an op: no `(` begins parameters; a schema looks like `mylib::foo(Tensor x, int n=2) -> Tensor`
    `nameless(Tensor self, float factor) -> Tensor` is not the schema of an op: its name has no namespace; a schema looks like `mylib::foo(Tensor x, int n=2) -> Tensor`
    ");
}

#[test]
fn lowerings_that_do_not_fit_their_schemas() {
    let mut registry = Registry::default();
    let schema = "mylib::power(Tensor x, int n) -> Tensor";
    let mistyped = |cx: &Cx, x: Value, n: String| -> Lowered { Ok(cx.pow(x, n.len() as f64)) };
    let too_few = |cx: &Cx, x: Value| -> Lowered { Ok(cx.relu(x)) };
    let too_many = |cx: &Cx, x: Value, n: i64, _: bool| -> Lowered { Ok(cx.mul(x, n)) };
    let errors = [
        registry.register(schema, mistyped),
        registry.register(schema, too_few),
        registry.register(schema, too_many),
    ];
    let errors = errors.map(|result| result.unwrap_err().to_string());
    insta::assert_snapshot!(errors.join("\n"), @"
    mylib::power: a parameter of type String cannot take `int n`
    mylib::power: the function does not take `n`, which has no default
    mylib::power: the function takes more parameters than the schema has
    ");
    assert!(!registry.is_registered("mylib::power"));
    let fits = |cx: &Cx, x: Value, n: i64| -> Lowered { Ok(cx.mul(x, n)) };
    assert_eq!(registry.register(schema, fits), Ok(()));
}

#[test]
fn nearest_names() {
    let registry = Registry::default();
    assert_eq!(registry.nearest("aten::relu.out"), Some("aten::relu"));
    assert_eq!(registry.nearest("aten::reluu"), Some("aten::relu"));
    assert_eq!(registry.nearest("mylib::whatever"), None);
}

#[test]
fn threads_share_a_registry() {
    let mut registry = Registry::default();
    let twice = |cx: &Cx, x: Value| -> Lowered { Ok(cx.mul(x, 2)) };
    registry.register("mylib::twice(Tensor x) -> Tensor", twice).unwrap();
    let calls = [
        "mylib.twice(x: f32[2]) -> f32[2]",
        "aten.relu(x: f32[s0]) -> f32[s0]",
        "aten.add.Tensor(x: f32[s0, 8], y: i64[8], alpha = 2) -> f32[s0, 8]",
        "mylib.once(x: f32[2]) -> f32[2]",
    ];
    let all = || calls.map(|call| translated_by(&registry, call));
    let found = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(all));
        threads.map(|thread| thread.join().unwrap())
    });
    // One thread with a separate registry gives the same.
    let mut alone = Registry::default();
    alone.register("mylib::twice(Tensor x) -> Tensor", twice).unwrap();
    let expected = calls.map(|call| translated_by(&alone, call));
    assert!(found.iter().all(|texts| *texts == expected), "{found:#?}");
    assert!(expected[0].contains("Mul (x") && expected[3].contains("no translation"));
}

#[test]
fn names_of_one_schema_are_one_op() {
    let node = |overload| Node {
        name: "relu".into(),
        target: OpName::new("aten", "relu", overload),
        args: Vec::new(),
        outputs: vec![Argument::None],
        single_return: None,
        meta: NodeMeta::default().into(),
    };
    let nodes = ["default", "", "default"].map(|overload| node(overload).into()).to_vec();
    let graph = Graph { nodes, ..Graph::default() };
    let uses = ops_used(&graph, &Registry::default());
    let found: Vec<_> = uses.iter().map(|u| (u.op.as_str(), u.count)).collect();
    assert_eq!(found, [("aten::relu", 3)]);
}
