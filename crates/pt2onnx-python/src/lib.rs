//! The native half of the Python package pt2onnx: archives and programs in, ONNX models out.
//!
//! Layer 7. This is the only crate that knows Python, and it does not know PyTorch:
//! `python/pt2onnx` hands it a program's JSON and the addresses of its weights.

mod choose;
mod convert;
mod emit;
mod errors;
mod interrupt;
mod memory;
mod options;
mod program;
mod tools;
mod translate;
mod values;

use pyo3::prelude::*;

/// Graphs are many small allocations, which this allocator keeps together by size. glibc's is as
/// fast in one thread, and has the memory that PyTorch has freed.
#[cfg(not(target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
fn _pt2onnx(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Failure", module.py().get_type::<errors::Failure>())?;
    module.add_class::<program::Program>()?;
    module.add_class::<memory::Buffer>()?;
    module.add_class::<translate::Scope>()?;
    module.add_class::<values::Value>()?;
    module.add_class::<values::ElementType>()?;
    module.add("OPERATORS", emit::operators())?;
    module.add_function(wrap_pyfunction!(convert::convert_path, module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert_module, module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert_program, module)?)?;
    module.add_function(wrap_pyfunction!(choose::choose, module)?)?;
    module.add_function(wrap_pyfunction!(choose::split, module)?)?;
    module.add_function(wrap_pyfunction!(tools::open_model, module)?)?;
    module.add_function(wrap_pyfunction!(tools::open_parts, module)?)?;
    module.add_function(wrap_pyfunction!(tools::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(tools::supported_ops, module)?)?;
    module.add_function(wrap_pyfunction!(tools::load_ort, module)?)?;
    module.add_function(wrap_pyfunction!(tools::command, module)?)
}
