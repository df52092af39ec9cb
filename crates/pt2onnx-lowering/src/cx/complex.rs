//! How lowerings get complex tensors, which are real/imaginary pairs in a last dimension of 2.
//!
//! Whether a tensor is complex depends on the type that the program records for its name:
//! `view_as_real` changes the type, not the value.

use pt2onnx_ir::Value;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// How a lowering gets complex arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Complex arguments are errors.
    #[default]
    Real,
    /// It gets one part of each: 0 is the real one, 1 the imaginary one.
    Part(usize),
    /// It gets both parts: parameters of type [`Complex`](crate::Complex) as such, others as
    /// real/imaginary pairs.
    Complex,
}

/// Remembers the parts of real/imaginary pairs, so that no operators are needed to split them
/// again.
#[derive(Default)]
pub struct Parts(RefCell<FxHashMap<Value, [Value; 2]>>);

impl Parts {
    /// The parts of `pairs`, if it was made from them.
    pub fn of(&self, pairs: Value) -> Option<[Value; 2]> {
        self.0.borrow().get(&pairs).copied()
    }

    /// Remembers that `pairs` was made of `parts`.
    pub fn remember(&self, pairs: Value, parts: [Value; 2]) {
        self.0.borrow_mut().insert(pairs, parts);
    }
}
