//! What a lowering works with: the builder, the node it translates and what PyTorch recorded of its outputs.

use crate::{LowerError, Lowered, complex::Mode};
use pt2onnx_fx::graph::{Graph, Name, TensorMeta, ValueMap, ValueMeta};
use pt2onnx_ir::{Builder, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::{
    cell::{Cell, RefCell},
    ops::Deref,
};

/// Context of a lowering. Derefs to the [`Builder`], so that formulas read `cx.add(x, cx.mul(a, b))`.
pub struct Cx<'a> {
    builder: Builder<'a>,
    /// The graphs being lowered, a body behind the graph whose node it belongs to. Bodies are closed: each knows its own names.
    scopes: RefCell<Vec<Scope<'a>>>,
    outputs: RefCell<SmallVec<[Recorded<'a>; 2]>>,
    mode: Cell<Mode>,
    /// Of pairs that were made of two parts, the parts.
    parts: RefCell<FxHashMap<Value, [Value; 2]>>,
}

struct Scope<'a> {
    graph: &'a Graph,
    values: ValueMap<'a, Value>,
    /// Values that some node or output reads.
    read: ValueMap<'a, ()>,
}

impl<'a> Scope<'a> {
    fn of(graph: &'a Graph) -> Self {
        let mut read = ValueMap::new(graph);
        let args = graph.nodes.iter().flat_map(|n| &n.args).map(|a| &a.value);
        for arg in args.chain(&graph.outputs) {
            arg.for_each_name(&mut |name| _ = read.insert(name, ()));
        }
        Self { graph, values: ValueMap::new(graph), read }
    }
}

impl<'a> Deref for Cx<'a> {
    type Target = Builder<'a>;
    fn deref(&self) -> &Builder<'a> {
        &self.builder
    }
}

/// Name and recorded type of an output; no name where nobody uses it, no type where it is not a tensor.
pub(crate) type Recorded<'a> = (Option<&'a Name>, Option<&'a TensorMeta>);

/// Outputs of a lowering, in the order of the schema's returns; `None` for those that nobody uses.
pub struct Outputs(pub SmallVec<[Option<Value>; 2]>);

impl From<Value> for Outputs {
    fn from(v: Value) -> Self {
        Outputs(smallvec![Some(v)])
    }
}
impl From<()> for Outputs {
    fn from((): ()) -> Self {
        Outputs(SmallVec::new())
    }
}
impl From<Vec<Value>> for Outputs {
    fn from(v: Vec<Value>) -> Self {
        Outputs(v.into_iter().map(Some).collect())
    }
}
impl<const N: usize> From<[Option<Value>; N]> for Outputs {
    fn from(v: [Option<Value>; N]) -> Self {
        Outputs(v.into_iter().collect())
    }
}
impl<const N: usize> From<[Value; N]> for Outputs {
    fn from(v: [Value; N]) -> Self {
        Outputs(v.into_iter().map(Some).collect())
    }
}

impl<'a> Cx<'a> {
    pub(crate) fn new(builder: Builder<'a>, graph: &'a Graph) -> Self {
        Self {
            builder,
            scopes: RefCell::new(vec![Scope::of(graph)]),
            outputs: RefCell::default(),
            mode: Cell::new(Mode::Real),
            parts: RefCell::default(),
        }
    }

    pub(crate) fn enter(&self, graph: &'a Graph) {
        self.scopes.borrow_mut().push(Scope::of(graph));
    }

    pub(crate) fn leave(&self) {
        self.scopes.borrow_mut().pop();
    }

    /// How complex arguments come.
    pub(crate) fn mode(&self) -> Mode {
        self.mode.get()
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.mode.set(mode);
    }

    pub(crate) fn parts_of(&self, pairs: Value) -> Option<[Value; 2]> {
        self.parts.borrow().get(&pairs).copied()
    }

    pub(crate) fn remember_parts(&self, pairs: Value, parts: [Value; 2]) {
        self.parts.borrow_mut().insert(pairs, parts);
    }

    /// The tensor that an FX value became.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        self.scopes.borrow().last()?.values.get(name).copied()
    }

    pub(crate) fn define(&self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.borrow_mut().last_mut() {
            scope.values.insert(name, value);
        }
    }

    /// What the program says of an FX value.
    pub(crate) fn meta(&self, name: &str) -> Option<&'a ValueMeta> {
        self.scopes.borrow().last()?.graph.values.get(name)
    }

    /// The expression of an FX integer.
    pub(crate) fn sym_int(&self, name: &str) -> Option<Expr> {
        match self.meta(name)? {
            ValueMeta::SymInt { expr, .. } => Some(expr.clone()),
            _ => None,
        }
    }

    pub(crate) fn set_outputs(&self, outputs: &[Recorded<'a>]) {
        *self.outputs.borrow_mut() = outputs.into();
    }

    /// What PyTorch recorded of output `i` of the node being translated, if it is a used tensor.
    pub fn recorded(&self, i: usize) -> Option<&'a TensorMeta> {
        self.outputs.borrow().get(i).and_then(|(_, meta)| *meta)
    }

    /// Whether something reads output `i` of the node being translated. Of one that nothing reads, no translation is wanted.
    pub fn is_used(&self, i: usize) -> bool {
        let name = self.outputs.borrow().get(i).and_then(|(name, _)| *name);
        name.is_some_and(|n| self.reads(n))
    }

    /// Whether something reads an FX value.
    pub(crate) fn reads(&self, name: &str) -> bool {
        let scopes = self.scopes.borrow();
        scopes.last().is_some_and(|s| s.read.get(name).is_some())
    }

    /// Counts FX values as read that no node or output of the graph reads: new values of what the program writes into.
    pub(crate) fn keep<'n>(&self, names: impl Iterator<Item = &'n Name>) {
        if let Some(scope) = self.scopes.borrow_mut().last_mut() {
            names.for_each(|name| _ = scope.read.insert(name, ()));
        }
    }

    /// How many outputs PyTorch recorded for the node being translated: of ops that give lists, the list's length.
    pub fn recorded_len(&self) -> usize {
        self.outputs.borrow().len()
    }

    /// The element type PyTorch recorded for the first output; of a complex one, that of its parts.
    ///
    /// # Errors
    /// Where the node has no tensor output.
    pub fn out_dtype(&self) -> Lowered<DType> {
        let recorded = self.recorded(0).map(|m| m.dtype.to_real());
        recorded.ok_or_else(|| LowerError::unsupported("its first output is not a tensor"))
    }

    /// The sizes PyTorch recorded for the first output.
    ///
    /// # Errors
    /// Where the node has no tensor output.
    pub fn out_shape(&self) -> Lowered<Vec<Expr>> {
        let recorded = self.recorded(0).map(|m| m.sizes.clone());
        recorded.ok_or_else(|| LowerError::unsupported("its first output is not a tensor"))
    }

    /// `dim` of `x` counted from the front. As in PyTorch, a 0-d tensor counts as having one dimension.
    ///
    /// # Errors
    /// Where `x` has no such dimension.
    pub fn axis(&self, x: Value, dim: i64) -> Lowered<usize> {
        axis_of(self.rank(x).max(1), dim)
    }

    /// `dims` of `x` counted from the front; all of them where `dims` is empty or not given.
    ///
    /// # Errors
    /// Where `x` has no such dimension.
    pub fn axes(&self, x: Value, dims: Option<&[i64]>) -> Lowered<Vec<usize>> {
        match dims {
            None | Some([]) => Ok((0..self.rank(x)).collect()),
            // A 0-d tensor has one dimension to name, and none to work on.
            Some(dims) if self.rank(x) == 0 => {
                dims.iter().try_for_each(|&d| axis_of(1, d).map(drop)).map(|()| vec![])
            }
            Some(dims) => dims.iter().map(|&d| axis_of(self.rank(x), d)).collect(),
        }
    }
}

/// `dim` of a tensor of that rank counted from the front.
///
/// # Errors
/// Outside of `-rank..rank`.
pub(crate) fn axis_of(rank: usize, dim: i64) -> Lowered<usize> {
    let axis = if dim < 0 { dim + rank as i64 } else { dim };
    let axis = usize::try_from(axis).ok().filter(|&a| a < rank);
    axis.ok_or_else(|| {
        LowerError::unsupported(format!("there is no dimension {dim} in a tensor of rank {rank}"))
    })
}
