//! Elements of integer vectors and scalars that nodes compute from sizes.

use crate::eval;
use pt2onnx_ir::{Builder, Node, NodeId, Traits, Value, attrs, schema};
use pt2onnx_symbolic::{Expr, SymTensor, equal, less, lowest, quotient, remainder};
use pt2onnx_tensor::{DType, Tensor};

/// The outputs of a node that are vectors or scalars of integers or bools whose elements are known,
/// with these. The node has the canonical form.
///
/// Sizes are taken to fit into int32, and so are their sums and products that the model computes in
/// int32.
pub(crate) fn contents(cx: &Builder, id: NodeId) -> Vec<(Value, Vec<Expr>)> {
    let node = cx.model()[id].clone();
    match *node.outputs() {
        [output] => of_output(cx, &node, output).into_iter().map(|e| (output, e)).collect(),
        _ if node.is("Split") => parts(cx, &node).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn parts(cx: &Builder, node: &Node) -> Option<Vec<(Value, Vec<Expr>)>> {
    let whole = cx.sym_tensor(node.input(0)?);
    let mut rest = whole.elements()?;
    let part = |&output: &Value| {
        let size = cx.known_shape(output)?.first()?.as_int()?;
        let (part, more) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        rest = more;
        Some((output, part.to_vec()))
    };
    node.outputs().iter().map(part).collect()
}

fn of_output(cx: &Builder, node: &Node, output: Value) -> Option<Vec<Expr>> {
    let (dtype, rank) = (cx.known_dtype(output)?, cx.known_shape(output)?.len());
    if !matches!(dtype, DType::I64 | DType::I32 | DType::Bool) || rank > 1 {
        return None;
    }
    let n = Inputs { cx, node };
    let found = n.moved(rank).or_else(|| n.made()).or_else(|| n.computed(dtype))?;
    let elements = found.elements()?;
    (elements.len() <= SymTensor::MAX_ELEMENTS).then(|| elements.to_vec())
}

/// The inputs of a node that computes a vector or scalar.
struct Inputs<'a, 'm> {
    cx: &'a Builder<'m>,
    node: &'a Node,
}

impl Inputs<'_, '_> {
    fn input(&self, i: usize) -> SymTensor {
        let Some(value) = self.node.input(i) else { return SymTensor::Unknown };
        let known = self.cx.sym_tensor(value);
        let constant = || self.cx.constant_of(value).filter(|t| t.has_data() && t.rank() <= 1);
        match (&known, constant().as_ref().and_then(elements)) {
            (SymTensor::Shaped(shape), Some(elements)) => {
                let elements = elements.into_iter().map(Expr::int).collect();
                SymTensor::new(shape.clone(), Some(elements))
            }
            _ => known,
        }
    }

    fn number(&self, i: usize) -> Option<i64> {
        self.input(i).int()
    }

    /// Nodes that move elements.
    fn moved(&self, rank: usize) -> Option<SymTensor> {
        let node = self.node;
        Some(match node.op() {
            "Identity" | "Transpose" => self.input(0),
            _ if node.traits().contains(Traits::SHAPE_ONLY) => self.input(0).reshape(rank),
            "Gather" => self.input(0).gather(&self.input(1)),
            "Slice" => {
                let SymTensor::Vector(data) = self.input(0) else { return None };
                let step = if node.input(4).is_some() { self.number(4)? } else { 1 };
                let (start, end) = (self.number(1)?, self.number(2)?);
                let positions = eval::slice_positions(start, end, step, data.len())?;
                SymTensor::Vector(data).pick(&positions)
            }
            "Concat" => {
                let parts: Vec<_> = (0..node.inputs().len()).map(|i| self.input(i)).collect();
                SymTensor::concat(&parts)
            }
            "Expand" => self.input(0).expand(usize::try_from(self.number(1)?).ok()?),
            "Tile" => {
                let times = usize::try_from(self.number(1)?).ok();
                let times = times.filter(|&t| t <= SymTensor::MAX_ELEMENTS)?;
                SymTensor::concat(&vec![self.input(0); times])
            }
            _ => return None,
        })
    }

    /// Nodes that make integers of sizes or of nothing.
    fn made(&self) -> Option<SymTensor> {
        let node = self.node;
        Some(match node.op() {
            "Shape" => {
                let range = attrs::Shape::read(node).ok()?;
                let shape = self.input(0).shape()?;
                SymTensor::Vector(eval::shape_range(&shape, range.start, range.end).to_vec())
            }
            "Size" => self.input(0).numel(),
            "ConstantOfShape" => {
                let sizes = self.input(0).ints()?;
                let length = sizes.first().map_or(Some(1), |&s| usize::try_from(s).ok())?;
                let value = attrs::ConstantOfShape::read(node).ok()?.value?;
                let value = elements(&value)?.first().copied()?;
                SymTensor::Scalar(Expr::int(value)).expand(length)
            }
            "Range" => {
                let (start, end, step) = (self.number(0)?, self.number(1)?, self.number(2)?);
                let inside = |i: i64| if step > 0 { i < end } else { i > end };
                let length = end.checked_sub(start)?.checked_div(step)?;
                if length > SymTensor::MAX_ELEMENTS as i64 {
                    return None;
                }
                let all = std::iter::successors(Some(start), |i| i.checked_add(step));
                SymTensor::Vector(all.take_while(|&i| inside(i)).map(Expr::int).collect())
            }
            _ => return None,
        })
    }

    fn computed(&self, dtype: DType) -> Option<SymTensor> {
        let node = self.node;
        let x = self.input(0);
        let pair = |f: fn(&Expr, &Expr) -> Option<Expr>| {
            SymTensor::zip([&x, &self.input(1)], |[a, b]| f(a, b))
        };
        let found = match node.op() {
            "Cast" => return self.cast(dtype),
            "Add" => pair(|a, b| Some(a + b)),
            "Sub" => pair(|a, b| Some(a - b)),
            "Mul" => pair(|a, b| Some(a * b)),
            "Div" => pair(quotient),
            "Mod" => pair(remainder),
            "Max" if node.inputs().len() == 2 => pair(|a, b| Some(Expr::max(a, b))),
            "Min" if node.inputs().len() == 2 => pair(|a, b| Some(Expr::min(a, b))),
            "Neg" => x.map(|a| Some(Expr::ZERO - a.clone())),
            "Abs" => x.map(|a| (lowest(a)? >= 0).then(|| a.clone())),
            "ReduceProd" if self.reduces_all() => SymTensor::Scalar(x.product()?),
            "ReduceSum" if self.reduces_all() => SymTensor::Scalar(x.sum()?),
            "Equal" => pair(|a, b| equal(a, b).map(truth)),
            "Less" => pair(|a, b| less(a, b).map(truth)),
            "Greater" => pair(|a, b| less(b, a).map(truth)),
            "LessOrEqual" => pair(|a, b| less(b, a).map(|t| truth(!t))),
            "GreaterOrEqual" => pair(|a, b| less(a, b).map(|t| truth(!t))),
            "Not" => x.map(|a| Some(truth(a.as_int()? == 0))),
            "And" => pair(|a, b| Some(Expr::int(a.as_int()? & b.as_int()?))),
            "Or" => pair(|a, b| Some(Expr::int(a.as_int()? | b.as_int()?))),
            "Where" => {
                let chosen = |[c, a, b]: [&Expr; 3]| {
                    Some(if c.as_int()? == 0 { b.clone() } else { a.clone() })
                };
                return Some(SymTensor::zip([&x, &self.input(1), &self.input(2)], chosen));
            }
            _ => return None,
        };
        let fits = |e: &Expr| e.as_int().is_none_or(|i| i32::try_from(i).is_ok());
        (dtype == DType::I64 || found.elements()?.iter().all(fits)).then_some(found)
    }

    fn cast(&self, to: DType) -> Option<SymTensor> {
        if attrs::Cast::to(self.node) != Ok(schema::data_type(to)) {
            return None;
        }
        let from = self.cx.known_dtype(self.node.input(0)?)?;
        let x = self.input(0);
        let small = |e: &Expr| match e.as_int() {
            Some(i) => i32::try_from(i).is_ok(),
            None => lowest(e).is_some_and(|l| l >= 0),
        };
        match (from, to) {
            (DType::I64 | DType::I32 | DType::Bool, DType::I64)
            | (DType::I32 | DType::Bool, DType::I32)
            | (DType::Bool, DType::Bool) => Some(x),
            (DType::I64, DType::I32) => x.elements()?.iter().all(small).then_some(x),
            (_, DType::Bool) => Some(x.map(|e| Some(truth(!equal(e, &Expr::ZERO)?)))),
            _ => None,
        }
    }

    fn reduces_all(&self) -> bool {
        let options = attrs::ReduceSum::read(self.node);
        let over = match self.node.input(1) {
            None => options.is_ok_and(|o| !o.noop_with_empty_axes),
            Some(_) => self.input(1).ints().is_some_and(|a| matches!(a[..], [0 | -1])),
        };
        over && matches!(self.input(0), SymTensor::Vector(_))
    }
}

fn truth(holds: bool) -> Expr {
    Expr::int(holds.into())
}

fn elements(t: &Tensor) -> Option<Vec<i64>> {
    match t.dtype() {
        DType::Bool => Some(t.to_vec::<bool>()?.into_iter().map(i64::from).collect()),
        _ => t.to_ints(),
    }
}
