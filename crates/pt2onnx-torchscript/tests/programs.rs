//! Programs written as code, flattened with a few operators whose types are known here:
//! `tests/data/programs.txt`, and values as texts: `tests/data/texts.txt`.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod common;

use common::{archive, flat};
use pt2onnx_fx::text;
use pt2onnx_torchscript::{Error, Policy};

/// The calls of a program, and its text with the warnings.
fn printed(body: &str, inputs: &str, how: Policy) -> Result<(String, String), Error> {
    let flat = flat(&archive(body)?, inputs, how)?;
    let calls = flat.program.graph.nodes.iter().map(|node| node.target.to_string());
    let mut printed = text::print(&flat.program).to_string();
    flat.warnings.iter().for_each(|warning| printed.push_str(&format!("\n# {warning}")));
    Ok((calls.collect::<Vec<_>>().join(" "), printed))
}

/// Checks a case: lines of `forward`, which are indented, and lines `key: value` of its signature,
/// its inputs and its result.
fn check(case: &str) -> Result<(), String> {
    let (mut takes, mut returns, mut inputs) = ("x: Tensor", "Tensor", "x=float32[n,4]");
    let (mut body, mut expected, mut how) = (String::new(), Vec::new(), Policy::default());
    for line in case.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(':') {
            _ if line.starts_with(' ') => body = format!("{body}{line}\n"),
            Some(("takes", text)) => takes = text,
            Some(("returns", text)) => returns = text,
            Some(("inputs", text)) => inputs = text,
            Some((key, text)) => expected.push((key, text.trim())),
            None => how.allow_sequences |= line == "sequences",
        }
    }
    let body = format!("  def forward(self, {takes}) -> {returns}:\n{body}");
    let flat = printed(&body, inputs, how).map_err(|error| error.to_string());
    let holds = |(key, text): &(&str, &str)| match (*key, &flat) {
        ("error", Err(error)) => error.contains(text),
        ("calls", Ok((calls, _))) => calls == text,
        ("has", Ok((_, printed))) => printed.contains(text),
        ("lacks", Ok((_, printed))) => !printed.contains(text),
        ("lines", Ok((_, printed))) => {
            let (first, second) = text.split_once(" | ").unwrap();
            let mut pairs = printed.lines().zip(printed.lines().skip(1));
            pairs.any(|(a, b)| a.contains(first) && b.contains(second))
        }
        (times, Ok((_, printed))) => times == format!("times {}", printed.matches(text).count()),
        _ => false,
    };
    match expected.iter().find(|line| !holds(line)) {
        Some((key, text)) => Err(format!("{case}\nnot {key}: {text}\n{flat:?}\n")),
        None => Ok(()),
    }
}

#[test]
fn programs_are_flattened() {
    let cases = include_str!("data/programs.txt").split("\n\n");
    let wrong: Vec<String> = cases.filter_map(|case| check(case).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `value => text` is a value and what `forward` raises with it, `value =>? text` a part of that.
#[test]
fn values_are_shown_as_the_interpreter_of_pytorch_does() {
    for line in include_str!("data/texts.txt").lines() {
        let Some((value, text)) = line.split_once(" =>") else { continue };
        let body = format!(
            "  def forward(self, x: Tensor) -> Tensor:\n    n = torch.size(x, 0)\n    s = str({value})\n    \
            ops.prim.RaiseException(s, \"builtins.E\")\n    return x\n"
        );
        let error = printed(&body, "x=float32[n,4]", Policy::default()).unwrap_err().to_string();
        let shown = error.rsplit_once("raises E: ").map_or(&*error, |(_, text)| text);
        match text.strip_prefix("? ") {
            Some(part) => assert!(shown.contains(part), "{value}: {shown}"),
            None => assert_eq!(shown, text.trim_start(), "{value}"),
        }
    }
}
