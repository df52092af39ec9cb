//! A join reads branches at their ends and the state before them, and makes phis.

use crate::{
    eval::{Flow, context::Names},
    state::{Delta, State, journal::Changes, memory::Memory},
    types::of_data,
    value::{Item, Ref, Value},
};
use pt2onnx_fx::{Name, TensorMeta, strides::contiguous};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{cell::OnceCell, collections::BTreeMap, ops::Range};

pub(crate) struct Branch {
    pub(crate) flow: Flow,
    /// The variables that it assigned.
    pub(crate) env: Changes<Name, Value>,
    pub(crate) delta: Delta,
    /// The positions of the values that were made in it.
    pub(crate) made: Range<usize>,
}

/// A result of `cond`.
#[derive(Clone, Debug)]
pub(crate) struct Phi {
    pub(crate) name: Name,
    /// Its type; none for a sequence.
    pub(crate) meta: Option<TensorMeta>,
    pub(crate) operands: [Operand; 2],
    /// The symbols of the numbers that are read from it.
    pub(crate) numbers: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Tensor(Name),
    Number(Value),
    /// A tensor that nobody reads.
    Zeros(TensorMeta),
    /// A list of tensors as a sequence.
    Sequence(Item),
    NoTensors(DType),
}

/// The state after both branches, where it is not as before.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub(crate) phis: Vec<Phi>,
    /// The phis of pairs of tensors.
    pub(super) known: FxHashMap<[Name; 2], usize>,
    /// Lists and dicts that are one of two, in the order of their positions.
    pub(crate) made: Vec<Item>,
    /// The same by both, and by each of them.
    pub(super) pairs: FxHashMap<[Ref; 2], Ref>,
    pub(super) one_of: [FxHashMap<Ref, Ref>; 2],
    /// The results of the nodes of each branch.
    pub(super) results: [OnceCell<FxHashSet<Name>>; 2],
    pub(crate) items: BTreeMap<usize, Item>,
    /// Lists and dicts, and those that they may be.
    pub(crate) copies: Vec<(Ref, Ref)>,
    pub(crate) sizes: Vec<Expr>,
}

/// All that a join reads, and the supply of names.
pub(crate) struct Base<'j> {
    pub(crate) state: &'j State,
    pub(crate) memory: &'j Memory,
    /// The tensors that truth values were read from.
    pub(crate) truths: &'j FxHashMap<Expr, Name>,
    pub(crate) names: &'j mut Names,
    pub(crate) allow_sequences: bool,
    /// The most steps of the run.
    pub(crate) max_steps: u64,
}

/// The type of a placeholder that nobody reads: sizes that depend on data are 0.
pub(crate) fn placeholder(like: &TensorMeta) -> TensorMeta {
    let size = |e: &Expr| if of_data(e) { Expr::ZERO } else { e.clone() };
    plain_meta(like.dtype, like.sizes.iter().map(size).collect())
}

/// The type of a tensor on the CPU whose elements are in order.
pub(crate) fn plain_meta(dtype: DType, sizes: Vec<Expr>) -> TensorMeta {
    let strides = contiguous(&sizes);
    TensorMeta::strided(dtype, sizes, strides)
}
