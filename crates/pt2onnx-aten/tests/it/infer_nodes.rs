//! Types and elements of results, asked for one after the other as an interpreter does.

use pt2onnx_aten::{
    Registry,
    infer::{Contents, Facts, Outcome},
};
use pt2onnx_fx::{
    graph::{Argument, Node, ValueMeta, Values},
    text,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;

/// The inferred results of the nodes of a program, a line for each. The types of results in the
/// text are ignored.
fn told(program: &str) -> String {
    told_by(program, DType::F32)
}

/// The same where PyTorch's default type is another one.
fn told_by(program: &str, default_dtype: DType) -> String {
    let program = text::parse_program(program).unwrap();
    let registry = Registry::default();
    let (mut values, mut contents, mut symbols) = (Values::default(), FxHashMap::default(), 0);
    for name in program.graph.inputs.iter().filter_map(Argument::name) {
        values.insert(name.clone(), program.graph.values[name].clone());
    }
    let mut lines = Vec::new();
    for node in &program.graph.nodes {
        let facts = Facts {
            values: &values,
            contents: &contents,
            constraints: &program.constraints,
            default_dtype,
        };
        let mut symbol = |float: bool| {
            symbols += 1;
            Expr::symbol(&format!("{}{symbols}", if float { "zuf" } else { "u" }))
        };
        let asked = Node { outputs: Vec::new(), ..Node::clone(node) };
        let results = match registry.infer(&asked, &facts, &mut symbol) {
            Ok(results) => results,
            Err(error) => {
                lines.push(format!("{}: error: {error}", node.name));
                continue;
            }
        };
        let each = results.into_iter().flat_map(|result| match result {
            Outcome::One(one) => vec![Some(one)],
            Outcome::List(list) => list.into_iter().map(Some).collect(),
            Outcome::None => vec![None],
        });
        for (name, result) in node.output_names().into_iter().zip(each) {
            let Some(result) = result else {
                lines.push(format!("{name}: none"));
                continue;
            };
            let known = result.contents.as_ref().map(|contents| match contents {
                Contents::Exprs(elements) => format!(" = {}", list(elements)),
                Contents::Exact(tensor) => format!(" = {tensor:?}"),
            });
            lines.push(format!("{name}: {}{}", show(&result.meta), known.unwrap_or_default()));
            contents.extend(result.contents.map(|c| (name.clone(), c)));
            values.insert(name, result.meta);
        }
    }
    lines.join("\n")
}

/// The recorded types of the results.
fn recorded(program: &str) -> String {
    let graph = text::parse_program(program).unwrap().graph;
    let names = graph.nodes.iter().flat_map(|node| node.output_names());
    let lines = names.map(|name| format!("{name}: {}", show(&graph.values[&name])));
    lines.collect::<Vec<_>>().join("\n")
}

fn list(exprs: &[Expr]) -> String {
    let texts: Vec<String> = exprs.iter().map(ToString::to_string).collect();
    format!("[{}]", texts.join(", "))
}

fn show(meta: &ValueMeta) -> String {
    match meta {
        ValueMeta::Tensor(t) => format!("{}{}", t.dtype.name(), list(&t.sizes)),
        ValueMeta::SymInt { expr, .. }
        | ValueMeta::SymFloat { expr, .. }
        | ValueMeta::SymBool { expr, .. } => expr.to_string(),
        ValueMeta::CustomObj { class } => class.to_string(),
    }
}

#[test]
fn elements_that_are_sizes_are_known() {
    let program = "graph(x: f32[s0, 8]) {
        shape: i64[] = aten._shape_as_tensor.default(x)
        rows: i64[] = aten.scalar_tensor.default(Sym(2*s0), dtype = torch.int64)
        item: Sym(u9) = aten.item.default(rows)
        twice: i64[] = aten.repeat_interleave.self_Tensor(x, rows, 1)
        parts: [a: f32[], b: f32[]] = aten.tensor_split.tensor_indices_or_sections(x, shape, 1)
        three: i64[] = aten.scalar_tensor.default(3, dtype = torch.int64)
        number: i64[] = aten.tensor.int(4)
        sum: i64[] = aten.sum.default(x)
        value: Sym(u9) = aten.item.default(sum)
        return (value,)
    }";
    insta::assert_snapshot!(told(program), @"
    shape: int64[2] = [s0, 8]
    rows: int64[] = [2*s0]
    item: 2*s0
    twice: float32[s0, 16*s0]
    a: float32[s0, Min(8, s0)]
    b: float32[s0, 8 - Min(8, s0)]
    three: int64[] = [3]
    number: int64[] = [4]
    sum: float32[]
    value: zuf1
    ");
}

#[test]
fn types_need_no_records() {
    let program = "{s0: VR[4, 100]}
    graph(x: f32[s0, 8], y: f32[1, 2, s0], i: i64[3], c: c64[2]) {
        relu: i64[] = aten.relu.default(x)
        mean: i64[] = aten.mean.dim(x, [-1], True)
        view: i64[] = aten.view.default(x, [-1, 4])
        part: i64[] = aten.slice.Tensor(x, 0, 1, -1)
        a: (b: i64[], d: i64[]) = aten.topk.default(x, 2)
        parts: [e: i64[], f: i64[], g: i64[]] = aten.chunk.default(x, 3, 1)
        picked: i64[] = aten.index.Tensor(x, [None, i])
        places: i64[] = aten.nonzero.default(x)
        norm: i64[] = aten.abs.default(c)
        turned: i64[] = aten.mul.Tensor(c, 2)
        steps: i64[] = aten.arange.start_step(0, Sym(s0), 2)
        doubled: i64[] = aten.add_.Tensor(i, 1.5)
        squeezed: i64[] = aten.upsample_linear1d.vec(y, None, False, [1.3])
        chosen: i64[] = aten.combinations.default(steps)
        pooled: i64[] = aten.max_pool1d.default(y, [2], [3], [1], [1], True)
        return (relu,)
    }";
    insta::assert_snapshot!(told(program), @"
    relu: float32[s0, 8]
    mean: float32[s0, 1]
    view: float32[2*s0, 4]
    part: float32[s0 - 2, 8]
    b: float32[s0, 2]
    d: int64[s0, 2]
    e: float32[s0, 3]
    f: float32[s0, 3]
    g: float32[s0, 2]
    picked: float32[s0, 3]
    places: int64[u1, 2]
    norm: float32[2]
    turned: complex64[2]
    steps: int64[((s0 + 1)//2)]
    doubled: int64[3]
    squeezed: float32[1, 2, TruncToInt(1.3*ToFloat(s0))]
    chosen: int64[(((((s0 + 1)//2))**2 - (((s0 + 1)//2)))//2), 2]
    pooled: float32[1, 2, ((s0//3)) + 1]
    ");
}

#[test]
fn what_is_not_known_is_an_error() {
    let program = "graph(x: f32[s0, 8], z: f32[0]) {
        parts: [a: f32[], b: f32[]] = aten.split.Tensor(x, 2)
        out: f32[] = aten.add.out(x, x, out = z)
        missing: f32[] = mylib.missing.default(x)
        return (x,)
    }";
    insta::assert_snapshot!(told(program), @"
    parts: error: the number of its parts is not known
    out: error: its output becomes larger
    missing: error: no translation is registered for mylib.missing.default
    ");
}

#[test]
fn floats_have_the_default_type() {
    let program = "graph(x: i64[s0, 8]) {
        a: f32[s0, 8] = aten.div.Tensor(x, x)
        b: f32[s0, 8] = aten.add.Tensor(x, 0.5)
        c: f32[s0, 8] = aten.sin.default(x)
        d: f32[3] = aten.zeros.default([3])
        e: f32[4] = aten.linspace.default(0, 1, 4)
        f: f32[] = aten.scalar_tensor.default(2)
        g: i64[3] = aten.arange.default(3)
        return (a, b, c, d, e, f, g)
    }";
    insta::assert_snapshot!(told_by(program, DType::F64), @"
    a: float64[s0, 8]
    b: float64[s0, 8]
    c: float64[s0, 8]
    d: float64[3]
    e: float64[4]
    f: float64[]
    g: int64[3]
    ");
}

/// A last size of 2 does not make a real result complex.
#[test]
fn real_results_of_complex_matrices() {
    let program = "graph(x: c64[2, 2, 2], y: c64[s0, 2], w: f32[2], rows: f32[s0, 3]) {
        factor: (l: c64[2, 2, 2], info: i32[2]) = aten.linalg_cholesky_ex.default(x)
        cond: f32[2] = aten.linalg_cond.default(x)
        eigen: (values: f32[2, 2], vectors: c64[2, 2, 2]) = aten.linalg_eigh.default(x)
        svd: (u: c64[s0, Min(2, s0)], s: f32[Min(2, s0)], v: c64[Min(2, s0), 2]) = aten.linalg_svd.default(y, False)
        root: c64[2, 2, 2] = aten.linalg_matrix_sqrth.default(x)
        solved: (solution: c64[2, 2, 2], done: i32[2]) = aten.linalg_solve_ex.default(x, x)
        mixed: c64[s0, 2] = aten.lerp.Tensor(y, y, w)
        loss: f32[s0, 2] = aten.l1_loss.default(y, y, 0)
        distances: f32[(s0*(s0 - 1))//2] = aten.pdist.default(rows)
        return (l, info, cond, values, vectors, u, s, v, root, solution, done, mixed, loss, distances)
    }";
    assert_eq!(told(program), recorded(program));
}

/// Rows without a meta function get their types from the lowering, also where the last size is 2,
/// as that of real/imaginary pairs.
#[test]
fn results_of_complex_tensors_whose_last_size_is_2() {
    let program = "graph(x: c64[s0, 2], i: i64[2], m: b8[2]) {
        re: f32[s0, 2] = aten.real.default(x)
        im: f32[s0, 2] = aten.imag.default(x)
        same: c64[s0, 2] = aten.detach.default(x)
        back: c64[s0, 2] = aten.alias.default(x)
        turned: c64[2, s0] = aten.transpose.int(x, 0, 1)
        swapped: c64[2, s0] = aten.permute.default(x, [1, 0])
        wide: c64[s0, 2, 1] = aten.unsqueeze.default(x, 2)
        row: c64[2] = aten.select.int(x, 0, 1)
        flipped: c64[s0, 2] = aten.flip.default(x, [0])
        lower: c64[s0, 2] = aten.tril.default(x)
        masked: c64[s0, 2] = aten.masked_fill.Scalar(x, m, 0)
        chosen: c64[s0, 2] = aten.where.self(m, x, x)
        return (re, im, same, back, turned, swapped, wide, row, flipped, lower, masked, chosen)
    }";
    assert_eq!(told(program), recorded(program));
}
