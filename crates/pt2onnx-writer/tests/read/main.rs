//! Models of other producers, whole and broken. The facade's conformance test reads back our own
//! files.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod external;

use prost::Message;
use pt2onnx_ir::{Attribute, Model};
use pt2onnx_proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    SparseTensorProto, StringStringEntryProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto,
    attribute_proto::AttributeType,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};
use pt2onnx_tensor::Tensor;
use pt2onnx_writer::{from_bytes, to_bytes};

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) }
}

fn import(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

/// A float vector of that many elements, `N` for none.
fn value(name: &str, size: Option<i64>) -> ValueInfoProto {
    let value = match size {
        Some(known) => dimension::Value::DimValue(known),
        None => dimension::Value::DimParam("N".into()),
    };
    let tensor = type_proto::Tensor {
        elem_type: Some(1),
        shape: Some(TensorShapeProto {
            dim: vec![Dimension { value: Some(value), ..Default::default() }],
        }),
    };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: Some(op.into()),
        input: inputs.iter().map(|&i| i.into()).collect(),
        output: outputs.iter().map(|&o| o.into()).collect(),
        ..Default::default()
    }
}

fn body(name: &str, nodes: Vec<NodeProto>, output: &str) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph.into()),
        g: Some(Box::new(GraphProto {
            name: Some(format!("{name}_graph")),
            node: nodes,
            output: vec![ValueInfoProto { name: Some(output.into()), ..Default::default() }],
            ..Default::default()
        })),
        ..Default::default()
    }
}

fn vector(name: &str, elements: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: vec![elements.len() as i64],
        data_type: Some(1),
        float_data: elements.to_vec(),
        ..Default::default()
    }
}

/// x -> Add(x, w) -> y, with `w` of one element.
fn small() -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![import("", 13)],
        graph: Some(GraphProto {
            name: Some("g".into()),
            input: vec![value("x", None)],
            output: vec![value("y", None)],
            initializer: vec![vector("w", &[2.0])],
            node: vec![node("Add", &["x", "w"], &["y"])],
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn error(proto: &ModelProto) -> String {
    from_bytes(proto.encode_to_vec()).unwrap_err().to_string()
}

/// The model, which is the same after it was written and read again.
fn stable(proto: &ModelProto) -> Model {
    let model = from_bytes(proto.encode_to_vec()).unwrap();
    let once = to_bytes(&model).unwrap();
    assert_eq!(to_bytes(&from_bytes(once.clone()).unwrap()).unwrap(), once);
    model
}

#[test]
fn what_the_file_says_is_kept() {
    let mut m = small();
    m.producer_name = Some("them".into());
    m.producer_version = Some("1.2".into());
    m.domain = Some("org.them".into());
    m.model_version = Some(7);
    m.doc_string = Some("words".into());
    m.opset_import = vec![import("ai.onnx.ml", 3), import("ai.onnx", 13), import("d", 1)];
    m.metadata_props = vec![entry("a", "b")];
    let g = m.graph.as_mut().unwrap();
    g.doc_string = Some("of the graph".into());
    g.metadata_props = vec![entry("c", "d")];
    g.input[0].doc_string = Some("of x".into());
    g.input[0].metadata_props = vec![entry("e", "f")];
    g.node[0].doc_string = Some("of the node".into());
    g.node[0].metadata_props = vec![entry("g", "h")];
    g.node[0].name = Some("the node".into());
    g.node[0].domain = Some("ai.onnx".into());
    // Left out in the middle, and an optional input left out.
    g.node.push(node("Odd", &["y", "", "w"], &["", "b", ""]));
    g.node[1].domain = Some("d".into());
    g.node[1].overload = Some("other".into());
    let blob = AttributeProto {
        name: Some("blob".into()),
        r#type: Some(AttributeType::String.into()),
        s: Some(vec![0xff, 0xfe]),
        ..Default::default()
    };
    g.node[1].attribute.push(blob);
    // In between.
    g.node.push(node("Neg", &["x"], &["n"]));
    g.node.push(node("Abs", &["n"], &["m"]));
    g.output.push(value("m", None));
    let told = vec![entry("i", "j")];
    g.value_info = vec![ValueInfoProto { metadata_props: told, ..value("n", None) }];
    g.output.push(ValueInfoProto {
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::SequenceType(Box::new(type_proto::Sequence {
                elem_type: Some(Box::new(TypeProto {
                    value: Some(type_proto::Value::MapType(Box::new(type_proto::Map {
                        key_type: Some(7),
                        value_type: Some(Box::new(value("", Some(3)).r#type.unwrap())),
                    }))),
                    ..Default::default()
                })),
            }))),
            ..Default::default()
        }),
        ..value("b", None)
    });

    let model = stable(&m);
    assert_eq!((model.opset, model.ir_version()), (13, 8));
    assert_eq!(model.imports.get_index(0), Some((&"ai.onnx.ml".into(), &3)));
    let seq = model[model.outputs()[2].value()].ty.as_ref().unwrap();
    assert_eq!(seq.to_string(), "seq(map(int64, float[3]))");
    let odd = model.nodes(Model::MAIN).nth(1).unwrap();
    assert_eq!(model[odd].attribute("blob").unwrap().regions(), []);
    assert!(
        matches!(model[odd].attribute("blob"), Some(Attribute::Bytes(b)) if *b == [0xff, 0xfe])
    );
    assert!(model[model[odd].outputs()[0]].is_left_out());

    let written = ModelProto::decode(to_bytes(&model).unwrap()).unwrap();
    let (ours, theirs) = (written.graph.unwrap(), m.graph.unwrap());
    assert_eq!(ours.input, theirs.input);
    assert_eq!(ours.output, theirs.output);
    assert_eq!(ours.value_info, theirs.value_info);
    assert_eq!(ours.doc_string, theirs.doc_string);
    assert_eq!(ours.metadata_props, theirs.metadata_props);
    assert_eq!(ours.node[1], theirs.node[1]);
    assert_eq!(
        NodeProto { domain: Some("ai.onnx".into()), ..ours.node[0].clone() },
        theirs.node[0]
    );
    assert_eq!(
        (written.producer_name, written.producer_version, written.domain, written.doc_string),
        (m.producer_name, m.producer_version, m.domain, m.doc_string)
    );
    assert_eq!(
        (written.model_version, written.metadata_props),
        (m.model_version, m.metadata_props)
    );
}

/// ONNX Runtime's plan depends on what is known of sizes: it stays as it was.
#[test]
fn types_of_inner_values_are_written_if_some_were_there() {
    let mut m = small();
    let g = m.graph.as_mut().unwrap();
    g.node = vec![node("Add", &["x", "w"], &["a"]), node("Neg", &["a"], &["y"])];
    for described in [vec![], vec![value("a", None)]] {
        m.graph.as_mut().unwrap().value_info = described.clone();
        let mut model = stable(&m);
        let y = model.outputs()[0].value();
        let a = model.values().find(|(_, d)| d.name.as_deref() == Some("a")).unwrap().0;
        model[a].ty = model[y].ty.clone();
        let written = ModelProto::decode(to_bytes(&model).unwrap()).unwrap();
        assert_eq!(written.graph.unwrap().value_info, described);
    }
}

#[test]
fn outputs_of_equal_names_get_names_of_their_own() {
    let mut proto = small();
    let graph = proto.graph.as_mut().unwrap();
    let output = graph.output[0].clone();
    graph.output.extend([output.clone(), output.clone()]);
    graph.input.push(value(&format!("{}_1", output.name()), Some(2)));
    let mut model = from_bytes(proto.encode_to_vec()).unwrap();
    model.assign_names();
    let names = model.outputs().iter().map(|o| model.output_name(o).unwrap().to_string());
    let wanted = ["", "_2", "_3"].map(|end| format!("{}{end}", output.name()));
    assert_eq!(names.collect::<Vec<_>>(), wanted);
    pt2onnx_ir::verify(&model).unwrap();
}

#[test]
fn bodies_see_what_is_around_them() {
    let mut m = small();
    let g = m.graph.as_mut().unwrap();
    // Both branches call their output the same; one has an initialiser and a body in its body.
    let mut inner = node("If", &["c"], &["r"]);
    inner.attribute = vec![
        body("then_branch", vec![node("Neg", &["y"], &["deep"])], "deep"),
        body("else_branch", vec![node("Abs", &["own"], &["deep"])], "deep"),
    ];
    let mut outer = node("If", &["c"], &["z"]);
    outer.attribute = vec![
        body("then_branch", vec![inner], "r"),
        body("else_branch", vec![node("Relu", &["w"], &["r"])], "r"),
    ];
    let then = outer.attribute[0].g.as_mut().unwrap();
    then.initializer.push(vector("own", &[1.0, 2.0]));
    g.node.push(outer);
    g.input.push(ValueInfoProto {
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(type_proto::Tensor {
                elem_type: Some(9),
                shape: Some(TensorShapeProto::default()),
            })),
            ..Default::default()
        }),
        ..value("c", None)
    });
    g.output = vec![value("z", None)];
    let mut model = from_bytes(m.encode_to_vec()).unwrap();
    model.assign_names();
    assert_eq!(pt2onnx_ir::verify(&model), Ok(()));
    let written = to_bytes(&model).unwrap();
    let again = from_bytes(written.clone()).unwrap();
    assert_eq!(to_bytes(&again).unwrap(), written);

    let text = error(&{
        let mut m = small();
        let mut branch = node("If", &["x"], &["y"]);
        branch.attribute = vec![body("then_branch", vec![node("Neg", &["y"], &["r"])], "r")];
        m.graph.as_mut().unwrap().node = vec![branch];
        m
    });
    assert_eq!(text, "Neg (of `r`): uses `y`, which nothing in front of it defines");
}

#[test]
fn nodes_that_stand_before_what_they_use_are_moved() {
    let mut m = small();
    let g = m.graph.as_mut().unwrap();
    let mut branch = node("If", &["c"], &["z"]);
    branch.attribute = vec![
        body("then_branch", vec![node("Neg", &["y"], &["r"])], "r"),
        body("else_branch", vec![], "late"),
    ];
    let makers = [node("Relu", &["y"], &["late"]), node("Cast", &["flag"], &["c"])];
    g.node.insert(0, branch);
    g.node.extend(makers);
    g.node.push(node("Constant", &[], &["flag"]));
    g.output = vec![value("z", None)];
    let model = from_bytes(m.encode_to_vec()).unwrap();
    let order: Vec<&str> = model.nodes(Model::MAIN).map(|n| model[n].op()).collect();
    assert_eq!(order, ["Add", "Relu", "Constant", "Cast", "If"]);

    // A circle has no order.
    let m = &mut small();
    m.graph.as_mut().unwrap().node =
        vec![node("Neg", &["x"], &["z"]), node("Neg", &["b"], &["y"]), node("Neg", &["y"], &["b"])];
    assert_eq!(error(m), "Neg (of `y`): uses `b`, which nothing in front of it defines");
}

#[test]
fn functions_keep_their_own_opsets() {
    let mut m = small();
    m.opset_import.push(import("f", 1));
    let slope = AttributeProto {
        name: Some("slope".into()),
        r#type: Some(AttributeType::Float.into()),
        f: Some(0.5),
        ..Default::default()
    };
    let mut leaky = node("LeakyRelu", &["x"], &["y"]);
    leaky.attribute.push(AttributeProto {
        name: Some("alpha".into()),
        r#type: Some(AttributeType::Float.into()),
        ref_attr_name: Some("slope".into()),
        ..Default::default()
    });
    let function = FunctionProto {
        name: Some("Leaky".into()),
        domain: Some("f".into()),
        overload: Some("o".into()),
        input: vec!["x".into()],
        output: vec!["y".into()],
        attribute: vec!["unused".into()],
        attribute_proto: vec![slope],
        node: vec![leaky],
        doc_string: Some("words".into()),
        opset_import: vec![import("", 9)],
        metadata_props: vec![entry("a", "b")],
        value_info: Vec::new(),
    };
    m.functions.push(function.clone());
    let model = stable(&m);
    let written = ModelProto::decode(to_bytes(&model).unwrap()).unwrap();
    assert_eq!(written.functions, std::slice::from_ref(&function));
    m.functions.push(function);
    assert_eq!(error(&m), "function f.Leaky: two functions are called so");
}

#[test]
fn old_models_list_initialisers_as_inputs_and_newer_ones_give_defaults() {
    let mut m = small();
    m.graph.as_mut().unwrap().input.push(value("w", Some(1)));
    let w = |model: &Model| model.values().find(|(_, d)| d.name.as_deref() == Some("w")).unwrap().0;
    let model = stable(&m);
    assert_eq!(model.inputs().len(), 2);
    let default = model[w(&model)].default.as_ref().unwrap();
    assert_eq!(default.to_vec::<f32>().unwrap(), [2.0]);

    m.ir_version = Some(3);
    let model = stable(&m);
    assert_eq!(model.inputs().len(), 1);
    assert!(model[w(&model)].constant().is_some());
    let graph = ModelProto::decode(to_bytes(&model).unwrap()).unwrap().graph.unwrap();
    assert_eq!(graph.input, m.graph.unwrap().input);

    let oldest = ModelProto { ir_version: Some(2), opset_import: Vec::new(), ..small() };
    assert_eq!(from_bytes(oldest.encode_to_vec()).unwrap().opset, 1);

    // A model with opsets but no version gets the lowest one that has them.
    let model = stable(&ModelProto { ir_version: None, ..small() });
    assert_eq!((model.opset, model.ir_version()), (13, 7));
}

#[test]
fn every_field_of_a_tensor() {
    let read = |tensor: TensorProto| {
        let mut m = small();
        let named = TensorProto { name: Some("w".into()), ..tensor };
        m.graph.as_mut().unwrap().initializer = vec![named];
        let model = from_bytes(m.encode_to_vec())?;
        let found = model.values().find_map(|(_, d)| d.constant().cloned());
        Ok::<Tensor, pt2onnx_writer::ReadError>(found.unwrap())
    };
    let of = |dims: &[i64], data_type: i32| TensorProto {
        dims: dims.to_vec(),
        data_type: Some(data_type),
        ..Default::default()
    };
    let ints = |dims: &[i64], data_type, entries: &[i32]| TensorProto {
        int32_data: entries.to_vec(),
        ..of(dims, data_type)
    };
    let bytes = |t: TensorProto| read(t).unwrap().to_bytes().into_owned();
    assert_eq!(bytes(ints(&[2], 6, &[-1, 2])), [255, 255, 255, 255, 2, 0, 0, 0]);
    assert_eq!(bytes(ints(&[2], 3, &[-1, 2])), [255, 2]);
    assert_eq!(bytes(ints(&[2], 2, &[255, 2])), [255, 2]);
    assert_eq!(bytes(ints(&[1], 5, &[-2])), [254, 255]);
    assert_eq!(bytes(ints(&[1], 4, &[65534])), [254, 255]);
    assert_eq!(bytes(ints(&[2], 9, &[0, 1])), [0, 1]);
    assert_eq!(bytes(ints(&[1], 10, &[0x3c00])), [0, 0x3c]);
    assert_eq!(bytes(ints(&[1], 16, &[0x3f80])), [0x80, 0x3f]);
    assert_eq!(bytes(ints(&[1], 17, &[0x38])), [0x38]);
    assert_eq!(bytes(ints(&[3], 22, &[0x21, 0x03])), [0x21, 0x03]);
    assert_eq!(bytes(ints(&[5], 25, &[0xe4, 0x01])), [0xe4, 0x01]);
    let uints = |dims: &[i64], data_type, entries: &[u64]| TensorProto {
        uint64_data: entries.to_vec(),
        ..of(dims, data_type)
    };
    assert_eq!(bytes(uints(&[1], 12, &[u32::MAX.into()])), [255; 4]);
    assert_eq!(bytes(uints(&[], 13, &[u64::MAX])), [255; 8]);
    let complex = TensorProto { float_data: vec![1.0, -2.0], ..of(&[1], 14) };
    assert_eq!(bytes(complex), [0, 0, 128, 63, 0, 0, 0, 192]);
    let double = TensorProto { double_data: vec![1.0, -2.0], ..of(&[1], 15) };
    assert_eq!(read(double).unwrap().nbytes(), 16);
    let long = TensorProto { int64_data: vec![-3], ..of(&[1], 7) };
    assert_eq!(read(long).unwrap().to_vec::<i64>().unwrap(), [-3]);
    let strings = TensorProto { string_data: vec![b"a".to_vec(), vec![0xff]], ..of(&[2], 8) };
    assert_eq!(read(strings).unwrap().as_strings().unwrap(), [&b"a"[..], &[0xff]]);
    // Without data: weights that are to come. Without elements: nothing is missing.
    assert!(!read(of(&[2, 3], 1)).unwrap().has_data());
    assert!(!read(of(&[2], 8)).unwrap().has_data());
    assert!(read(of(&[2, 0], 1)).unwrap().has_data());

    let raw = |dims: &[i64], data_type, raw: &'static [u8]| TensorProto {
        raw_data: Some(raw.into()),
        ..of(dims, data_type)
    };
    let wrong = |t: TensorProto| read(t).unwrap_err().to_string();
    let table: Vec<String> = [
        ints(&[2], 6, &[1]),
        ints(&[1], 3, &[200]),
        ints(&[1], 10, &[-1]),
        uints(&[1], 12, &[1 << 40]),
        raw(&[2], 1, &[0; 7]),
        raw(&[i64::MAX, i64::MAX], 1, &[0; 7]),
        raw(&[i64::MAX], 1, &[0; 7]),
        raw(&[-1], 1, &[0; 4]),
        of(&[1], 0),
        of(&[1], 27),
        of(&[1], -5),
        of(&[i64::MAX, 3], 8),
    ]
    .into_iter()
    .map(wrong)
    .collect();
    let wanted = "\
        initialiser `w`: its field for int32 has 1 entries, 2 are wanted\n\
        initialiser `w`: the entry 200 is no int8\n\
        initialiser `w`: the entry -1 is no float16\n\
        initialiser `w`: the entry 1099511627776 is no uint32\n\
        initialiser `w`: needs 8 bytes of storage, there are 7\n\
        initialiser `w`: a tensor of sizes [9223372036854775807, 9223372036854775807] is larger than the address space\n\
        initialiser `w`: a tensor of sizes [9223372036854775807] is larger than the address space\n\
        initialiser `w`: a size is -1\n\
        initialiser `w`: the element type 0 is not known\n\
        initialiser `w`: the element type 27 is not known\n\
        initialiser `w`: the element type -5 is not known\n\
        initialiser `w`: a tensor of sizes [9223372036854775807, 3] is larger than the address space";
    assert_eq!(table.join("\n"), wanted);
}

#[test]
fn broken_models_are_errors() {
    let with = |change: &dyn Fn(&mut ModelProto, &mut GraphProto)| {
        let mut m = small();
        let mut g = m.graph.take().unwrap();
        change(&mut m, &mut g);
        m.graph = Some(g);
        error(&m)
    };
    let table = [
        error(&ModelProto::default()),
        with(&|_, g| g.node[0].input[0] = "nowhere".into()),
        with(&|_, g| g.node[0].input[0] = "y".into()),
        with(&|_, g| g.output[0].name = Some("nowhere".into())),
        with(&|_, g| g.node.push(node("Neg", &["x"], &["y"]))),
        with(&|_, g| g.node.push(node("Neg", &["x"], &["x"]))),
        with(&|_, g| g.initializer.push(vector("w", &[1.0]))),
        with(&|_, g| g.input.push(value("x", None))),
        with(&|_, g| g.initializer[0].name = None),
        with(&|_, g| g.node[0].op_type = None),
        with(&|m, _| m.opset_import.push(import("ai.onnx", 14))),
        with(&|m, _| m.opset_import.push(import("d", -1))),
        with(&|m, _| m.ir_version = Some(1 << 40)),
        with(&|_, g| g.sparse_initializer.push(SparseTensorProto::default())),
        with(&|_, g| g.node[0].attribute = vec![AttributeProto::default()]),
        with(&|_, g| {
            let mut a = body("a", Vec::new(), "x");
            a.g = None;
            g.node[0].attribute = vec![a];
        }),
        with(&|_, g| g.node[0].attribute = vec![body("a", vec![], "x"), body("a", vec![], "x")]),
        with(&|_, g| {
            let mut many = value("v", Some(1));
            if let Some(type_proto::Value::TensorType(tensor)) =
                many.r#type.as_mut().and_then(|ty| ty.value.as_mut())
            {
                tensor.shape.as_mut().unwrap().dim = vec![Dimension::default(); 257];
            }
            g.input.push(many);
        }),
        with(&|_, g| g.initializer[0].dims = vec![1; 10_000]),
    ];
    let wanted = "\
        the model: there is no graph; is this an ONNX model?\n\
        Add (of `y`): uses `nowhere`, which nothing in front of it defines\n\
        Add (of `y`): uses `y`, which nothing in front of it defines\n\
        the graph: uses `nowhere`, which nothing in front of it defines\n\
        Neg (of `y`): two values have the name `y`\n\
        Neg (of `x`): two values have the name `x`\n\
        the graph: two values have the name `w`\n\
        the graph: two values have the name `x`\n\
        the graph: an input or initialiser: has no name\n \
        (of `y`): has no operator type\n\
        opset_import: the domain `` is imported with two versions\n\
        opset_import of `d`: the version -1 is out of range\n\
        ir_version: the version 1099511627776 is out of range\n\
        initialiser ``: the element type 0 is not known\n\
        Add (of `y`): attribute `` has no value of a known type\n\
        Add (of `y`): attribute `a` has no value of a known type\n\
        Add (of `y`): two attributes are called `a`\n\
        value `v`: has 257 dimensions; 256 are the most\n\
        initialiser `w`: has 10000 dimensions; 256 are the most";
    assert_eq!(table.join("\n"), wanted);
}

/// Two bytes for each: the number of the field, and no content.
#[test]
fn many_empty_messages_are_errors() {
    let framed = |key: u8, content: &[u8]| {
        let mut bytes = vec![key];
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        [bytes, content.to_vec()].concat()
    };
    // Fields of a graph, and of an attribute of a node.
    let (graph, attribute) = ([1, 5, 11, 12, 13, 15], [5, 6, 10, 11, 22, 23]);
    let graphs = graph.map(|field: u8| [field << 3 | 2, 0].repeat(500_000));
    let attributes = attribute.map(|field: u8| {
        let mut key = Vec::new();
        prost::encoding::encode_varint(u64::from(field) << 3 | 2, &mut key);
        let many = [key, vec![0]].concat().repeat(500_000);
        framed(1 << 3 | 2, &framed(5 << 3 | 2, &many))
    });
    for graph in graphs.iter().chain(&attributes) {
        let refused = from_bytes(framed(7 << 3 | 2, graph));
        assert!(matches!(refused, Err(pt2onnx_writer::ReadError::Memory(_))), "{refused:?}");
    }
    // Nodes with the shortest names take as much memory for their bytes as a model can.
    let mut dense = small();
    let mut graph = dense.graph.take().unwrap();
    let shortest = |i: u32| node("Neg", &["x"], &[&format!("{i:x}")]);
    graph.node.extend((0x1000..0x9000).map(shortest));
    dense.graph = Some(graph);
    assert!(from_bytes(dense.encode_to_vec()).is_ok());
}

#[test]
fn no_bytes_make_it_panic() {
    let whole = small().encode_to_vec();
    for end in 0..whole.len() {
        let _ = from_bytes(whole[..end].to_vec());
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            let _ = from_bytes(flipped);
        }
    }
    let mut deep = node("Neg", &["x"], &["y"]);
    for _ in 0..200 {
        let attribute = body("a", vec![deep], "y");
        deep = node("If", &["x"], &["y"]);
        deep.attribute = vec![attribute];
    }
    let mut m = small();
    m.graph.as_mut().unwrap().node = vec![deep];
    assert_eq!(error(&m), "bodies or types nest deeper than 32, the limit of protobuf");
}
