//! The elements of integer vectors and scalars that nodes compute from sizes.

use super::bounds::{equal, less, lowest};
use crate::eval;
use pt2onnx_ir::{Builder, Node, NodeId, Traits, Value, attrs, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// The longest vector that is followed; vectors of sizes are short.
const LONGEST: usize = 64;

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

/// The parts of a vector.
fn parts(cx: &Builder, node: &Node) -> Option<Vec<(Value, Vec<Expr>)>> {
    let whole = Sized { cx, node, output: *node.outputs().first()? }.input(0)?;
    let mut rest = whole.as_slice();
    let part = |&output: &Value| {
        let size = cx.known_shape(output)?.first()?.as_int()?;
        let (part, more) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        rest = more;
        Some((output, part.to_vec()))
    };
    node.outputs().iter().map(part).collect()
}

fn of_output(cx: &Builder, node: &Node, output: Value) -> Option<Vec<Expr>> {
    let n = Sized { cx, node, output };
    let dtype = cx.known_dtype(output)?;
    if !matches!(dtype, DType::I64 | DType::I32 | DType::Bool) || n.rank(output)? > 1 {
        return None;
    }
    let elements = n.moved().or_else(|| n.made()).or_else(|| n.computed(dtype))?;
    (elements.len() <= LONGEST).then_some(elements)
}

/// A node that computes a vector or scalar.
struct Sized<'a, 'm> {
    cx: &'a Builder<'m>,
    node: &'a Node,
    output: Value,
}

impl Sized<'_, '_> {
    fn rank(&self, value: Value) -> Option<usize> {
        Some(self.cx.known_shape(value)?.len())
    }

    /// The elements of an input.
    fn input(&self, i: usize) -> Option<Vec<Expr>> {
        let value = self.node.input(i)?;
        self.cx.contents(value).or_else(|| {
            let tensor = self.cx.constant_of(value).filter(|t| t.has_data() && t.rank() <= 1)?;
            let elements = elements(&tensor)?;
            Some(elements.into_iter().map(Expr::int).collect())
        })
    }

    fn numbers(&self, i: usize) -> Option<Vec<i64>> {
        self.input(i)?.iter().map(Expr::as_int).collect()
    }

    fn all(&self) -> Option<Vec<Vec<Expr>>> {
        (0..self.node.inputs().len()).map(|i| self.input(i)).collect()
    }

    /// Nodes that take elements as they are, or put them elsewhere.
    fn moved(&self) -> Option<Vec<Expr>> {
        let node = self.node;
        Some(match node.op() {
            "Identity" | "Transpose" => self.input(0)?,
            _ if node.traits().contains(Traits::SHAPE_ONLY) => self.input(0)?,
            "Gather" => {
                let data = self
                    .input(0)
                    .filter(|_| node.input(0).and_then(|v| self.rank(v)) == Some(1))?;
                let pick = |i: &i64| data.get(eval::axis(*i, data.len())?).cloned();
                self.numbers(1)?.iter().map(pick).collect::<Option<_>>()?
            }
            "Slice" => self.slice()?,
            "Concat" => self.all()?.concat(),
            "Expand" | "Tile" => {
                let (data, sizes) = (self.input(0)?, self.numbers(1)?);
                let [times] = sizes.as_slice() else { return None };
                let times = usize::try_from(*times).ok().filter(|&t| t <= LONGEST)?;
                match (node.op(), data.len(), times) {
                    ("Tile", ..) => std::iter::repeat_n(data, times).flatten().collect(),
                    (_, 1, _) => vec![data.first()?.clone(); times],
                    (_, _, 1) => data,
                    (_, length, _) if length == times => data,
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// Nodes that make integers of sizes or of nothing.
    fn made(&self) -> Option<Vec<Expr>> {
        let node = self.node;
        let shape = || self.cx.known_shape(node.input(0)?);
        Some(match node.op() {
            "Shape" => {
                let range = attrs::Shape::read(node).ok()?;
                eval::shape_range(&shape()?, range.start, range.end).to_vec()
            }
            "Size" => vec![Expr::product(shape()?)],
            "ConstantOfShape" => {
                let sizes = self.numbers(0)?;
                let length = sizes.first().map_or(Some(1), |&s| usize::try_from(s).ok())?;
                let value = attrs::ConstantOfShape::read(node).ok()?.value?;
                let value = elements(&value)?.first().copied()?;
                (length <= LONGEST).then(|| vec![Expr::int(value); length])?
            }
            "Range" => {
                let [start, end, step] = [self.numbers(0)?, self.numbers(1)?, self.numbers(2)?];
                let (start, end, step) = (*start.first()?, *end.first()?, *step.first()?);
                let inside = |i: i64| if step > 0 { i < end } else { i > end };
                let length = end.checked_sub(start)?.checked_div(step)?;
                if length > LONGEST as i64 {
                    return None;
                }
                let all = std::iter::successors(Some(start), |i| i.checked_add(step));
                all.take_while(|&i| inside(i)).map(Expr::int).collect()
            }
            _ => return None,
        })
    }

    fn computed(&self, dtype: DType) -> Option<Vec<Expr>> {
        let node = self.node;
        if node.op() == "Cast" {
            return self.cast(dtype);
        }
        let pair =
            |f: fn(&Expr, &Expr) -> Option<Expr>| elementwise(&self.input(0)?, &self.input(1)?, f);
        let truth = |b: Option<bool>| b.map(|b| Expr::int(b.into()));
        let found = match node.op() {
            "Add" => pair(|a, b| Some(a + b))?,
            "Sub" => pair(|a, b| Some(a - b))?,
            "Mul" => pair(|a, b| Some(a * b))?,
            "Div" => pair(quotient)?,
            "Mod" => pair(remainder)?,
            "Max" if node.inputs().len() == 2 => pair(|a, b| Some(Expr::max(a, b)))?,
            "Min" if node.inputs().len() == 2 => pair(|a, b| Some(Expr::min(a, b)))?,
            "Neg" => self.input(0)?.iter().map(|a| Expr::int(0) - a.clone()).collect(),
            "Abs" => {
                let positive = |a: &Expr| (lowest(a)? >= 0).then(|| a.clone());
                self.input(0)?.iter().map(positive).collect::<Option<_>>()?
            }
            "ReduceProd" if self.reduces_all() => vec![Expr::product(self.input(0)?)],
            "ReduceSum" if self.reduces_all() => vec![Expr::sum(self.input(0)?)],
            "Equal" => return pair(|a, b| equal(a, b).map(|t| Expr::int(t.into()))),
            "Less" => return pair(|a, b| less(a, b).map(|t| Expr::int(t.into()))),
            "Greater" => return pair(|a, b| less(b, a).map(|t| Expr::int(t.into()))),
            "LessOrEqual" => return pair(|a, b| less(b, a).map(|t| Expr::int((!t).into()))),
            "GreaterOrEqual" => return pair(|a, b| less(a, b).map(|t| Expr::int((!t).into()))),
            "Not" => {
                let not = |a: &Expr| truth(Some(a.as_int()? == 0));
                return self.input(0)?.iter().map(not).collect();
            }
            "And" => return pair(|a, b| Some(Expr::int(a.as_int()? & b.as_int()?))),
            "Or" => return pair(|a, b| Some(Expr::int(a.as_int()? | b.as_int()?))),
            "Where" => return self.chosen(),
            _ => return None,
        };
        let fits = |e: &Expr| e.as_int().is_none_or(|i| i32::try_from(i).is_ok());
        (dtype == DType::I64 || found.iter().all(fits)).then_some(found)
    }

    fn cast(&self, to: DType) -> Option<Vec<Expr>> {
        if attrs::Cast::to(self.node) != Ok(schema::data_type(to)) {
            return None;
        }
        let from = self.cx.known_dtype(self.node.input(0)?)?;
        let elements = self.input(0)?;
        let small = |e: &Expr| match e.as_int() {
            Some(i) => i32::try_from(i).is_ok(),
            None => lowest(e).is_some_and(|l| l >= 0),
        };
        match (from, to) {
            (DType::I64 | DType::I32 | DType::Bool, DType::I64)
            | (DType::I32 | DType::Bool, DType::I32) => Some(elements),
            (DType::I64, DType::I32) => elements.iter().all(small).then_some(elements),
            (DType::Bool, DType::Bool) => Some(elements),
            (_, DType::Bool) => {
                let truth = |e: &Expr| Some(Expr::int((!equal(e, &Expr::int(0))?).into()));
                elements.iter().map(truth).collect()
            }
            _ => None,
        }
    }

    /// Whether a reduction is over the only dimension.
    fn reduces_all(&self) -> bool {
        let options = attrs::ReduceSum::read(self.node);
        let over = match self.node.input(1) {
            None => options.is_ok_and(|o| !o.noop_with_empty_axes),
            Some(_) => self.numbers(1).is_some_and(|a| matches!(a[..], [0 | -1])),
        };
        over && self.node.input(0).and_then(|x| self.rank(x)) == Some(1)
    }

    /// `Where`, if its condition is known.
    fn chosen(&self) -> Option<Vec<Expr>> {
        let (condition, a, b) = (self.input(0)?, self.input(1)?, self.input(2)?);
        let length = common(common(condition.len(), a.len())?, b.len())?;
        let at = |v: &[Expr], i: usize| v.get(if v.len() == 1 { 0 } else { i }).cloned();
        let one = |i: usize| match at(&condition, i)?.as_int()? {
            0 => at(&b, i),
            _ => at(&a, i),
        };
        (0..length).map(one).collect()
    }

    /// A slice along the only dimension.
    fn slice(&self) -> Option<Vec<Expr>> {
        let one = |i: usize| match self.numbers(i)?.as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        let data = self.input(0).filter(|_| self.rank(self.output) == Some(1))?;
        let step = if self.node.input(4).is_some() { one(4)? } else { 1 };
        let all = eval::slice_positions(one(1)?, one(2)?, step, data.len())?;
        all.into_iter().map(|i| data.get(i).cloned()).collect()
    }
}

/// The elements of a constant of integers or bools.
fn elements(t: &Tensor) -> Option<Vec<i64>> {
    match t.dtype() {
        DType::Bool => Some(t.to_vec::<bool>()?.into_iter().map(i64::from).collect()),
        _ => t.to_ints(),
    }
}

/// `a / b`, rounded towards zero; both must not be negative if they are not numbers. ONNX does not
/// define what a division by 0 is.
fn quotient(a: &Expr, b: &Expr) -> Option<Expr> {
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return a.checked_div(b).map(Expr::int);
    }
    (lowest(a)? >= 0 && lowest(b)? >= 0).then(|| a.floor_div(b))
}

fn remainder(a: &Expr, b: &Expr) -> Option<Expr> {
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return (a >= 0 && b > 0).then(|| Expr::int(a % b));
    }
    (lowest(a)? >= 0 && lowest(b)? > 0).then(|| a.modulo(b))
}

fn elementwise(a: &[Expr], b: &[Expr], f: fn(&Expr, &Expr) -> Option<Expr>) -> Option<Vec<Expr>> {
    let length = common(a.len(), b.len())?;
    let at = |v: &[Expr], i: usize| v.get(if v.len() == 1 { 0 } else { i }).cloned();
    (0..length).map(|i| f(&at(a, i)?, &at(b, i)?)).collect()
}

/// The length of what vectors of two lengths broadcast to.
fn common(a: usize, b: usize) -> Option<usize> {
    match (a, b) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    }
}
