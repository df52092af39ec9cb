//! The context of a lowering: the builder, the node's recorded outputs, and the values of the graph
//! so far.

use super::{
    complex::{Mode, Parts},
    outputs::Recorded,
    scope::Scope,
};
use crate::{LowerError, Lowered};
use pt2onnx_fx::graph::{NodeMeta, TensorMeta, ValueMeta};
use pt2onnx_ir::{Builder, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use std::ops::Deref;

/// The context of a lowering. Each node gets a new one. It derefs to the [`Builder`], so that
/// formulas read `cx.add(x, cx.mul(a, b))`.
pub struct Cx<'c, 'a> {
    builder: &'c Builder<'a>,
    scope: &'c Scope<'a>,
    parts: &'c Parts,
    numbers: Numbers,
    call: Call<'c, 'a>,
}

/// How the program's numbers behave.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Whether NaN and infinities may be treated in another way than PyTorch's.
    pub assume_finite: bool,
    /// PyTorch's default type of floats, for nodes without recorded types.
    pub default_dtype: DType,
    /// Whether ONNX's nodes for training are written, for runtimes that train.
    pub training_nodes: bool,
}

/// How a lowering is called.
#[derive(Clone, Copy, Default)]
pub struct Call<'c, 'a> {
    /// PyTorch's records of the outputs.
    pub outputs: &'c [Recorded<'a>],
    /// How it gets complex arguments.
    pub mode: Mode,
    /// Where the node comes from.
    pub origin: Option<&'c NodeMeta>,
}

impl<'a> Deref for Cx<'_, 'a> {
    type Target = Builder<'a>;
    fn deref(&self) -> &Builder<'a> {
        self.builder
    }
}

impl std::fmt::Debug for Cx<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx").field("outputs", &self.call.outputs).finish_non_exhaustive()
    }
}

impl<'c, 'a> Cx<'c, 'a> {
    /// The context of a call. `builder` takes its nodes, `scope` has the values of the graph so
    /// far.
    pub fn new(
        builder: &'c Builder<'a>,
        scope: &'c Scope<'a>,
        parts: &'c Parts,
        numbers: Numbers,
        call: Call<'c, 'a>,
    ) -> Self {
        Self { builder, scope, parts, numbers, call }
    }

    /// Whether `x` may hold NaN or infinities that the lowering must treat as PyTorch does: if it
    /// is of floats, and [`Numbers::assume_finite`] is not set.
    pub fn propagates_nan(&self, x: Value) -> bool {
        !self.numbers.assume_finite && self.dtype(x).is_float()
    }

    /// Whether what behaves as in training becomes ONNX's nodes for training
    /// ([`Numbers::training_nodes`]).
    pub fn writes_training_nodes(&self) -> bool {
        self.numbers.training_nodes
    }

    /// How the lowering gets complex arguments.
    pub fn mode(&self) -> Mode {
        self.call.mode
    }

    /// The same context, where complex arguments come in another way.
    pub(crate) fn in_mode(&self, mode: Mode) -> Self {
        Self { call: Call { mode, ..self.call }, ..*self }
    }

    /// The parts of real/imaginary pairs.
    pub fn known_parts(&self) -> &'c Parts {
        self.parts
    }

    /// The ONNX value of an FX value.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.scope.value(name)
    }

    /// PyTorch's record of an FX value.
    pub fn meta(&self, name: &str) -> Option<&'a ValueMeta> {
        self.scope.meta(name)
    }

    /// The expression of an FX integer.
    pub fn sym_int(&self, name: &str) -> Option<Expr> {
        self.scope.sym_int(name)
    }

    /// Whether an FX value is a complex tensor.
    pub fn is_complex(&self, name: &str) -> bool {
        self.scope.is_complex(name)
    }

    /// PyTorch's record of output `i` of the node. `None` if it is not a tensor, or nothing uses
    /// it.
    pub fn recorded(&self, i: usize) -> Option<&'a TensorMeta> {
        let (name, meta) = self.call.outputs.get(i)?;
        name.iter().for_each(|name| self.scope.ask(name));
        *meta
    }

    /// PyTorch's record of the first output, for lowerings that can do without.
    pub(super) fn default_meta(&self) -> Option<&'a TensorMeta> {
        self.call.outputs.first().and_then(|(_, meta)| *meta)
    }

    /// PyTorch's default type of floats, where nothing is recorded.
    pub(super) fn default_dtype(&self) -> DType {
        self.numbers.default_dtype
    }

    /// Whether the archive says that the node was an operator whose name starts so, `aten.isin.`,
    /// before it was decomposed.
    pub fn is_part_of(&self, op: &str) -> bool {
        self.call.origin.is_some_and(|meta| meta.is_part_of(op))
    }

    /// Whether something reads output `i` of the node. An output that nothing reads need not be
    /// computed.
    pub fn is_used(&self, i: usize) -> bool {
        let name = self.call.outputs.get(i).and_then(|(name, _)| *name);
        name.is_some_and(|n| self.scope.reads(n))
    }

    /// How many outputs PyTorch recorded for the node. If the op gives a list, this is the list's
    /// length.
    pub fn recorded_len(&self) -> usize {
        self.call.outputs.len()
    }

    /// The element type that PyTorch recorded for the first output. For a complex output, it is the
    /// type of the parts.
    ///
    /// # Errors
    /// Returns an error if the node's first output is not a tensor.
    pub fn out_dtype(&self) -> Lowered<DType> {
        let recorded = self.recorded(0).map(|m| m.dtype.to_real());
        recorded.ok_or_else(|| LowerError::unsupported("its first output is not a tensor"))
    }

    /// The sizes that PyTorch recorded for the first output.
    ///
    /// # Errors
    /// Returns an error if the node's first output is not a tensor.
    pub fn out_shape(&self) -> Lowered<Vec<Expr>> {
        let recorded = self.recorded(0).map(|m| m.sizes.clone());
        recorded.ok_or_else(|| LowerError::unsupported("its first output is not a tensor"))
    }
}
