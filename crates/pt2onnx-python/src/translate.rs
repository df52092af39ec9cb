//! Translations that are written in Python: functions that emit operators, called while a program
//! is translated.
#![expect(unsafe_code, reason = "Python cannot hold a borrow")]

use crate::{
    emit, interrupt,
    values::{ElementType, Value},
};
use bytes::Bytes;
use pt2onnx::{
    Registry,
    aten::{Cx, Given, GivenArg, LowerError, Lowered, Outputs},
    symbolic::Expr,
    tensor::Scalar,
    writer,
};
use pyo3::{
    exceptions::{PyException, PyRuntimeError, PyValueError},
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyDict, PyList, PyString},
};
use std::{cell::Cell, ptr::NonNull};

/// A translation, or what translations call.
#[derive(FromPyObject)]
pub enum Translation {
    /// The name or the schema of the op that a function translates, the function, and whether it is
    /// for complex tensors: `f(scope, args)`, where args are (name, by name, value). It returns
    /// values, or None for an output that nothing uses.
    Function(String, Py<PyAny>, bool),
    /// An ONNX model with functions that translations call.
    #[pyo3(transparent)]
    Library(PyBackedBytes),
}

/// Registers translations. The last one of an op is used.
pub fn register(registry: &mut Registry, translations: Vec<Translation>) -> PyResult<()> {
    for translation in translations {
        match translation {
            Translation::Function(op, function, is_complex) => {
                let lowering = move |cx: &Cx, args: Vec<GivenArg>| {
                    Python::attach(|py| call(py, &function, cx, args))
                };
                if is_complex {
                    registry.register_untyped_complex(op, lowering);
                } else {
                    registry.register_untyped(op, lowering);
                }
            }
            Translation::Library(model) => {
                let model = writer::from_bytes(Bytes::from_owner(model));
                let model = model.map_err(|e| PyValueError::new_err(e.to_string()))?;
                registry.add_function_library(model);
            }
        }
    }
    Ok(())
}

fn call(py: Python<'_>, function: &Py<PyAny>, cx: &Cx, args: Vec<GivenArg>) -> Lowered<Outputs> {
    let outputs = Scope::open(py, cx, |scope| {
        let args: Vec<_> = args
            .into_iter()
            .map(|arg| Ok((arg.name, arg.by_name, given(py, arg.value)?)))
            .collect::<PyResult<_>>()?;
        let results: Vec<Option<Value>> = function.call1(py, (scope, args))?.extract(py)?;
        Ok(Outputs(results.into_iter().map(|v| v.map(|v| v.0)).collect()))
    });
    outputs.map_err(|error: PyErr| {
        if !error.is_instance_of::<PyException>(py) {
            interrupt::end(error);
        }
        let place = error.traceback(py).and_then(|trace| trace.format().ok());
        let line =
            place.as_deref().and_then(|text| text.lines().rev().find(|l| l.contains("File ")));
        let at = line.map(|line| format!(" ({})", line.trim())).unwrap_or_default();
        LowerError::unsupported(format!("its translation raises {error}{at}"))
    })
}

/// An argument as Python has it.
fn given<'py>(py: Python<'py>, value: Given) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Given::Value(value) => Bound::new(py, Value(value))?.into_any(),
        Given::Scalar(Scalar::Bool(b)) => b.into_pyobject(py)?.to_owned().into_any(),
        Given::Scalar(Scalar::Int(i)) => i.into_pyobject(py)?.into_any(),
        Given::Scalar(Scalar::Float(f)) => f.into_pyobject(py)?.into_any(),
        Given::Scalar(Scalar::Complex(re, im)) => {
            pyo3::types::PyComplex::from_doubles(py, re, im).into_any()
        }
        Given::DType(dtype) => Bound::new(py, ElementType(dtype))?.into_any(),
        Given::Text(text) => PyString::new(py, &text).into_any(),
        Given::List(items) => {
            let items: Vec<_> = items.into_iter().map(|i| given(py, i)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
        _ => py.None().into_bound(py),
    })
}

/// The node that is being translated, and the place where its operators are emitted. It is of no
/// use after the translation returns.
#[pyclass(unsendable, module = "pt2onnx._pt2onnx")]
pub struct Scope(Cell<Option<NonNull<Cx<'static, 'static>>>>);

impl Scope {
    /// Runs `work` with a scope over `cx`, which ends when `work` returns.
    fn open<R>(
        py: Python<'_>,
        cx: &Cx,
        work: impl FnOnce(&Bound<'_, Self>) -> PyResult<R>,
    ) -> PyResult<R> {
        let scope = Bound::new(py, Self(Cell::new(Some(NonNull::from(cx).cast()))))?;
        let _end = End(&scope);
        work(&scope)
    }

    fn with<R>(&self, work: impl FnOnce(&Cx) -> PyResult<R>) -> PyResult<R> {
        let over = || PyRuntimeError::new_err("the translation that this belongs to has returned");
        let cx = self.0.get().ok_or_else(over)?;
        // SAFETY: `open` keeps the borrow while the pointer is there, and Python calls from its
        // thread only (`unsendable`).
        work(unsafe { cx.as_ref() })
    }
}

/// Ends a scope, also when Python's function raises.
struct End<'a, 'py>(&'a Bound<'py, Scope>);

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        self.0.borrow().0.set(None);
    }
}

#[pymethods]
impl Scope {
    /// Emits a node. `inputs` are values, None, numbers, lists of numbers, or constants as (element
    /// type, sizes, bytes). `types` are those of the outputs of an operator that is not ONNX's own,
    /// if PyTorch recorded none; a size of None is not known.
    fn emit(
        &self,
        domain: &str,
        op: &str,
        inputs: Vec<Bound<'_, PyAny>>,
        attributes: &Bound<'_, PyDict>,
        outputs: Option<usize>,
        types: Option<Vec<(String, Vec<Option<i64>>)>>,
    ) -> PyResult<Vec<Value>> {
        let types = types.unwrap_or_default();
        self.with(|cx| emit::node(cx, (domain, op), &inputs, attributes, outputs, &types))
    }

    /// A constant.
    fn constant(&self, value: &Bound<'_, PyAny>, dtype: Option<&str>) -> PyResult<Value> {
        let dtype = dtype.map(emit::dtype).transpose()?;
        self.with(|cx| emit::constant(cx, value, dtype).map(Value))
    }

    /// The value cast to an element type.
    fn cast(&self, value: Value, dtype: &str) -> PyResult<Value> {
        let dtype = emit::dtype(dtype)?;
        self.with(|cx| Ok(Value(cx.cast(value.0, dtype))))
    }

    /// The size of a dimension, as a 0-d int64 value.
    fn size(&self, value: Value, axis: i64) -> PyResult<Value> {
        self.with(|cx| Ok(Value(cx.size(&cx.dim(value.0, axis)))))
    }

    /// The element type of a value.
    fn dtype(&self, value: Value) -> PyResult<ElementType> {
        self.with(|cx| Ok(ElementType(cx.dtype(value.0))))
    }

    /// The sizes of a value: ints, or names and expressions of dynamic dimensions.
    fn shape<'py>(&self, py: Python<'py>, value: Value) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.with(|cx| sizes(py, &cx.shape(value.0)))
    }

    /// Element type and sizes that PyTorch recorded for an output of the op; None if it is not a
    /// tensor.
    fn recorded<'py>(
        &self,
        py: Python<'py>,
        output: usize,
    ) -> PyResult<Option<(ElementType, Vec<Bound<'py, PyAny>>)>> {
        self.with(|cx| {
            let meta = cx.recorded(output);
            meta.map(|m| Ok((ElementType(m.dtype.to_real()), sizes(py, &m.sizes)?))).transpose()
        })
    }
}

fn sizes<'py>(py: Python<'py>, dims: &[Expr]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let size = |dim: &Expr| match dim.as_int() {
        Some(known) => Ok(known.into_pyobject(py)?.into_any()),
        None => Ok(PyString::new(py, &dim.to_string()).into_any()),
    };
    dims.iter().map(size).collect()
}
