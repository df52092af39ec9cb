//! `LSTM`, `GRU` and `RNN` as a `Scan` for each direction, with the formulas of the ONNX standard;
//! and with steps in front of batches.

use crate::legalise::{Emitted, Outcome, input, replace, without};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

#[derive(Clone, Copy)]
enum Kind {
    Lstm,
    /// The reset gate is applied after the product with the hidden state, as in PyTorch.
    Gru,
    Rnn,
}

/// The activations that are known, by ONNX's names.
#[derive(Clone, Copy)]
enum Activation {
    Relu,
    Sigmoid,
    Tanh,
}

impl Activation {
    fn of(name: &str) -> Option<Self> {
        match name {
            "Relu" => Some(Self::Relu),
            "Sigmoid" => Some(Self::Sigmoid),
            "Tanh" => Some(Self::Tanh),
            _ => None,
        }
    }

    fn apply(self, cx: &Builder, x: Value) -> Value {
        match self {
            Self::Relu => cx.relu(x),
            Self::Sigmoid => cx.sigmoid(x),
            Self::Tanh => cx.tanh(x),
        }
    }
}

/// A network, with what a `Scan` needs to know of it.
pub(crate) struct Network {
    kind: Kind,
    /// For each direction, whether it runs from the last step to the first.
    backwards: Vec<bool>,
    /// The activations of all directions.
    activations: Vec<Activation>,
    hidden: i64,
}

impl Network {
    /// `None` if the node has peepholes, clips, another layout, or an activation or gate that is
    /// not known here.
    pub fn of(model: &Model, node: &Node) -> Option<Self> {
        use Activation::{Sigmoid, Tanh};
        let (kind, direction, given, usual, layout, clip) = match node.op() {
            "LSTM" => {
                let a = attrs::LSTM::read(node).ok().filter(|a| !a.input_forget)?;
                let usual: &[Activation] = &[Sigmoid, Tanh, Tanh];
                (Kind::Lstm, a.direction, a.activations, usual, a.layout, a.clip)
            }
            "GRU" => {
                let a = attrs::GRU::read(node).ok().filter(|a| a.linear_before_reset)?;
                (Kind::Gru, a.direction, a.activations, &[Sigmoid, Tanh][..], a.layout, a.clip)
            }
            "RNN" => {
                let a = attrs::RNN::read(node).ok()?;
                let given = node.attribute("activations").map(|_| a.activations);
                (Kind::Rnn, a.direction, given, &[Tanh][..], a.layout, a.clip)
            }
            _ => return None,
        };
        let backwards = match direction {
            "forward" => vec![false],
            "reverse" => vec![true],
            "bidirectional" => vec![false, true],
            _ => return None,
        };
        let wanted = usual.len() * backwards.len();
        let activations: Vec<Activation> = match given {
            Some(names) => names.iter().map(|name| Activation::of(name)).collect::<Option<_>>()?,
            None => usual.repeat(backwards.len()),
        };
        let of = |input: usize| model.shape(node.input(input)?).filter(|dims| dims.len() == 3);
        let (_, _, hidden) = (of(0)?, of(1)?, of(2)?.get(2)?.as_int()?);
        let plain = layout == 0 && clip.is_none() && node.input(7).is_none();
        let whole = plain && activations.len() == wanted;
        whole.then_some(Self { kind, backwards, activations, hidden })
    }

    /// All results of the node: those of each step, and the last of each state.
    pub fn emit(&self, cx: &Builder, node: &Node) -> Emitted {
        let x = input(node, 0)?;
        let real = node.input(4).map(|lengths| steps_within(cx, x, lengths));
        let mut results: Vec<Vec<Value>> = Vec::new();
        for direction in 0..self.backwards.len() {
            for (i, made) in self.scan(cx, node, direction, real)?.into_iter().enumerate() {
                match results.get_mut(i) {
                    Some(list) => list.push(made),
                    None => results.push(vec![made]),
                }
            }
        }
        // The directions are a dimension, in the results of all steps the second one.
        let joined = results.iter().enumerate().map(|(i, list)| {
            let axis = usize::from(i == 0);
            let list: Vec<Value> = list.iter().map(|&made| cx.unsqueeze(made, &[axis])).collect();
            cx.concat(&list, axis)
        });
        Ok(joined.collect())
    }

    /// The results of one direction. Steps that are not `real` keep the states, with a result of 0.
    fn scan(&self, cx: &Builder, node: &Node, direction: usize, real: Option<Value>) -> Emitted {
        let own = |value: Value| cx.take(value, 0, &Expr::int(direction as i64));
        let (x, w, r) = (input(node, 0)?, own(input(node, 1)?), own(input(node, 2)?));
        let biases = node.input(3).map(|both| {
            let half = cx.dim(r, 0);
            cx.split(own(both), 0, &[half.clone(), half])
        });
        let bias = |i: usize| biases.as_ref().and_then(|halves| halves.get(i).copied());
        // The weights of the hidden state, and their bias. A GRU needs those of its last gate
        // apart.
        let parts = match self.kind {
            Kind::Gru => vec![Expr::int(2 * self.hidden), Expr::int(self.hidden)],
            Kind::Lstm | Kind::Rnn => vec![cx.dim(r, 0)],
        };
        let weights = cx.split(r, 0, &parts).into_iter().map(|part| transposed(cx, part));
        let weights: Vec<(Value, Option<Value>)> = match bias(1) {
            Some(bias) => weights.zip(cx.split(bias, 0, &parts).into_iter().map(Some)).collect(),
            None => weights.map(|part| (part, None)).collect(),
        };
        let start = |i: usize| match node.input(i) {
            Some(states) => own(states),
            None => cx.full(&[cx.dim(x, 1), Expr::int(self.hidden)], 0, cx.dtype(x)),
        };
        let mut given = vec![start(5)];
        if matches!(self.kind, Kind::Lstm) {
            given.push(start(6));
        }
        let states = given.len();
        // The input's part of the gates, of all steps at once.
        given.push(linear(cx, x, (transposed(cx, w), bias(0))));
        given.extend(real);
        let of_step = |&v: &Value| Type::tensor(cx.dtype(v), &cx.shape(v)[1..]);
        let whole = |&v: &Value| Type::tensor(cx.dtype(v), cx.shape(v));
        let mut types: Vec<Type> = given.iter().take(states).map(whole).collect();
        types.extend(given.iter().skip(states).map(of_step));
        let body = cx.region(&types, |v| {
            let next = self.step(cx, direction, &v[..states], v[states], &weights);
            let Some(&real) = v.get(states + 1) else {
                let result = cx.identity(next[0]);
                return next.into_iter().chain([result]).collect();
            };
            let kept = next.iter().zip(v).map(|(&new, &old)| cx.select(real, new, old));
            let mut results: Vec<Value> = kept.collect();
            results.push(cx.select(real, next[0], 0.0));
            results
        });
        let sequences = given.len() - states;
        let backwards = i64::from(self.backwards.get(direction).copied().unwrap_or_default());
        let options = attrs::Scan {
            scan_input_directions: Some(vec![backwards; sequences]),
            scan_output_directions: Some(vec![backwards]),
            ..Default::default()
        };
        let made = cx.scan_op(states + 1, &given, body, sequences as i64, options);
        for (&made, ty) in made.iter().zip(types.iter().take(states)) {
            cx.set_type(made, ty.clone());
        }
        let all = [&[cx.dim(x, 0)], &cx.shape(given[0])[..]].concat();
        cx.set_type(made[states], Type::tensor(cx.dtype(x), all));
        let mut results = vec![made[states]];
        results.extend(&made[..states]);
        Ok(results)
    }

    /// The next states, from the input's part of the gates, `x`, and the hidden state's weights.
    fn step(
        &self,
        cx: &Builder,
        direction: usize,
        states: &[Value],
        x: Value,
        weights: &[(Value, Option<Value>)],
    ) -> Vec<Value> {
        let each = self.activations.len() / self.backwards.len();
        let activated = |i: usize, v: Value| match self.activations.get(direction * each + i) {
            Some(activation) => activation.apply(cx, v),
            None => v,
        };
        let gates = |v: Value, n: usize| cx.split(v, 1, &vec![Expr::int(self.hidden); n]);
        let hidden = states[0];
        let of_hidden = linear(cx, hidden, weights[0]);
        match self.kind {
            Kind::Rnn => vec![activated(0, cx.add(x, of_hidden))],
            Kind::Lstm => {
                let all = gates(cx.add(x, of_hidden), 4);
                let [i, o, f] = [0, 1, 2].map(|gate| activated(0, all[gate]));
                let cell = cx.add(cx.mul(f, states[1]), cx.mul(i, activated(1, all[3])));
                vec![cx.mul(o, activated(2, cell)), cell]
            }
            Kind::Gru => {
                let (of_x, of_h) = (gates(x, 3), gates(of_hidden, 2));
                let [z, r] = [0, 1].map(|gate| activated(0, cx.add(of_x[gate], of_h[gate])));
                let past = cx.mul(r, linear(cx, hidden, weights[1]));
                let new = activated(1, cx.add(of_x[2], past));
                vec![cx.add(cx.mul(cx.sub(1.0, z), new), cx.mul(z, hidden))]
            }
        }
    }
}

/// Whether a step is one of the sequence: bool, `(time, batch, 1)`.
fn steps_within(cx: &Builder, x: Value, lengths: Value) -> Value {
    let steps = cx.unsqueeze(cx.iota(&cx.dim(x, 0)), &[1, 2]);
    cx.less(steps, cx.unsqueeze(cx.cast(lengths, DType::I64), &[1]))
}

fn transposed(cx: &Builder, w: Value) -> Value {
    cx.transpose(w, &[1, 0])
}

/// `x @ w + bias`
fn linear(cx: &Builder, x: Value, (w, bias): (Value, Option<Value>)) -> Value {
    let product = cx.matmul(x, w);
    bias.map_or(product, |bias| cx.add(product, bias))
}

/// Transposes in place of `layout`: in older forms, steps stand before batches.
pub(crate) fn time_first(model: &mut Model, id: NodeId) -> Outcome {
    if model[id].int("layout").unwrap_or(0) == 0 {
        return without(model, id, "layout");
    }
    replace(model, id, |cx, node| {
        let op = pt2onnx_ir::schema::lookup(node.op(), 7).ok_or("it is no operator")?.name;
        // All but the weights and lengths.
        let moved = |(i, v): (usize, &Option<Value>)| match i {
            0 | 5 | 6 => v.map(|v| cx.transpose(v, &[1, 0, 2])),
            _ => *v,
        };
        let inputs: Vec<_> = node.inputs().iter().enumerate().map(moved).collect();
        let mut given = node.attributes.clone();
        given.retain(|(name, _)| name != "layout");
        let made = cx.emit(op, &inputs, given, node.outputs().len());
        let back = |(i, &v): (usize, &Value)| match i {
            0 => cx.transpose(v, &[2, 0, 1, 3]),
            _ => cx.transpose(v, &[1, 0, 2]),
        };
        Ok(made.iter().enumerate().map(back).collect())
    })
}
