//! Translations that come from outside: closures, functions of ONNX, tables of another crate.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx::{
    Error, Exporter, Provenance, Registry,
    aten::{
        Args, AtenOp, Complex, Cx, Given, GivenArg, LowerError, Lowered, RegisterError,
        SchemaError, Translation, op,
    },
    fx::{
        ExportedProgram, archive,
        graph::{ArgKind, Argument, NamedArg, OpName},
    },
    ir::Value,
    opt::Level,
    symbolic::Expr,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// The MLP, whose first `sigmoid` is a custom op, with a number if that is given.
fn program(alpha: Option<Argument>) -> ExportedProgram {
    let mut program = archive::read(testdata("models/mlp.pt2")).unwrap();
    let nodes = &mut program.graph.nodes;
    let node = Arc::make_mut(nodes.iter_mut().find(|n| &*n.name == "sigmoid").unwrap());
    node.target = OpName::parse("torch.ops.mylib.squash.default");
    node.args[0].name = "x".into();
    node.args.extend(alpha.map(|value| NamedArg {
        name: "alpha".into(),
        kind: ArgKind::Keyword,
        value,
    }));
    program
}

fn export(registry: Registry, program: ExportedProgram) -> Result<String, Error> {
    let exporter =
        Exporter::new().provenance(Provenance::None).optimize(Level::Off).registry(registry);
    Ok(exporter.export(program)?.to_text())
}

const SCHEMA: &str = "mylib::squash(Tensor x, float alpha=0.5) -> Tensor";

fn squash(cx: &Cx, x: Value, alpha: f64) -> Lowered {
    let alpha = cx.scalar(alpha, cx.out_dtype()?);
    Ok(cx.tanh(cx.mul(x, alpha)))
}

static TABLE: &[AtenOp] = &[
    op!("aten::sigmoid(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered { Ok(cx.tanh(x)) }),
    op!("mylib::squash(Tensor x, float alpha=0.5) -> Tensor", squash),
];

#[test]
fn a_registered_closure_translates_its_op() {
    let used = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut registry = Registry::default();
    let counter = used.clone();
    registry
        .register(SCHEMA, move |cx: &Cx, x: Value, alpha: f64| -> Lowered {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            squash(cx, x, alpha)
        })
        .unwrap();
    let text = export(registry, program(None)).unwrap();
    assert!(text.contains("sigmoid = Tanh"), "{text}");
    assert!(text.contains("{0.5}"), "the default: {text}");
    assert_eq!(used.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn arguments_by_name() {
    let mut registry = Registry::default();
    let by_name = |cx: &Cx, args: &mut Args| -> Lowered {
        let alpha: f64 = args.get(cx, "alpha")?;
        squash(cx, args.get(cx, "x")?, alpha)
    };
    registry.register(SCHEMA, by_name).unwrap();
    let text = export(registry, program(Some(Argument::Float(0.25)))).unwrap();
    assert!(text.contains("{0.25}"), "{text}");

    let mut registry = Registry::default();
    let forgets = |cx: &Cx, args: &mut Args| -> Lowered { Ok(cx.tanh(args.get(cx, "x")?)) };
    registry.register(SCHEMA, forgets).unwrap();
    let error = export(registry, program(Some(Argument::Float(0.25)))).unwrap_err();
    let expected = "argument `alpha`: only its default is supported";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn what_is_given_goes_before_what_is_built_in() {
    let mut registry = Registry::with(TABLE).unwrap();
    let text = export(Registry::with(TABLE).unwrap(), program(None)).unwrap();
    assert_eq!((text.matches("Tanh").count(), text.matches("Sigmoid").count()), (4, 0));

    let relu = |cx: &Cx, x: Value| -> Lowered { Ok(cx.relu(x)) };
    registry.register("aten::sigmoid(Tensor self) -> Tensor", relu).unwrap();
    registry
        .add_functions("<opset_import: [\"\" : 18]> \"mylib::squash\" (x) => (y) { y = Erf (x) }")
        .unwrap();
    let (sigmoid, squash) =
        (registry.functions("aten::sigmoid"), registry.functions("mylib::squash"));
    assert!(matches!(
        sigmoid[..],
        [Translation::Table(_), Translation::Registered { is_complex: false, .. }]
    ));
    assert!(matches!(squash[..], [Translation::Table(_), Translation::Function(_)]));
    assert!(registry.is_registered("mylib::squash") && !registry.is_registered("mylib::other"));
    let text = export(registry, program(None)).unwrap();
    assert_eq!(text.matches("Relu").count(), 3, "{text}");
    assert!(text.contains("sigmoid = mylib.squash (linear)"), "{text}");
    assert!(text.contains("y = Erf (x)"), "{text}");
    assert!(Registry::default().opset_version() >= 26);
}

/// A complex variant is for nodes with complex tensors; this program has none.
#[test]
fn complex_variants() {
    let mut registry = Registry::with(TABLE).unwrap();
    let conjugate = |cx: &Cx, x: Complex| -> Lowered { Ok(x.conj(cx).value(cx)) };
    registry.register_complex(SCHEMA, conjugate).unwrap();
    let kinds = registry.functions("mylib::squash");
    assert!(matches!(kinds[..], [_, Translation::Registered { is_complex: true, .. }]));
    let text = export(registry, program(None)).unwrap();
    assert!(text.contains("sigmoid = Tanh"), "{text}");
}

#[test]
fn wrong_schemas_and_wrong_types() {
    let mut registry = Registry::default();
    for schema in ["mylib::squash", "squash(Tensor x) -> Tensor", ""] {
        let result = registry.register(schema, |cx: &Cx, x: Value| -> Lowered { Ok(cx.relu(x)) });
        assert!(matches!(
            result,
            Err(RegisterError::Schema(SchemaError::Text { text, .. })) if text == schema
        ));
    }
    let schema = "mylib::squash(Tensor x, int[] s=[a]) -> Tensor";
    let result = registry.register(schema, |_: &Cx, x: Value, _: Vec<i64>| -> Lowered { Ok(x) });
    let text = "the default `[a]` of the parameter `int[] s` cannot be read";
    assert_eq!(result.unwrap_err().to_string(), text);
    let more = |cx: &Cx, x: Value| -> Lowered { Ok(cx.unsqueeze(x, &[0])) };
    registry.register("mylib::squash(Tensor x) -> Tensor", more).unwrap();
    let error = export(registry, program(None)).unwrap_err().to_string();
    assert!(
        error.contains(
            "its translation gives output 0 the type float[1,s18,8], but PyTorch recorded float[s18,8]"
        ),
        "{error}"
    );
}

/// `torch.onnx.ops.symbolic`: attributes, type, version and metadata.
#[test]
fn symbolic_nodes() {
    let program = Exporter::new().export(testdata("models/symbolic.pt2")).unwrap();
    let (model, text) = (program.model(), program.to_text());
    let node = "_symbolic = custom.domain.Foo <i: int = 1, f: float = 0.5, s: string = \"text\", is_: ints = [1, 2], \
                fs: floats = [1.0, 2.5], ss: strings = [\"a\", \"b\"], b: int = 1> (args_0, \"\", args_0)";
    assert!(text.contains(node), "{text}");
    assert!(text.contains(",7] _symbolic"), "{text}");
    assert_eq!(model.imports["custom.domain"], 3);
    let origin = model[model.all_nodes()[0]].origins[0];
    let metadata = &model[origin].metadata;
    assert!(metadata.iter().any(|(k, v)| k == "who" && v.to_string() == "me"), "{metadata:?}");
}

/// Archives of TorchScript have neither the schemas of ops nor the types of results.
#[test]
fn ops_of_scripts() {
    let mut registry = Registry::default();
    let mix = |cx: &Cx, x: Value, y: Value, weight: f64| -> Lowered {
        Ok(cx.add(cx.mul(x, weight), cx.mul(y, 1.0 - weight)))
    };
    let schema = "mylib::mix(Tensor x, Tensor y, *, float weight=0.5) -> Tensor";
    registry.register(schema, mix).unwrap();
    let tile = |cx: &Cx, x: Value, sizes: Vec<i64>, n: i64| -> Lowered {
        assert_eq!(sizes, [-1, 3]);
        Ok(cx.mul(cx.expand(x, &[cx.dim(x, 0), Expr::int(3)]), n as f64))
    };
    let schema = "mylib::tile_rows(Tensor x, SymInt[] sizes, SymInt n) -> Tensor";
    registry.register(schema, tile).unwrap();
    registry.register_untyped("mylib::minmax", |cx: &Cx, args: Vec<GivenArg>| {
        let [Given::List(xs), _, Given::List(gains)] =
            [&args[0], &args[1], &args[2]].map(|a| &a.value)
        else {
            return Err(LowerError::unsupported("its arguments"));
        };
        let [Given::Value(x), Given::Value(y)] = xs[..] else {
            return Err(LowerError::unsupported("its tensors"));
        };
        assert_eq!(gains.len(), 2);
        Ok(vec![cx.mul(cx.max(&[x, y]), 2.0), cx.mul(cx.min(&[x, y]), 0.5)].into())
    });
    let schema = "mylib::halves(Tensor x, int at) -> Tensor[]";
    registry.register_untyped(schema, |cx: &Cx, args: Vec<GivenArg>| {
        let Given::Value(x) = args[0].value else {
            return Err(LowerError::unsupported("its tensor"));
        };
        let part = |from: i64, to: i64| cx.slice(x, 1, &Expr::int(from), &Expr::int(to), 1);
        Ok(vec![part(0, 1), part(1, 3)].into())
    });
    let export = |registry| {
        let exporter = Exporter::new().provenance(Provenance::None).registry(registry);
        let exporter = exporter.input("x", "float32[n,3]").input("y", "float32[n,3]");
        exporter.export(testdata("models/custom_ops.pt"))
    };
    let program = export(registry).unwrap();
    let types = program.model().output_values();
    let types: Vec<_> = types.map(|v| program.model()[v].ty.clone().unwrap().to_string()).collect();
    assert_eq!(types, ["float[n,3]", "float[n,2]"]);
    let error = export(Registry::default()).map(drop).unwrap_err();
    assert!(error.to_string().contains("mylib::mix"), "{error}");
}
