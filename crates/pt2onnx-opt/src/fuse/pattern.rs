//! Patterns over nodes, written as the expressions that they find.
//!
//! `Mul(x, Sigmoid(x))` finds those two nodes; `x` stands for any value, the same wherever it is written. A number finds
//! constants whose one element is that number, `{a | b}` either of two, `name:Op(..)` lets `name` be that node's output.
//! `?Op(x, Op(..))` finds that node or, if there is none, the first node that stands among its operands.
//! Operands of commutative operators may stand in either order; inputs that are not written may be there.

use pt2onnx_ir::{Def, Model, NodeId, Type, Use, Value};
use pt2onnx_tensor::{DType, Tensor};
use smallvec::SmallVec;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pattern {
    /// Any value, the same under the same name.
    Name(&'static str),
    /// A constant of that one element.
    Number(f64),
    /// Any of these.
    Either(Vec<Pattern>),
    /// The only output of a node of ONNX's own domain, perhaps with a name.
    Node(Option<&'static str>, &'static str, Vec<Pattern>),
}

/// Where a pattern was found.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    names: SmallVec<[(&'static str, Value); 8]>,
    /// The nodes, each in front of those that it takes its inputs from.
    pub nodes: SmallVec<[NodeId; 8]>,
}

impl Found {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<Value> {
        let found = self.names.iter().find(|(n, _)| *n == name);
        found.map(|(_, value)| *value)
    }
}

impl Pattern {
    /// Reads a pattern; `None` if it is none.
    pub fn parse(text: &'static str) -> Option<Self> {
        let mut parser = Parser { text };
        let pattern = parser.pattern()?;
        parser.text.is_empty().then_some(pattern)
    }

    /// The operators that the last node of the pattern can be.
    pub fn ends(&self) -> Vec<&'static str> {
        match self {
            Self::Node(_, op, _) => vec![op],
            Self::Either(all) => all.iter().flat_map(Self::ends).collect(),
            _ => Vec::new(),
        }
    }

    /// Finds the pattern that ends in a node. Nothing outside of it uses what its other nodes make, and all stand in one
    /// region.
    pub fn find(&self, model: &Model, last: NodeId) -> Option<Found> {
        let [output] = model[last].outputs() else {
            return None;
        };
        let complete = |found: &Found| {
            let inside = |u: Use| matches!(u, Use::Input(node, _) if found.nodes.contains(&node));
            found.nodes.iter().all(|&node| {
                let own = || model[model[node].outputs()[0]].uses().all(inside);
                model[node].region() == model[last].region() && (node == last || own())
            })
        };
        solve(model, &[(self, *output)], Found::default(), &complete)
    }
}

/// Finds all goals, with what is found already, so that the whole is complete.
fn solve(
    model: &Model,
    goals: &[(&Pattern, Value)],
    mut found: Found,
    complete: &dyn Fn(&Found) -> bool,
) -> Option<Found> {
    let Some((&(pattern, value), rest)) = goals.split_first() else {
        return complete(&found).then_some(found);
    };
    let name = |found: &mut Found, name: &'static str| match found.get(name) {
        Some(known) => known == value,
        None => {
            found.names.push((name, value));
            true
        }
    };
    match pattern {
        Pattern::Name(n) => {
            name(&mut found, n).then(|| solve(model, rest, found, complete)).flatten()
        }
        Pattern::Number(number) => {
            is_number(model, value, *number).then(|| solve(model, rest, found, complete)).flatten()
        }
        Pattern::Either(all) => all.iter().find_map(|p| {
            let goals: Vec<_> = [(p, value)].into_iter().chain(rest.iter().copied()).collect();
            solve(model, &goals, found.clone(), complete)
        }),
        Pattern::Node(label, op, inputs) => {
            let id = model.producer(value)?;
            let node = &model[id];
            if !node.is(op) || node.outputs().len() != 1 || node.inputs().len() < inputs.len() {
                return None;
            }
            if let Some(label) = label
                && !name(&mut found, label)
            {
                return None;
            }
            if !found.nodes.contains(&id) {
                found.nodes.push(id);
            }
            let orders: &[[usize; 2]] = match commutes(op) && inputs.len() == 2 {
                true if node.inputs().len() != 2 => return None,
                true => &[[0, 1], [1, 0]],
                false => &[[0, 1]],
            };
            orders.iter().find_map(|order| {
                let place = |i: usize| order.get(i).copied().unwrap_or(i);
                let operands = inputs.iter().enumerate();
                let mut goals = operands
                    .map(|(i, p)| Some((p, node.input(place(i))?)))
                    .collect::<Option<Vec<_>>>()?;
                goals.extend_from_slice(rest);
                solve(model, &goals, found.clone(), complete)
            })
        }
    }
}

fn commutes(op: &str) -> bool {
    matches!(op, "Add" | "Mul" | "Min" | "Max" | "And" | "Or")
}

/// Whether a value is a constant of that one element, as near as its type can be to the number.
fn is_number(model: &Model, value: Value, number: f64) -> bool {
    let Some((dtype, element)) = number_of(model, value) else {
        return false;
    };
    let rounded = match dtype {
        DType::F16 => f64::from(half::f16::from_f64(number)),
        DType::BF16 => f64::from(half::bf16::from_f64(number)),
        DType::F32 => f64::from(number as f32),
        _ => number,
    };
    element == rounded || (element - rounded).abs() <= rounded.abs() * 1e-12
}

/// Type and element of a float constant that has one.
pub(super) fn number_of(model: &Model, value: Value) -> Option<(DType, f64)> {
    fn only<T: pt2onnx_tensor::Element>(t: &Tensor, f: impl Fn(T) -> f64) -> Option<f64> {
        Some(f(*t.to_vec::<T>()?.first()?))
    }
    let Def::Constant(t) = model[value].def() else {
        return None;
    };
    if t.numel() != 1 || !t.has_data() {
        return None;
    }
    let element = match t.dtype() {
        DType::F64 => only::<f64>(t, |v| v),
        DType::F32 => only::<f32>(t, f64::from),
        DType::F16 => only::<half::f16>(t, f64::from),
        DType::BF16 => only::<half::bf16>(t, f64::from),
        _ => None,
    };
    Some((t.dtype(), element?))
}

/// Element type and sizes of a value, if known.
pub(super) fn tensor_type(model: &Model, value: Value) -> Option<(DType, &pt2onnx_ir::Shape)> {
    match model[value].ty.as_ref()? {
        Type::Tensor(t) => Some((t.dtype, t.shape.as_ref()?)),
        _ => None,
    }
}

struct Parser {
    text: &'static str,
}

impl Parser {
    fn eat(&mut self, token: char) -> bool {
        self.text = self.text.trim_start();
        let rest = self.text.strip_prefix(token);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    /// Patterns with `separator` between, up to `close`.
    fn list(&mut self, separator: char, close: char) -> Option<Vec<Pattern>> {
        let mut all = Vec::new();
        loop {
            all.push(self.pattern()?);
            if self.eat(close) {
                return Some(all);
            }
            if !self.eat(separator) {
                return None;
            }
        }
    }

    fn word(&mut self) -> Option<&'static str> {
        self.text = self.text.trim_start();
        let inside = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let end = self.text.find(|c| !inside(c)).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        self.text = rest;
        (!word.is_empty()).then_some(word)
    }

    fn pattern(&mut self) -> Option<Pattern> {
        if self.eat('?') {
            let with = self.pattern()?;
            let Pattern::Node(.., operands) = &with else {
                return None;
            };
            let inner = |p: &&Pattern| matches!(p, Pattern::Node(..) | Pattern::Either(_));
            let without = operands.iter().find(inner)?.clone();
            return Some(Pattern::Either(vec![with, without]));
        }
        if self.eat('{') {
            return Some(Pattern::Either(self.list('|', '}')?));
        }
        let word = self.word()?;
        if let Ok(number) = word.parse() {
            return Some(Pattern::Number(number));
        }
        if self.eat(':') {
            return match self.pattern()? {
                Pattern::Node(None, op, inputs) => Some(Pattern::Node(Some(word), op, inputs)),
                _ => None,
            };
        }
        if self.eat('(') {
            return Some(Pattern::Node(None, word, self.list(',', ')')?));
        }
        Some(Pattern::Name(word))
    }
}
