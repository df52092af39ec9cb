//! Recurrent networks: whole sequences as `LSTM`, `GRU` and `RNN`, and single cells.

use crate::math::shape::as_recorded;
use crate::{
    AtenOp, Cx, LowerError, Lowered,
    args::Ignored,
    arguments, checks,
    cx::Outputs,
    math::recurrent::{
        Kind, Layer, Network, States, biased, gates, linear, lstm_gates, network, one_layer,
    },
    op,
};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_thnn_fused_gru_cell, fused_gru_cell),
    op!(aten::_thnn_fused_lstm_cell, fused_lstm_cell),
    op!(aten::gru_input, sequence(Kind::Gru)),
    op!(aten::gru_cell, gru_cell),
    op!(aten::lstm_input, sequence(Kind::Lstm)),
    op!(aten::lstm_cell, lstm_cell),
    op!(aten::mkldnn_rnn_layer, mkldnn_rnn_layer),
    op!(aten::rnn_relu_input, sequence(Kind::Rnn("Relu"))),
    op!(aten::rnn_relu_cell, rnn_relu_cell),
    op!(aten::rnn_tanh_input, sequence(Kind::Rnn("Tanh"))),
    op!(aten::rnn_tanh_cell, rnn_tanh_cell),
];

arguments! {
    /// Arguments of [`sequence`]. `params` has, for each layer and direction, the weights of the
    /// input and of the hidden state, then their biases.
    struct SequenceArgs {
        input: Value,
        hx: States,
        params: Vec<Value>,
        has_biases: bool,
        num_layers: i64,
        dropout: f64,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    }

    /// Arguments of single cells.
    struct CellArgs {
        input: Value,
        hx: States,
        w_ih: Value,
        w_hh: Value,
        b_ih: Option<Value>,
        b_hh: Option<Value>,
    }

    /// Arguments of [`mkldnn_rnn_layer`].
    struct MkldnnArgs {
        input: Value,
        weight0: Value,
        weight1: Value,
        weight2: Value,
        weight3: Value,
        hx_: Value,
        cx_: Value,
        reverse: bool,
        batch_sizes: Vec<i64>,
        mode: i64,
        hidden_size: Ignored,
        num_layers: Ignored,
        has_biases: bool,
        bidirectional: Ignored,
        batch_first: bool,
        train: Ignored,
    }
}

/// A recurrent network: the results, and the last state of each layer (of an LSTM, the last hidden
/// and the last cell state).
const fn sequence(kind: Kind) -> impl Fn(&Cx, SequenceArgs) -> Lowered<Outputs> + Copy {
    move |cx, args| {
        let swap = |x: Value| if args.batch_first { cx.swap_axes(x, 0, 1) } else { x };
        let layers = Network {
            kind,
            params: args.params,
            has_biases: args.has_biases,
            layers: args.num_layers,
            dropout: if args.train { args.dropout } else { 0.0 },
            bidirectional: args.bidirectional,
        };
        let mut outputs = network(cx, &layers, swap(args.input), &args.hx.0, None)?;
        if let Some(result) = outputs.first_mut() {
            *result = swap(*result);
        }
        Ok(outputs.into())
    }
}

/// An LSTM of one layer and direction, as PyTorch decomposes `lstm`. The last output is only for
/// gradients.
fn mkldnn_rnn_layer(cx: &Cx, args: MkldnnArgs) -> Lowered<Outputs> {
    // Mode 2 is LSTM. The decomposition puts time first itself.
    if args.mode != 2 || args.batch_first || !args.batch_sizes.is_empty() {
        return Err(LowerError::unsupported(
            "mkldnn_rnn_layer is supported only for an LSTM over unpacked sequences with time as first dimension",
        ));
    }
    let direction = if args.reverse { "reverse" } else { "forward" };
    let weights = [args.weight0, args.weight1, args.weight2, args.weight3];
    let each = if args.has_biases { 4 } else { 2 };
    let state = |s: Value| match cx.rank(s) {
        2 => cx.unsqueeze(s, &[0]),
        _ => s,
    };
    let start = [state(args.hx_), state(args.cx_)];
    let weights = &weights[..each];
    let layer = Layer { kind: Kind::Lstm, start: &start, weights, each, direction, lengths: None };
    let outputs = one_layer(cx, args.input, &layer)?;
    Ok([
        Some(cx.squeeze(outputs[0], &[1])),
        Some(as_recorded(cx, 1, outputs[1])),
        Some(as_recorded(cx, 2, outputs[2])),
        None,
    ]
    .into())
}

/// One step of an LSTM: the next hidden and cell state.
fn lstm_cell(cx: &Cx, args: CellArgs) -> Lowered<[Value; 2]> {
    let [h, c] = args.hx.0[..] else {
        return Err(LowerError::unsupported(
            "an LSTM cell needs two states, the hidden and the cell state",
        ));
    };
    let [input, hidden] = args.gates(cx, h);
    Ok(lstm_gates(cx, cx.add(input, hidden), c))
}

impl CellArgs {
    /// The gates' linear parts: that of the input, and that of the hidden state.
    fn gates(&self, cx: &Cx, h: Value) -> [Value; 2] {
        [linear(cx, self.input, self.w_ih, self.b_ih), linear(cx, h, self.w_hh, self.b_hh)]
    }
}

/// One step of a GRU.
fn gru_cell(cx: &Cx, args: CellArgs) -> Lowered {
    let h = args.hx.hidden()?;
    let [input, hidden] = args.gates(cx, h);
    Ok(gru_gates(cx, input, hidden, h))
}

/// One step of a recurrent network with `relu`.
fn rnn_relu_cell(cx: &Cx, args: CellArgs) -> Lowered {
    let [input, hidden] = args.gates(cx, args.hx.hidden()?);
    Ok(cx.relu(cx.add(input, hidden)))
}

/// One step of a recurrent network with `tanh`.
fn rnn_tanh_cell(cx: &Cx, args: CellArgs) -> Lowered {
    let [input, hidden] = args.gates(cx, args.hx.hidden()?);
    Ok(cx.tanh(cx.add(input, hidden)))
}

/// The next state `n + z * (h - n)`, where `n = tanh(i_n + r * h_n)`.
fn gru_gates(cx: &Cx, input: Value, hidden: Value, h: Value) -> Value {
    let (i, g) = (gates(cx, input, 3), gates(cx, hidden, 3));
    let (r, z) = (cx.sigmoid(cx.add(i[0], g[0])), cx.sigmoid(cx.add(i[1], g[1])));
    let n = cx.tanh(cx.add(i[2], cx.mul(r, g[2])));
    cx.add(n, cx.mul(z, cx.sub(h, n)))
}

/// [`lstm_cell`], given the products of the input and of the hidden state with their weights. The
/// last output is only for gradients.
fn fused_lstm_cell(
    cx: &Cx,
    input: Value,
    hidden: Value,
    c: Value,
    input_bias: Option<Value>,
    hidden_bias: Option<Value>,
) -> Lowered<Outputs> {
    let all = cx.add(biased(cx, input, input_bias), biased(cx, hidden, hidden_bias));
    let [h, c] = lstm_gates(cx, all, c);
    Ok([Some(h), Some(c), None].into())
}

/// [`gru_cell`], given the products of the input and of the hidden state with their weights. The
/// last output is only for gradients.
fn fused_gru_cell(
    cx: &Cx,
    input: Value,
    hidden: Value,
    h: Value,
    input_bias: Option<Value>,
    hidden_bias: Option<Value>,
) -> Lowered<Outputs> {
    let (input, hidden) = (biased(cx, input, input_bias), biased(cx, hidden, hidden_bias));
    Ok([Some(gru_gates(cx, input, hidden, h)), None].into())
}

checks! {
    // Gates in the order of ONNX.
    "aten.gru.input(x: f32[5, 1, 3], h: f32[1, 1, 2], [wi: f32[6, 3], wh: f32[6, 2]], False, 1, 0.0, False, False, False) -> (f32[5, 1, 2], f32[1, 1, 2])" => r#"
    val_0 = Gather <axis: int = 0> (wi, [2, 3, 0, 1, 4, 5])
    val_1 = Unsqueeze (val_0, [0])
    val_2 = Gather <axis: int = 0> (wh, [2, 3, 0, 1, 4, 5])
    val_3 = Unsqueeze (val_2, [0])
    val_4, gru_1 = GRU <hidden_size: int = 2, linear_before_reset: int = 1> (x, val_1, val_3, "", "", h)
    gru_0 = Squeeze (val_4, [1])
    "#;

    // One step.
    "aten.lstm_cell(x: f32[s0, 3], [h: f32[s0, 2], c: f32[s0, 2]], wi: f32[8, 3], wh: f32[8, 2]) -> (f32[s0, 2], f32[s0, 2])" => "
    val_0 = Gemm <transB: int = 1> (x, wi)
    val_1 = Gemm <transB: int = 1> (h, wh)
    val_2 = Add (val_0, val_1)
    val_3, val_4, val_5, val_6 = Split <axis: int = 1> (val_2, [2, 2, 2, 2])
    val_7 = Sigmoid (val_3)
    val_8 = Sigmoid (val_4)
    val_9 = Sigmoid (val_6)
    val_10 = Mul (val_8, c)
    val_11 = Tanh (val_5)
    val_12 = Mul (val_7, val_11)
    lstm_cell_1 = Add (val_10, val_12)
    val_13 = Tanh (lstm_cell_1)
    lstm_cell_0 = Mul (val_9, val_13)
    ";

    // A state with a wrong record has its own shape.
    "aten.lstm.input(x: f32[3, 1, 3], [h: f32[1, 1, 2], c: f32[1, 1, 2]], [wi: f32[8, 3], wh: f32[8, 2]], False, 1, 0.0, False, False, False) -> (f32[3, 1, 2], f32[1, 1, 1, 2], f32[1, 1, 1, 2])" => r#"
    val_0 = Gather <axis: int = 0> (wi, [0, 1, 6, 7, 2, 3, 4, 5])
    val_1 = Unsqueeze (val_0, [0])
    val_2 = Gather <axis: int = 0> (wh, [0, 1, 6, 7, 2, 3, 4, 5])
    val_3 = Unsqueeze (val_2, [0])
    val_4, lstm_1, lstm_2 = LSTM <hidden_size: int = 2> (x, val_1, val_3, "", "", h, c)
    lstm_0 = Squeeze (val_4, [1])
    "#;

    // A projected state is a scan.
    "aten.lstm.input(x: f32[s0, 1, 3], [h: f32[1, 1, 2], c: f32[1, 1, 5]], [wi: f32[20, 3], wh: f32[20, 2], wr: f32[2, 5]], False, 1, 0.0, False, False, False) -> (f32[s0, 1, 2], f32[1, 1, 2], f32[1, 1, 5])" => "
    val_0 = Transpose <perm: ints = [1, 0]> (wi)
    val_1 = MatMul (x, val_0)
    val_2 = Gather <axis: int = 0> (h, 0)
    val_3 = Gather <axis: int = 0> (c, 0)
    val_4, val_5, val_6 = Scan <body: graph = body (float[1,2] val_7, float[1,5] val_8, float[1,20] val_9) => (float[1,2] val_10, float[1,5] val_11, float[1,2] val_12)
    {
      val_13 = Gemm <transB: int = 1> (val_7, wh)
      val_14 = Add (val_9, val_13)
      val_15, val_16, val_17, val_18 = Split <axis: int = 1> (val_14, [5, 5, 5, 5])
      val_19 = Sigmoid (val_15)
      val_20 = Sigmoid (val_16)
      val_21 = Sigmoid (val_18)
      val_22 = Mul (val_20, val_8)
      val_23 = Tanh (val_17)
      val_24 = Mul (val_19, val_23)
      val_11 = Add (val_22, val_24)
      val_25 = Tanh (val_11)
      val_26 = Mul (val_21, val_25)
      val_10 = Gemm <transB: int = 1> (val_26, wr)
      val_12 = Identity (val_10)
    }, num_scan_inputs: int = 1, scan_input_directions: ints = [0], scan_output_directions: ints = [0]> (val_2, val_3, val_1)
    lstm_1 = Unsqueeze (val_4, [0])
    lstm_2 = Unsqueeze (val_5, [0])
    val_27 = Unsqueeze (val_6, [1])
    lstm_0 = Squeeze (val_27, [1])
    ";
}
