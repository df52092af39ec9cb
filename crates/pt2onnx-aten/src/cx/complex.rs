//! How complex tensors come to a translation: as real/imaginary pairs in a trailing dimension of 2.
//!
//! Which values are complex is what the program says of their names: `view_as_real` changes a type, not a value.

use pt2onnx_ir::Value;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// How complex arguments come to the lowering that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not at all.
    #[default]
    Real,
    /// As one of their parts: 0 the real ones, 1 the imaginary ones.
    Part(usize),
    /// As [`Complex`](crate::Complex); as pairs where a plain `Value` is wanted.
    Complex,
}

/// The parts of pairs that were made of two parts, so that taking them apart emits nothing.
#[derive(Default)]
pub(crate) struct Parts(RefCell<FxHashMap<Value, [Value; 2]>>);

impl Parts {
    pub(crate) fn of(&self, pairs: Value) -> Option<[Value; 2]> {
        self.0.borrow().get(&pairs).copied()
    }

    pub(crate) fn remember(&self, pairs: Value, parts: [Value; 2]) {
        self.0.borrow_mut().insert(pairs, parts);
    }
}
