//! Files that are damaged, lie, or are something else: each is an error that says so, never a
//! panic.

use crate::support::{archive, data, file, read_file, records};
use pt2onnx_fx::{Constant, ExportedProgram, archive::read, graph::Argument};
use serde_json::{Value, json};

/// The error of reading bytes as an archive.
#[track_caller]
fn error_of(bytes: &[u8]) -> String {
    read_file(bytes, |path| read(path)).map(|_| ()).unwrap_err()
}

#[track_caller]
fn assert_error(bytes: &[u8], starts: &str) {
    let error = error_of(bytes);
    assert!(error.starts_with(starts), "{error:?}, not {starts:?}");
}

const PROGRAM: &str = "models/model.json";

/// `weights.pt2` with one record changed.
fn changed(record: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut all = records("weights.pt2");
    let (_, bytes) = all.iter_mut().find(|(name, _)| name.ends_with(record)).unwrap();
    change(bytes);
    archive(&all)
}

/// `weights.pt2` with one record's JSON changed.
fn edited(record: &str, edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    changed(record, |bytes| {
        let mut json = serde_json::from_slice(bytes).unwrap();
        edit(&mut json);
        *bytes = serde_json::to_vec(&json).unwrap();
    })
}

fn set(json: &mut Value, pointer: &str, value: Value) {
    *json.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
}

fn read_bytes(bytes: &[u8]) -> ExportedProgram {
    let (_folder, path) = file(bytes);
    read(&path).unwrap()
}

#[test]
fn truncated_anywhere() {
    let bytes = std::fs::read(data("weights.pt2")).unwrap();
    for part in 0..50 {
        let error = error_of(&bytes[..bytes.len() * part / 50]);
        assert!(
            error.starts_with("FILE: not a .pt2 archive: it is")
                || error.starts_with("FILE: the zip directory cannot be read"),
            "{error}"
        );
    }
}

#[test]
fn other_files() {
    let zip = |records: &[(&str, &str)]| archive(records);
    let safetensors = [&56u64.to_le_bytes(), br#"{"w":{"dtype":"F32""#.as_slice()].concat();
    let torch_save = std::fs::read(data("torch_save.pt2")).unwrap();
    for (bytes, expected) in [
        (vec![], "it is empty"),
        (b"hello \xc3\xa9\n".to_vec(), "it is plain text"),
        (b"\0\xff\0".to_vec(), "it is not a zip file"),
        (b"GGUF\x03\0\0\0".to_vec(), "it is a GGUF file, which holds tensors but no program"),
        (b"\x89HDF\r\n\x1a\n".to_vec(), "it is an HDF5 file, as Keras writes it"),
        (b"version https://git-lfs.github.com/spec/v1\n".to_vec(), "it is a pointer of Git LFS"),
        (b"\x1c\0\0\0TFL3".to_vec(), "it is a model of TensorFlow Lite"),
        (b"\x2c\0\0\0PTMF".to_vec(), "it is a mobile module of PyTorch"),
        (b"{\"graph_module\": {}}".to_vec(), "it is JSON text"),
        (b"\x80\x02}q\x00.".to_vec(), "it is a Python pickle"),
        (safetensors, "it is a safetensors file"),
        (b"\x08\x0a\x12\x07pytorch".to_vec(), "it is already an ONNX model"),
        (torch_save, "it is what `torch.save` writes"),
        (zip(&[]), "it is a zip file without `models/NAME.json`; it holds nothing"),
        (
            zip(&[("a.txt", ""), ("b.txt", "")]),
            "it is a zip file without `models/NAME.json`; it holds a.txt, b.txt",
        ),
        (zip(&[("m/data.pkl", ""), ("m/code/m.py", "")]), "it is what `torch.jit.save` writes"),
        (zip(&[("m/data/aotinductor/m/x.so", "")]), "it holds an AOTInductor package"),
        (
            zip(&[("m/models/m.json", "{}"), ("m/archive_version", "1")]),
            "it says to be in format `pt2`, version `1`",
        ),
        (zip(&[("m/models/m.json", "{}"), ("m/byteorder", "big")]), "its data are big-endian"),
    ] {
        assert_error(&bytes, &format!("FILE: not a .pt2 archive: {expected}"));
    }
}

#[test]
fn records_that_are_not_there() {
    for record in [
        "data/weights/model_weights_config.json",
        "data/constants/model_constants_config.json",
        "data/weights/weight_0",
        "data/constants/tensor_0",
        PROGRAM,
    ] {
        let mut all = records("weights.pt2");
        let before = all.len();
        all.retain(|(name, _)| !name.ends_with(record));
        assert_eq!(all.len() + 1, before, "{record}");
        let expected = match record {
            PROGRAM => "not a .pt2 archive: it is a zip file without `models/NAME.json`".to_owned(),
            _ => format!("record `{record}` is missing"),
        };
        assert_error(&archive(&all), &format!("FILE: {expected}"));
    }
}

#[test]
fn json_that_lies() {
    for line in include_str!("../data/lies.txt").lines().filter(|line| !line.starts_with('#')) {
        let (change, expected) = line.split_once(" => ").unwrap();
        let [record, pointer, value] = *change.splitn(3, ' ').collect::<Vec<_>>() else { panic!() };
        let value = serde_json::from_str(value).unwrap();
        assert_error(&edited(record, |json| set(json, pointer, value)), expected);
    }
    let place = "FILE, record `models/model.json`: does not match the export schema: ";
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let deep = edited(PROGRAM, |json| {
        set(json, "/graph_module/graph/nodes/0/inputs/0/arg", json!({"as_ints": deep}));
    });
    assert_error(&deep, place);
    let long = edited(PROGRAM, |json| {
        let text = "s0 + ".repeat(1 << 12);
        let size = "/graph_module/graph/tensor_values/x/sizes/0";
        set(json, size, json!({"as_expr": {"expr_str": text}}));
    });
    let text = "s0 + ".repeat(32);
    assert_error(
        &long,
        &format!(
            "FILE, record `models/model.json`: value x: `{text}...` cannot be parsed: the \
             expression has 20480 bytes"
        ),
    );
    let half = changed(PROGRAM, |bytes| bytes.truncate(bytes.len() / 2));
    assert_error(&half, &format!("{place}EOF"));
    // 36 bytes, again and again.
    let many = edited("model_weights_config.json", |json| {
        set(json, "/config/a.weight/tensor_meta/sizes/0/as_int", json!(1_u64 << 40));
        set(json, "/config/a.weight/tensor_meta/strides/0/as_int", json!(0));
    });
    let expected =
        "FILE, record `models/model.json`: the tensors need 13194139533276 bytes more than";
    assert_error(&many, expected);
}

#[test]
fn bounds_beyond_all_sizes() {
    let bytes = edited(PROGRAM, |json| {
        set(json, "/graph_module/graph/nodes/0/target", json!("_operator.le"));
        set(json, "/graph_module/graph/nodes/0/inputs/0/arg", json!({"as_int": u64::MAX}));
    });
    assert_eq!(read_bytes(&bytes).graph.nodes[0].args[0].value, Argument::Int(i64::MAX));
}

#[test]
fn sizes_that_no_tensor_has() {
    let bytes = edited(PROGRAM, |json| {
        let values = json["graph_module"]["graph"]["tensor_values"].as_object_mut().unwrap();
        values.values_mut().for_each(|meta| meta["sizes"] = json!([{"as_int": i64::MAX}]));
    });
    assert!(error_of(&bytes).contains(": no tensor has the sizes 9223372036854775807"));
}

#[test]
fn what_is_not_used_may_be_unreadable() {
    let unused =
        json!({"path_name": "weight_9", "is_param": true, "use_pickle": true, "tensor_meta": null});
    let bytes =
        edited("model_weights_config.json", |json| json["config"]["other"] = unused.clone());
    assert!(!read_bytes(&bytes).state.contains_key("other"));
    let object = json!({"path_name": "custom_obj_0", "is_param": false, "use_pickle": true, "tensor_meta": null, "new": {}});
    let bytes =
        edited("model_constants_config.json", |json| json["config"]["object"] = object.clone());
    let Constant::Opaque { record } = &read_bytes(&bytes).constants["object"] else { panic!() };
    assert_eq!(record, "custom_obj_0");
}

#[test]
fn newer_minor_versions_are_read() {
    let bytes = edited(PROGRAM, |json| {
        json["schema_version"]["minor"] = json!(99);
        json["graph_module"]["graph"]["nodes"][0]["news"] = json!({"a": [1, 2]});
    });
    assert_eq!(read_bytes(&bytes).schema_version, (8, 99));
}

#[test]
fn schemas_without_node_names_are_read() {
    let bytes = edited(PROGRAM, |json| {
        for node in json["graph_module"]["graph"]["nodes"].as_array_mut().unwrap() {
            node.as_object_mut().unwrap().remove("name");
        }
    });
    let named = read(data("weights.pt2")).unwrap();
    assert_eq!(read_bytes(&bytes).graph, named.graph);
}

/// Where the central directory starts, as the record at the end says; records hold zips too.
fn directory(bytes: &[u8]) -> usize {
    let end = bytes.len() - 22;
    assert_eq!(bytes[end..end + 4], *b"PK\x05\x06");
    let start = bytes[end + 16..end + 20].try_into().unwrap();
    u32::from_le_bytes(start).try_into().unwrap()
}

/// The end of the directory as PyTorch writes it: with zip64 records (56 and 20 bytes), though the
/// file is small. One length of the folder's name makes the first entry 76 bytes long too, where a
/// search for the directory can go astray.
#[test]
fn folders_of_any_length() {
    let weights = records("weights.pt2");
    for length in 1..=40 {
        let renamed = weights.iter().map(|(name, bytes)| {
            let (_, short) = name.split_once('/').unwrap();
            (format!("{}/{short}", "m".repeat(length)), bytes)
        });
        let mut bytes = archive(&renamed.collect::<Vec<_>>());
        let (end, start) = (bytes.len() - 22, directory(&bytes) as u64);
        let entries = bytes[end + 10..end + 12].try_into().unwrap();
        let entries = u64::from(u16::from_le_bytes(entries)).to_le_bytes();
        let (size, at) = (end as u64 - start, end as u64);
        let zip64 = [
            b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x1e\x03\x2d\0\0\0\0\0\0\0\0\0".as_slice(),
            &entries,
            &entries,
            &size.to_le_bytes(),
            &start.to_le_bytes(),
            b"PK\x06\x07\0\0\0\0",
            &at.to_le_bytes(),
            &1u32.to_le_bytes(),
        ];
        bytes.splice(end..end, zip64.concat());
        assert!(!read_bytes(&bytes).graph.nodes.is_empty(), "{length}");
    }
}

#[test]
fn zip_directories_that_lie() {
    let bytes = archive(&records("weights.pt2"));
    let at = directory(&bytes);
    let patched = |from: usize, with: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[from..from + with.len()].copy_from_slice(with);
        bytes
    };
    // Offsets in an entry of the directory: method 10, compressed and full size 20, place of the
    // local header 42.
    let huge = u32::MAX - 1;
    let sizes = [huge.to_le_bytes(), huge.to_le_bytes()].concat();
    let first = "FILE: record `weights/data/weights/weight_0` ";
    assert_error(&patched(at + 8, &[1]), &format!("{first}is encrypted"));
    let compressed = "FILE: record `data/weights/weight_0` is compressed";
    assert_error(&patched(at + 10, &[8]), compressed);
    assert_error(&patched(at + 20, &sizes), &format!("{first}claims bytes"));
    assert_error(&patched(at + 42, &huge.to_le_bytes()), "FILE: the zip directory cannot be read");
    // The first record made to reach into the second.
    let two = [60u32.to_le_bytes(), 60u32.to_le_bytes()].concat();
    let overlap = "FILE: record `weights/data/weights/weight_1` overlaps record `weights/data/weights/weight_0`";
    assert_error(&patched(at + 20, &two), overlap);
}

/// Where the directory's entry of a record starts.
fn entry(bytes: &[u8], record: &str) -> usize {
    let mut names = bytes.windows(record.len()).enumerate();
    let name = names.rfind(|(_, w)| *w == record.as_bytes()).unwrap().0;
    let starts = bytes.windows(4).enumerate();
    let mut starts = starts.filter(|(at, w)| *w == b"PK\x01\x02" && *at < name);
    starts.next_back().unwrap().0
}

#[test]
fn checksums_that_differ() {
    // Another thread verifies the checksum of a long program.
    for length in [0, 4 << 20] {
        let bytes = edited(PROGRAM, |json| json["new"] = json!("x".repeat(length)));
        let with = |record: &str, crc: u32| {
            let (at, mut bytes) = (entry(&bytes, record) + 16, bytes.clone());
            bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
            bytes
        };
        assert_error(&with(PROGRAM, 7), "FILE: record `models/model.json` has a wrong checksum");
        let config = "data/weights/model_weights_config.json";
        assert_error(&with(config, 7), &format!("FILE: record `{config}` has a wrong checksum"));
        // PyTorch can leave them out; weights are not read at all.
        assert!(!read_bytes(&with(PROGRAM, 0)).graph.nodes.is_empty());
        assert!(!read_bytes(&with("data/weights/weight_0", 7)).state.is_empty());
    }
}

/// Sizes that only zip64 can say, and say wrongly.
#[test]
fn zip64_that_lies() {
    let all = records("weights.pt2");
    let (first, _) = &all[0];
    let huge = |size: u64, at: u64| {
        let mut bytes = archive(&all);
        let entry = entry(&bytes, first);
        let end = bytes.len() - 22;
        // The sizes and the place go into an extra field behind the name.
        bytes[entry + 20..entry + 28].fill(0xff);
        bytes[entry + 42..entry + 46].fill(0xff);
        let length = usize::from(u16::from_le_bytes([bytes[entry + 30], bytes[entry + 31]]));
        let extra =
            [&[1u8, 0, 24, 0][..], &size.to_le_bytes(), &size.to_le_bytes(), &at.to_le_bytes()];
        let extra = extra.concat();
        let name = usize::from(u16::from_le_bytes([bytes[entry + 28], bytes[entry + 29]]));
        let old = entry + 46 + name..entry + 46 + name + length;
        let added = extra.len() - length;
        bytes.splice(old, extra.iter().copied());
        bytes[entry + 30..entry + 32]
            .copy_from_slice(&u16::try_from(extra.len()).unwrap().to_le_bytes());
        let size = end + added + 12;
        let directory = u32::from_le_bytes(bytes[size..size + 4].try_into().unwrap());
        let directory = directory + u32::try_from(added).unwrap();
        bytes[size..size + 4].copy_from_slice(&directory.to_le_bytes());
        bytes
    };
    let sizes = [1 << 40, 1 << 63, u64::MAX - 1, u64::MAX].map(|size| (size, 0));
    for (size, at) in sizes.into_iter().chain([1 << 40, 1 << 63, u64::MAX].map(|at| (4, at))) {
        let error = error_of(&huge(size, at));
        let refused = ["claims bytes", "the zip directory cannot be read"];
        assert!(refused.iter().any(|text| error.contains(text)), "{error}");
    }
}

#[test]
fn records_that_are_there_twice() {
    let mut all = records("weights.pt2");
    // The zip library writes no name twice: a name as long is changed afterwards.
    all.push(("weights/models/other.json".to_owned(), b"{}".to_vec()));
    let mut bytes = archive(&all);
    let places = |bytes: &[u8]| bytes.windows(10).position(|w| w == b"other.json");
    while let Some(at) = places(&bytes) {
        bytes[at..at + 10].copy_from_slice(b"model.json");
    }
    let error = error_of(&bytes);
    assert!(error.contains("occurs twice"), "{error}");
}

#[test]
fn text_that_is_not_utf8() {
    let bytes = changed(PROGRAM, |bytes| {
        let at = bytes.windows(6).position(|w| w == b"target").unwrap();
        bytes[at] = 0xff;
    });
    let place = "FILE, record `models/model.json`: does not match the export schema: ";
    assert_error(&bytes, &format!("{place}invalid unicode code point"));
}

#[test]
fn graphs_that_are_none() {
    let nodes = "/graph_module/graph/nodes";
    // The first node reads what the last defines: a cycle, if one follows the other.
    let cyclic = edited(PROGRAM, |json| {
        let nodes = json.pointer_mut(nodes).unwrap().as_array_mut().unwrap();
        let last = nodes.last().unwrap()["outputs"][0].clone();
        nodes[0]["inputs"][0]["arg"] = last;
    });
    assert_error(&cyclic, "FILE, record `models/model.json`: node ");
    assert!(error_of(&cyclic).contains("which nothing before it defines"));
    let itself = edited(PROGRAM, |json| {
        let node = &mut json.pointer_mut(nodes).unwrap()[0];
        node["inputs"][0]["arg"] = node["outputs"][0].clone();
    });
    assert!(error_of(&itself).contains("which nothing before it defines"));
    // Bodies in bodies, as deep as a file can be long.
    let deep = 100_000;
    let bodies = changed(PROGRAM, |bytes| {
        let start = r#"{"schema_version":{"major":8,"minor":20},"graph_module":{"graph":"#;
        let open = r#"{"nodes":[{"inputs":[{"arg":{"as_graph":{"graph":"#.repeat(deep);
        let close = "}}}]}]}".repeat(deep);
        *bytes = format!("{start}{open}0{close}}}}}").into_bytes();
    });
    assert!(error_of(&bodies).contains("recursion limit exceeded"));
}

/// Bytes of the directory and of the JSON set to values that are not theirs: whatever comes of it,
/// no panic.
#[test]
fn flipped_bytes_do_not_panic() {
    let bytes = archive(&records("control_flow.pt2"));
    let (folder, path) = file(&bytes);
    let json = bytes.windows(14).position(|w| w == b"{\"graph_module").unwrap();
    let directory = directory(&bytes)..bytes.len();
    // Without a checksum, so that the JSON is read at all.
    let mut bytes = bytes;
    let entry = entry(&bytes, PROGRAM);
    bytes[entry + 16..entry + 20].fill(0);
    let (mut read_well, mut refused) = (0, 0);
    for at in directory.chain((json..json + 6000).step_by(19)) {
        for value in [0xff, bytes[at] ^ 1] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            std::fs::write(&path, damaged).unwrap();
            let Ok(mut program) = read(&path) else {
                refused += 1;
                continue;
            };
            read_well += 1;
            let _ = pt2onnx_fx::passes::prepare(&mut program);
            let printed = pt2onnx_fx::printer::Printer::new(&program).to_string();
            assert!(printed.starts_with("graph():"));
        }
    }
    assert!(read_well > 100 && refused > 100, "{read_well} {refused}");
    drop(folder);
}
