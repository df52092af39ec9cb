//! A function that runs, and the module that it belongs to.

use pt2onnx_fx::{ModuleFrame, Name};

/// A function that runs.
pub(super) struct Frame {
    /// Position of its file.
    pub(super) file: usize,
    pub(super) function: Name,
    /// Where in the file it is now.
    pub(super) at: u32,
    /// How many items the heap had when it began.
    pub(super) heap: usize,
    /// The module whose method it is.
    pub(super) module: Option<ModuleFrame>,
}
