//! Matrices side by side: constants, and what elementwise operators make of constants, as of
//! weights that are stored as integers.

use crate::cse;
use pt2onnx_ir::{InsertPoint, Model, NodeId, TensorType, Type, Use, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{Compute, Tensor};
use std::{io, sync::Arc};

/// Constants of fewer bytes are computed at once.
const SMALL: usize = 64 << 10;

/// As many operators are between a weight and its constants, at most.
const STEPS: usize = 4;

/// The source of the columns of a matrix.
pub(super) enum Columns {
    /// A constant with the same columns.
    Own(Tensor),
    /// A constant whose rows they are.
    Rows(Tensor),
    /// A constant whose elements are the same for all columns.
    Shared(Tensor),
    /// The result of such a node, which nothing else uses.
    Computed(NodeId, TensorType, Vec<Columns>),
}

impl Columns {
    /// Those of a matrix or vector with this number of columns that nothing else uses.
    pub fn of(model: &Model, matrix: Value, width: usize) -> Option<Self> {
        Self::within(model, matrix, width, STEPS).filter(|columns| columns.width().is_some())
    }

    /// The rows of a constant that nothing else uses.
    pub fn rows_of(model: &Model, matrix: Value) -> Option<Self> {
        let only_here = model[matrix].uses().len() == 1;
        model[matrix].constant().filter(|_| only_here).cloned().map(Self::Rows)
    }

    fn within(model: &Model, value: Value, width: usize, steps: usize) -> Option<Self> {
        let used_once = model[value].uses().len() == 1;
        if let Some(tensor) = model[value].constant() {
            let own = tensor.shape().last() == Some(&width);
            let fits = !own || used_once && tensor.dtype().bits() >= 8 && tensor.numel() > 0;
            let of = if own { Self::Own } else { Self::Shared };
            return fits.then(|| of(tensor.clone()));
        }
        let id = model.producer(value).filter(|_| used_once && steps > 0)?;
        let beside = |user| matches!(user, Use::Input(user, _) if model[user].region() == model[id].region());
        if !model[value].uses().all(beside) {
            return None;
        }
        let inputs = is_by_column(model, id).then(|| model[id].inputs())?;
        let operand = |v: &Option<Value>| Self::within(model, (*v)?, width, steps - 1);
        let operands = inputs.iter().map(operand).collect::<Option<_>>()?;
        let ty = model[value].ty.as_ref()?.as_tensor()?.clone();
        Some(Self::Computed(id, ty, operands))
    }

    fn width(&self) -> Option<usize> {
        match self {
            Self::Own(tensor) => tensor.shape().last().copied(),
            Self::Rows(tensor) => tensor.shape().first().copied(),
            Self::Shared(_) => None,
            Self::Computed(_, _, operands) => operands.iter().find_map(Self::width),
        }
    }

    /// The number of operators.
    pub fn steps(&self) -> usize {
        match self {
            Self::Own(_) | Self::Rows(_) | Self::Shared(_) => 0,
            Self::Computed(_, _, operands) => 1 + operands.iter().map(Self::steps).sum::<usize>(),
        }
    }

    /// Whether other columns are computed the same way, from constants that differ in their columns
    /// alone.
    pub fn are_like(&self, other: &Self, model: &Model) -> bool {
        match (self, other) {
            (Self::Own(a), Self::Own(b)) => {
                let (a_rows, b_rows) = (a.shape().split_last(), b.shape().split_last());
                a.dtype() == b.dtype()
                    && a_rows.map(|(_, rows)| rows) == b_rows.map(|(_, rows)| rows)
            }
            (Self::Rows(a), Self::Rows(b)) => {
                a.dtype() == b.dtype() && a.shape().get(1..) == b.shape().get(1..)
            }
            (Self::Shared(a), Self::Shared(b)) => cse::same_tensor(a, b),
            (Self::Computed(a, _, from), Self::Computed(b, _, others)) => {
                cse::same_function(&model[*a], &model[*b])
                    && from.len() == others.len()
                    && from.iter().zip(others).all(|(a, b)| a.are_like(b, model))
            }
            _ => false,
        }
    }

    /// The columns of all these, which must be alike, side by side. `None` if a constant has no
    /// values.
    pub fn side_by_side(parts: &[&Self]) -> Option<Self> {
        let width = parts.iter().filter_map(|part| part.width()).sum();
        let tensors = || parts.iter().filter_map(|part| part.tensor().cloned()).collect::<Vec<_>>();
        Some(match *parts.first()? {
            Self::Own(first) => {
                let (_, rows) = first.shape().split_last()?;
                let count = rows.iter().product();
                let turned = tensors().iter().map(turned).collect::<Option<Vec<_>>>();
                Self::Own(match turned {
                    Some(turned) => joined(turned, 1, [width, count])?.permuted(&[1, 0])?,
                    None => {
                        let shape: Vec<usize> = rows.iter().copied().chain([width]).collect();
                        joined(tensors(), count, shape)?
                    }
                })
            }
            Self::Rows(first) => {
                let shape: Vec<usize> =
                    [width].into_iter().chain(first.shape().iter().copied().skip(1)).collect();
                Self::Rows(joined(tensors(), 1, shape)?)
            }
            Self::Shared(tensor) => Self::Shared(tensor.clone()),
            Self::Computed(node, ty, operands) => {
                let nth = |i| parts.iter().filter_map(|part| part.operand(i)).collect::<Vec<_>>();
                let operands = (0..operands.len()).map(|i| Self::side_by_side(&nth(i)));
                let operands: Vec<Self> = operands.collect::<Option<_>>()?;
                let mut ty = ty.clone();
                if width > 0 {
                    *ty.shape.as_mut()?.last_mut()? = Expr::int(i64::try_from(width).ok()?);
                }
                Self::Computed(*node, ty, operands)
            }
        })
    }

    /// Some of the columns. `None` where they are computed.
    pub fn part(&self, from: usize, width: usize) -> Option<Self> {
        match self {
            Self::Own(tensor) => {
                narrowed(tensor, tensor.rank().checked_sub(1)?, from, width).map(Self::Own)
            }
            Self::Rows(tensor) => narrowed(tensor, 0, from, width).map(Self::Rows),
            Self::Shared(_) | Self::Computed(..) => None,
        }
    }

    fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Own(tensor) | Self::Rows(tensor) | Self::Shared(tensor) => Some(tensor),
            Self::Computed(..) => None,
        }
    }

    fn operand(&self, i: usize) -> Option<&Self> {
        match self {
            Self::Computed(_, _, operands) => operands.get(i),
            Self::Own(_) | Self::Rows(_) | Self::Shared(_) => None,
        }
    }

    /// Adds constants and nodes that make the matrix, in front of a node. Returns the matrix.
    pub fn insert(self, model: &mut Model, before: NodeId) -> Value {
        match self {
            Self::Own(tensor) | Self::Rows(tensor) | Self::Shared(tensor) => {
                model.add_constant(tensor)
            }
            Self::Computed(like, ty, operands) => {
                let operands = operands.into_iter().map(|part| Some(part.insert(model, before)));
                let inputs: Vec<Option<Value>> = operands.collect();
                let (op, attributes) =
                    (model[like].op().to_owned(), model[like].attributes.clone());
                let at = InsertPoint::Before(before);
                let node = model.add_node(at, op, &inputs, attributes, 1);
                model.merge_origins(node, like);
                let matrix = model[node].outputs()[0];
                model[matrix].ty = Some(Type::Tensor(ty));
                matrix
            }
        }
    }
}

/// Whether each column of a result depends only on that column of the operands, or on shared ones.
fn is_by_column(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    let rank = |input: usize| node.input(input).and_then(|v| model.rank(v));
    let scales = || {
        let (given, last) = (attrs::DequantizeLinear::read(node).ok()?, rank(0)?.checked_sub(1)?);
        let axis = given.axis.rem_euclid(rank(0)? as i64) as usize;
        Some(if rank(1)? == 1 { axis == last } else { given.block_size == 0 || axis != last })
    };
    node.domain.is_empty()
        && node.outputs().len() == 1
        && match node.op() {
            "Add" | "Cast" | "Div" | "Mul" | "Sub" => true,
            "DequantizeLinear" => scales() == Some(true),
            _ => false,
        }
}

/// The elements of a tensor with values from an index of an axis on, which are not copied.
fn narrowed(tensor: &Tensor, axis: usize, from: usize, size: usize) -> Option<Tensor> {
    let (mut shape, strides) = (tensor.shape().to_vec(), tensor.strides().into_owned());
    *shape.get_mut(axis)? = size;
    let start = tensor.offset() + from * strides.get(axis)?;
    Tensor::strided(tensor.dtype(), shape, strides, start, tensor.storage()?.clone()).ok()
}

/// The contiguous matrix whose transpose a tensor is, as PyTorch stores weights of layers.
fn turned(tensor: &Tensor) -> Option<Tensor> {
    let is_turned = tensor.rank() == 2 && !tensor.is_contiguous();
    is_turned.then(|| tensor.permuted(&[1, 0]))?.filter(Tensor::is_contiguous)
}

/// A tensor whose rows join the rows of all parts. `None` if a part has no values.
fn joined(parts: Vec<Tensor>, rows: usize, shape: impl Into<Vec<usize>>) -> Option<Tensor> {
    let dtype = parts.first()?.dtype();
    let rows = Rows { rows, element: dtype.bits() / 8, parts };
    let unit = rows.unit();
    let whole = |part: &Tensor| rows.width(part).is_multiple_of(unit);
    let has_values = |part: &Tensor| part.compute().is_some() || part.storage().is_some();
    if !rows.parts.iter().all(|part| has_values(part) && whole(part)) {
        return None;
    }
    let tensor = Tensor::computed(dtype, shape, Arc::new(rows)).ok()?;
    if tensor.nbytes() < SMALL { tensor.evaluated().ok() } else { Some(tensor) }
}

/// The elements of such a tensor.
#[derive(Debug)]
struct Rows {
    parts: Vec<Tensor>,
    rows: usize,
    element: usize,
}

impl Rows {
    fn width(&self, part: &Tensor) -> usize {
        part.nbytes() / self.rows
    }
}

impl Compute for Rows {
    fn operands(&self) -> Vec<Tensor> {
        self.parts.clone()
    }

    fn unit(&self) -> usize {
        let units = self.parts.iter().filter_map(Tensor::compute).map(|compute| compute.unit());
        units.fold(self.element, usize::max)
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        let whole: usize = self.parts.iter().map(|part| self.width(part)).sum();
        let (mut row, mut skipped, mut rest) = (start / whole, start % whole, out);
        while !rest.is_empty() {
            for part in &self.parts {
                let width = self.width(part);
                let from = skipped.min(width);
                let bytes = (width - from).min(rest.len());
                let (run, after) = std::mem::take(&mut rest).split_at_mut(bytes);
                skipped -= from;
                part.read(row * width + from, run)?;
                rest = after;
            }
            row += 1;
        }
        Ok(())
    }
}
