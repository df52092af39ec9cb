//! Archives that are damaged or made to take all time and memory, and the places that source ranges
//! give.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx_fx::archive::Records;
use pt2onnx_torchscript_archive::{Archive, Line, Origin, Result};

const FORWARD: &str = "class M(Module):\n  def forward(self, x: Tensor) -> Tensor:\n";

/// The objects of one module without attributes.
const OBJECTS: &[u8] = b"\x80\x02c__torch__\nM\n)\x81}b.";

/// An archive of these records.
fn archive(records: &[(&str, &[u8])]) -> Result<Archive> {
    let file = deflated(records);
    assert!(file.len() < 1 << 20);
    Archive::new(Records::from_bytes(file)?)
}

/// The error of an archive of a method with these lines.
fn error_of(lines: &str) -> String {
    let code = format!("{FORWARD}{lines}");
    let records = [("m/data.pkl", OBJECTS), ("m/code/__torch__.py", code.as_bytes())];
    archive(&records).unwrap_err().to_string()
}

#[test]
fn code_that_nests_is_refused() {
    for (open, close) in
        [("(", ",)"), ("[", "]"), ("-", ""), ("{1: ", "}"), ("x[", "]"), ("f(", ")")]
    {
        let (many, ends) = (open.repeat(100_000), close.repeat(100_000));
        assert!(error_of(&format!("    return {many}1{ends}\n")).contains("deep"), "{open}");
    }
    let blocks = (0..1000).map(|depth| format!("{}if True:\n", "  ".repeat(depth + 2)));
    let blocks: String = blocks.collect();
    assert!(error_of(&format!("{blocks}{}pass\n", "  ".repeat(1002))).contains("deep"));
    assert!(error_of(&format!("    return x{}\n", ".a".repeat(100_000))).contains("deep"));
}

#[test]
fn records_that_inflate_are_refused() {
    let forward = format!("{FORWARD}    return x\n");
    let code = [forward.as_bytes(), &vec![b'\n'; 65 << 20]].concat();
    let objects = ("m/data.pkl", OBJECTS);
    let error = |records: &[(&str, &[u8])]| {
        let opened = archive(records).and_then(|archive| archive.root_class().cloned());
        opened.unwrap_err().to_string()
    };
    assert!(error(&[objects, ("m/code/__torch__.py", &code)]).contains("bytes"));
    // Many of less than the limit.
    let half = &code[..22 << 20];
    let files = ["m/code/__torch__.py", "m/code/a.py", "m/code/b.py"].map(|name| (name, half));
    assert!(error(&[&[objects][..], &files].concat()).contains("bytes"));
    let code = ("m/code/__torch__.py", forward.as_bytes());
    let pickle = vec![b'N'; 18 << 20];
    assert!(error(&[("m/data.pkl", &pickle), code]).contains("bytes"));
    let lists = [b"\x80\x02(", &b"]".repeat(2 << 20)[..], b"l."].concat();
    let lists = error(&[("m/data.pkl", &lists), code]);
    assert!(lists.contains("the values of the pickle take more than"));
    // Source ranges are not needed.
    let ranges = ("m/code/__torch__.py.debug_pkl", &*pickle);
    assert_eq!(archive(&[objects, code, ranges]).unwrap().origin(0, 60), None);
}

/// A zip file of deflated records, without checksums.
fn deflated(records: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in records {
        let packed = miniz_oxide::deflate::compress_to_vec(bytes, 6);
        let size = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
        let at = file.len();
        // Version, flags, deflated, time, date, checksum; then the sizes and the length of the
        // name.
        let mut entry = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        entry.extend(size(packed.len()));
        entry.extend(size(bytes.len()));
        entry.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        entry.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&entry);
        file.extend(name.as_bytes());
        file.extend(packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&entry);
        directory.extend([0; 10]);
        directory.extend(size(at));
        directory.extend(name.as_bytes());
    }
    let count = u16::try_from(records.len()).unwrap().to_le_bytes();
    let (at, length) = (file.len(), directory.len());
    file.extend(directory);
    file.extend(b"PK\x05\x06\x00\x00\x00\x00");
    file.extend([count, count].concat());
    file.extend(u32::try_from(length).unwrap().to_le_bytes());
    file.extend(u32::try_from(at).unwrap().to_le_bytes());
    file.extend([0, 0]);
    file
}

/// Parts of pickles.
fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(".to_vec(), items.concat(), b"t".to_vec()].concat()
}

fn word(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap().to_le_bytes();
    [b"X", &length[..], text.as_bytes()].concat()
}

fn number(n: i32) -> Vec<u8> {
    [b"J", &n.to_le_bytes()[..]].concat()
}

#[test]
fn source_ranges_give_the_line_of_the_user() {
    let code = format!("{FORWARD}    return torch.nothing(x)\n");
    let origin = |ranges: Vec<u8>| {
        let pickle = [b"\x80\x02".to_vec(), ranges, b".".to_vec()].concat();
        let code = ("m/code/__torch__.py", code.as_bytes());
        let records = [("m/data.pkl", OBJECTS), code, ("m/code/__torch__.py.debug_pkl", &*pickle)];
        archive(&records).unwrap().origin(0, 60)
    };
    let entry = |text, file| {
        let range = tuple(&[tuple(&[text, file, number(3)]), number(33), number(40)]);
        tuple(&[tuple(&[number(0), range, number(0)])])
    };
    let line = |file: &str, line, function: Option<&str>, code: &str| {
        let (file, code) = (file.to_owned(), code.to_owned());
        Line { file, line, function: function.map(str::to_owned), code }
    };
    let [def, call] = ["def forward(self, x):\n", "    return nothing(x)\n"];
    let expected = Some(Origin::Line(line("/a/m.py", 4, None, "return nothing(x)")));
    assert_eq!(origin(entry(word(&format!("{def}{call}")), word("/a/m.py"))), expected);
    let strings = tuple(&[word(""), word(def), word(call), word("/a/m.py")]);
    let lines = [b"](".to_vec(), number(1), number(2), b"e".to_vec()].concat();
    let entries = entry(lines, number(3));
    let table = tuple(&[word("FORMAT_WITH_STRING_TABLE"), strings.clone(), entries]);
    assert_eq!(origin(table), expected);
    // A Python stack, innermost frame first.
    let stack = "/a/m.py(7): helper\n/v/site-packages/torch/nn/modules/module.py(1): _call_impl\n/a/n.py(2): forward\n\
        /v/site-packages/torch/jit/_trace.py(9): trace\n/a/main.py(1): <module>\n";
    let frames = [line("/a/n.py", 2, Some("forward"), ""), line("/a/m.py", 7, Some("helper"), "")];
    let expected = Some(Origin::Stack(frames.into()));
    assert_eq!(origin(entry(word(stack), word("/a/m.py"))), expected);
    // Damaged ranges, and those that refer to nothing, give nothing.
    for damaged in
        [number(1), word("x"), tuple(&[number(1)]), entry(number(1), number(99)), b"?".to_vec()]
    {
        assert_eq!(origin(damaged), None);
    }
    let nowhere = tuple(&[word("FORMAT_WITH_STRING_TABLE"), strings, entry(number(-1), number(1))]);
    assert_eq!(origin(nowhere), None);
}
