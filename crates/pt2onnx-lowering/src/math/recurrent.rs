//! Recurrent networks over whole sequences: `LSTM`, `GRU` and `RNN`, or a `Scan` where the hidden
//! state is projected.

use crate::{Cx, FromArg, LowerError, Lowered, ParamType, math::dropout::dropout};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;

/// The states that a network starts with: the hidden state and, of an LSTM, the cell state.
#[derive(Debug, Clone)]
pub struct States(pub Vec<Value>);

impl FromArg for States {
    fn accepts(ty: &ParamType) -> bool {
        Value::accepts(ty) || Vec::<Value>::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Tensors(_) => Vec::from_arg(cx, arg).map(States),
            _ => Value::from_arg(cx, arg).map(|state| States(vec![state])),
        }
    }
}

impl States {
    /// The first of them.
    pub fn hidden(&self) -> Lowered {
        self.0
            .first()
            .copied()
            .ok_or_else(|| LowerError::unsupported("a recurrent cell needs a state"))
    }
}

/// The kinds of networks.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `LSTM`.
    Lstm,
    /// `GRU`.
    Gru,
    /// A plain network with this activation of ONNX.
    Rnn(&'static str),
}

impl Kind {
    /// For each gate in ONNX's order, its position in PyTorch's weights. PyTorch orders an LSTM's
    /// gates input, forget, cell, output (ONNX: input, output, forget, cell) and a GRU's gates
    /// reset, update, new (ONNX: update, reset, new).
    fn gates(self) -> &'static [i64] {
        match self {
            Kind::Lstm => &[0, 3, 1, 2],
            Kind::Gru => &[1, 0, 2],
            Kind::Rnn(_) => &[0],
        }
    }
}

/// The layers of a network.
pub struct Network {
    /// Their kind.
    pub kind: Kind,
    /// For each layer and direction the weights of input and hidden state, then their biases.
    pub params: Vec<Value>,
    /// Whether `params` has biases.
    pub has_biases: bool,
    /// Their number.
    pub layers: i64,
    /// The probability that a result of a layer is dropped before the next.
    pub dropout: f64,
    /// Whether each layer also runs backwards.
    pub bidirectional: bool,
}

/// The lengths of the sequences of a batch. Later steps are padding.
#[derive(Clone, Copy)]
pub struct Lengths {
    /// int32, `(batch)`.
    pub lengths: Value,
    /// Whether a step is not padding: bool, `(time, batch)`.
    pub mask: Value,
}

/// One direction of a layer, or both.
pub struct Layer<'a> {
    /// The kind of its network.
    pub kind: Kind,
    /// The states that it starts with.
    pub start: &'a [Value],
    /// The weights of its directions, one after the other.
    pub weights: &'a [Value],
    /// How many weights a direction has.
    pub each: usize,
    /// ONNX's attribute `direction`.
    pub direction: &'static str,
    /// `None` if no sequence is padded.
    pub lengths: Option<Lengths>,
}

/// The results, and the last state of each layer: one node for each layer, and dropout between
/// them. `x` is `(time, batch, features)`. ONNX's result is `(time, directions, batch, hidden)`;
/// PyTorch has the directions side by side.
pub fn network(
    cx: &Cx,
    network: &Network,
    mut x: Value,
    start: &[Value],
    lengths: Option<Lengths>,
) -> Lowered<Vec<Value>> {
    let &Network { kind, params: ref weights, bidirectional, dropout: p, .. } = network;
    let directions = 1 + usize::from(bidirectional);
    let direction = if bidirectional { "bidirectional" } else { "forward" };
    let layers = usize::try_from(network.layers).unwrap_or(0);
    let each = if network.has_biases { 4 } else { 2 };
    // An LSTM's hidden state may be projected: then each direction has one more weight.
    let projects = weights.len() == layers * directions * (each + 1);
    let each = each + usize::from(projects);
    if layers == 0 || weights.len() != layers * directions * each {
        return Err(LowerError::unsupported(format!(
            "{layers} recurrent layers cannot have {} weights",
            weights.len()
        )));
    }
    if cx.rank(x) != 3 {
        return Err(LowerError::unsupported(
            "the input of a recurrent layer must have three dimensions",
        ));
    }
    let mut ends: Vec<Vec<Value>> = vec![Vec::new(); start.len()];
    for (layer, weights) in weights.chunks(directions * each).enumerate() {
        let first = Expr::int((layer * directions) as i64);
        let end = Expr::int(((layer + 1) * directions) as i64);
        x = match layer {
            1.. if p > 0.0 => dropout(cx, x, p)[0],
            _ => x,
        };
        let start: Vec<Value> = start.iter().map(|&s| cx.slice(s, 0, &first, &end, 1)).collect();
        let layer = Layer { kind, start: &start, weights, each, direction, lengths };
        let outputs = if projects { projected(cx, x, &layer)? } else { one_layer(cx, x, &layer)? };
        let all = outputs[0];
        x = if bidirectional {
            let [time, _, batch, hidden] =
                <[Expr; 4]>::try_from(cx.shape(all).to_vec()).map_err(|_| {
                    LowerError::unsupported("the sizes of a recurrent layer must be known")
                })?;
            let side_by_side = cx.transpose(all, &[0, 2, 1, 3]);
            cx.reshape(side_by_side, &[time, batch, hidden * 2])
        } else {
            cx.squeeze(all, &[1])
        };
        for (end, &output) in ends.iter_mut().zip(&outputs[1..]) {
            end.push(output);
        }
    }
    let ends = ends.iter().map(|e| cx.concat(e, 0));
    Ok([x].into_iter().chain(ends).collect())
}

/// All results, and the last of each state.
pub fn one_layer(cx: &Cx, x: Value, layer: &Layer) -> Lowered<Vec<Value>> {
    let &Layer { kind, start, weights, each, direction, lengths } = layer;
    let lengths = lengths.map(|l| l.lengths);
    let hidden = weights.get(1).and_then(|&w| cx.dim(w, 1).as_int());
    let hidden = hidden.ok_or_else(|| {
        LowerError::unsupported("the hidden size of a recurrent layer must be known at export")
    })?;
    // Weight `i` of every direction, gates in ONNX's order.
    let rows: Vec<i64> =
        kind.gates().iter().flat_map(|gate| (0..hidden).map(move |j| gate * hidden + j)).collect();
    let ordered = |w: Value| match kind {
        Kind::Rnn(_) => w,
        _ => cx.gather(w, cx.ints(&rows), 0),
    };
    let stacked = |pieces: Vec<Value>| {
        let pieces: Vec<Value> = pieces.iter().map(|&p| cx.unsqueeze(p, &[0])).collect();
        cx.concat(&pieces, 0)
    };
    let of_each = |i: usize| {
        let all = weights.chunks(each).filter_map(|w| w.get(i).copied());
        all.map(ordered).collect::<Vec<_>>()
    };
    let (w, r) = (stacked(of_each(0)), stacked(of_each(1)));
    let bias = (each == 4).then(|| {
        let pairs = of_each(2).into_iter().zip(of_each(3));
        stacked(pairs.map(|(wb, rb)| cx.concat(&[wb, rb], 0)).collect())
    });
    let directions = weights.len() / each;
    let hidden_size = Some(hidden);
    let h = start.first().copied();
    let outputs = match kind {
        Kind::Lstm => {
            let options = attrs::LSTM { direction, hidden_size, ..Default::default() };
            cx.lstm_n(3, x, w, r, bias, lengths, h, start.get(1).copied(), None, options)
        }
        Kind::Gru => {
            let options = attrs::GRU {
                direction,
                hidden_size,
                // As in PyTorch, the reset gate takes part after the hidden state's product and
                // bias.
                linear_before_reset: true,
                ..Default::default()
            };
            cx.gru_n(2, x, w, r, bias, lengths, h, options)
        }
        Kind::Rnn(activation) => {
            let options = attrs::RNN {
                direction,
                hidden_size,
                activations: vec![activation.to_owned(); directions],
                ..Default::default()
            };
            cx.rnn_n(2, x, w, r, bias, lengths, h, options)
        }
    };
    Ok(outputs.to_vec())
}

/// [`one_layer`] of an LSTM whose hidden state is multiplied by one more weight after each step,
/// which ONNX's `LSTM` does not have: a `Scan` for each direction. In steps that are padding,
/// states stay unchanged and results are 0.
fn projected(cx: &Cx, x: Value, layer: &Layer) -> Lowered<Vec<Value>> {
    let &[h, c] = layer.start else {
        return Err(LowerError::unsupported("only the hidden state of an LSTM can be projected"));
    };
    let mut results: [Vec<Value>; 3] = Default::default();
    for (i, weights) in layer.weights.chunks(layer.each).enumerate() {
        let [w_ih, w_hh, biases @ .., projection] = weights else {
            return Err(LowerError::unsupported(
                "an LSTM needs weights of the input, of the hidden state, and of the projection",
            ));
        };
        let bias = match biases {
            &[ih, hh] => Some(cx.add(ih, hh)),
            _ => None,
        };
        // The input's part of the gates, of all steps at once.
        let inputs = linear(cx, x, *w_ih, bias);
        let of_direction = |state: Value| cx.take(state, 0, &Expr::int(i as i64));
        let mut given = vec![of_direction(h), of_direction(c), inputs];
        let dtype = cx.dtype(inputs);
        let [state, cell] = [given[0], given[1]].map(|s| Type::tensor(dtype, cx.shape(s)));
        given.extend(layer.lengths.map(|l| cx.unsqueeze(l.mask, &[2])));
        let time = cx.dim(inputs, 0);
        let step = |v: &Value| Type::tensor(cx.dtype(*v), &cx.shape(*v)[1..]);
        let types: Vec<Type> =
            [state.clone(), cell.clone()].into_iter().chain(given[2..].iter().map(step)).collect();
        let body = cx.region(&types, |values| {
            let hidden = linear(cx, values[0], *w_hh, None);
            let [h, c] = lstm_gates(cx, cx.add(values[2], hidden), values[1]);
            let h = linear(cx, h, *projection, None);
            match values.get(3) {
                Some(&real) => vec![
                    cx.select(real, h, values[0]),
                    cx.select(real, c, values[1]),
                    cx.select(real, h, 0.0),
                ],
                None => vec![h, c, cx.identity(h)],
            }
        });
        let sequences = given.len() - 2;
        let options = attrs::Scan {
            scan_input_directions: Some(vec![i as i64; sequences]),
            scan_output_directions: Some(vec![i as i64]),
            ..Default::default()
        };
        let found = cx.scan_op(3, &given, body, sequences as i64, options);
        let all = Type::tensor(dtype, [&[time], &cx.shape(given[0])[..]].concat());
        for (i, ty) in [state, cell, all].into_iter().enumerate() {
            cx.set_type(found[i], ty);
            results[i].push(cx.unsqueeze(found[i], &[usize::from(i == 2)]));
        }
    }
    let [h, c, all] = results;
    Ok(vec![cx.concat(&all, 1), cx.concat(&h, 0), cx.concat(&c, 0)])
}

/// `x @ w.T + b`
pub fn linear(cx: &Cx, x: Value, w: Value, b: Option<Value>) -> Value {
    if cx.rank(x) == 2 {
        let options = attrs::Gemm { trans_b: true, ..Default::default() };
        return cx.gemm(x, w, b, options);
    }
    let product = cx.matmul(x, cx.transpose(w, &[1, 0]));
    biased(cx, product, b)
}

/// `x + bias`
pub fn biased(cx: &Cx, x: Value, bias: Option<Value>) -> Value {
    bias.map_or(x, |bias| cx.add(x, bias))
}

/// `n` gates, which are side by side in the last dimension.
pub fn gates(cx: &Cx, all: Value, n: i64) -> Vec<Value> {
    let axis = cx.rank(all).saturating_sub(1);
    let hidden = cx.dim(all, -1).floor_div(&Expr::int(n));
    cx.split(all, axis, &vec![hidden; n as usize])
}

/// The next hidden and cell state: `c' = f * c + i * g`, `h' = o * tanh(c')` with `i, f, g, o` from
/// `all`.
pub fn lstm_gates(cx: &Cx, all: Value, c: Value) -> [Value; 2] {
    let gates = gates(cx, all, 4);
    let (input, forget, output) =
        (cx.sigmoid(gates[0]), cx.sigmoid(gates[1]), cx.sigmoid(gates[3]));
    let c = cx.add(cx.mul(forget, c), cx.mul(input, cx.tanh(gates[2])));
    [cx.mul(output, cx.tanh(c)), c]
}
