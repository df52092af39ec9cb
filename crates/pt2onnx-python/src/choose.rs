//! Models of one program as one model that chooses between them by the sizes of inputs.

use crate::{errors, interrupt::detached, program::Program};
use pt2onnx::{
    OnnxProgram, SizesOfInputs, Tree,
    symbolic::{Expr, Range},
};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::collections::BTreeMap;

/// Decisions are not deeper than this.
const MAX_DEPTH: usize = 64;

/// Merges models of one program. `tree` is the position of a model, a text why sizes are refused,
/// or a condition and what to take where it holds and where not. `dims` are the sizes that
/// conditions are about: an input and its axis for each. `tested` are conditions that only tests
/// have joined.
#[pyfunction]
pub fn choose(
    py: Python<'_>,
    programs: Vec<Py<Program>>,
    tree: &Bound<'_, PyAny>,
    dims: BTreeMap<String, (String, Option<usize>)>,
    ranges: BTreeMap<String, (i64, Option<i64>)>,
    tested: Vec<String>,
) -> PyResult<Program> {
    let tree = read(tree, MAX_DEPTH)?;
    let sizes = sizes_of(dims, ranges, tested);
    let merged = detached(py, || {
        // One lock after the other: two threads may merge the same models in both orders.
        let copies: Vec<OnnxProgram> = programs.iter().map(|p| p.get().shared()).collect();
        OnnxProgram::choose(&copies.iter().collect::<Vec<_>>(), &tree, &sizes)
    })?;
    merged.map(Program::from).map_err(|error| errors::error(py, error))
}

/// The models of a tree one by one, with the conditions under which it chooses them in their
/// metadata: each with its position and the conditions. The parameters are those of `choose`.
#[pyfunction]
pub fn split(
    py: Python<'_>,
    programs: Vec<Py<Program>>,
    tree: &Bound<'_, PyAny>,
    dims: BTreeMap<String, (String, Option<usize>)>,
    ranges: BTreeMap<String, (i64, Option<i64>)>,
) -> PyResult<Vec<(usize, Vec<String>, Program)>> {
    let tree = read(tree, MAX_DEPTH)?;
    let sizes = sizes_of(dims, ranges, Vec::new());
    let found = detached(py, || {
        let copies: Vec<OnnxProgram> = programs.iter().map(|p| p.get().shared()).collect();
        OnnxProgram::split(&copies.iter().collect::<Vec<_>>(), &tree, &sizes)
    })?;
    let found = found.map_err(|error| errors::error(py, error))?;
    Ok(found.into_iter().map(|(at, conditions, one)| (at, conditions, one.into())).collect())
}

fn sizes_of(
    dims: BTreeMap<String, (String, Option<usize>)>,
    ranges: BTreeMap<String, (i64, Option<i64>)>,
    tested: Vec<String>,
) -> SizesOfInputs {
    let ranges = ranges.into_iter();
    SizesOfInputs {
        places: dims.into_iter().collect(),
        ranges: ranges.map(|(name, (min, max))| (name, Range::new(Some(min), max))).collect(),
        tested,
    }
}

/// Reads a decision tree.
fn read(tree: &Bound<'_, PyAny>, depth: usize) -> PyResult<Tree> {
    if let Ok(model) = tree.extract::<usize>() {
        return Ok(Tree::Model(model));
    }
    if let Ok(reason) = tree.extract::<String>() {
        return Ok(Tree::Refused(reason));
    }
    let (condition, yes, no): (String, Bound<'_, PyAny>, Bound<'_, PyAny>) = tree.extract()?;
    let Some(depth) = depth.checked_sub(1) else {
        return Err(PyValueError::new_err("the decision tree is too deep"));
    };
    let wrong = |error| PyValueError::new_err(format!("the condition `{condition}`: {error}"));
    let condition = Expr::parse(&condition).map_err(wrong)?;
    Ok(Tree::If(condition, Box::new((read(&yes, depth)?, read(&no, depth)?))))
}
