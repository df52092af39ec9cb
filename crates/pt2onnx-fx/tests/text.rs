//! Programs as text: what is written is read back, and what cannot be read is an error that says
//! where.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail so")]

use pt2onnx_fx::{ExportedProgram, archive, passes, printer::Printer, text};
use std::path::{Path, PathBuf};

fn archives() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/data", "../../testdata/models", "../../testdata/archives"];
    let files = folders
        .iter()
        .flat_map(|f| std::fs::read_dir(root.join(f)).unwrap())
        .map(|f| f.unwrap().path());
    files.filter(|f| f.extension().is_some_and(|e| e == "pt2")).collect()
}

#[track_caller]
fn assert_reads_back(program: &ExportedProgram, path: &Path) {
    let full = format!("{:#}", text::print(program));
    let read = text::parse_program(&full).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(format!("{:#}", text::print(&read)), full, "{}", path.display());
    let short = text::print(program).to_string();
    let read = text::parse_program(&short).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(text::print(&read).to_string(), short, "{}", path.display());
    // The signature names values that are inputs or outputs: PyTorch's form is the same too.
    assert_eq!(Printer::new(&read).to_string(), Printer::new(program).to_string());
    assert_eq!(read.signature.to_string(), program.signature.to_string());
}

#[test]
fn archives_are_read_back() {
    let mut count = 0;
    for path in archives() {
        let Ok(mut program) = archive::read(&path) else { continue };
        count += 1;
        assert_reads_back(&program, &path);
        if passes::prepare(&mut program).is_ok() {
            assert_reads_back(&program, &path);
        }
    }
    assert!(count > 35, "{count}");
}

#[test]
fn all_that_a_text_may_hold() {
    let program = r#"{s0: VR[2, 100], 2*s0: VR[4, int_oo]}
graph(x: f32[s0, 8], w: f32[8, 4][1, 8] as PARAMETER('fc.weight'), b: i64[] as BUFFER('steps', persistent = False), c: c64[2]@(3) 'cuda:0' as CONSTANT_TENSOR('c'), n: Sym(s0), o: Object('my.Class') as CUSTOM_OBJ('obj'), flag = True, None) {
    aten_op: f32[s0, 8] = aten.add.Tensor(x, x, alpha = 2)
    index: f32[4, 8] = aten.index.Tensor(x, [None, b])
    max_1: (values: f32[s0], `a.b`: i64[s0]) = aten.max.dim(aten_op, -1, False)
    split: [split_0: f32[s0, 4], split_1: f32[s0, 4]] = aten.split.Tensor(aten_op, 4, 1)
    check: () = aten._assert_async.msg(b, 'it\'s \x01 "bad"')
    sub: Sym(s0 - 1) = _operator.sub(n, 1)
    ratio: SymFloat(s0/2) = _operator.truediv(n, 2)
    ge: SymBool(s0 >= 3) = _operator.ge(n, 3)
    view: f32[s0, 2, 4] = aten.view.default(x, [n, 2, Sym(2*s0)])
    odd: f32[2] = my.op.default(1e-05, inf, -inf, nan, (1+2j), 2.5j, [], [[1, 2], []], [1.0, nan], [True], ['a', 'b'], {'k': [x, w], 'l': None}, torch.float8_e4m3fn, torch.strided, torch.channels_last, torch.device('cuda:1'), torch.ops.aten.relu.default, o)
    cond: (cond_0: f32[2],) = higher_order.cond(ge, graph true_graph_0(y: f32[2]) {
        neg: f32[2] = aten.neg.default(y)
        return (neg,)
    }, graph false_graph_0(y: f32[2]) {
        return y
    }, [odd])
    return (b as BUFFER_MUTATION('steps'), values, split_1, cond_0, 3)
}"#;
    let read = text::parse_program(program).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(text::print(&read).to_string(), program);
    assert_eq!(read.state["fc.weight"].shape(), [8, 4]);
    assert_eq!((read.state.len(), read.constants.len()), (1, 2));
    assert_eq!(read.constraints.range("s0").to_string(), "VR[2, 100]");
}

#[test]
fn a_call_alone_is_a_program() {
    for (call, printed) in [
        ("aten.relu(x: f32[s0])", None),
        (
            "aten.index.Tensor(x: f32[s0, 8], [i: i64[4]]) -> f32[4, 8]",
            Some(
                "graph(x: f32[s0, 8], i: i64[4]) {\n    index: f32[4, 8] = aten.index.Tensor(x, [i])\n    return (index,)\n}",
            ),
        ),
        (
            "{s0: VR[2, 9]} aten.max.dim(max: f32[s0, 3], 1) -> (f32[s0], i64[s0])",
            Some(
                "{s0: VR[2, 9]}\ngraph(max: f32[s0, 3]) {\n    max_1: (max_1_0: f32[s0], max_1_1: i64[s0]) = aten.max.dim(max, 1)\n    return (max_1_0, max_1_1)\n}",
            ),
        ),
        (
            "aten.split.Tensor(x: f32[4], 2) -> [f32[2], f32[2]]",
            Some(
                "graph(x: f32[4]) {\n    split: [split_0: f32[2], split_1: f32[2]] = aten.split.Tensor(x, 2)\n    return (split_0, split_1)\n}",
            ),
        ),
        (
            "aten.mul(x: f32[2], x) # squared\n -> f32[2]",
            Some(
                "graph(x: f32[2]) {\n    mul: f32[2] = aten.mul.default(x, x)\n    return (mul,)\n}",
            ),
        ),
        (
            "aten.full.default([n: Sym(s0), 2], 1.5, dtype = torch.float64) -> f64[s0, 2]",
            Some(
                "graph(n: Sym(s0)) {\n    full: f64[s0, 2] = aten.full.default([n, 2], 1.5, dtype = torch.float64)\n    return (full,)\n}",
            ),
        ),
    ] {
        let read = text::parse_call(call);
        assert_eq!(read.ok().map(|p| text::print(&p).to_string()).as_deref(), printed, "{call}");
    }
}

#[test]
fn sizes_of_inputs_are_not_negative() {
    let program = text::parse_call("aten.relu(x: f32[s0, s1 + 2]) -> f32[s0, s1 + 2]").unwrap();
    assert_eq!(program.constraints.range("s0").to_string(), "VR[0, int_oo]");
    assert_eq!(program.constraints.range("s1").to_string(), "VR[-2, int_oo]");
}

#[test]
fn errors_say_where() {
    let graph = "graph(x: f32[2]) {\n    add: f32[2] = ";
    for (text, expected) in [
        ("", "expected `graph`, found the end of the text (line 1, column 1)"),
        ("graph(x)", "expected `:`, found `)` (line 1, column 8)"),
        ("graph(x: f31[2])", "`f31` is no type; element types are f64, f32,"),
        ("graph(x: f32[2 +])", "`2 +`: expected an operand at offset 3"),
        ("graph(x: f32[2, 3][1])", "expected 2 strides (line 1, column 19)"),
        ("graph(x: f32[2], x: f32[2])", "value `x` is defined twice (line 1, column 18)"),
        ("graph(x: f32[s0] as PARAMETER('p'))", "its sizes must be known integers"),
        ("graph(x: f32[2] as WEIGHT('p'))", "an input is no `WEIGHT` (line 1, column 20)"),
        ("graph() {\n  return (y)\n}", "no value `y` is defined before this (line 2, column 11)"),
        ("graph() { return () } x", "expected the end of the text, found `x`"),
        ("graph() { return (99999999999999999999) }", "`99999999999999999999` does not fit"),
        (&format!("{graph}aten.add.Tensor(x, add)"), "no value `add` is defined before this"),
        (&format!("{graph}aten.add.Tensor(x y)"), "expected `,` or `)`, found `y)`"),
        (&format!("{graph}aten.add.Tensor([x, 1])"), "the elements of a list must be of one kind"),
        (&format!("{graph}aten.add.Tensor(torch.float33)"), "`torch.float33` is no element type"),
        (&format!("{graph}aten.f(x)\n    add: f32[2] = aten.f(x)"), "node `add` is defined twice"),
        (&format!("{graph}aten.f({})", "[".repeat(100)), "nested more than 64 levels deep"),
    ] {
        let error = text::parse_program(text).map(|p| text::print(&p).to_string()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{text}: {error}");
    }
    let error = text::parse_call("aten.relu(x) -> f32[2]").unwrap_err().to_string();
    let shown = "input `x` needs a type: `x: f32[2, 3]` (line 1, column 11)\n    aten.relu(x) -> f32[2]\n              ^";
    assert_eq!(error, shown);
}
