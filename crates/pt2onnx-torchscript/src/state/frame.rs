//! Functions that run, and the modules that they belong to.

use pt2onnx_fx::{ModuleFrame, Name};
use pt2onnx_tensor::DType;

/// A function that runs.
pub(crate) struct Frame {
    /// Position of its file.
    pub(crate) file: usize,
    pub(crate) function: Name,
    /// Where in the file it is now.
    pub(crate) at: u32,
    /// How many items the heap had when it began.
    pub(crate) heap: usize,
    /// The module whose method it is.
    pub(crate) module: Option<ModuleFrame>,
}

/// The functions that run, outermost first.
#[derive(Default)]
pub(crate) struct CallStack {
    pub(crate) frames: Vec<Frame>,
    /// How deeply expressions, statements and calls nest.
    pub(crate) depth: usize,
    /// The type that autocast makes operators compute in, where it is on.
    pub(crate) autocast: Option<DType>,
    /// How many parts the assignment that runs takes its value apart into.
    pub(crate) expected_arity: Option<usize>,
    /// The activity while no function runs, for messages.
    pub(crate) outside: &'static str,
}
