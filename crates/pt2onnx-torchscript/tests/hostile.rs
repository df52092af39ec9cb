//! Files that are made to take all time and memory: each ends in a clear error.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod common;

use common::{Few, OBJECTS, archive, archive_of, module, zipped};
use pt2onnx_fx::archive::Records;
use pt2onnx_torchscript::{Archive, Error, Given, flatten, tensors};

/// What becomes of an archive: the error, or `done`.
fn end(archive: Result<Archive, Error>) -> String {
    let given = vec![("x".to_owned(), Given::parse("float32[n,m]"))];
    let flat = archive.and_then(|archive| flatten(&archive, "forward", given, &mut Few));
    flat.map_or_else(|error| error.to_string(), |_| "done".to_owned())
}

/// Lines of `forward`, and a part of the message.
const PROGRAMS: &[(&str, &str)] = &[
    ("while True:\n  pass", "more than 100000 times"),
    ("for i in range(100000):\n  for j in range(100000):\n    pass", "longer than"),
    ("for i in range(1000000000000):\n  pass", "more than 100000 times"),
    // Long lists.
    ("a = torch.mul([0], 1000000000000)", "longer than"),
    ("a = torch.mul([0], 9223372036854775807)", "longer than"),
    ("a = torch.mul([0], 10000000)", "values"),
    ("a = [1]\nwhile True:\n  a = torch.add(a, a)", "values"),
    ("a = [1]\nwhile True:\n  b = torch.add_(a, a)", "values"),
    ("a = [1]\nwhile True:\n  b = torch.append(a, 1)", "more than 100000 times"),
    ("a = torch.list(range(1000000000000))", "more than 100000 times"),
    // Long strings.
    ("s = \"ab\"\nwhile True:\n  s = torch.add(s, s)", "longer than"),
    ("s = torch.mul(\"ab\", 1000000000000)", ""),
    ("s = \"ab\"\nfor i in range(20):\n  s = torch.add(s, s)\nt = torch.replace(s, \"a\", s)", "longer than"),
    ("s = \"ab\"\nfor i in range(20):\n  s = torch.add(s, s)\nfor i in range(100000):\n  t = torch.upper(s)", "longer than"),
    ("s = \"ab\"\nfor i in range(20):\n  s = torch.add(s, s)\nl = torch.mul([s], 64)\nwhile True:\n  t = torch.str(l)", ""),
    ("s = \"{}\"\nfor i in range(12):\n  s = torch.add(s, s)\nwhile True:\n  s = torch.format(s, s)", ""),
    // Values that share their parts.
    ("a = (1, 2)\nwhile True:\n  a = (a, a)", "deep"),
    ("a = (1, 2)\nfor i in range(30):\n  a = (a, a)\nb = (1, 2)\nfor i in range(30):\n  b = (b, b)\nwhile True:\n  c = torch.eq([a], [b])", "longer than"),
    ("a = (1, 2)\nfor i in range(30):\n  a = (a, a)\nreturn a", "longer than"),
    ("a = annotate(List[Any], [])\n_0 = torch.append(a, a)\nb = torch.eq(a, a)\nc = torch.str(a)", "done"),
    ("a = torch.mul([0], 1000000)\nwhile True:\n  b = torch.eq(a, torch.list(a))", "longer than"),
    ("a = torch.mul([0], 1000000)\nwhile True:\n  b = torch.__contains__(a, 1)", "longer than"),
    // Sizes that grow.
    ("n = torch.add(torch.size(x, 0), torch.size(x, 1))\nwhile True:\n  n = torch.mul(n, n)", ""),
    ("n = torch.size(x, 0)\nwhile True:\n  n = torch.mul(n, n)", ""),
    ("n = torch.size(x, 0)\nwhile True:\n  n = torch.add(torch.floordiv(n, 3), torch.mul(n, n))", ""),
    ("n = 3\nwhile True:\n  n = torch.mul(n, n)", ""),
    // Branches and loops on data, each of which copies what there is.
    (
        "a = torch.mul([0], 1000000)\nfor i in range(100000):\n  if bool(torch.gt(torch.sum(x), i)):\n    pass\n  else:\n    pass",
        "longer than",
    ),
    (
        "a = torch.mul([0], 1000000)\ni = 0\nfor j in range(100000):\n  i = 0\n  go = bool(torch.gt(torch.sum(x), 0))\n  while go:\n    go = bool(torch.gt(torch.sum(x), i))",
        "longer than",
    ),
    // Nodes.
    ("y = x\nfor i in range(100000):\n  for j in range(100):\n    y = torch.relu(y)", ""),
    // Calls.
    ("return (self).forward(x)", "deep"),
    ("y = (self).forward(x)\nreturn (self).forward(y)", "deep"),
];

#[test]
fn programs_end() {
    let only = std::env::var("ONLY").ok().and_then(|n| n.parse::<usize>().ok());
    for (at, (lines, said)) in PROGRAMS.iter().enumerate() {
        if only.is_some_and(|n| n != at) {
            continue;
        }
        let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
        let body = format!("  def forward(self, x: Tensor) -> Tensor:\n{lines}    return x\n");
        let start = std::time::Instant::now();
        let end = end(archive(&body));
        eprintln!("{at} {:.2}s {}", start.elapsed().as_secs_f64(), end.chars().take(200).collect::<String>());
        assert!(end.contains(said), "{lines}{end}");
    }
}
