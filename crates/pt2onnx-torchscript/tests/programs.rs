//! Programs written as code, flattened with a few operators whose types are known here.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx_fx::{Argument, Node, ValueMeta, archive::Records, text};
use pt2onnx_tensor::DType;
use pt2onnx_torchscript::{
    Archive, Error, Given, flatten,
    types::{Facts, Outcome, Types},
};
use std::io::{Cursor, Write};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Types of operators that keep that of their first tensor, and of some others.
struct Few;

impl Types for Few {
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String> {
        let first = node.args.iter().find_map(|arg| match &arg.value {
            Argument::Tensor(name) => facts.values.get(name).cloned(),
            _ => None,
        });
        let dtype = match node.arg("dtype") {
            Some(Argument::DType(dtype)) => Some(*dtype),
            _ => None,
        };
        let mut meta = match (&*node.target.name, first) {
            ("scalar_tensor", _) => scalar(dtype.unwrap_or(DType::F32)),
            (
                "relu" | "neg" | "add" | "mul" | "sub" | "add_" | "lift_fresh_copy" | "clone"
                | "copy_" | "view",
                Some(meta),
            ) => meta,
            ("gt", Some(mut meta)) => {
                if let ValueMeta::Tensor(meta) = &mut meta {
                    meta.dtype = DType::Bool;
                }
                meta
            }
            ("sum", Some(_)) => scalar(DType::F32),
            _ => return Err("not among the few".to_owned()),
        };
        if let ValueMeta::Tensor(meta) = &mut meta {
            meta.requires_grad = false;
        }
        Ok(vec![Outcome::One(meta.into())])
    }
}

fn scalar(dtype: DType) -> ValueMeta {
    let tensor = pt2onnx_tensor::Tensor::absent(dtype, Vec::new()).unwrap();
    pt2onnx_fx::TensorMeta::of(&tensor).into()
}

/// An archive of one module without attributes.
fn archive(body: &str) -> Result<Archive, Error> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let code = format!("class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n{body}");
    let pickle = b"\x80\x02c__torch__\nM\n)\x81}b.";
    let records: [(&str, &[u8]); 4] = [
        ("data.pkl", pickle),
        ("constants.pkl", b"\x80\x02)."),
        ("code/__torch__.py", code.as_bytes()),
        ("version", b"10\n"),
    ];
    for (name, bytes) in records {
        zip.start_file(format!("m/{name}"), stored).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let bytes = zip.finish().unwrap().into_inner();
    Archive::new(Records::from_bytes(bytes)?)
}

fn flat(body: &str, inputs: &[(&str, &str)]) -> Result<String, Error> {
    let given = inputs.iter().map(|(name, text)| ((*name).to_owned(), Given::parse(text)));
    let flat = flatten(&archive(body)?, "forward", given.collect(), &mut Few)?;
    let mut printed = text::print(&flat.program).to_string();
    flat.warnings.iter().for_each(|warning| printed.push_str(&format!("\n# {warning}")));
    Ok(printed)
}

/// The operators that a method calls, in order.
fn calls(body: &str, inputs: &[(&str, &str)]) -> Vec<String> {
    let given = inputs.iter().map(|(name, text)| ((*name).to_owned(), Given::parse(text)));
    let flat = flatten(&archive(body).unwrap(), "forward", given.collect(), &mut Few).unwrap();
    flat.program.graph.nodes.iter().map(|node| node.target.to_string()).collect()
}

const X: &[(&str, &str)] = &[("x", "float32[n,4]")];

#[test]
fn lists_loops_and_functions_leave_only_calls() {
    let body = "  def forward(self: __torch__.M,\n      x: Tensor) -> Tensor:\n    \
        parts = annotate(List[Tensor], [])\n    for i in range(3):\n      \
        if torch.gt(i, 0):\n        _0 = torch.append(parts, torch.relu(x))\n      else:\n        pass\n    \
        y = torch.add(parts[0], parts[-1])\n    return torch.mul(y, torch.len(parts))\n";
    assert_eq!(
        calls(body, X),
        ["aten.relu.default", "aten.relu.default", "aten.add.Tensor", "aten.mul.Scalar"]
    );
}

#[test]
fn sizes_stay_symbolic() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    \
        n = torch.mul(torch.size(x, 0), 2)\n    return torch.mul(x, n)\n";
    let printed = flat(body, X).unwrap();
    assert!(printed.contains("Sym(2*n)"), "{printed}");
}

#[test]
fn branches_on_data_become_cond() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    \
        if bool(torch.gt(torch.sum(x), 0)):\n      y = torch.relu(x)\n    else:\n      y = torch.neg(x)\n    return y\n";
    let ops = calls(body, X);
    assert!(ops.contains(&"higher_order.cond".to_owned()), "{ops:?}");
}

#[test]
fn loops_on_data_become_while_loop() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    y = x\n    go = bool(torch.gt(torch.sum(x), 0))\n    \
        while go:\n      y = torch.sub(y, 1)\n      go = bool(torch.gt(torch.sum(y), 0))\n    return y\n";
    let ops = calls(body, X);
    assert!(ops.contains(&"higher_order.while_loop".to_owned()), "{ops:?}");
}

#[test]
fn what_bodies_write_into_is_copied_there_and_written_after() {
    let before = "  def forward(self, x: Tensor) -> Tensor:\n    y = torch.relu(x)\n    \
        go = bool(torch.gt(torch.sum(x), 0))\n";
    let after = "    return y\n";
    let loops =
        "    while go:\n      _0 = torch.add_(y, 1)\n      go = bool(torch.gt(torch.sum(y), 0))\n";
    let branches = "    if go:\n      _0 = torch.add_(y, 1)\n    else:\n      pass\n";
    for (body, op) in [(loops, "while_loop"), (branches, "cond")] {
        let printed = flat(&format!("{before}{body}{after}"), X).unwrap();
        let at = |text: &str| printed.rfind(text).unwrap_or_else(|| panic!("{text}: {printed}"));
        let places = [&format!("higher_order.{op}"), "aten.clone.default", "aten.copy_.default"];
        assert!(places.map(at).is_sorted(), "{printed}");
    }
}

#[test]
fn views_from_outside_are_not_read_where_their_memory_is_written() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    y = torch.relu(x)\n    \
        v = torch.view(y, [-1])\n    go = bool(torch.gt(torch.sum(x), 0))\n    while go:\n      \
        _0 = torch.add_(y, 1)\n      go = bool(torch.gt(torch.sum(v), 0))\n    return y\n";
    let error = flat(body, X).unwrap_err().to_string();
    assert!(
        error.contains("it reads a view, made before it, of a tensor that it writes"),
        "{error}"
    );
}

#[test]
fn lists_of_unknown_length_are_one_result() {
    let body = "  def forward(self, x: Tensor) -> List[Tensor]:\n    \
        return torch.chunk(x, torch.size(x, 0), 0)\n";
    assert_eq!(calls(body, X), ["pt2onnx.list_of_parts.default"]);
    let joined = body.replace("return torch.chunk", "y = torch.chunk") + "    return torch.cat(y)\n";
    assert_eq!(calls(&joined, X), [""; 0]);
    let stacked = body.replace("return torch.chunk", "y = torch.chunk") + "    return torch.stack(y)\n";
    let error = flat(&stacked, X).unwrap_err().to_string();
    assert!(error.contains("joining pieces whose number depends on data"), "{error}");
}

#[test]
fn lists_of_unknown_sizes_may_be_equal() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    if torch.ne(torch.size(x), [5, 4]):\n      \
        ops.prim.RaiseException(\"no\", \"builtins.ValueError\")\n    else:\n      pass\n    return torch.relu(x)\n";
    assert_eq!(calls(body, X), ["aten.relu.default"]);
    let never = body.replace("[5, 4]", "[5, 3]");
    assert!(flat(&never, X).unwrap_err().to_string().contains("raises ValueError"));
}

#[test]
fn what_stops_is_named_with_its_line() {
    for (body, inputs, said) in [
        (
            "    return torch.nothing(x)\n",
            X,
            "code/__torch__.py:5 (in forward): no overload of aten::nothing(Tensor)",
        ),
        ("    return torch.relu(y)\n", X, "code/__torch__.py:5 (in forward): `y` is not known"),
        (
            "    ops.prim.RaiseException(\"no\", \"builtins.ValueError\")\n    return x\n",
            X,
            "code/__torch__.py:5 (in forward): raises ValueError: no",
        ),
        (
            "    while True:\n      pass\n    return x\n",
            X,
            "code/__torch__.py:6 (in forward): a loop that runs more than",
        ),
        ("    return torch.relu(x)\n", &[], "the types of the inputs are not known: `x: Tensor`"),
        ("    return torch.relu(x)\n", &[("z", "none")], "there is no input `z`"),
        (
            "    return torch.relu(x)\n",
            &[("x", "3")],
            "`--input x=3` does not fit the parameter `x: Tensor`",
        ),
        ("    return (\n", X, "<bytes>, record `code/__torch__.py`, line 6: expected"),
    ] {
        let body = format!("  def forward(self, x: Tensor) -> Tensor:\n{body}");
        let error = flat(&body, inputs).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}\n{said}");
    }
}

#[test]
fn hostile_programs_end() {
    for body in [
        // Doubling lists.
        "    a = [1]\n    while True:\n      a = torch.add(a, a)\n    return x\n",
        "    a = [1]\n    while True:\n      b = torch.add_(a, a)\n    return x\n",
        // Tuples in tuples.
        "    a = (1, 2)\n    while True:\n      a = (a, a)\n    return x\n",
        // A list in itself.
        "    a = annotate(List[Any], [])\n    _0 = torch.append(a, a)\n    b = torch.eq(a, a)\n    return torch.str(a)\n",
        "    s = \"ab\"\n    while True:\n      s = torch.add(s, s)\n    return x\n",
    ] {
        let body = format!("  def forward(self, x: Tensor) -> Tensor:\n{body}");
        let _ = flat(&body, X);
    }
    let recursion = "  def forward(self, x: Tensor) -> Tensor:\n    return (self).forward(x, )\n";
    assert!(flat(recursion, X).unwrap_err().to_string().contains("deep"));
}
