//! Programs written as code, flattened with a few operators whose types are known here:
//! `tests/data/programs.txt`; traces of pt2onnx's Python package: `tests/data/traces.txt`; and
//! values as texts: `tests/data/texts.txt`.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod common;

use common::{archive, flat, zipped};
use pt2onnx_fx::{archive::Records, text};
use pt2onnx_torchscript::{
    Error, Policy,
    archive::{self, Archive},
};

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

/// The program of a case, with the calls of modules that nodes are in, or the error.
///
/// A case has the lines of a graph, and lines `tensor: ` and `module: ` of the lists.
fn trace_result(case: &str) -> String {
    let listed = |key: &str| {
        let lines = case.lines().filter_map(|line| line.strip_prefix(key));
        lines.map(|line| line.replace("\\t", "\t")).collect::<Vec<_>>().join("\n")
    };
    let (tensors, modules) = (listed("tensor: "), listed("module: "));
    let is_listed = |line: &&str| line.starts_with(['#', 't', 'm']);
    let graph = case.lines().filter(|line| !is_listed(line)).collect::<Vec<_>>().join("\n");
    let records: [(&str, &[u8]); 6] = [
        ("pt2onnx/graph", graph.as_bytes()),
        ("pt2onnx/inputs", b"x"),
        ("pt2onnx/modules", modules.as_bytes()),
        ("pt2onnx/tensors", tensors.as_bytes()),
        ("data/0.storage", &[0; 64]),
        ("version", b"10\n"),
    ];
    let records = Records::from_bytes(zipped(&records)).map_err(archive::Error::from);
    let archive = match records.and_then(Archive::new) {
        Ok(archive) => archive,
        Err(error) => return error.to_string(),
    };
    match flat(&archive, "x=float32[n,4]", Policy::default()) {
        Ok(flat) => {
            let inside = flat.program.graph.nodes.iter().map(|node| {
                let modules = node.meta.nn_module_stack.iter().skip(1).map(|m| &*m.key);
                let modules = modules.collect::<Vec<_>>().join(" ");
                format!("# {} in {modules}\n", node.name)
            });
            let inside: String = inside.filter(|line| !line.ends_with("in \n")).collect();
            format!("{}\n{inside}", text::print(&flat.program).to_string().trim()).trim().to_owned()
        }
        Err(error) => error.to_string(),
    }
}

/// `UPDATE_CASES=1` writes the results to the file.
#[test]
fn traces_are_flattened() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/traces.txt");
    let (text, mut found) = (std::fs::read_to_string(file).unwrap(), Vec::new());
    for case in text.trim().split("\n\n") {
        let (program, _) = case.split_once("\n=>\n").unwrap();
        found.push(format!("{program}\n=>\n{}", trace_result(program)));
    }
    let found = found.join("\n\n") + "\n";
    if std::env::var_os("UPDATE_CASES").is_some() {
        std::fs::write(file, &found).unwrap();
    }
    assert_eq!(found, text);
}

#[test]
fn traces_that_nest_end() {
    let input = "graph(%x : Float(2, 4)):\n";
    let open: String = (0..100).map(|_| "%y : Tensor = prim::If(%x)\nblock0():\n").collect();
    assert!(trace_result(&format!("{input}{open}")).contains("blocks nest more than 64 levels"));
    let lists = (0..20_000).map(|at| match at {
        0 => "%0 : Tensor[] = prim::ListConstruct(%x)\n".to_owned(),
        at => format!("%{at} : Tensor[] = prim::ListConstruct(%{})\n", at - 1),
    });
    let lists: String = lists.collect();
    let found = trace_result(&format!("{input}{lists}return (%19999)\n"));
    assert!(found.contains("more than"), "{found}");
}
