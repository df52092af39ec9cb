//! Files that are made to take all time and memory: each ends in a clear error.

mod common;

use common::{archive, archive_of, flat, module};
use pt2onnx_torchscript::{Error, Limits, Policy, archive::Archive};

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
