//! Ctrl-C: native work ends, and its files with it, when Python has a signal to handle.

use pt2onnx_cancel::scope;
use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*};
use std::cell::Cell;

thread_local! {
    /// The exception that a handler of signals raised.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Runs work, while other Python threads continue. On the main thread, handlers of signals run
/// meanwhile; if one raises an exception, the work is cancelled, and that is the error.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| scope(is_raised, work)).map_err(|cancelled| {
        let raised = RAISED.take();
        raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err(cancelled.to_string()))
    })
}

/// Runs the handlers of signals that came. Whether one raised an exception.
fn is_raised() -> bool {
    let checked = Python::attach(|py| py.check_signals());
    let raised = checked.is_err();
    RAISED.set(checked.err());
    raised
}

/// Ends the work with an exception that is not a failure of it, such as `KeyboardInterrupt`.
pub fn end(raised: PyErr) -> ! {
    RAISED.set(Some(raised));
    pt2onnx_cancel::cancel()
}
