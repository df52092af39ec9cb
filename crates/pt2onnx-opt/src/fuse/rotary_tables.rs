//! Tables of the cosines and sines of rotary embeddings, a row for each position.

use crate::eval;
use pt2onnx_ir::{Model, Traits, Value};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

/// At most this many nodes are computed for one table, which has at most this many bytes.
const NODES: usize = 32;
const BYTES: usize = 1 << 30;

/// The tables of a graph, which has each of them once.
pub(super) struct Tables {
    /// The number of rows, at least 1; `None` where there are no tables.
    positions: Option<usize>,
    made: FxHashMap<Value, Option<Value>>,
}

impl Tables {
    pub fn new(positions: Option<usize>) -> Self {
        Self { positions: positions.filter(|&n| n > 0), made: FxHashMap::default() }
    }

    /// The table `(positions, n)` of a value `(1 or batch, length, n)` that is computed from the
    /// input `position_ids` of the model, element by element.
    pub fn of(&mut self, model: &mut Model, angles: Value) -> Option<Value> {
        let positions = self.positions?;
        let table = self.made.entry(angles).or_insert_with(|| {
            let table = computed(model, angles, positions)?;
            Some(model.add_constant(table))
        });
        *table
    }
}

fn computed(model: &Model, angles: Value, positions: usize) -> Option<Tensor> {
    let all: Vec<i64> = (0..i64::try_from(positions).ok()?).collect();
    let row = Tensor::vector(&all).reshaped([1, positions])?;
    let table = at(model, angles, &row, &mut { NODES })?;
    match *table.shape() {
        [1, length, width] if length == positions => table.reshaped([length, width]),
        _ => None,
    }
}

/// A value at these positions. `left` is the number of nodes that may be computed.
fn at(model: &Model, value: Value, positions: &Tensor, left: &mut usize) -> Option<Tensor> {
    if let Some(constant) = model[value].constant() {
        return Some(constant.clone());
    }
    let Some(id) = model.producer(value) else {
        let named = model[value].name.as_deref() == Some("position_ids");
        let fits =
            named && model.inputs().contains(&value) && model.dtype(value) == Some(DType::I64);
        return fits.then(|| positions.clone());
    };
    *left = left.checked_sub(1)?;
    let node = &model[id];
    let by_element = node.traits().intersects(Traits::ELEMENTWISE | Traits::SHAPE_ONLY);
    if !by_element && !node.is("Transpose") {
        return None;
    }
    let mut operands = Vec::new();
    for operand in node.inputs() {
        operands.push(match operand {
            Some(operand) => Some(at(model, *operand, positions, left)?),
            None => None,
        });
    }
    let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
    eval::evaluate(node, &operands, BYTES)?.pop()
}
