//! Contents of the messages, read back with prost.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use prost::Message;
use pt2onnx_ir::{
    Attribute, Attributes, Function, InsertPoint, Model, Origin, RegionId, Type, Value, ValueData,
    schema::AttributeKind,
};
use pt2onnx_proto::{
    GraphProto, ModelProto, ValueInfoProto, attribute_proto::AttributeType,
    tensor_shape_proto::dimension, type_proto,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use pt2onnx_writer::{Error, to_bytes_unverified as to_bytes};

fn written(model: &Model) -> ModelProto {
    ModelProto::decode(to_bytes(model).unwrap()).unwrap()
}

/// Appends a node with one output.
fn node(
    m: &mut Model,
    region: RegionId,
    op: &'static str,
    inputs: &[Value],
    attributes: Attributes,
) -> Value {
    let inputs: Vec<_> = inputs.iter().map(|v| Some(*v)).collect();
    let id = m.add_node(InsertPoint::End(region), op, &inputs, attributes, 1);
    m[id].outputs()[0]
}

fn named<'a>(m: &'a mut Model, value: Value, name: &str) -> &'a mut ValueData {
    m[value].name = Some(name.into());
    &mut m[value]
}

fn float(dims: impl Into<Vec<Expr>>) -> Option<Type> {
    Some(Type::tensor(DType::F32, dims))
}

/// `x: float[N, 2*N, ?, 3]` and the like, as the messages have it.
fn spelled(info: &ValueInfoProto) -> String {
    let Some(ty) = &info.r#type else {
        return info.name().to_owned();
    };
    let Some(type_proto::Value::TensorType(t)) = &ty.value else {
        return format!("{}: {ty:?}", info.name());
    };
    let dims = t.shape.as_ref().map(|shape| {
        let dims = shape.dim.iter().map(|d| match &d.value {
            None => "?".to_owned(),
            Some(dimension::Value::DimValue(n)) => n.to_string(),
            Some(dimension::Value::DimParam(p)) => p.clone(),
        });
        dims.collect::<Vec<_>>()
    });
    format!(
        "{}: {} {}",
        info.name(),
        t.elem_type(),
        dims.map_or("unranked".into(), |d| format!("{d:?}"))
    )
}

fn names(graph: &GraphProto) -> Vec<&str> {
    graph.initializer.iter().map(|i| i.name()).collect()
}

#[test]
fn types_of_values() {
    let mut m = Model::new(20);
    let n = Expr::symbol("N");
    let dims = [n.clone(), &n * 2 + 1, Expr::symbol("?0"), Expr::symbol("?1") + 1, Expr::int(3)];
    let x = m.add_input(Model::MAIN, float(dims));
    named(&mut m, x, "x");
    let y = node(&mut m, Model::MAIN, "Relu", &[x], vec![]);
    named(&mut m, y, "y").ty = Some(Type::tensor(DType::BF16, []));
    let z = node(&mut m, Model::MAIN, "Neg", &[y], vec![]);
    named(&mut m, z, "z").ty =
        Some(Type::Tensor(pt2onnx_ir::TensorType { dtype: DType::I64, shape: None }));
    let untyped = node(&mut m, Model::MAIN, "Abs", &[y], vec![]);
    named(&mut m, untyped, "untyped");
    let s = node(&mut m, Model::MAIN, "SequenceConstruct", &[z, untyped], vec![]);
    named(&mut m, s, "s").ty =
        Some(Type::Sequence(Box::new(Type::Optional(Box::new(Type::tensor(DType::I4, []))))));
    m.set_outputs(Model::MAIN, &[z, s]);

    let graph = written(&m).graph.unwrap();
    let all = |infos: &[ValueInfoProto]| infos.iter().map(spelled).collect::<Vec<_>>();
    assert_eq!(all(&graph.input), [r#"x: 1 ["N", "2*N + 1", "?", "?", "3"]"#]);
    assert_eq!(all(&graph.value_info), ["y: 16 []"]);
    assert_eq!(all(&graph.output)[0], "z: 7 unranked");
    let Some(type_proto::Value::SequenceType(seq)) = graph.output[1].r#type.clone().unwrap().value
    else {
        panic!()
    };
    let Some(type_proto::Value::OptionalType(opt)) = seq.elem_type.unwrap().value else { panic!() };
    let Some(type_proto::Value::TensorType(t)) = opt.elem_type.unwrap().value else { panic!() };
    assert_eq!(t.elem_type(), 22);
}

#[test]
fn head_and_metadata() {
    let mut m = Model::new(20);
    m.imports.insert("ai.onnx.ml".into(), 3);
    m.metadata.push(("author".into(), "me".into()));
    m.graph_metadata.push(("signature".into(), "sig".into()));
    let x = m.add_input(Model::MAIN, float([]));
    named(&mut m, x, "x").metadata.push(("role".into(), "user".into()));
    let w = m.add_constant(Tensor::scalar(2f32));
    named(&mut m, w, "w").metadata.push(("role".into(), "weight".into()));
    let y = node(&mut m, Model::MAIN, "Mul", &[x, w], vec![]);
    let id = m.producer(y).unwrap();
    for (key, value) in [("a", "1"), ("a", "2"), ("pkg.pt2onnx.origins", "3, 4"), ("a", "1")] {
        let origin = m.add_origin(Origin {
            node: format!("n{value}").into(),
            metadata: vec![(key.into(), value.into())],
            location: Some(format!("m.py:{value}").into()),
            ..Origin::default()
        });
        m[id].origins.push(origin);
    }
    m.set_outputs(Model::MAIN, &[y]);
    m.assign_names();

    let p = written(&m);
    assert_eq!(
        (p.ir_version(), p.producer_name(), p.producer_version()),
        (9, "pt2onnx", env!("CARGO_PKG_VERSION"))
    );
    let imports: Vec<_> = p.opset_import.iter().map(|o| (o.domain(), o.version())).collect();
    assert_eq!(imports, [("", 20), ("ai.onnx.ml", 3)]);
    let pairs = |entries: &[pt2onnx_proto::StringStringEntryProto]| {
        entries.iter().map(|e| format!("{}={}", e.key(), e.value())).collect::<Vec<_>>().join(" ")
    };
    let graph = p.graph.as_ref().unwrap();
    assert_eq!(graph.name(), "main_graph");
    assert_eq!(
        [
            &p.metadata_props,
            &graph.metadata_props,
            &graph.input[0].metadata_props,
            &graph.value_info[0].metadata_props
        ]
        .map(|e| pairs(e)),
        ["author=me", "signature=sig", "role=user", "role=weight"]
    );
    assert_eq!(pairs(&graph.node[0].metadata_props), "a=1 pkg.pt2onnx.origins=n1, n2, 3, 4, n1");
    assert_eq!(graph.node[0].doc_string, None);
    assert_eq!(
        (graph.node[0].op_type(), graph.node[0].name(), graph.node[0].domain.as_deref()),
        ("Mul", "n1_Mul", None)
    );

    m.producer = Some("me".into());
    m.model_version = Some(7);
    m.doc_string = Some("words".into());
    m.source_lines = true;
    let p = written(&m);
    assert_eq!((p.producer_name(), p.producer_version.as_deref()), ("me", None));
    assert_eq!((p.model_version(), p.doc_string()), (7, "words"));
    let node = &p.graph.as_ref().unwrap().node[0];
    assert_eq!(node.doc_string(), "m.py:1\nm.py:2\nm.py:3, 4");
}

#[test]
fn constants_in_use_are_initialisers_in_order() {
    let mut m = Model::new(20);
    let unused = m.add_constant(Tensor::scalar(0f32));
    let (a, b) =
        (m.add_constant(Tensor::vector(&[1i64, -2])), m.add_constant(Tensor::scalar(true)));
    let text =
        Tensor::strings(vec![2], ["é".into(), "".into()].map(|s: String| s.into_bytes().into()))
            .unwrap();
    let text = m.add_constant(text);
    for (v, name) in [(unused, "unused"), (a, "a"), (b, "b"), (text, "text")] {
        named(&mut m, v, name);
    }
    // Used in reverse; `b` only inside a body.
    let t = node(&mut m, Model::MAIN, "Identity", &[text], vec![]);
    let body = m.add_region();
    let inner = node(&mut m, body, "Not", &[b], vec![]);
    m.set_outputs(body, &[inner]);
    let branches = vec![("then_branch".into(), body.into())];
    let y = node(&mut m, Model::MAIN, "If", &[a], branches);
    m.set_outputs(Model::MAIN, &[t, y]);
    m.assign_names();

    let graph = written(&m).graph.unwrap();
    assert_eq!(names(&graph), ["a", "b", "text"]);
    let [a, b, text] = &graph.initializer[..] else { panic!() };
    assert_eq!(
        (a.data_type(), &a.dims[..], a.raw_data()),
        (7, &[2][..], &[[1, 0, 0, 0, 0, 0, 0, 0], (-2i64).to_le_bytes()].concat()[..])
    );
    assert_eq!((b.data_type(), &b.dims[..], b.raw_data()), (9, &[][..], &[1u8][..]));
    assert_eq!(
        (text.data_type(), text.raw_data.is_some(), &text.string_data[..]),
        (8, false, &["é".into(), vec![]][..])
    );
    let body = graph.node[1].attribute[0].g.as_ref().unwrap();
    assert_eq!(
        (body.name(), names(body), body.node[0].op_type()),
        ("node_If_1_then_branch", vec![], "Not")
    );
}

#[test]
fn attributes_of_every_kind() {
    let mut m = Model::new(20);
    let (r0, r1) = (m.add_region(), m.add_region());
    let tensor = Tensor::vector(&[1.5f32]);
    let attributes: Vec<(&str, Attribute)> = vec![
        ("f", 0.5f32.into()),
        ("i", 0i64.into()),
        ("s", "text".into()),
        ("t", tensor.clone().into()),
        ("g", r0.into()),
        ("tp", float([]).unwrap().into()),
        ("fs", vec![1f32].into()),
        ("is", vec![1i64, 2].into()),
        ("ss", vec![String::new()].into()),
        ("ts", Attribute::Tensors(vec![tensor])),
        ("gs", Attribute::Regions(vec![r1])),
        ("tps", vec![float([]).unwrap()].into()),
        ("r", Attribute::Reference { name: "outer".into(), kind: AttributeKind::Ints }),
    ];
    let attributes: Attributes = attributes.into_iter().map(|(n, a)| (n.into(), a)).collect();
    m.add_node(InsertPoint::End(Model::MAIN), "Any", &[None], attributes, 0);
    m.assign_names();

    let graph = written(&m).graph.unwrap();
    let a = &graph.node[0].attribute;
    let kinds: Vec<_> = a.iter().map(|a| (a.name(), a.r#type().as_str_name())).collect();
    let expected = [
        ("f", "FLOAT"),
        ("i", "INT"),
        ("s", "STRING"),
        ("t", "TENSOR"),
        ("g", "GRAPH"),
        ("tp", "TYPE_PROTO"),
        ("fs", "FLOATS"),
        ("is", "INTS"),
        ("ss", "STRINGS"),
        ("ts", "TENSORS"),
        ("gs", "GRAPHS"),
        ("tps", "TYPE_PROTOS"),
        ("r", "INTS"),
    ];
    assert_eq!(kinds, expected);
    assert_eq!((a[0].f, a[1].i, a[2].s()), (Some(0.5), Some(0), &b"text"[..]));
    assert_eq!(a[3].t.as_ref().unwrap().raw_data(), 1.5f32.to_le_bytes());
    assert_eq!((&a[7].ints[..], a[8].strings.len(), a[9].tensors.len()), (&[1, 2][..], 1, 1));
    assert_eq!(
        (a[4].g.as_ref().unwrap().name(), a[10].graphs[0].name()),
        ("node_Any_0_g", "node_Any_0_gs_0")
    );
    assert_eq!((a[12].ref_attr_name(), a[12].ints.len()), ("outer", 0));
    assert_eq!(graph.node[0].input, [""]);
}

#[test]
fn functions() {
    let mut m = Model::new(20);
    let body = m.add_region();
    let x = m.add_input(body, None);
    let two = m.add_constant(Tensor::scalar(2f32));
    named(&mut m, two, "two");
    let y = node(&mut m, body, "Mul", &[x, two], vec![]);
    let alpha = Attribute::Reference { name: "slope".into(), kind: AttributeKind::Float };
    let z = node(&mut m, body, "LeakyRelu", &[y], vec![("alpha".into(), alpha)]);
    m.set_outputs(body, &[z]);
    m.functions.push(Function {
        attributes: vec!["slope".into()],
        ..Function::new("my.domain", "Twice", body)
    });
    let a = m.add_input(Model::MAIN, float([]));
    let call = m.add_node(InsertPoint::End(Model::MAIN), "Twice", &[Some(a)], vec![], 1);
    m[call].domain = "my.domain".into();
    let out = m[call].outputs()[0];
    m[out].ty = float([]);
    m.set_outputs(Model::MAIN, &[out]);
    m.assign_names();

    let p = written(&m);
    let imports: Vec<_> = p.opset_import.iter().map(|o| (o.domain(), o.version())).collect();
    assert_eq!(imports, [("", 20), ("my.domain", 1)]);
    let graph = p.graph.as_ref().unwrap();
    assert_eq!((graph.node[0].domain(), graph.initializer.len()), ("my.domain", 0));
    let f = &p.functions[0];
    assert_eq!(
        (f.domain(), f.name(), &f.attribute[..]),
        ("my.domain", "Twice", &["slope".to_owned()][..])
    );
    assert_eq!(f.opset_import, p.opset_import);
    let ops: Vec<_> = f.node.iter().map(|n| (n.op_type(), n.output[0].as_str())).collect();
    assert_eq!(
        ops,
        [
            ("Constant", "two"),
            ("Mul", f.node[1].output[0].as_str()),
            ("LeakyRelu", f.output[0].as_str())
        ]
    );
    assert_eq!(f.node[1].input, [f.input[0].as_str(), "two"]);
    let value = &f.node[0].attribute[0];
    assert_eq!((value.name(), value.r#type()), ("value", AttributeType::Tensor));
    assert_eq!(value.t.as_ref().unwrap().raw_data(), 2f32.to_le_bytes());
}

/// A model of one `Identity` of that tensor.
fn identity(tensor: Tensor) -> Model {
    let mut m = Model::new(20);
    let w = m.add_constant(tensor);
    named(&mut m, w, "w");
    let y = node(&mut m, Model::MAIN, "Identity", &[w], vec![]);
    m.set_outputs(Model::MAIN, &[y]);
    m.assign_names();
    m
}

#[test]
fn what_cannot_be_written() {
    let fails = |m: &Model| to_bytes(m).unwrap_err().to_string();
    let fake = identity(Tensor::absent(DType::F32, vec![4]).unwrap());
    assert_eq!(
        fails(&fake),
        "no values to write for w: weights saved under FakeTensorMode have none. Save the program with real weights"
    );
    assert!(to_bytes(&identity(Tensor::absent(DType::F32, vec![0]).unwrap())).is_ok());
    let complex = identity(Tensor::new(DType::C32, vec![1], vec![0; 4]).unwrap());
    assert_eq!(fails(&complex), "ONNX has no element type complex32, which `w` has");
    // 4 GiB by a stride of 0.
    let one = Tensor::scalar(1f32).storage().unwrap().clone();
    let huge = identity(Tensor::strided(DType::F32, vec![1 << 30], vec![0], 0, one).unwrap());
    assert!(matches!(to_bytes(&huge), Err(Error::TooLarge(bytes)) if bytes > 1 << 32));
    let mut unnamed = Model::new(20);
    unnamed.add_input(Model::MAIN, None);
    assert!(matches!(to_bytes(&unnamed), Err(Error::Unnamed(0))));
}

/// Threads encode some thousand nodes each.
#[test]
fn many_nodes_stay_in_order() {
    const NODES: usize = 10_000;
    let mut m = Model::new(20);
    let mut value = m.add_input(Model::MAIN, float([]));
    for i in 0..NODES {
        value = node(&mut m, Model::MAIN, "Neg", &[value], vec![]);
        m[value].ty = float([]);
        named(&mut m, value, &format!("v{i}"));
    }
    m.set_outputs(Model::MAIN, &[value]);
    m.assign_names();
    let graph = written(&m).graph.unwrap();
    assert!(graph.node.iter().enumerate().all(|(i, n)| n.output == [format!("v{i}")]));
    let types = graph.value_info.iter().enumerate();
    assert!(types.clone().all(|(i, v)| v.name() == format!("v{i}")));
    assert_eq!((graph.node.len(), types.len()), (NODES, NODES - 1));
    // Attributes without values are named in order, whoever found them.
    let nodes: Vec<_> = m.nodes(Model::MAIN).collect();
    for i in [9_000, 1] {
        let absent = Attribute::Tensor(Tensor::absent(DType::F32, vec![1]).unwrap());
        m[nodes[i]].attributes.push((format!("a{i}").into(), absent));
    }
    let error = to_bytes(&m).unwrap_err();
    assert!(matches!(error, Error::NoData(names) if names == ["a1", "a9000"]));
}

/// Whether the bodies of nodes of other domains see values from outside, only these know: they keep
/// their constants.
#[test]
fn bodies_of_other_domains_have_initialisers_of_their_own() {
    let text = r#"<ir_version: 9, opset_import: ["" : 20, "other" : 1]>
        g (float[1] x) => (float[1] y) <float[1] both = {1.0}> {
            z = other.Each <body = each (float[1] e) => (float[1] f) <float[1] own = {2.0}> {
                a = Add (e, own)
                f = Add (a, both)
            }> (x)
            y = Add (z, both)
        }"#;
    let model: Model = text.parse().unwrap();
    let written = ModelProto::decode(to_bytes(&model).unwrap()).unwrap();
    let names = |graph: &GraphProto| -> Vec<String> {
        let names = graph.initializer.iter().map(|i| i.name().to_owned());
        names.collect()
    };
    let graph = written.graph.unwrap();
    let body = graph.node[0].attribute[0].g.as_ref().unwrap();
    assert_eq!((names(&graph), names(body)), (vec!["both".to_owned()], vec!["own".to_owned()]));
}
