//! Values and element types of the model that is being made, as Python holds them.

use pt2onnx::{ir, tensor::DType};
use pyo3::{exceptions::PyTypeError, prelude::*};

/// A value of the model.
#[pyclass(frozen, module = "pt2onnx._pt2onnx")]
#[derive(Clone, Copy)]
pub struct Value(pub ir::Value);

impl<'a, 'py> FromPyObject<'a, 'py> for Value {
    type Error = PyErr;

    /// From a value, or from a Python object that holds one as `_value`.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(value) = object.cast::<Value>() {
            return Ok(*value.get());
        }
        match object.getattr("_value") {
            Ok(held) if held.is_instance_of::<Value>() => Ok(*held.cast::<Value>()?.get()),
            _ => Err(PyTypeError::new_err(format!(
                "expected a value of the model, found {}",
                object.repr()?
            ))),
        }
    }
}

/// An element type: `name` is PyTorch's and NumPy's, `number` that of `TensorProto.DataType`.
#[pyclass(frozen, eq, module = "pt2onnx._pt2onnx")]
#[derive(PartialEq)]
pub struct ElementType(pub DType);

#[pymethods]
impl ElementType {
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    #[getter]
    fn number(&self) -> i64 {
        ir::schema::data_type(self.0)
    }
}
