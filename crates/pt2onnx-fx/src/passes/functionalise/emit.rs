//! Makes nodes that repeat a view of a changed base, and nodes that put the new value of a view
//! back into its base.

use crate::{
    error::PassProblem,
    graph::{ArgKind, Argument, Graph, Name, NamedArg, Node, NodeMeta, OpName, TensorMeta},
    passes::names::Taken,
    strides,
    views::View,
};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Adds nodes to a graph.
pub(super) struct Emitter<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) known: &'a Constraints,
    /// The new nodes of the graph, in order.
    pub(super) nodes: Vec<Node>,
    pub(super) taken: Taken,
    /// Names of the nodes that the pass has added.
    made: FxHashSet<Name>,
}

/// Named arguments. A `*` before the name makes a keyword argument.
pub(super) fn arguments<'a>(args: impl IntoIterator<Item = (&'a str, Argument)>) -> Vec<NamedArg> {
    let arg = |(name, value): (&str, Argument)| {
        let keyword = name.strip_prefix('*');
        NamedArg {
            name: keyword.unwrap_or(name).into(),
            kind: match keyword {
                Some(_) => ArgKind::Keyword,
                None => ArgKind::Positional,
            },
            value,
        }
    };
    args.into_iter().map(arg).collect()
}

fn tensor(name: &Name) -> Argument {
    Argument::Tensor(name.clone())
}

impl<'a> Emitter<'a> {
    pub(super) fn new(graph: &'a mut Graph, known: &'a Constraints) -> Self {
        let taken = Taken::by(graph);
        Self { graph, known, nodes: Vec::new(), taken, made: FxHashSet::default() }
    }

    /// Adds a node with a result of each of these types. Returns the names of the results, which
    /// are made from that of the operator.
    pub(super) fn node<'n>(
        &mut self,
        (name, overload): (&str, &str),
        args: impl IntoIterator<Item = (&'n str, Argument)>,
        results: Vec<TensorMeta>,
        from: &Arc<NodeMeta>,
    ) -> Vec<Name> {
        let several = results.len() > 1;
        let results: Vec<Name> = results.into_iter().map(|meta| self.value(name, meta)).collect();
        let node_name = match results.as_slice() {
            [only] => only.clone(),
            _ => self.taken.unique(&name.into()),
        };
        self.made.insert(node_name.clone());
        self.nodes.push(Node {
            name: node_name,
            target: OpName::new("aten", name, overload),
            args: arguments(args),
            outputs: results.iter().map(tensor).collect(),
            single_return: several.then_some(false),
            meta: from.clone(),
        });
        results
    }

    /// Adds a node with one result. Returns its name.
    pub(super) fn op<'n>(
        &mut self,
        op: (&str, &str),
        args: impl IntoIterator<Item = (&'n str, Argument)>,
        result: TensorMeta,
        from: &Arc<NodeMeta>,
    ) -> Name {
        let mut names = self.node(op, args, vec![result], from);
        names.pop().unwrap_or_default()
    }

    /// A tensor of type `meta` with the elements of `x` in the same order.
    fn reshape(&mut self, x: &Name, meta: TensorMeta, from: &Arc<NodeMeta>) -> Name {
        let args = [("self", tensor(x)), ("shape", Argument::sizes(&meta.sizes))];
        self.op(("reshape", "default"), args, meta, from)
    }

    /// A tensor of type `meta` with the bytes of `x`.
    fn view_as(&mut self, x: &Name, meta: TensorMeta, from: &Arc<NodeMeta>) -> Name {
        let args = [("self", tensor(x)), ("dtype", Argument::DType(meta.dtype))];
        self.op(("view", "dtype"), args, meta, from)
    }

    /// Takes a view of `base`. `like` is an earlier value of the view, and gives its type.
    pub(super) fn regenerate_view(
        &mut self,
        view: &View,
        base: &Name,
        like: &Name,
        from: &Arc<NodeMeta>,
    ) -> Result<Name, PassProblem> {
        let meta = self.meta(like)?;
        self.view_of(view, base, meta, from)?.ok_or_else(|| unknown(base, like))
    }

    /// Takes a view of `base`, of this type. `None` if the view is not known.
    pub(super) fn view_of(
        &mut self,
        view: &View,
        base: &Name,
        mut meta: TensorMeta,
        from: &Arc<NodeMeta>,
    ) -> Result<Option<Name>, PassProblem> {
        // The base may be the indices of its elements.
        if view.is_of_elements() {
            meta.dtype = self.meta(base)?.dtype;
        }
        let x = ("self", tensor(base));
        let name = match view {
            View::Itself | View::Same => base.clone(),
            View::Shape => self.reshape(base, meta, from),
            View::DType => self.view_as(base, meta, from),
            View::Permute(dims) => {
                let dims = ("dims", Argument::Ints(dims.clone()));
                self.op(("permute", "default"), [x, dims], meta, from)
            }
            View::Adjoint => self.op(("adjoint", "default"), [x], meta, from),
            View::Select { .. } => self.op(("select", "int"), with([x], view), meta, from),
            View::Slice { .. } => self.op(("slice", "Tensor"), with([x], view), meta, from),
            View::Diagonal { .. } => self.op(("diagonal", "default"), with([x], view), meta, from),
            View::Unfold { .. } => self.op(("unfold", "default"), with([x], view), meta, from),
            View::Expand => {
                let to = ("size", Argument::sizes(&meta.sizes));
                self.op(("expand", "default"), [x, to], meta, from)
            }
            View::Grid { dim } => {
                let mut line = meta.clone();
                let across = line.sizes.iter_mut().enumerate().filter(|(i, _)| i != dim);
                across.for_each(|(_, size)| *size = Expr::ONE);
                line.strides = strides::contiguous(&line.sizes);
                let line = self.reshape(base, line, from);
                let args = [("self", tensor(&line)), ("size", Argument::sizes(&meta.sizes))];
                self.op(("expand", "default"), args, meta, from)
            }
            View::AsStrided { .. } => {
                self.op(("as_strided", "default"), with([x], view), meta, from)
            }
            View::Real => self.op(("real", "default"), [x], meta, from),
            View::Imag => self.op(("imag", "default"), [x], meta, from),
            View::AsReal => self.op(("view_as_real", "default"), [x], meta, from),
            View::AsComplex => self.op(("view_as_complex", "default"), [x], meta, from),
            View::Conj => self.op(("_conj", "default"), [x], meta, from),
            View::Neg => self.op(("neg", "default"), [x], meta, from),
            View::Unknown => return Ok(None),
        };
        Ok(Some(name))
    }

    /// Replaces the part of `base` that a view shows by `new`. `like` is an earlier value of the
    /// view, and gives its type. A view may show elements more than once if the write `fills` all
    /// with the same number. Returns the new base.
    pub(super) fn scatter_back(
        &mut self,
        (view, like): (&View, &Name),
        base: &Name,
        new: &Name,
        from: &Arc<NodeMeta>,
        fills: bool,
    ) -> Result<Name, PassProblem> {
        let meta = self.meta(base)?;
        let (x, src) = (("self", tensor(base)), ("src", tensor(new)));
        let only = ("self", tensor(new));
        if view.overlaps(&meta, &self.meta(like)?, self.known) {
            return if fills && view.is_of_elements() {
                self.scatter_by_index(&[(view, like)], base, new, from)
            } else {
                Err(PassProblem::Overlap { view: like.clone() })
            };
        }
        let name = match view {
            View::Itself | View::Same => new.clone(),
            View::Shape => self.reshape(new, meta, from),
            View::DType => self.view_as(new, meta, from),
            View::Permute(dims) => {
                let back = ("dims", Argument::Ints(inverse(dims)));
                self.op(("permute", "default"), [only, back], meta, from)
            }
            View::Adjoint => self.op(("adjoint", "default"), [only], meta, from),
            View::Select { .. } => {
                self.op(("select_scatter", "default"), with([x, src], view), meta, from)
            }
            View::Slice { .. } => {
                self.op(("slice_scatter", "default"), with([x, src], view), meta, from)
            }
            View::Diagonal { .. } => {
                self.op(("diagonal_scatter", "default"), with([x, src], view), meta, from)
            }
            View::Unfold { .. } => self.scatter_by_index(&[(view, like)], base, new, from)?,
            View::Expand | View::Grid { .. } => self.reshape(new, meta, from),
            View::AsStrided { .. } => {
                self.op(("as_strided_scatter", "default"), with([x, src], view), meta, from)
            }
            View::Real => {
                let part = self.op(("imag", "default"), [x], self.meta(new)?, from);
                let args = [("real", tensor(new)), ("imag", tensor(&part))];
                self.op(("complex", "default"), args, meta, from)
            }
            View::Imag => {
                let part = self.op(("real", "default"), [x], self.meta(new)?, from);
                let args = [("real", tensor(&part)), ("imag", tensor(new))];
                self.op(("complex", "default"), args, meta, from)
            }
            View::AsReal => self.op(("view_as_complex", "default"), [only], meta, from),
            View::AsComplex => self.op(("view_as_real", "default"), [only], meta, from),
            View::Conj => self.op(("_conj", "default"), [only], meta, from),
            View::Neg => self.op(("neg", "default"), [only], meta, from),
            View::Unknown => return Err(unknown(base, like)),
        };
        Ok(name)
    }

    /// As [`Emitter::scatter_back`], for a chain of views that begins with one of `base`: the same
    /// views of the indices of the base's elements give the position of each element.
    fn scatter_by_index(
        &mut self,
        views: &[(&View, &Name)],
        base: &Name,
        new: &Name,
        from: &Arc<NodeMeta>,
    ) -> Result<Name, PassProblem> {
        let (meta, shown) = (self.meta(base)?, self.meta(new)?);
        let of = |sizes: &[Expr], dtype: DType| TensorMeta {
            dtype,
            strides: strides::contiguous(sizes),
            sizes: sizes.to_vec(),
            storage_offset: Expr::ZERO,
            ..meta.clone()
        };
        let total = [Expr::product(meta.sizes.iter().cloned())];
        let seen = [Expr::product(shown.sizes.iter().cloned())];
        let flat = || ("shape", Argument::Ints(vec![-1]));
        let args = [("end", Argument::size(&total[0])), ("*dtype", Argument::DType(DType::I64))];
        let numbers = self.op(("arange", "default"), args, of(&total, DType::I64), from);
        let numbers = self.reshape(&numbers, of(&meta.sizes, DType::I64), from);
        let mut places = numbers;
        for (view, like) in views {
            places = self.regenerate_view(view, &places, like, from)?;
        }
        let mut flatten = |x: &Name, sizes: &[Expr], dtype| {
            let args = [("self", tensor(x)), flat()];
            self.op(("reshape", "default"), args, of(sizes, dtype), from)
        };
        let places = flatten(&places, &seen, DType::I64);
        let (into, values) = (flatten(base, &total, meta.dtype), flatten(new, &seen, meta.dtype));
        let args = [
            ("self", tensor(&into)),
            ("indices", Argument::OptionalTensors(vec![Some(places)])),
            ("values", tensor(&values)),
        ];
        let result = self.op(("index_put", "default"), args, of(&total, meta.dtype), from);
        Ok(self.reshape(&result, meta, from))
    }

    /// As [`Emitter::scatter_back`], where a view between `base` and the last of `views` shows
    /// elements more than once.
    pub(super) fn scatter_back_through(
        &mut self,
        views: &[(&View, &Name)],
        base: &Name,
        new: &Name,
        from: &Arc<NodeMeta>,
        fills: bool,
    ) -> Result<Name, PassProblem> {
        if let Some((_, like)) = views.last() {
            let shown = self.meta(like)?;
            let apart = fills || strides::no_overlap(&shown.sizes, &shown.strides);
            if !apart || !views.iter().all(|(view, _)| view.is_of_elements()) {
                return Err(PassProblem::Overlap { view: (*like).clone() });
            }
        }
        self.scatter_by_index(views, base, new, from)
    }

    /// Whether a view may show an element of its base more than once. Both are given by their first
    /// values.
    pub(super) fn overlaps(&self, view: &View, base: &Name, shown: &Name) -> bool {
        let metas = self.graph.tensor(base).zip(self.graph.tensor(shown));
        metas.is_some_and(|(base, shown)| view.overlaps(base, shown, self.known))
    }

    /// A new value of this type.
    pub(super) fn value(&mut self, hint: &str, meta: TensorMeta) -> Name {
        let name = self.taken.unique(&hint.into());
        self.graph.values_mut().insert(name.clone(), meta.into());
        name
    }

    /// The type, sizes and layout of a tensor.
    pub(super) fn meta(&self, name: &Name) -> Result<TensorMeta, PassProblem> {
        let meta = self.graph.tensor(name).cloned();
        meta.ok_or_else(|| PassProblem::NoMeta { name: name.clone() })
    }

    /// Gives the graph its nodes, without added ones whose results are neither read nor `wanted`.
    pub(super) fn finish<'n>(self, wanted: impl Iterator<Item = &'n Name>) {
        let mut used: FxHashSet<Name> = wanted.cloned().collect();
        let outputs = &self.graph.outputs;
        outputs.iter().for_each(|o| {
            o.for_each_name(&mut |n| {
                used.insert(n.clone());
            });
        });
        let mut nodes = self.nodes;
        let mut kept: Vec<Arc<Node>> = Vec::with_capacity(nodes.len());
        while let Some(node) = nodes.pop() {
            let results = node.output_names();
            if self.made.contains(&node.name) && !results.iter().any(|r| used.contains(r)) {
                for result in results {
                    self.graph.values_mut().swap_remove(&result);
                }
                continue;
            }
            used.extend(node.input_names());
            kept.push(node.into());
        }
        kept.reverse();
        self.graph.nodes = kept;
    }
}

/// The error that it is not known how `view` shares memory with `base`.
fn unknown(base: &Name, view: &Name) -> PassProblem {
    PassProblem::WriteThroughView { base: base.clone(), view: view.clone() }
}

/// The arguments of an operator that takes a view or puts it back: the tensors, and then the
/// parameters of the view.
fn with<const N: usize>(
    tensors: [(&'static str, Argument); N],
    view: &View,
) -> Vec<(&'static str, Argument)> {
    let int = |i: &i64| Argument::Int(*i);
    let place = match view {
        View::Select { dim, index } => vec![("dim", int(dim)), ("index", index.clone())],
        View::Slice { dim, start, end, step } => vec![
            ("dim", int(dim)),
            ("start", start.clone()),
            ("end", end.clone()),
            ("step", step.clone()),
        ],
        View::Diagonal { offset, dim1, dim2 } => {
            vec![("offset", int(offset)), ("dim1", int(dim1)), ("dim2", int(dim2))]
        }
        View::Unfold { dim, size, step } => {
            vec![("dimension", int(dim)), ("size", int(size)), ("step", int(step))]
        }
        View::AsStrided { size: of, stride, offset } => {
            vec![
                ("size", Argument::sizes(of)),
                ("stride", Argument::sizes(stride)),
                ("storage_offset", Argument::size(offset)),
            ]
        }
        _ => Vec::new(),
    };
    tensors.into_iter().chain(place).collect()
}

fn inverse(dims: &[i64]) -> Vec<i64> {
    let at = |d: i64| dims.iter().position(|&p| p == d);
    let dims = (0i64..).take(dims.len());
    dims.map(|d| at(d).and_then(|i| i64::try_from(i).ok()).unwrap_or(d)).collect()
}
