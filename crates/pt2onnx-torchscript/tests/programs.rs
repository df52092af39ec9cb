//! Programs written as code, flattened with a few operators whose types are known here.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod common;

use common::{Few, OBJECTS, archive, archive_of, module};
use pt2onnx_fx::text;
use pt2onnx_torchscript::{Error, Given, Policy, flatten_as};

fn flat(body: &str, inputs: &[(&str, &str)]) -> Result<String, Error> {
    let given = inputs.iter().map(|(name, text)| ((*name).to_owned(), Given::parse(text)));
    let flat =
        flatten_as(&archive(body)?, "forward", given.collect(), &mut Few, Policy::default())?;
    let mut printed = text::print(&flat.program).to_string();
    flat.warnings.iter().for_each(|warning| printed.push_str(&format!("\n# {warning}")));
    Ok(printed)
}

/// The operators that a method calls, in order.
fn calls(body: &str, inputs: &[(&str, &str)]) -> Vec<String> {
    let given = inputs.iter().map(|(name, text)| ((*name).to_owned(), Given::parse(text)));
    let flat = flatten_as(
        &archive(body).unwrap(),
        "forward",
        given.collect(),
        &mut Few,
        Policy::default(),
    )
    .unwrap();
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
fn examples_of_inputs_lead_to_their_parts() {
    let body = "  def forward(self, images: List[Tensor], state: Dict[str, Tuple[Tensor, int]]) -> Tensor:\n    \
        return images[0]\n";
    let error = |inputs| flat(body, inputs).unwrap_err().to_string();
    assert!(
        error(&[("images", "[float32[3]]")]).contains("as in `images.0=float32[batch,3,224,224]`")
    );
    assert!(error(&[]).contains("as in `images.0=float32[batch,3,224,224]`"));
    let told = &[("images.0", "float32[3]"), ("state", "3")];
    assert!(error(told).contains("as in `state.key.0=float32[batch,3,224,224]`"));
}

#[test]
fn sizes_broadcast() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    \
        sizes = torch.broadcast_shapes([1, 4], torch.size(x))\n    \
        more = torch._infer_size([3, 1, 1], sizes)\n    \
        return torch.mul(x, torch.sum(more))\n";
    let printed = flat(body, X).unwrap();
    assert!(printed.contains("Sym(n + 7)"), "{printed}");
    let wrong = body.replace("[1, 4]", "[1, 5]");
    let error = flat(&wrong, X).unwrap_err().to_string();
    assert!(error.contains("the sizes 5 and 4 do not broadcast"), "{error}");
}

#[test]
fn sizes_that_squeeze_keeps_are_told() {
    let told = |op: &str, size| {
        let body = format!("  def forward(self, x: Tensor) -> Tensor:\n    return torch.{op}(x)\n");
        let note = format!("`{op}` keeps `n`, taken not to be 1");
        flat(&body, &[("x", size)]).unwrap().contains(&note)
    };
    assert!(told("squeeze", "float32[n,4]") && told("cov", "float32[n,4]"));
    assert!(!told("squeeze", "float32[n>=2,4]") && !told("cov", "float32[n]"));
}

/// `contiguous` of a transposed row returns the row itself.
#[test]
fn writes_that_a_size_decides_are_told() {
    let told = |size: &str, written: &str, returned: &str| {
        let body = format!(
            "  def forward(self, x: Tensor) -> Tensor:\n    y = torch.add(x, 1)\n    \
            z = torch.contiguous(torch.transpose(y, 0, 1))\n    v = torch.view(z, [-1])\n    \
            _0 = torch.add_({written}, 1)\n    return {returned}\n"
        );
        flat(&body, &[("x", size)]).unwrap().contains("`contiguous` is taken to make a copy")
    };
    let n = "float32[n,n]";
    assert!(told(n, "v", "y") && told(n, "z", "y") && told(n, "y", "v"));
    assert!(!told(n, "v", "z") && !told(n, "z", "v") && !told("float32[n>=2,n]", "v", "y"));
}

#[test]
fn sizes_that_a_condition_says_are_not_told() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    \
        if torch.eq(torch.size(x, 0), 1):\n      y = torch.relu(x)\n    else:\n      y = torch.squeeze(x, 0)\n    return y\n";
    let printed = flat(body, X).unwrap();
    assert!(printed.contains("squeeze") && !printed.contains("taken not to be 1"), "{printed}");
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
fn lists_are_sliced_up_to_numbers_of_data() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    n = int(torch.sum(x))\n    \
        a = [1, 2, 3][:n]\n    b = [x, x][n:]\n    return torch.mul(torch.mul(x, torch.len(a)), torch.len(b))\n";
    let ops = calls(body, X);
    assert_eq!(ops.iter().filter(|op| *op == "aten.stack.default").count(), 2, "{ops:?}");
    assert_eq!(ops.iter().filter(|op| *op == "aten.slice.Tensor").count(), 2, "{ops:?}");
    let error = flat(&body.replace("[x, x]", "[\"a\"]"), X).unwrap_err().to_string();
    assert!(error.contains("expected a known integer"), "{error}");

    let sizes = "  def forward(self, x: Tensor) -> Tensor:\n    n = int(torch.sum(x))\n    \
        return torch.new_ones(x, [1, 2, 3][:n])\n";
    let error = flat(sizes, X).unwrap_err().to_string();
    assert!(error.contains("a list whose length is a known integer"), "{error}");
}

#[test]
fn quotients_in_half_precision_are_read_from_the_tensor() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    \
        t = torch.scalar_tensor(torch.size(x, 0), dtype=6)\n    \
        return torch.mul(x, int(torch.div(t, 3)))\n";
    let reads = |body: &str| {
        let ops = calls(body, X);
        ops.iter().filter(|op| *op == "aten._local_scalar_dense.default").count()
    };
    assert_eq!(reads(body), 0);
    assert_eq!(reads(&body.replace("dtype=6", "dtype=5")), 1);
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
fn errors_name_the_line_that_source_ranges_tell() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    return torch.nothing(x)\n";
    let message = |ranges: Vec<u8>| {
        let pickle = [b"\x80\x02".to_vec(), ranges, b".".to_vec()].concat();
        let records = [("code/__torch__.py.debug_pkl", &*pickle)];
        let archive = archive_of(&module(body), OBJECTS, &records).unwrap();
        let given = vec![("x".to_owned(), Given::parse("float32[n,4]"))];
        let error = flatten_as(&archive, "forward", given, &mut Few, Policy::default())
            .unwrap_err()
            .to_string();
        error.split(": no overload").next().unwrap().to_owned()
    };
    let entry = |text, file| {
        let range = tuple(&[tuple(&[text, file, number(3)]), number(33), number(40)]);
        tuple(&[tuple(&[number(0), range, number(0)])])
    };
    let [def, line] = ["def forward(self, x):\n", "    return nothing(x)\n"];
    let expected = "m.py:4: return nothing(x) (in forward)";
    assert_eq!(message(entry(word(&format!("{def}{line}")), word("/a/m.py"))), expected);
    let strings = tuple(&[word(""), word(def), word(line), word("/a/m.py")]);
    let lines = [b"](".to_vec(), number(1), number(2), b"e".to_vec()].concat();
    let entries = entry(lines, number(3));
    let table = tuple(&[word("FORMAT_WITH_STRING_TABLE"), strings.clone(), entries]);
    assert_eq!(message(table), expected);
    // A Python stack, innermost frame first.
    let stack = "/a/m.py(7): helper\n/v/site-packages/torch/nn/modules/module.py(1): _call_impl\n/a/n.py(2): forward\n\
        /v/site-packages/torch/jit/_trace.py(9): trace\n/a/main.py(1): <module>\n";
    assert_eq!(message(entry(word(stack), word("/a/m.py"))), "m.py:7 (in forward)");
    // Damaged ranges, and those that refer to nothing, give nothing.
    let code = "code/__torch__.py:5 (in forward)";
    for damaged in
        [number(1), word("x"), tuple(&[number(1)]), entry(number(1), number(99)), b"?".to_vec()]
    {
        assert_eq!(message(damaged), code);
    }
    let nowhere = tuple(&[word("FORMAT_WITH_STRING_TABLE"), strings, entry(number(-1), number(1))]);
    assert_eq!(message(nowhere), code);
}

#[test]
fn names_of_sizes_stay_apart_from_those_of_data() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    return torch.relu(x)\n";
    let error = flat(body, &[("x", "float32[u0,4]")]).unwrap_err().to_string();
    assert!(
        error.contains("a size that is called `u0`, as sizes that depend on data are"),
        "{error}"
    );
    // Other names with that letter are those of plain sizes.
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    if torch.gt(torch.size(x, 0), 1):\n      \
        y = torch.relu(x)\n    else:\n      y = torch.sum(x)\n    return y\n";
    let error = flat(body, &[("x", "float32[units,4]")]).unwrap_err().to_string();
    assert!(
        error.contains("`units > 1` decides, and it makes a tensor of float32 and 2 dimensions"),
        "{error}"
    );
    assert!(error.starts_with("code/__torch__.py:"), "{error}");
    assert_eq!(calls(body, &[("x", "float32[units>=2,4]")]), ["aten.relu.default"]);
}

/// Functionalisation resolves the writes of bodies, which see all views of what is written.
#[test]
fn writes_stay_in_bodies() {
    let before = "  def forward(self, x: Tensor) -> Tensor:\n    y = torch.relu(x)\n    \
        v = torch.view(y, [-1])\n    go = bool(torch.gt(torch.sum(x), 0))\n";
    let after = "    return y\n";
    let loops =
        "    while go:\n      _0 = torch.add_(y, 1)\n      go = bool(torch.gt(torch.sum(v), 0))\n";
    let branches = "    if go:\n      _0 = torch.add_(y, v)\n    else:\n      pass\n";
    for (body, op) in [(loops, "while_loop"), (branches, "cond")] {
        let printed = flat(&format!("{before}{body}{after}"), X).unwrap();
        let at = |text: &str| printed.rfind(text).unwrap_or_else(|| panic!("{text}: {printed}"));
        let op = format!("higher_order.{op}");
        assert!(["aten.view.default", &*op, "aten.add_"].map(at).is_sorted(), "{printed}");
        assert!(!printed.contains("aten.clone") && !printed.contains("aten.copy_"), "{printed}");
    }
}

#[test]
fn lists_of_unknown_length_are_one_result() {
    let body = "  def forward(self, x: Tensor) -> List[Tensor]:\n    \
        return torch.chunk(x, torch.size(x, 0), 0)\n";
    assert_eq!(calls(body, X), ["pt2onnx.list_of_parts.default"]);
    let joined =
        body.replace("return torch.chunk", "y = torch.chunk") + "    return torch.cat(y)\n";
    assert_eq!(calls(&joined, X), [""; 0]);
    let stacked =
        body.replace("return torch.chunk", "y = torch.chunk") + "    return torch.stack(y)\n";
    let error = flat(&stacked, X).unwrap_err().to_string();
    assert!(error.contains("joining pieces whose number depends on data"), "{error}");
}

#[test]
fn lists_of_any_sizes_are_sequences() {
    let body = "  def forward(self, x: Tensor) -> List[Tensor]:\n    if bool(torch.gt(torch.sum(x), 0)):\n      \
        y = [torch.relu(x), torch.sum(x)]\n    else:\n      y = [x]\n    _0 = torch.append(y, x)\n    return y\n";
    let error = flat(body, X).unwrap_err().to_string();
    assert!(error.contains("a list or dict of another length in each branch"), "{error}");
    let sequences = |body: &str| {
        let given = X.iter().map(|(name, text)| ((*name).to_owned(), Given::parse(text)));
        let how = Policy { allow_sequences: true, ..Policy::default() };
        let flat = flatten_as(&archive(body)?, "forward", given.collect(), &mut Few, how)?;
        Ok::<_, Error>(text::print(&flat.program).to_string())
    };
    let printed = sequences(body).unwrap();
    assert_eq!(printed.matches("pt2onnx.list_of_tensors.default").count(), 2, "{printed}");
    assert_eq!(printed.matches("pt2onnx.list_append.default").count(), 1, "{printed}");
    for (use_of_it, said) in [
        ("y[0]", "an element of a list of tensors of several sizes"),
        ("torch.len(y)", "len of a list of tensors of several sizes"),
        ("torch.cat(y)", "cat of a list of tensors of several sizes"),
    ] {
        let error = sequences(&body.replace("return y", &format!("return {use_of_it}")));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    // A write into an element does not reach the copy in the sequence.
    let written = body.replace("    return y", "    _1 = torch.add_(x, 1)\n    return y");
    let error = sequences(&written).unwrap_err().to_string();
    assert!(error.contains("after a write into a tensor that it holds"), "{error}");
}

#[test]
fn lists_without_elements_are_sequences_if_there_is_nothing_else() {
    let body = "  def forward(self, x: Tensor) -> Tuple[List[Tensor], Tensor]:\n    \
        a = annotate(List[Tensor], [])\n    return (a, torch.relu(x))\n";
    assert_eq!(calls(body, X), ["aten.relu.default"]);
    let nothing = body.replace("(a, torch.relu(x))", "(a, a)");
    assert_eq!(calls(&nothing, X), ["pt2onnx.list_of_tensors.default"; 2]);
    let numbers = nothing.replace("annotate(List[Tensor], [])", "annotate(List[int], [])");
    let error = flat(&numbers, X).unwrap_err().to_string();
    assert!(error.contains("a method that returns no tensor"), "{error}");
}

#[test]
fn lists_that_a_condition_chooses_are_what_its_branches_made_of_them() {
    let body = "  def forward(self, x: Tensor) -> Tensor:\n    a = [x]\n    b = [torch.mul(x, 2)]\n    \
        if bool(torch.gt(torch.sum(x), 0)):\n      _0 = torch._set_item(a, 0, torch.relu(x))\n      r = a\n    \
        else:\n      r = b\n    return r[0]\n";
    let printed = flat(body, X).unwrap();
    let (_, branch) = printed.split_once("aten.relu.default").unwrap();
    assert!(
        branch.trim_start_matches(|c| c != '\n').trim_start().starts_with("return"),
        "{printed}"
    );
    // A change does not reach the other one.
    for change in ["torch._set_item(a, 0, x)", "torch._set_item(b, 0, x)", "torch.append(r, x)"] {
        let other =
            if change.contains('r') && change.starts_with("torch.append") { "a" } else { "r" };
        let after = format!("    _1 = {change}\n    return {other}[0]");
        let error = flat(&body.replace("    return r[0]", &after), X).unwrap_err().to_string();
        assert!(error.contains("that is changed by another name"), "{error}");
    }
    // An element of only one of them is still there after a change of the other one.
    for after in
        ["_1 = torch.append(r, x)\n    return r[1]", "_1 = torch.append(a, x)\n    return b[0]"]
    {
        let used = body.replace("return r[0]", after);
        assert!(flat(&used, X).is_ok(), "{after}");
    }
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
            "`x=3` of the option `input` does not fit the parameter `x: Tensor`",
        ),
        (
            "    return torch.relu(torch.to_mkldnn(x))\n",
            X,
            "code/__torch__.py:5 (in forward): a module after torch.jit.optimize_for_inference, whose archive has no weights",
        ),
        ("    return (\n", X, "<bytes>, record `code/__torch__.py`, line 6: expected"),
    ] {
        let body = format!("  def forward(self, x: Tensor) -> Tensor:\n{body}");
        let error = flat(&body, inputs).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}\n{said}");
    }
}

/// The text of a value, as `forward` raises it.
fn shown(value: &str) -> String {
    let body = format!(
        "  def forward(self, x: Tensor) -> Tensor:\n    n = torch.size(x, 0)\n    s = str({value})\n    \
        ops.prim.RaiseException(s, \"builtins.E\")\n    return x\n"
    );
    let error = flat(&body, X).unwrap_err().to_string();
    error.rsplit_once("raises E: ").map_or(error.clone(), |(_, text)| text.to_owned())
}

#[test]
fn texts_are_those_of_the_interpreter_of_pytorch() {
    for (value, text) in [
        ("2.0", "2."),
        ("-0.0", "0."),
        ("0.1", "0.10000000000000001"),
        ("1e-07", "9.9999999999999995e-08"),
        ("0.0001", "0.0001"),
        ("1e17", "100000000000000000."),
        ("1e20", "1e+20"),
        ("inf", "inf"),
        ("[1., [2]]", "[1., [2]]"),
        ("(1,)", "(1,)"),
        ("{\"a\": 0.5}", "{a: 0.5}"),
        ("torch.format(\"{}|{{}}\", 1.5, None)", "1.5|{None}"),
        ("torch.percentFormat(\"%s_%d%%%i\", 1., 2, 3)", "1._2%3"),
        ("torch.percentFormat(\"%s%s\", (1, (2,)))", "1(2,)"),
        ("torch.percentFormat(\"%f %e\", 0.1, 1000)", "0.100000 1.000000e+03"),
        ("torch.split(\"a-b-c\", \"-\", 1)", "[a, b-c]"),
        ("torch.rsplit(\"a-b-c\", \"-\", 1)", "[a-b, c]"),
        ("torch.split(\" a  b \")", "[a, b]"),
        ("torch.find(\"éb\", \"b\")", "2"),
        ("torch.slice(\"abcdef\", 1, 4, 2)", "bd"),
        ("torch.partition(\"a=b=c\", \"=\")", "(a, =, b=c)"),
        ("torch.center(\"abcabc\", 9, \"*\")", "**abcabc*"),
        ("torch.upper(\"aé\")", "Aé"),
        ("torch.hex(-255)", "-0xff"),
        ("torch.frexp(-5.5)", "(-0.6875, 3)"),
        ("torch.mathremainder(5, 2)", "1."),
        ("torch.sorted([(2, \"b\"), (1, \"z\"), (2, \"a\")])", "[(1, z), (2, a), (2, b)]"),
        ("torch.mul_([1, 2], 2)", "[1, 2, 1, 2]"),
        // Messages show what is not known.
        ("n", "n"),
        ("torch.format(\"{} rows\", n)", "n rows"),
        ("torch.join(\"-\", [str(n), \"a\"])", "n-a"),
    ] {
        assert_eq!(shown(value), text, "{value}");
    }
    for (value, text) in [
        ("torch.percentFormat(\"%5d\", 1)", "The specifier %5 is not supported"),
        ("torch.percentFormat(\"%d\", 1, 2)", "Too many arguments"),
        ("torch.percentFormat(\"%d%d\", 1)", "Too few arguments"),
        ("torch.slice(\"é\", 1)", "a part of a character that is not ASCII"),
    ] {
        assert!(shown(value).contains(text), "{value}: {}", shown(value));
    }
}

#[test]
fn texts_of_unknown_values_decide_nothing() {
    for value in [
        "torch.eq(str(n), \"3\")",
        "torch.ne(\"3\", torch.percentFormat(\"%d\", n))",
        "torch.eq([str(n)], [\"3\"])",
        "torch.len(str(n))",
        "torch.startswith(str(n), \"3\")",
        "{\"3\": 1}[str(n)]",
        "torch.__contains__([\"3\"], str(n))",
        "torch.eq(str(x), \"3\")",
    ] {
        let said = shown(value);
        assert!(said.contains("the text of a value that is not known"), "{value}: {said}");
    }
}
