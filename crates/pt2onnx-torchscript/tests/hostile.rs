//! Files that are made to take all time and memory: each ends in a clear error.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod common;

use common::{OBJECTS, archive, archive_of, flat, module};
use pt2onnx_fx::archive::Records;
use pt2onnx_torchscript::{Archive, Error, Limits, Policy};

/// Less than the default, so that the test ends soon.
const LIMITS: Limits = Limits { steps: 1_000_000, values: 200_000, nodes: 5_000 };

/// The result for an archive: the error, or `done`.
fn end_with(archive: Result<Archive, Error>, inputs: &str) -> String {
    let policy = Policy { limits: LIMITS, ..Policy::default() };
    let flat = archive.and_then(|archive| flat(&archive, inputs, policy));
    flat.map_or_else(|error| error.to_string(), |_| "done".to_owned())
}

fn end(archive: Result<Archive, Error>) -> String {
    end_with(archive, "x=float32[n,m]")
}

/// The result for lines of `forward`.
fn end_of(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    end(archive(&format!("  def forward(self, x: Tensor) -> Tensor:\n{lines}    return x\n")))
}

/// `tests/data/hostile.txt` has the lines of programs, and parts of their messages.
#[test]
fn programs_end() {
    let cases = include_str!("data/hostile.txt").split("\n\n");
    let ends = cases.filter_map(|case| {
        let (lines, said) = case.trim().rsplit_once("\n=>")?;
        let end = end_of(lines);
        (!end.contains(said.trim())).then(|| format!("{lines}\n{end}"))
    });
    let wrong: Vec<String> = ends.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tensors_fall_into_few_parts() {
    for call in
        ["torch.unbind(x)", "torch.unbind(x, -1)", "torch.split(x, 1)", "torch.unsafe_split(x, 1)"]
    {
        let body =
            format!("  def forward(self, x: Tensor) -> Tensor:\n    a = {call}\n    return x\n");
        let end = end_with(archive(&body), "x=float32[1000000000]");
        assert!(end.contains("a split into 1000000000 parts, more than 10000, is not"), "{call}");
    }
}

#[test]
fn code_that_nests_is_refused() {
    for (open, close) in
        [("(", ",)"), ("[", "]"), ("-", ""), ("{1: ", "}"), ("x[", "]"), ("f(", ")")]
    {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        let body =
            format!("  def forward(self, x: Tensor) -> Tensor:\n    return {open}1{close}\n");
        assert!(end(archive(&body)).contains("deep"), "{}", &open[..4]);
    }
    let mut lines = String::new();
    for depth in 0..1000 {
        lines += &format!("{}if True:\n", "  ".repeat(depth + 2));
    }
    lines += &format!("{}pass\n", "  ".repeat(1002));
    let body = format!("  def forward(self, x: Tensor) -> Tensor:\n{lines}    return x\n");
    assert!(end(archive(&body)).contains("deep"));
    let chain = "x".to_owned() + &".a".repeat(100_000);
    let body = format!("  def forward(self, x: Tensor) -> Tensor:\n    return {chain}\n");
    assert!(end(archive(&body)).contains("deep"));
}

#[test]
fn objects_that_nest_or_share_are_refused() {
    let forward = module("  def forward(self, x: Tensor) -> Tensor:\n    return x\n");
    let attribute =
        |value: &[u8]| [b"\x80\x02c__torch__\nM\n)\x81}X\x01\x00\x00\x00a", value, b"sb."].concat();
    let nested = attribute(&[&b")"[..], &[0x85; 100_000]].concat());
    assert!(end(archive_of(&forward, &nested, &[])).contains("deep"));
    // Tuples of twice the one before.
    let doubled: Vec<u8> = (0..200).flat_map(|_| *b"q\x00h\x00\x86").collect();
    let doubled = attribute(&[&b")"[..], &doubled].concat());
    assert!(end(archive_of(&forward, &doubled, &[])).contains("deep"));
    // A view of one byte as many elements.
    let view = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nByteStorage\n\
        X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQK\x00J\xff\xff\xff\x7f\x85K\x00\x85\x89ccollections\nOrderedDict\n)RtR";
    let end = end(archive_of(&forward, &attribute(view), &[("data/0", b"\x01")]));
    assert!(end.contains("more than 1073741824 values"), "{end}");
}

#[test]
fn records_that_inflate_are_refused() {
    let forward = module("  def forward(self, x: Tensor) -> Tensor:\n    return x\n");
    let spaces = vec![b'\n'; 65 << 20];
    let code = [forward.as_bytes(), &spaces].concat();
    let bomb = |records: &[(&str, &[u8])]| {
        let file = deflated(records);
        assert!(file.len() < 1 << 20);
        end(Records::from_bytes(file).map_err(Error::from).and_then(Archive::new))
    };
    let plain: [(&str, &[u8]); 2] = [("m/data.pkl", OBJECTS), ("m/version", b"3")];
    let big = [&plain[..], &[("m/code/__torch__.py", &*code)]].concat();
    assert!(bomb(&big).contains("bytes"), "{}", bomb(&big));
    // Many of less than the limit.
    let half = &code[..22 << 20];
    let two = [("m/code/__torch__.py", half), ("m/code/a.py", half), ("m/code/b.py", half)];
    assert!(bomb(&[&plain[..], &two].concat()).contains("bytes"));
    let pickle = vec![b'N'; 18 << 20];
    let objects = [("m/data.pkl", &*pickle), ("m/code/__torch__.py", forward.as_bytes())];
    assert!(bomb(&objects).contains("bytes"));
    let lists = [b"\x80\x02(", &b"]".repeat(2 << 20)[..], b"l."].concat();
    let objects = [("m/data.pkl", &*lists), ("m/code/__torch__.py", forward.as_bytes())];
    assert!(bomb(&objects).contains("the values of the pickle take more than"));
    // Source ranges are not needed.
    let ranges = [
        ("m/data.pkl", OBJECTS),
        ("m/constants.pkl", b"\x80\x02)."),
        ("m/code/__torch__.py", forward.as_bytes()),
        ("m/code/__torch__.py.debug_pkl", &*pickle),
    ];
    assert_eq!(bomb(&ranges), "done");
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
