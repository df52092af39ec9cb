//! Sequences of different lengths packed into one tensor, and recurrent networks over them.
//!
//! A packed batch has the first step of each sequence, the longest sequence first, then the second
//! step of each that has one, and so on. `batch_sizes` has, for each step, the number of sequences
//! that have it. ONNX's networks take padded sequences and their lengths instead.

use crate::meta::{fresh, sized, typed, unknown};
use crate::{
    AtenOp, Cx, Lowered, Number, arguments, checks,
    cx::Outputs,
    math::{
        index::non_zero,
        recurrent::{Kind, Lengths, Network, States, network},
    },
    op,
};
use pt2onnx_ir::{Model, Reduction, Type, Value, attrs};
use pt2onnx_symbolic::{Expr, Func};
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_pack_padded_sequence, pack, meta = meta_pack),
    op!(aten::_pad_packed_sequence, pad, meta = meta_unpack),
    op!(aten::gru_data, over_packed(Kind::Gru), meta = meta_recurrent),
    op!(aten::lstm_data, over_packed(Kind::Lstm), meta = meta_lstm),
    op!(aten::rnn_relu_data, over_packed(Kind::Rnn("Relu")), meta = meta_recurrent),
    op!(aten::rnn_tanh_data, over_packed(Kind::Rnn("Tanh")), meta = meta_recurrent),
];

arguments! {
    /// Arguments of [`over_packed`].
    struct PackedArgs {
        data: Value,
        batch_sizes: Value,
        hx: States,
        params: Vec<Value>,
        has_biases: bool,
        num_layers: i64,
        dropout: f64,
        train: bool,
        bidirectional: bool,
    }

    /// Arguments of [`pad`].
    struct PadArgs {
        data: Value,
        batch_sizes: Value,
        batch_first: bool,
        padding_value: Number,
        total_length: Expr,
    }
}

/// A packed batch in its padded form.
struct Padded {
    /// `(time, batch, ...)`. Elements after the end of a sequence are not defined.
    x: Value,
    /// Whether a step belongs to a sequence: bool, `(time, batch)`.
    mask: Value,
    /// The places of the packed steps in `x`, `(steps, 2)`.
    places: Value,
}

impl Padded {
    /// The padded form of a packed batch of `batch` sequences. If the batch was packed in this
    /// model, its padded form is reused.
    fn of(cx: &Cx, data: Value, batch_sizes: Value, batch: Expr) -> Self {
        if let Some(known) = Self::known(&cx.model(), data, batch_sizes) {
            return known;
        }
        let (zero, one) = (cx.scalar(0, DType::I64), cx.scalar(1, DType::I64));
        let first = cx.take(batch_sizes, 0, &Expr::int(0));
        let sequences = cx.range(zero, first, one);
        let mask = cx.less(sequences, cx.unsqueeze(batch_sizes, &[1]));
        let mut size = vec![cx.dim(batch_sizes, 0), batch];
        cx.set_type(mask, Type::tensor(DType::Bool, size.clone()));
        cx.bind_dims(mask);
        size.extend(cx.shape(data).into_iter().skip(1));
        let (empty, places) = (cx.full(&size, 0, cx.dtype(data)), places(cx, mask));
        let x = cx.scatter_nd(empty, places, data, attrs::ScatterND::default());
        Self { x, mask, places }
    }

    /// The padded batch that `data` was packed from, if `batch_sizes` is of the same mask.
    fn known(model: &Model, data: Value, batch_sizes: Value) -> Option<Self> {
        let input = |value: Value, op: &str, i: usize| {
            let node = model.producer(value).filter(|node| model[*node].op() == op)?;
            model[node].inputs().get(i).copied().flatten()
        };
        let (x, places) = (input(data, "GatherND", 0)?, input(data, "GatherND", 1)?);
        let mask = input(input(places, "Transpose", 0)?, "NonZero", 0)?;
        let counted = || input(input(batch_sizes, "ReduceSum", 0)?, "Cast", 0);
        let compared = || input(input(mask, "Less", 1)?, "Unsqueeze", 0);
        let same = counted() == Some(mask) || compared() == Some(batch_sizes);
        same.then_some(Self { x, mask, places })
    }

    /// `x`, of the same time and batch, packed.
    fn packed(&self, cx: &Cx, x: Value) -> Value {
        cx.gather_nd(x, self.places, attrs::GatherND::default())
    }

    /// The number of steps of each sequence.
    fn lengths(&self, cx: &Cx, dtype: DType) -> Value {
        cx.reduce(Reduction::Sum, cx.cast(self.mask, dtype), &[0], false)
    }
}

/// The coordinates of the true elements, a row for each.
fn places(cx: &Cx, mask: Value) -> Value {
    cx.transpose(non_zero(cx, mask), &[1, 0])
}

/// Gives the values the types that PyTorch recorded.
fn recorded(cx: &Cx, mut values: Vec<Value>) -> Outputs {
    for (i, value) in values.iter_mut().enumerate() {
        if let Some(meta) = cx.recorded(i) {
            *value = cx.cast(*value, meta.dtype);
            cx.set_type(*value, Type::tensor(meta.dtype, meta.sizes.clone()));
        }
    }
    values.into()
}

/// Packs padded sequences: the steps, and how many sequences have each.
fn pack(cx: &Cx, input: Value, lengths: Value, batch_first: bool) -> Lowered<Outputs> {
    let x = if batch_first { cx.swap_axes(input, 0, 1) } else { input };
    let lengths = cx.cast(lengths, DType::I64);
    let longest = cx.reduce(Reduction::Max, lengths, &[0], false);
    let (zero, one) = (cx.scalar(0, DType::I64), cx.scalar(1, DType::I64));
    let steps = cx.range(zero, longest, one);
    let mask = cx.less(cx.unsqueeze(steps, &[1]), lengths);
    let sizes = cx.reduce(Reduction::Sum, cx.cast(mask, DType::I64), &[1], false);
    let ends = cx.unsqueeze(longest, &[0]);
    let x = cx.slice_op(x, cx.ints(&[0]), ends, cx.ints(&[0]), None);
    let padded = Padded { x, mask, places: places(cx, mask) };
    Ok(recorded(cx, vec![padded.packed(cx, x), sizes]))
}

/// Pads packed sequences with `padding_value`, all to `total_length` steps if that is above 0: the
/// sequences and their lengths.
fn pad(cx: &Cx, args: PadArgs) -> Lowered<Outputs> {
    let PadArgs { data, batch_sizes, batch_first, padding_value, total_length } = args;
    let batch = cx.recorded(1).map(|lengths| Expr::product(lengths.sizes.clone()));
    let padded = Padded::of(cx, data, batch_sizes, batch.unwrap_or_default());
    let lengths = padded.lengths(cx, DType::I64);
    let axes: Vec<usize> = (2..cx.rank(data) + 1).collect();
    let mut x = cx.select(cx.unsqueeze(padded.mask, &axes), padded.x, padding_value);
    let time = cx.dim(batch_sizes, 0);
    let given = Expr::call(Func::Gt, vec![total_length.clone(), Expr::ZERO]);
    if cx.constraints().decide(&given) != Some(false) && total_length != time {
        let pads = cx.sizes(&[Expr::ZERO, total_length - time]);
        let padding = padding_value.tensor(cx, cx.dtype(x));
        x = cx.pad(x, pads, padding, cx.ints(&[0]), attrs::Pad::default());
    }
    let x = if batch_first { cx.swap_axes(x, 0, 1) } else { x };
    Ok(recorded(cx, vec![x, lengths]))
}

/// A recurrent network: the packed results, and the last state of each layer (of an LSTM, the last
/// hidden and the last cell state).
const fn over_packed(kind: Kind) -> impl Fn(&Cx, PackedArgs) -> Lowered<Outputs> + Copy {
    move |cx, args| {
        let batch = cx.dim(args.hx.hidden()?, 1);
        let padded = Padded::of(cx, args.data, args.batch_sizes, batch);
        let layers = Network {
            kind,
            params: args.params,
            has_biases: args.has_biases,
            layers: args.num_layers,
            dropout: if args.train { args.dropout } else { 0.0 },
            bidirectional: args.bidirectional,
        };
        let lengths = Lengths { lengths: padded.lengths(cx, DType::I32), mask: padded.mask };
        let mut outputs = network(cx, &layers, padded.x, &args.hx.0, Some(lengths))?;
        if let Some(result) = outputs.first_mut() {
            *result = padded.packed(cx, *result);
        }
        Ok(recorded(cx, outputs))
    }
}

arguments! {
    struct Recurrent { data: Value, hx: Value, bidirectional: bool }
    struct Lstm { data: Value, hx: Vec<Value>, bidirectional: bool }
}

/// The steps of all sequences, one after the other, and the number of sequences that have each
/// step.
fn meta_pack(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    let steps = cx.shape(x).into_iter().skip(2);
    let size: Vec<Expr> = std::iter::once(fresh(cx)).chain(steps).collect();
    Ok([sized(cx, x, &size), typed(cx, DType::I64, &[fresh(cx)])])
}

/// The padded sequences, and their lengths.
fn meta_unpack(cx: &Cx, args: PadArgs) -> Lowered<[Value; 2]> {
    let batch = fresh(cx);
    let given = args.total_length;
    let time = match cx.constraints().decide(&Expr::call(Func::Gt, vec![given.clone(), Expr::ZERO]))
    {
        Some(true) => given,
        Some(false) => cx.numel(args.batch_sizes),
        None => fresh(cx),
    };
    let mut size = vec![time, batch.clone()];
    if args.batch_first {
        size.swap(0, 1);
    }
    size.extend(cx.shape(args.data).into_iter().skip(1));
    Ok([sized(cx, args.data, &size), typed(cx, DType::I64, &[batch])])
}

/// The output of each packed step, as wide as the state in each direction, and the last state.
fn meta_recurrent(cx: &Cx, args: Recurrent) -> Lowered<[Value; 2]> {
    let width = cx.dim(args.hx, -1) * if args.bidirectional { 2 } else { 1 };
    let output = sized(cx, args.data, &[cx.dim(args.data, 0), width]);
    Ok([output, sized(cx, args.hx, &cx.shape(args.hx))])
}

fn meta_lstm(cx: &Cx, args: Lstm) -> Lowered<[Value; 3]> {
    let [hx, state] = args.hx[..] else {
        return unknown("it takes two states");
    };
    let Lstm { data, bidirectional, .. } = args;
    let [output, last] = meta_recurrent(cx, Recurrent { data, hx, bidirectional })?;
    Ok([output, last, sized(cx, state, &cx.shape(state))])
}

checks! {
    // Sequences are packed by a mask.
    "aten._pack_padded_sequence(x: f32[s0, s1, 3], lengths: i64[s1], False) -> (f32[u0, 3], i64[u1])" => "
    val_0 = ReduceMax <keepdims: int = 0> (lengths, [0])
    val_1 = Range (0, val_0, 1)
    val_2 = Unsqueeze (val_1, [1])
    val_3 = Less (val_2, lengths)
    val_4 = Cast <to: int = 7> (val_3)
    _pack_padded_sequence_1 = ReduceSum <keepdims: int = 0> (val_4, [1])
    val_5 = Unsqueeze (val_0, [0])
    val_6 = Slice (x, [0], val_5, [0])
    val_7 = NonZero (val_3)
    val_8 = Transpose <perm: ints = [1, 0]> (val_7)
    _pack_padded_sequence_0 = GatherND (val_6, val_8)
    ";

    // Steps of a network.
    "aten.rnn_tanh.data(x: f32[u0, 3], batch_sizes: i64[u1], h: f32[1, s0, 2], [wi: f32[2, 3], wh: f32[2, 2]], False, 1, 0.0, False, False) -> (f32[u0, 2], f32[1, s0, 2])" => r#"
    val_0 = Gather <axis: int = 0> (batch_sizes, 0)
    val_1 = Range (0, val_0, 1)
    val_2 = Unsqueeze (batch_sizes, [1])
    val_3 = Less (val_1, val_2)
    val_4 = Shape <start: int = 0, end: int = 1> (batch_sizes)
    val_5 = Shape <start: int = 1, end: int = 2> (h)
    val_6 = Concat <axis: int = 0> (val_4, val_5, [3])
    val_7 = Expand (0.0, val_6)
    val_8 = NonZero (val_3)
    val_9 = Transpose <perm: ints = [1, 0]> (val_8)
    val_10 = ScatterND (val_7, val_9, x)
    val_11 = Cast <to: int = 6> (val_3)
    val_12 = ReduceSum <keepdims: int = 0> (val_11, [0])
    val_13 = Unsqueeze (wi, [0])
    val_14 = Unsqueeze (wh, [0])
    val_15, rnn_tanh_1 = RNN <activations: strings = ["Tanh"], hidden_size: int = 2> (val_10, val_13, val_14, "", val_12, h)
    val_16 = Squeeze (val_15, [1])
    rnn_tanh_0 = GatherND (val_16, val_9)
    "#;
}
