//! ATen's operators whose result may be the memory of an argument, and how each looks at it.

use super::strides;
use crate::graph::{Argument, Graph, Name, Node, SymArg, TensorMeta, ValueMeta};
use pt2onnx_symbolic::{Constraints, Expr};

/// How a tensor looks at the memory of another.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum View {
    /// As that one does.
    Same,
    /// The same elements in the same order, under other sizes.
    Shape,
    /// The bytes as another type.
    DType,
    /// Dimension `i` is dimension `p[i]` of the base.
    Permute(Vec<i64>),
    /// The last two dimensions exchanged, conjugated.
    Adjoint,
    /// One index of a dimension, which goes.
    Select { dim: i64, index: Argument },
    /// A range of a dimension, bounds as `aten::slice` has them.
    Slice { dim: i64, start: Argument, end: Argument, step: Argument },
    /// A diagonal of two dimensions, as the last one.
    Diagonal { offset: i64, dim1: i64, dim2: i64 },
    /// Windows along a dimension.
    Unfold { dim: i64, size: i64, step: i64 },
    /// Dimensions of one element repeated.
    Expand,
    /// Of the whole storage, which starts at the base.
    AsStrided { size: Vec<Expr>, stride: Vec<Expr>, offset: Expr },
    /// The real parts.
    Real,
    /// The imaginary parts.
    Imag,
    /// Pairs of real and imaginary parts.
    AsReal,
    /// Complex numbers from such pairs.
    AsComplex,
    /// Conjugated.
    Conj,
    /// Negated.
    Neg,
    /// In a way that is not followed. It may as well be a copy.
    Opaque,
}

/// A result that shares memory with an argument.
pub(super) struct Shared {
    pub(super) result: Name,
    pub(super) of: Name,
    pub(super) view: View,
}

/// The results of `node` that share memory with an argument. A result that is certainly a copy is not among them.
pub(super) fn shared(node: &Node, graph: &Graph, known: &Constraints) -> Vec<Shared> {
    if &*node.target.namespace != "aten" {
        return Vec::new();
    }
    let name = &*node.target.name;
    let results = node.output_names();
    match node.args.first().map(|a| &a.value) {
        Some(Argument::Tensors(sources)) => {
            let view = match name {
                "broadcast_tensors" => View::Expand,
                "meshgrid" => View::Opaque,
                "einsum" if sources.len() == 1 => View::Opaque,
                _ => return Vec::new(),
            };
            let pairs = results.into_iter().zip(sources);
            pairs
                .map(|(result, of)| Shared { result, of: of.clone(), view: view.clone() })
                .collect()
        }
        // `einsum` takes the equation first.
        Some(Argument::String(_)) if name == "einsum" => match node.arg("tensors") {
            Some(Argument::Tensors(sources)) if sources.len() == 1 => {
                let pairs = results.into_iter().zip(sources);
                let opaque = |(result, of): (Name, &Name)| Shared {
                    result,
                    of: of.clone(),
                    view: View::Opaque,
                };
                pairs.map(opaque).collect()
            }
            _ => Vec::new(),
        },
        Some(first) => {
            let Some(of) = first.name() else {
                return Vec::new();
            };
            let views = views(node, of, &results, graph, known).unwrap_or_default();
            let pairs = results.into_iter().zip(views);
            pairs.map(|(result, view)| Shared { result, of: of.clone(), view }).collect()
        }
        None => Vec::new(),
    }
}

/// How each result looks at the first argument; nothing where they are copies.
fn views(
    node: &Node,
    of: &str,
    results: &[Name],
    graph: &Graph,
    known: &Constraints,
) -> Option<Vec<View>> {
    let base = graph.tensor(of)?;
    let rank = i64::try_from(base.sizes.len()).ok()?;
    let out = results.first().and_then(|r| graph.tensor(r));
    let int = |name: &str, default: i64| match node.arg(name) {
        Some(Argument::Int(i) | Argument::SymInt(SymArg::Value(i))) => Some(*i),
        None => Some(default),
        _ => None,
    };
    // Counted from the front.
    let wrap = |dim: i64| if dim < 0 { dim + rank.max(1) } else { dim };
    let dim = |name: &str, default: i64| int(name, default).map(wrap);
    let complex = base.dtype.is_complex();
    let one = |view: View| Some(vec![view]);
    match &*node.target.name {
        "alias" | "detach" | "lift" | "lift_fresh" | "positive" => one(View::Same),
        "contiguous" | "to" | "type_as" | "cpu" | "cuda" | "pin_memory" | "sum_to_size" => {
            let out = out?;
            let same = base.dtype == out.dtype
                && base.device == out.device
                && node.arg("copy") != Some(&Argument::Bool(true))
                && strides::same_layout(base, out, known);
            same.then(|| vec![View::Same])
        }
        "dropout" | "feature_dropout" | "alpha_dropout" | "feature_alpha_dropout" => {
            let off = node.arg("train") == Some(&Argument::Bool(false))
                || matches!(node.arg("p"), Some(Argument::Float(0.0) | Argument::Int(0)));
            off.then(|| vec![View::Same])
        }
        "reshape" | "reshape_as" | "flatten" | "ravel" => {
            match strides::reshapes_in_place(base, &out?.sizes, known) {
                Some(true) => one(View::Shape),
                Some(false) => None,
                None => one(View::Opaque),
            }
        }
        "view" if &*node.target.overload == "dtype" => one(View::DType),
        "view" | "view_as" | "unflatten" | "_unsafe_view" | "_reshape_alias" | "squeeze"
        | "unsqueeze" | "atleast_1d" | "atleast_2d" | "atleast_3d" => one(View::Shape),
        "t" | "numpy_T" | "T" => one(View::Permute((0..rank).rev().collect())),
        "transpose" | "swapaxes" | "swapdims" => {
            let first = ["dim0", "axis0"].iter().find_map(|n| node.arg(n));
            let second = ["dim1", "axis1"].iter().find_map(|n| node.arg(n));
            let (Some(Argument::Int(a)), Some(Argument::Int(b))) = (first, second) else {
                return one(View::Opaque);
            };
            one(swapped(rank, wrap(*a), wrap(*b)))
        }
        "mT" => one(swapped(rank, rank - 2, rank - 1)),
        "mH" | "adjoint" | "matrix_H" if complex => one(View::Adjoint),
        "mH" | "adjoint" | "matrix_H" => one(swapped(rank, rank - 2, rank - 1)),
        "permute" => match node.arg("dims") {
            Some(Argument::Ints(dims)) => {
                one(View::Permute(dims.iter().map(|&d| wrap(d)).collect()))
            }
            // Of a tensor without dimensions.
            _ => one(View::Shape),
        },
        "movedim" | "moveaxis" => {
            let list = |arg: Option<&Argument>| match arg {
                Some(Argument::Int(i)) => Some(vec![wrap(*i)]),
                Some(Argument::Ints(dims)) => Some(dims.iter().map(|&d| wrap(d)).collect()),
                _ => None,
            };
            let (from, to) = (list(node.arg("source"))?, list(node.arg("destination"))?);
            one(moved(rank, &from, &to).unwrap_or(View::Opaque))
        }
        "select" => one(View::Select { dim: dim("dim", 0)?, index: node.arg("index")?.clone() }),
        "slice" => {
            let given = |name: &str, default: Argument| node.arg(name).cloned().unwrap_or(default);
            one(View::Slice {
                dim: dim("dim", 0)?,
                start: given("start", Argument::None),
                end: given("end", Argument::None),
                step: given("step", Argument::Int(1)),
            })
        }
        "narrow" => {
            let dim = dim("dim", 0)?;
            let size = base.sizes.get(usize::try_from(dim).ok()?)?;
            let (Some(start), Some(length)) =
                (expr(node.arg("start")?, graph), expr(node.arg("length")?, graph))
            else {
                return one(View::Opaque);
            };
            let start = match start.as_int() {
                Some(i) if i < 0 => size + i,
                Some(_) => start,
                None if known.prove_ge(&start, &Expr::ZERO) => start,
                None => return one(View::Opaque),
            };
            one(range(dim, &start, &(&start + &length)))
        }
        "split"
        | "split_with_sizes"
        | "chunk"
        | "tensor_split"
        | "unsafe_split"
        | "unsafe_split_with_sizes"
        | "unsafe_chunk" => pieces(dim("dim", 0)?, results, graph),
        "hsplit" => pieces(i64::from(rank > 1), results, graph),
        "vsplit" => pieces(0, results, graph),
        "dsplit" => pieces(2, results, graph),
        "unbind" => {
            let dim = dim("dim", 0)?;
            let index = |i: usize| Some(Argument::Int(i64::try_from(i).ok()?));
            let select = |i| index(i).map(|index| View::Select { dim, index });
            (0..results.len()).map(select).collect()
        }
        "diagonal" | "linalg_diagonal" => {
            let linalg = &*node.target.name == "linalg_diagonal";
            let (dim1, dim2) = if linalg { (-2, -1) } else { (0, 1) };
            one(View::Diagonal {
                offset: int("offset", 0)?,
                dim1: dim("dim1", dim1)?,
                dim2: dim("dim2", dim2)?,
            })
        }
        "unfold" => one(View::Unfold {
            dim: dim("dimension", 0)?,
            size: int("size", 1)?,
            step: int("step", 1)?,
        }),
        "expand" | "expand_as" | "broadcast_to" => one(View::Expand),
        "as_strided" => {
            let list = |name: &str| exprs(node.arg(name)?, graph);
            let offset = match node.arg("storage_offset") {
                None | Some(Argument::None) => Some(base.storage_offset.clone()),
                Some(arg) => expr(arg, graph),
            };
            one(match (list("size"), list("stride"), offset) {
                (Some(size), Some(stride), Some(offset)) => {
                    View::AsStrided { size, stride, offset }
                }
                _ => View::Opaque,
            })
        }
        "real" if complex => one(View::Real),
        "real" | "resolve_conj" | "resolve_neg" => one(View::Same),
        "imag" => one(View::Imag),
        "view_as_real" => one(View::AsReal),
        "view_as_complex" => one(View::AsComplex),
        "conj" | "_conj" if complex => one(View::Conj),
        "conj" | "_conj" => one(View::Same),
        "_neg_view" => one(View::Neg),
        "slice_inverse" | "values" | "indices" | "crow_indices" | "col_indices"
        | "ccol_indices" | "row_indices" => one(View::Opaque),
        _ => None,
    }
}

fn swapped(rank: i64, a: i64, b: i64) -> View {
    let swap = |d| match d {
        d if d == a => b,
        d if d == b => a,
        d => d,
    };
    View::Permute((0..rank).map(swap).collect())
}

fn moved(rank: i64, from: &[i64], to: &[i64]) -> Option<View> {
    let mut order: Vec<Option<i64>> = (0..rank).map(|_| None).collect();
    for (&from, &to) in from.iter().zip(to) {
        *order.get_mut(usize::try_from(to).ok()?)? = Some(from);
    }
    let mut rest = (0..rank).filter(|d| !from.contains(d));
    let order = order.into_iter().map(|d| d.or_else(|| rest.next()));
    Some(View::Permute(order.collect::<Option<_>>()?))
}

/// The results one after the other along `dim`, by their recorded sizes.
fn pieces(dim: i64, results: &[Name], graph: &Graph) -> Option<Vec<View>> {
    let mut start = Expr::ZERO;
    let piece = |result: &Name| {
        let size = graph.tensor(result)?.sizes.get(usize::try_from(dim).ok()?)?;
        let end = &start + size;
        let view = range(dim, &start, &end);
        start = end;
        Some(view)
    };
    results.iter().map(piece).collect()
}

fn range(dim: i64, start: &Expr, end: &Expr) -> View {
    View::Slice { dim, start: size(start), end: size(end), step: Argument::Int(1) }
}

/// A size as an argument.
pub(super) fn size(size: &Expr) -> Argument {
    match size.as_int() {
        Some(i) => Argument::Int(i),
        None => Argument::SymInt(SymArg::Expr(size.clone())),
    }
}

/// Sizes as an argument.
pub(super) fn sizes(sizes: &[Expr]) -> Argument {
    match sizes.iter().map(Expr::as_int).collect::<Option<_>>() {
        Some(known) => Argument::Ints(known),
        None => Argument::SymInts(
            sizes
                .iter()
                .map(|s| match s.as_int() {
                    Some(i) => SymArg::Value(i),
                    None => SymArg::Expr(s.clone()),
                })
                .collect(),
        ),
    }
}

fn sym(arg: &SymArg<i64>, graph: &Graph) -> Option<Expr> {
    match arg {
        SymArg::Value(i) => Some(Expr::int(*i)),
        SymArg::Expr(e) => Some(e.clone()),
        SymArg::Name(name) => match graph.values.get(name)? {
            ValueMeta::SymInt { expr, .. } => Some(expr.clone()),
            _ => None,
        },
    }
}

fn expr(arg: &Argument, graph: &Graph) -> Option<Expr> {
    match arg {
        Argument::Int(i) => Some(Expr::int(*i)),
        Argument::SymInt(arg) => sym(arg, graph),
        _ => None,
    }
}

fn exprs(arg: &Argument, graph: &Graph) -> Option<Vec<Expr>> {
    match arg {
        Argument::Ints(v) => Some(v.iter().map(|&i| Expr::int(i)).collect()),
        Argument::SymInts(v) => v.iter().map(|a| sym(a, graph)).collect(),
        Argument::Tensors(v) if v.is_empty() => Some(Vec::new()),
        _ => None,
    }
}

/// Whether a tensor of such sizes shows an element of its base more than once.
pub(super) fn repeats(base: &TensorMeta, out: &TensorMeta, known: &Constraints) -> bool {
    let new = out.sizes.len().saturating_sub(base.sizes.len());
    let (added, kept) = out.sizes.split_at(new.min(out.sizes.len()));
    let one = |size: &Expr| known.prove_eq(size, &Expr::ONE) == Some(true);
    !added.iter().all(one) || !strides::same(kept, &base.sizes, known)
}
