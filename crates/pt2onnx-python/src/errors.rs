//! Errors as Python exceptions.

use pt2onnx::{Error, Failed, Report};
use pyo3::{create_exception, exceptions::PyException, prelude::*};

create_exception!(
    _pt2onnx,
    Failure,
    PyException,
    "Why there is no model. `kind` is the kind of the error, `opset` the lowest opset that can express the model or None, `names` how many names can be given if there are more or None, `report` the report as JSON or None, `markdown` the report as text or None."
);

/// The error of an export, with its report.
pub fn failed(py: Python<'_>, failed: Failed) -> PyErr {
    made(py, &failed.error, Some(&failed.report))
}

/// An error of anything else.
pub fn error(py: Python<'_>, error: Error) -> PyErr {
    made(py, &error, None)
}

fn made(py: Python<'_>, error: &Error, report: Option<&Report>) -> PyErr {
    let kind = serde_json::to_value(error.kind()).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str());
    let exception = Failure::new_err(error.to_string());
    let value = exception.value(py);
    let set = value
        .setattr("kind", kind)
        .and_then(|()| value.setattr("opset", needed(error)))
        .and_then(|()| value.setattr("names", taken(error)))
        .and_then(|()| value.setattr("report", report.map(Report::to_json)))
        .and_then(|()| value.setattr("markdown", report.map(Report::to_markdown)));
    set.map_or_else(|unset| unset, |()| exception)
}

/// The lowest opset that can express the model, if that is what is wrong.
fn needed(error: &Error) -> Option<u32> {
    match error {
        Error::Legalise(pt2onnx::opt::LegaliseError::Nodes { lowest, .. }) => Some(*lowest),
        _ => None,
    }
}

/// How many inputs or outputs can be named, if more names are given.
fn taken(error: &Error) -> Option<usize> {
    match error {
        Error::Name(pt2onnx::NameError::Surplus { has, .. }) => Some(*has),
        _ => None,
    }
}
