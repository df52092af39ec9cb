//! ATen's operators whose results share memory with an argument: which part of it they show, and
//! with which strides.

mod layout;

use crate::{
    graph::{Argument, MemoryFormat, Name, Node, SymArg, TensorMeta, ValueMeta, Values},
    strides::{self, Reshape},
};
use pt2onnx_symbolic::{Constraints, Expr};

/// How a tensor views its base. Dimensions are counted from the first one, from 0 on.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum View {
    /// The base itself: the operator returns its argument. A change of the shape of one in place
    /// changes that of the other.
    Itself,
    /// Another tensor with all elements of the base, unchanged.
    Same,
    /// The same elements in the same order, under other sizes.
    Shape,
    /// The same bytes as another element type.
    DType,
    /// Dimension `i` is dimension `p[i]` of the base.
    Permute(Vec<i64>),
    /// The last two dimensions exchanged, conjugated.
    Adjoint,
    /// One index of a dimension, which is removed.
    Select { dim: i64, index: Argument },
    /// A range of a dimension, bounds as `aten::slice` has them.
    Slice { dim: i64, start: Argument, end: Argument, step: Argument },
    /// A diagonal of two dimensions, as the last one. `offset` is 0 for the main one, and positive
    /// for those above it.
    Diagonal { offset: i64, dim1: i64, dim2: i64 },
    /// Windows of `size` along a dimension, whose starts are `step` apart.
    Unfold { dim: i64, size: i64, step: i64 },
    /// Dimensions of one element repeated.
    Expand,
    /// The elements along this dimension, repeated along the others: a result of `meshgrid`.
    Grid { dim: usize },
    /// Elements of the whole storage, by strides in elements, from `offset` on. The base must be
    /// the whole storage.
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
    /// Not known. It may be a copy.
    Unknown,
}

/// A result that shares memory with an argument.
pub struct Alias {
    /// The result.
    pub result: Name,
    /// The argument, its base.
    pub base: Name,
    /// How the result views the base.
    pub view: View,
}

/// The results of a node that share memory with an argument, or may share it.
///
/// `values` has the types of its arguments and results. Strides may be missing there; they decide
/// whether `reshape` and `contiguous` copy.
pub fn aliases(node: &Node, values: &Values, known: &Constraints) -> Vec<Alias> {
    if &*node.target.namespace != "aten" {
        return Vec::new();
    }
    match node.args.first().map(|a| &a.value) {
        Some(Argument::Tensors(sources)) => aliases_of_list(node, sources, values, known),
        // `einsum` takes the equation first.
        Some(Argument::String(_)) if &*node.target.name == "einsum" => match node.arg("tensors") {
            Some(Argument::Tensors(sources)) => aliases_of_list(node, sources, values, known),
            _ => Vec::new(),
        },
        Some(first) => {
            let Some(of) = first.name() else {
                return Vec::new();
            };
            let results = node.output_names();
            let views = tensor(values, of).and_then(|base| {
                let rank = i64::try_from(base.sizes.len()).ok()?;
                views(&Call { node, base, rank, results: &results, values, known })
            });
            let views = views.unwrap_or_default();
            let pairs = results.into_iter().zip(views);
            pairs.map(|(result, view)| Alias { result, base: of.clone(), view }).collect()
        }
        None => Vec::new(),
    }
}

/// The results of an op of a list of tensors that share memory with the tensor at the same place of
/// the list.
fn aliases_of_list(
    node: &Node,
    sources: &[Name],
    values: &Values,
    known: &Constraints,
) -> Vec<Alias> {
    let exchanged = matches!(node.arg("indexing"), Some(Argument::String(s)) if s == "xy");
    let sizes = |name: &Name| tensor(values, name).map(|meta| meta.sizes.as_slice());
    let view = |i: usize, result: &Name, of: &Name| match &*node.target.name {
        "broadcast_tensors" | "atleast_1d" | "atleast_2d" | "atleast_3d"
            if strides::same(sizes(result)?, sizes(of)?, known) =>
        {
            Some(View::Itself)
        }
        "broadcast_tensors" => Some(View::Expand),
        "atleast_1d" | "atleast_2d" | "atleast_3d" => Some(View::Shape),
        "meshgrid" if exchanged && sources.len() > 1 && i < 2 => Some(View::Grid { dim: 1 - i }),
        "meshgrid" => Some(View::Grid { dim: i }),
        "einsum" if sources.len() == 1 => Some(View::Unknown),
        "cartesian_prod" if sources.len() == 1 => Some(View::Same),
        _ => None,
    };
    let pairs = node.output_names().into_iter().zip(sources).enumerate();
    pairs
        .filter_map(|(i, (result, of))| {
            let view = view(i, &result, of)?;
            Some(Alias { result, base: of.clone(), view })
        })
        .collect()
}

/// A node whose results may be views of its first argument.
struct Call<'a> {
    node: &'a Node,
    base: &'a TensorMeta,
    rank: i64,
    results: &'a [Name],
    values: &'a Values,
    known: &'a Constraints,
}

impl Call<'_> {
    /// The type of the first result.
    fn out(&self) -> Option<&TensorMeta> {
        tensor(self.values, self.results.first()?)
    }

    /// An integer argument; `None` if it is not known.
    fn int(&self, name: &str, default: i64) -> Option<i64> {
        self.node.arg(name).map_or(Some(default), Argument::as_int)
    }

    /// A dimension, counted from the front.
    fn wrap(&self, dim: i64) -> i64 {
        if dim < 0 { dim + self.rank.max(1) } else { dim }
    }

    fn dim(&self, name: &str, default: i64) -> Option<i64> {
        self.int(name, default).map(|dim| self.wrap(dim))
    }

    /// The view of an operator that returns its argument itself if there is nothing to do (`to`,
    /// `contiguous`).
    fn itself(&self) -> Option<View> {
        let out = self.out()?;
        let same = self.base.dtype == out.dtype
            && self.base.device == out.device
            && self.node.arg("copy") != Some(&Argument::Bool(true));
        if !same {
            return None;
        }
        if strides::has_strides(self.base) && strides::has_strides(out) {
            return strides::same_layout(self.base, out, self.known).then_some(View::Itself);
        }
        // Strides are unknown; the requested memory format decides whether this copies.
        let order = match self.node.arg("memory_format") {
            Some(&Argument::MemoryFormat(order)) => order,
            _ if &*self.node.target.name == "contiguous" => MemoryFormat::Contiguous,
            _ => MemoryFormat::Preserve,
        };
        let ordered = match order {
            MemoryFormat::Preserve => Some(true),
            MemoryFormat::Contiguous => strides::is_contiguous(self.base, self.known),
            _ => None,
        };
        ordered.map_or(Some(View::Unknown), |ordered| ordered.then_some(View::Itself))
    }

    /// `sum_to_size`, which adds nothing up where the sizes are those of its argument.
    fn summed(&self) -> Option<View> {
        strides::same(&self.base.sizes, &self.out()?.sizes, self.known).then_some(View::Itself)
    }

    /// An operator that returns its argument if that has as many dimensions as the result.
    fn ranked(&self) -> Option<View> {
        let same = self.base.sizes.len() == self.out()?.sizes.len();
        Some(if same { View::Itself } else { View::Shape })
    }

    /// `flatten`: the argument where it joins one dimension with itself, `reshape` where it joins
    /// more.
    fn flattened(&self) -> Option<View> {
        let ends = self.dim("start_dim", 0).zip(self.dim("end_dim", -1));
        let one = self.rank > 0 && ends.is_some_and(|(start, end)| start == end);
        if one { Some(View::Itself) } else { self.reshaped() }
    }

    fn reshaped(&self) -> Option<View> {
        match strides::reshape(self.base, &self.out()?.sizes, self.known) {
            Reshape::View(_) => Some(View::Shape),
            Reshape::Copy => None,
            Reshape::Unknown => Some(View::Unknown),
        }
    }

    /// `transpose`, under any of its names.
    fn transposed(&self) -> View {
        let dim = |names: [&str; 2]| {
            let name = names.into_iter().find(|name| self.node.arg(name).is_some())?;
            self.dim(name, 0)
        };
        match (dim(["dim0", "axis0"]), dim(["dim1", "axis1"])) {
            (Some(a), Some(b)) => swapped(self.rank, a, b),
            _ => View::Unknown,
        }
    }

    fn permuted(&self) -> View {
        match self.node.arg("dims") {
            Some(Argument::Ints(dims)) => {
                View::Permute(dims.iter().map(|&d| self.wrap(d)).collect())
            }
            // The argument has no dimensions.
            _ => View::Shape,
        }
    }

    fn moved(&self) -> Option<View> {
        let list = |name: &str| match self.node.arg(name)? {
            Argument::Ints(dims) => Some(dims.iter().map(|&d| self.wrap(d)).collect()),
            _ => Some(vec![self.dim(name, 0)?]),
        };
        let (from, to): (Vec<i64>, Vec<i64>) = (list("source")?, list("destination")?);
        moved(self.rank, &from, &to)
    }

    fn selected(&self) -> Option<View> {
        Some(View::Select { dim: self.dim("dim", 0)?, index: self.node.arg("index")?.clone() })
    }

    fn unfolded(&self) -> Option<View> {
        Some(View::Unfold {
            dim: self.dim("dimension", 0)?,
            size: self.int("size", 1)?,
            step: self.int("step", 1)?,
        })
    }

    fn sliced(&self) -> Option<View> {
        let given = |name: &str, default: Argument| self.node.arg(name).cloned().unwrap_or(default);
        Some(View::Slice {
            dim: self.dim("dim", 0)?,
            start: given("start", Argument::None),
            end: given("end", Argument::None),
            step: given("step", Argument::Int(1)),
        })
    }

    fn narrowed(&self) -> Option<View> {
        let dim = self.dim("dim", 0)?;
        let size = self.base.sizes.get(usize::try_from(dim).ok()?)?;
        let (start, length) = (self.node.arg("start")?, self.node.arg("length")?);
        let (Some(start), Some(length)) = (expr(start, self.values), expr(length, self.values))
        else {
            return Some(View::Unknown);
        };
        let start = match start.as_int() {
            Some(i) if i < 0 => size + i,
            Some(_) => start,
            None if self.known.prove_ge(&start, &Expr::ZERO) => start,
            None => return Some(View::Unknown),
        };
        Some(range(dim, &start, &(&start + &length)))
    }

    /// The results of `unbind`.
    fn unbound(&self) -> Option<Vec<View>> {
        let dim = self.dim("dim", 0)?;
        let index = |i: usize| Some(Argument::Int(i64::try_from(i).ok()?));
        let select = |i| index(i).map(|index| View::Select { dim, index });
        (0..self.results.len()).map(select).collect()
    }

    fn diagonal(&self, dim1: i64, dim2: i64) -> Option<View> {
        Some(View::Diagonal {
            offset: self.int("offset", 0)?,
            dim1: self.dim("dim1", dim1)?,
            dim2: self.dim("dim2", dim2)?,
        })
    }

    fn strided(&self) -> View {
        let list = |name: &str| exprs(self.node.arg(name)?, self.values);
        let offset = match self.node.arg("storage_offset") {
            None | Some(Argument::None) => Some(self.base.storage_offset.clone()),
            Some(arg) => expr(arg, self.values),
        };
        match (list("size"), list("stride"), offset) {
            (Some(size), Some(stride), Some(offset)) => View::AsStrided { size, stride, offset },
            _ => View::Unknown,
        }
    }
}

/// How each result views the first argument; `None` if they are copies.
fn views(call: &Call) -> Option<Vec<View>> {
    let (node, rank, results, values) = (call.node, call.rank, call.results, call.values);
    let complex = call.base.dtype.is_complex();
    // A view of unknown dimensions is not a copy.
    let known = |view: Option<View>| view.unwrap_or(View::Unknown);
    let all = |views: Option<Vec<View>>| {
        Some(views.unwrap_or_else(|| vec![View::Unknown; results.len()]))
    };
    let view = match &*node.target.name {
        "alias" | "detach" => View::Same,
        "lift" | "lift_fresh" | "positive" => View::Itself,
        "as_tensor" | "contiguous" | "cpu" | "cuda" | "pin_memory" | "to" | "type_as" => {
            call.itself()?
        }
        "sum_to_size" => call.summed()?,
        "dropout" | "feature_dropout" | "alpha_dropout" | "feature_alpha_dropout" => {
            let off = node.arg("train") == Some(&Argument::Bool(false))
                || matches!(node.arg("p"), Some(Argument::Float(0.0) | Argument::Int(0)));
            off.then_some(View::Itself)?
        }
        "reshape" | "reshape_as" | "ravel" => call.reshaped()?,
        "flatten" => call.flattened()?,
        "view" if &*node.target.overload == "dtype" => View::DType,
        "view" | "view_as" | "unflatten" | "_unsafe_view" | "_reshape_alias" | "squeeze"
        | "unsqueeze" => View::Shape,
        "atleast_1d" | "atleast_2d" | "atleast_3d" => call.ranked()?,
        "t" | "numpy_T" | "T" => View::Permute((0..rank).rev().collect()),
        "transpose" | "swapaxes" | "swapdims" => call.transposed(),
        "mT" => swapped(rank, rank - 2, rank - 1),
        "mH" | "adjoint" | "matrix_H" if complex => View::Adjoint,
        "mH" | "adjoint" | "matrix_H" => swapped(rank, rank - 2, rank - 1),
        "permute" => call.permuted(),
        "movedim" | "moveaxis" => known(call.moved()),
        "select" => known(call.selected()),
        "slice" => known(call.sliced()),
        "narrow" => known(call.narrowed()),
        "split"
        | "split_with_sizes"
        | "chunk"
        | "tensor_split"
        | "unsafe_split"
        | "unsafe_split_with_sizes"
        | "unsafe_chunk" => {
            return all(call.dim("dim", 0).and_then(|dim| pieces(dim, results, values)));
        }
        "hsplit" => return all(pieces(i64::from(rank > 1), results, values)),
        "vsplit" => return all(pieces(0, results, values)),
        "dsplit" => return all(pieces(2, results, values)),
        "unbind" => return all(call.unbound()),
        "diagonal" => known(call.diagonal(0, 1)),
        "linalg_diagonal" => known(call.diagonal(-2, -1)),
        "unfold" => known(call.unfolded()),
        "expand" | "expand_as" | "broadcast_to" => View::Expand,
        "as_strided" => call.strided(),
        "real" if complex => View::Real,
        "real" | "resolve_conj" | "resolve_neg" => View::Itself,
        "imag" => View::Imag,
        "view_as_real" => View::AsReal,
        "view_as_complex" => View::AsComplex,
        "conj" | "_conj" if complex => View::Conj,
        "conj_physical" if complex => return None,
        "conj" | "_conj" | "conj_physical" => View::Itself,
        "_neg_view" => View::Neg,
        _ if pt2onnx_schemas::returns_alias(node.target.schema_name()) => View::Unknown,
        _ => return None,
    };
    Some(vec![view])
}

fn tensor<'v>(values: &'v Values, name: &Name) -> Option<&'v TensorMeta> {
    values.get(name)?.tensor()
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
fn pieces(dim: i64, results: &[Name], values: &Values) -> Option<Vec<View>> {
    let mut start = Expr::ZERO;
    let piece = |result: &Name| {
        let size = tensor(values, result)?.sizes.get(usize::try_from(dim).ok()?)?;
        let end = &start + size;
        let view = range(dim, &start, &end);
        start = end;
        Some(view)
    };
    results.iter().map(piece).collect()
}

fn range(dim: i64, start: &Expr, end: &Expr) -> View {
    View::Slice {
        dim,
        start: Argument::size(start),
        end: Argument::size(end),
        step: Argument::Int(1),
    }
}

fn sym(arg: &SymArg<i64>, values: &Values) -> Option<Expr> {
    match arg {
        SymArg::Value(i) => Some(Expr::int(*i)),
        SymArg::Expr(e) => Some(e.clone()),
        SymArg::Name(name) => match values.get(name)? {
            ValueMeta::SymInt { expr, .. } => Some(expr.clone()),
            _ => None,
        },
    }
}

fn expr(arg: &Argument, values: &Values) -> Option<Expr> {
    match arg {
        Argument::Int(i) => Some(Expr::int(*i)),
        Argument::SymInt(arg) => sym(arg, values),
        _ => None,
    }
}

fn exprs(arg: &Argument, values: &Values) -> Option<Vec<Expr>> {
    match arg {
        Argument::Ints(v) => Some(v.iter().map(|&i| Expr::int(i)).collect()),
        Argument::SymInts(v) => v.iter().map(|a| sym(a, values)).collect(),
        Argument::Tensors(v) if v.is_empty() => Some(Vec::new()),
        _ => None,
    }
}
