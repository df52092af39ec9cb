//! The parts of the evaluator that branches do not change.

use crate::{types::Types, value::Value};
use indexmap::IndexMap;
use pt2onnx_fx::{Argument, Constant, InputSpec, ModuleFrame, Name};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;
use pt2onnx_torchscript_archive::{Archive, Origin};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{cell::RefCell, sync::Arc};

pub(crate) struct Context<'a> {
    pub(crate) archive: &'a Archive,
    pub(crate) types: &'a mut dyn Types,
    /// `CONSTANTS`.
    pub(crate) pool: Vec<Value>,
    /// Those of them that are tensors without dimensions.
    pub(crate) pool_numbers: FxHashSet<Name>,
    pub(crate) origins: RefCell<Origins>,
}

/// Where parts of the code come from, by file and position.
pub(crate) type Origins = FxHashMap<(usize, u32), Option<Arc<Origin>>>;

/// The most work that a program may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Statements, expressions and elements of lists.
    pub steps: u64,
    /// Items of the heap and elements of its lists.
    pub values: usize,
    /// Nodes of the program.
    pub nodes: usize,
}

impl Limits {
    /// Those of ordinary use.
    pub const DEFAULT: Self = Self { steps: 20_000_000, values: 4_000_000, nodes: 400_000 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Choices that hold for a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunPolicy {
    /// The conditions on sizes for whose cases the whole method runs.
    pub(crate) cases: Vec<Expr>,
    /// As [`Policy::case_split`](crate::Policy::case_split).
    pub(crate) case_split: bool,
    /// Whether the number of chunks is taken to be the requested one.
    pub(crate) assume_exact_chunks: bool,
    /// Whether a list becomes a sequence where nothing else can be made of it.
    pub(crate) allow_sequences: bool,
    pub(crate) limits: Limits,
}

/// Inputs and weights of the program.
#[derive(Default)]
pub(crate) struct Interface {
    pub(crate) inputs: Vec<Argument>,
    pub(crate) specs: Vec<InputSpec>,
    pub(crate) weights: IndexMap<String, Tensor>,
    pub(crate) constants: IndexMap<String, Constant>,
    /// Inputs of state: the attribute's path, the input and its name in the model.
    pub(crate) state_inputs: Vec<(String, Name, Name)>,
}

/// The parts of its limits that a run has used.
#[derive(Default)]
pub(crate) struct Budget {
    pub(crate) steps: u64,
    pub(crate) elements: usize,
    /// How often what follows a condition ran in each of its branches.
    pub(crate) tail_duplications: usize,
}

/// Makes names, each once.
#[derive(Default)]
pub(crate) struct Names {
    taken: FxHashMap<String, usize>,
    pub(crate) calls: FxHashMap<Name, usize>,
    /// The frames of calls of modules in a trace, by id.
    pub(crate) traced: FxHashMap<u32, ModuleFrame>,
}

impl Names {
    pub(crate) fn fresh(&mut self, wish: &str) -> Name {
        let legal = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '_' };
        let wish: String = wish.chars().map(legal).collect();
        loop {
            let count = self.taken.entry(wish.clone()).or_default();
            let name = if *count == 0 { wish.clone() } else { format!("{wish}_{count}") };
            *count += 1;
            if *count == 1 || !self.taken.contains_key(&name) {
                self.taken.entry(name.clone()).or_insert(1);
                return name.into();
            }
        }
    }
}
