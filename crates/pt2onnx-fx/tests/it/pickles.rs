//! Pickles that are damaged, hostile or of something else: each is an error that says so; nothing
//! is called.

use crate::support::{archive, data, read_file};
use pt2onnx_fx::archive::{Records, state_dict};
use pt2onnx_tensor::{DType, Storage, Tensor};

/// Reads a state dict of this pickle and one storage of 16 bytes, `0`.
fn read(pickle: &[u8]) -> Result<Vec<(String, Tensor)>, String> {
    let storage: Vec<u8> = (0..16).collect();
    read_saved(&archive(&[("archive/data.pkl", pickle), ("archive/data/0", &storage)]))
}

fn read_saved(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, String> {
    read_file(bytes, |path| state_dict(path)).map(|tensors| tensors.into_iter().collect())
}

#[track_caller]
fn assert_error(pickle: &[u8], expected: &str) {
    let error = read(pickle).map(|_| ()).unwrap_err();
    let expected = format!("FILE, record `data.pkl`: {expected}");
    assert!(error.starts_with(&expected), "{error:?}, not {expected:?}");
}

fn text(text: &str) -> Vec<u8> {
    [b"\x8c".as_slice(), &[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

fn ints(values: &[i32]) -> Vec<u8> {
    let values = values.iter().flat_map(|v| [b"J".as_slice(), &v.to_le_bytes()].concat());
    [b"(".to_vec(), values.collect(), b"t".to_vec()].concat()
}

/// `_rebuild_tensor_v2` of the storage.
fn tensor(class: &str, offset: i32, sizes: &[i32], strides: &[i32]) -> Vec<u8> {
    [
        b"ctorch._utils\n_rebuild_tensor_v2\n((".to_vec(),
        text("storage"),
        format!("ctorch\n{class}\n").into_bytes(),
        text("0"),
        text("cpu"),
        b"K\x04tQ".to_vec(),
        [b"J".as_slice(), &offset.to_le_bytes()].concat(),
        ints(sizes),
        ints(strides),
        b"\x89ccollections\nOrderedDict\n)RtR".to_vec(),
    ]
    .concat()
}

/// A dict of one entry, `w`.
fn dict(value: &[u8]) -> Vec<u8> {
    [b"\x80\x02}".to_vec(), text("w"), value.to_vec(), b"s.".to_vec()].concat()
}

#[test]
fn tensors_are_views_of_storages() {
    let read = read(&dict(&tensor("FloatStorage", 1, &[1, 3], &[3, 1]))).unwrap();
    let [(name, tensor)] = read.as_slice() else {
        panic!("{read:?}");
    };
    assert_eq!(
        (name.as_str(), tensor.dtype(), tensor.shape()),
        ("w", DType::F32, [1, 3].as_slice())
    );
    assert_eq!(&*tensor.to_bytes(), &(4..16).collect::<Vec<u8>>());
    let of_torch = read_saved(&std::fs::read(data("torch_save.pt2")).unwrap()).unwrap();
    assert_eq!(&*of_torch[0].1.to_bytes(), 1f32.to_le_bytes());
}

#[test]
fn other_values_are_errors() {
    let number = dict(b"K\x01");
    for (pickle, expected) in [
        (b"\x80\x02].".to_vec(), "holds a list, not a dict of tensors"),
        (b"\x80\x02}K\x01K\x02s.".to_vec(), "a name in the dict is an int"),
        (number, "`w` is an int, not a plain tensor"),
        (dict(b"G12345678"), "`w` is a float, not a plain tensor"),
        (dict(b"}"), "`w` is a dict, not a plain tensor"),
        (dict(b"ctorch\nfloat32\n"), "`w` is torch.float32, not a plain tensor"),
        (dict(b"ctorch\nSize\n)R"), "`w` is torch.Size, not a plain tensor"),
        (dict(b"ctorch._utils\n_rebuild_tensor_v2\n)R"), "`w` is torch._utils._rebuild_tensor_v2"),
        (dict(&tensor("UntypedStorage", 0, &[1], &[1])), "`w` is described in an unsupported way"),
        (dict(&tensor("FloatStorage", -1, &[1], &[1])), "`w` is described in an unsupported way"),
        (dict(&tensor("FloatStorage", 0, &[-1], &[1])), "`w` is described in an unsupported way"),
        (
            dict(&tensor("FloatStorage", 2, &[3], &[1])),
            "tensor w: needs 20 bytes of storage, there are 16",
        ),
        (
            dict(&tensor("FloatStorage", 0, &[i32::MAX; 4], &[i32::MAX; 4])),
            "tensor w: a tensor of sizes",
        ),
    ] {
        assert_error(&pickle, expected);
    }
}

#[test]
fn nothing_is_called() {
    for (pickle, expected) in [
        (b"cos\nsystem\n\x8c\x04true\x85R.".as_slice(), "the pickle refers to `os.system`"),
        (b"\x8c\x08builtins\x8c\x04eval\x93.", "the pickle refers to `builtins.eval`"),
        (b"ctorch\nload\n.", "the pickle refers to `torch.load`"),
        (b"ctorch\nNastyStorage\n.", "the pickle refers to `torch.NastyStorage`"),
        (b"(ios\nsystem\n.", "the pickle's opcode 105 at byte 1"),
        (b"(cos\nsystem\no.", "the pickle refers to `os.system`"),
        (b"ctorch\nSize\n)\x81.", "the pickle's opcode 129"),
        (b"\x82\x01.", "the pickle's opcode 130"),
        (b"Pid\n.", "the pickle's opcode 80"),
        (b"K\x01)R.", "the pickle makes an object"),
        (b"ctorch\nSize\nK\x01R.", "the pickle makes an object"),
        (b"ccollections\nOrderedDict\nK\x01\x85R.", "the pickle makes an object"),
        (b"ctorch\nSize\n)R}b.", "the pickle sets attributes of torch.Size"),
    ] {
        assert_error(pickle, expected);
    }
}

#[test]
fn damage_is_an_error() {
    for (pickle, expected) in [
        (b"".as_slice(), "ends in the middle"),
        (b"\x80", "ends in the middle"),
        (b"\x80\x09", "a pickle of protocol 9"),
        (b"N", "ends in the middle"),
        (b".", "the pickle reads values from an empty stack"),
        (b"(.", "the pickle reads values from an empty stack"),
        (b"t.", "the pickle reads values from an empty stack"),
        (b"N(\x85.", "the pickle reads values from an empty stack"),
        (b"NNs.", "the pickle reads values from an empty stack"),
        (b"}(NNNu.", "the pickle reads values from an empty stack"),
        (b"}Na.", "the pickle reads values from an empty stack"),
        (b"NN\x93.", "the pickle reads values from an empty stack"),
        (b"h\x07.", "the pickle reads value 7 that it has not stored"),
        (b"j\xff\xff\xff\xff.", "the pickle reads value 4294967295"),
        (b"\x8c\x02\xff\xff.", "text in the pickle is not UTF-8"),
        (b"X\xff\xff\xff\xff.", "ends in the middle"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "ends in the middle"),
        (b"\x95\xff\xff\xff\xff\xff\xff\xff\xff.", "the pickle reads values from an empty stack"),
        (b"\x8a\x09123456789.", "the pickle has an integer of more than 64 bits"),
        (b"cabc", "ends in the middle"),
    ] {
        assert_error(pickle, expected);
    }
    // Anywhere cut, anywhere changed: an error or a reading, never a panic.
    let whole = dict(&tensor("FloatStorage", 1, &[1, 3], &[3, 1]));
    for cut in 0..whole.len() {
        assert!(read(&whole[..cut]).is_err(), "{cut}");
    }
    for at in 0..whole.len() {
        for value in [0, 1, b'.', b'R', b'Q', b'h', b't', 0x80, 0x85, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            let _ = read(&changed);
        }
    }
}

#[test]
fn depth_and_cycles_are_no_danger() {
    let deep = 200_000;
    // Lists in lists, tuples in tuples, a dict in itself, parameters of parameters.
    let lists = [b"]".repeat(deep), b"a".repeat(deep - 1)].concat();
    assert_error(&dict(&lists), "`w` is a list");
    let tuples = [b")".to_vec(), b"\x85".repeat(deep)].concat();
    assert_error(&dict(&tuples), "`w` is a tuple");
    assert_error(&[b"}q\0".to_vec(), text("w"), b"h\0s.".to_vec()].concat(), "`w` is a dict");
    let wrap = b"ctorch._utils\n_rebuild_parameter\nq\x01";
    let mut parameters = [wrap.to_vec(), b"h\x01".repeat(deep)].concat();
    parameters.extend(tensor("FloatStorage", 0, &[1], &[1]));
    parameters.extend(b"\x85R".repeat(deep + 1));
    assert_eq!(read(&dict(&parameters)).unwrap().len(), 1);
}

/// An opcode of one byte makes a value of 32.
#[test]
fn values_take_little_more_than_the_file() {
    let lists = [b"\x80\x02(", &b"]".repeat(4 << 20)[..], b"l."].concat();
    assert_error(&lists, "the values of the pickle take more than 13");
    let few = [b"\x80\x02(", &b"]".repeat(1 << 19)[..], b"l."].concat();
    assert_error(&few, "holds a list, not a dict");
}

#[test]
fn other_files() {
    let missing = "not tensors as PyTorch 1.6 and newer save them: ";
    let legacy = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.";
    let tar = [b"tensors".to_vec(), vec![0; 250], b"ustar".to_vec()].concat();
    for (bytes, expected) in [
        (legacy.as_slice(), "it is a Python pickle, as old versions of `torch.save` wrote"),
        (&tar, "it is a tar file, as the oldest versions of `torch.save` wrote"),
        (b"", "it is empty"),
        (b"hello", "it is plain text"),
        (b"\0\xff", "it is not a zip file"),
        (&std::fs::read(data("weights.pt2")).unwrap(), "it is a zip file without `data.pkl`"),
    ] {
        let error = read_saved(bytes).map(|_| ()).unwrap_err();
        assert!(error.starts_with(&format!("FILE: {missing}{expected}")), "{error}");
    }
    let pickle = dict(&tensor("FloatStorage", 0, &[1], &[1]));
    let pickle = ("archive/data.pkl", pickle.as_slice());
    let big = read_saved(&archive(&[pickle, ("archive/byteorder", b"big")])).map(|_| ());
    assert_eq!(big.unwrap_err(), "FILE, record `data.pkl`: its storages are big-endian");
    let without = read_saved(&archive(&[pickle])).map(|_| ());
    assert!(without.unwrap_err().ends_with("`w` is described in an unsupported way"));
}

/// A module that torch.package's serialiser wrote has the names of torch.jit.save. Storages may be
/// elsewhere.
#[test]
fn a_package_lends_storages() {
    let bytes = archive(&[
        ("m/.data/ts_code/0/data.pkl", "objects"),
        ("m/.data/1.storage", "own"),
        ("m/code/m.py", "code"),
    ]);
    let lent = [("0.storage".to_owned(), Storage::new("lent"))];
    let records = Records::from_bytes(bytes).unwrap().of_package(lent);
    let text = |name: &str| records.get(name).map(|storage| storage.bytes().to_vec());
    for (name, expected) in [
        ("data.pkl", "objects"),
        ("code/m.py", "code"),
        ("data/0.storage", "lent"),
        ("constants/0.storage", "lent"),
        ("data/1.storage", "own"),
        ("constants/1.storage", "own"),
    ] {
        assert_eq!(text(name).as_deref(), Some(expected.as_bytes()), "{name}");
    }
    assert_eq!(text("data/2.storage"), None);
}
