//! The loss of connectionist temporal classification: how improbable a sequence of labels is, over
//! all ways to place it in time.
//!
//! The algorithm is that of A. Graves et al., Connectionist Temporal Classification, 2006: a blank
//! stands before, between and after the labels, and each time step keeps the place, or advances by
//! one, or by two between labels that differ.

use crate::math::arcs::log_add_exp;
use crate::math::reduce::reduced;
use crate::math::sort::gather_elements;
use crate::{AtenOp, Cx, FromArg, Lowered, ParamType, arguments, checks, op};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] =
    &[op!(aten::ctc_loss_IntList, ctc_loss), op!(aten::ctc_loss_Tensor, ctc_loss)];

const NEVER: f64 = f64::NEG_INFINITY;

/// The lengths of the sequences of a batch.
#[derive(Debug, Clone)]
struct Lengths {
    /// int64, `(batch)`.
    all: Value,
    /// The largest, if it is known.
    most: Option<i64>,
}

impl FromArg for Lengths {
    fn accepts(ty: &ParamType) -> bool {
        Value::accepts(ty) || Vec::<Expr>::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        if let Ok(list) = Vec::<Expr>::from_arg(cx, arg) {
            let known: Option<Vec<i64>> = list.iter().map(Expr::as_int).collect();
            return Ok(Self {
                all: cx.sizes(&list),
                most: known.and_then(|n| n.into_iter().max()),
            });
        }
        let given = cx.cast(Value::from_arg(cx, arg)?, DType::I64);
        let all = if cx.rank(given) == 0 { cx.unsqueeze(given, &[0]) } else { given };
        Ok(Self { all, most: None })
    }
}

arguments! {
    /// Arguments of [`ctc_loss`].
    struct CtcArgs {
        log_probs: Value,
        targets: Value,
        input_lengths: Lengths,
        target_lengths: Lengths,
        blank: i64,
        reduction: i64,
        zero_infinity: bool,
    }
}

/// `-log` of the probability of the labels. `log_probs` is `(time, batch, classes)` or `(time,
/// classes)`; the labels are rows, or one after the other. The mean is over the losses of the
/// labels.
fn ctc_loss(cx: &Cx, args: CtcArgs) -> Lowered {
    let batched = cx.rank(args.log_probs) == 3;
    let logs = if batched { args.log_probs } else { cx.unsqueeze(args.log_probs, &[1]) };
    let (steps, lengths) = (args.input_lengths.all, args.target_lengths.all);
    let labels = labels(cx, cx.cast(args.targets, DType::I64), &args.target_lengths, batched);
    let alphas = alphas(cx, logs, places(cx, labels, lengths, args.blank), steps);
    // The sequence ends with the last label or the blank after it.
    let end = cx.unsqueeze(cx.mul(lengths, 2), &[1]);
    let last = gather_elements(cx, alphas, end, 1);
    let label = gather_elements(cx, alphas, cx.maximum(cx.sub(end, 1), 0), 1);
    let label = cx.select(cx.greater(end, 0), label, NEVER);
    let loss = cx.neg(cx.squeeze(log_add_exp(cx, last, label), &[1]));
    let loss =
        if args.zero_infinity { cx.select(cx.equal(loss, f64::INFINITY), 0.0, loss) } else { loss };
    match args.reduction {
        0 if !batched => Ok(cx.squeeze(loss, &[0])),
        1 => {
            let number = cx.cast(cx.maximum(lengths, 1), cx.dtype(loss));
            reduced(cx, cx.div(loss, number), 1)
        }
        other => reduced(cx, loss, other),
    }
}

/// The labels of each sequence as a row, with any labels behind them: int64, `(batch, labels)`.
fn labels(cx: &Cx, targets: Value, lengths: &Lengths, batched: bool) -> Value {
    match (cx.rank(targets), batched) {
        (1, false) => cx.unsqueeze(targets, &[0]),
        (1, true) => {
            let total = cx.dim(targets, 0);
            let most = lengths.most.map_or(total.clone(), Expr::int);
            let ends = cx.cum_sum(lengths.all, cx.scalar(0, DType::I64), Default::default());
            let starts = cx.unsqueeze(cx.sub(ends, lengths.all), &[1]);
            let last = cx.size(&(total - 1));
            cx.gather(targets, cx.minimum(cx.add(starts, cx.iota(&most)), last), 0)
        }
        _ => targets,
    }
}

/// The labels with blanks before, between and behind them: int64, `(batch, 2 labels + 1)`.
fn places(cx: &Cx, labels: Value, lengths: Value, blank: i64) -> Value {
    let (batch, most) = (cx.dim(labels, 0), cx.dim(labels, 1));
    let blanks = |n: &Expr| cx.full(&[batch.clone(), n.clone()], blank, DType::I64);
    let one = Expr::int(1);
    let (labels, most) = match most.as_int() {
        Some(0) => (blanks(&one), one.clone()),
        _ => {
            let real = cx.less(cx.iota(&most), cx.unsqueeze(lengths, &[1]));
            (cx.select(real, labels, blank), most)
        }
    };
    let pairs = [blanks(&most), labels].map(|column| cx.unsqueeze(column, &[2]));
    let pairs = cx.reshape(cx.concat(&pairs, 2), &[batch.clone(), most * 2]);
    cx.concat(&[pairs, blanks(&one)], 1)
}

/// The logarithms of the probabilities to be at each place after the last step, `(batch, places)`:
/// a `Scan` over the steps.
fn alphas(cx: &Cx, logs: Value, places: Value, steps: Value) -> Value {
    let (dtype, time) = (cx.dtype(logs), cx.dim(logs, 0));
    let (batch, width) = (cx.dim(places, 0), cx.dim(places, 1));
    let never = |n: Expr| cx.full(&[batch.clone(), n], NEVER, dtype);
    let index = cx.unsqueeze(places, &[0]);
    let index = cx.expand(index, &[time.clone(), batch.clone(), width.clone()]);
    let scores = gather_elements(cx, logs, index, 2);
    // The cost of an advance by two. Blanks do not differ.
    let before = cx.slice(places, 1, &Expr::int(0), &(&width - 2), 1);
    let label = cx.slice(places, 1, &Expr::int(2), &width, 1);
    let price = cx.select(cx.equal(label, before), cx.scalar(NEVER, dtype), cx.scalar(0, dtype));
    let price = cx.concat(&[never(Expr::int(2)), price], 1);
    let start =
        cx.concat(&[cx.full(&[batch.clone(), Expr::int(1)], 0, dtype), never(&width - 1)], 1);
    let time = cx.unsqueeze(cx.iota(&time), &[1]);
    let goes_on = cx.unsqueeze(cx.less(time, cx.unsqueeze(steps, &[0])), &[2]);
    let state = Type::tensor(dtype, [batch.clone(), width.clone()]);
    let going = Type::tensor(DType::Bool, [batch.clone(), Expr::int(1)]);
    let [one, two] = [1, 2].map(|n| (n, never(Expr::int(n))));
    let behind = |x, (n, gap): (i64, Value)| {
        cx.concat(&[gap, cx.slice(x, 1, &Expr::int(0), &(&width - n), 1)], 1)
    };
    let body = cx.region(&[state.clone(), state.clone(), going], |v| {
        let by_one = log_add_exp(cx, v[0], behind(v[0], one));
        let next = log_add_exp(cx, by_one, cx.add(behind(v[0], two), price));
        vec![cx.select(v[2], cx.add(next, v[1]), v[0])]
    });
    let last = cx.scan_op(1, &[start, scores, goes_on], body, 2, attrs::Scan::default())[0];
    cx.set_type(last, state);
    last
}

checks! {
    // No labels are blanks.
    "aten.ctc_loss.IntList(x: f32[1, 1, 2], t: i64[1, 0], [1], [0], 0, 2) -> f32[]" => "
    val_0 = Expand (0, [1, 1])
    val_1 = Expand (0, [1, 1])
    val_2 = Unsqueeze (val_1, [2])
    val_3 = Unsqueeze (val_0, [2])
    val_4 = Concat <axis: int = 2> (val_2, val_3)
    val_5 = Reshape (val_4, [1, 2])
    val_6 = Expand (0, [1, 1])
    val_7 = Concat <axis: int = 1> (val_5, val_6)
    val_8 = Unsqueeze (val_7, [0])
    val_9 = GatherElements <axis: int = 2> (x, val_8)
    val_10 = Slice (val_7, [0], [1], [1])
    val_11 = Slice (val_7, [2], [3], [1])
    val_12 = Equal (val_11, val_10)
    val_13 = Where (val_12, -inf, 0.0)
    val_14 = Expand (-inf, [1, 2])
    val_15 = Concat <axis: int = 1> (val_14, val_13)
    val_16 = Expand (0.0, [1, 1])
    val_17 = Expand (-inf, [1, 2])
    val_18 = Concat <axis: int = 1> (val_16, val_17)
    val_19 = Less (int64[1,1] {0}, int64[1,1] {1})
    val_20 = Unsqueeze (val_19, [2])
    val_21 = Expand (-inf, [1, 1])
    val_22 = Expand (-inf, [1, 2])
    val_23 = Scan <body: graph = body (float[1,3] val_24, float[1,3] val_25, bool[1,1] val_26) => (float[1,3] val_27)
    {
      val_28 = Slice (val_24, [0], [2], [1])
      val_29 = Concat <axis: int = 1> (val_21, val_28)
      val_30 = Equal (val_24, val_29)
      val_31 = Sub (val_24, val_29)
      val_32 = Abs (val_31)
      val_33 = Where (val_30, 0.0, val_32)
      val_34 = Max (val_24, val_29)
      val_35 = Neg (val_33)
      val_36 = Softplus (val_35)
      val_37 = Add (val_34, val_36)
      val_38 = Slice (val_24, [0], [1], [1])
      val_39 = Concat <axis: int = 1> (val_22, val_38)
      val_40 = Add (val_39, val_15)
      val_41 = Equal (val_37, val_40)
      val_42 = Sub (val_37, val_40)
      val_43 = Abs (val_42)
      val_44 = Where (val_41, 0.0, val_43)
      val_45 = Max (val_37, val_40)
      val_46 = Neg (val_44)
      val_47 = Softplus (val_46)
      val_48 = Add (val_45, val_47)
      val_49 = Add (val_48, val_25)
      val_27 = Where (val_26, val_49, val_24)
    }, num_scan_inputs: int = 2> (val_18, val_9, val_20)
    val_50 = Mul ([0], 2)
    val_51 = Unsqueeze (val_50, [1])
    val_52 = GatherElements <axis: int = 1> (val_23, val_51)
    val_53 = Sub (val_51, 1)
    val_54 = Max (val_53, 0)
    val_55 = GatherElements <axis: int = 1> (val_23, val_54)
    val_56 = Greater (val_51, 0)
    val_57 = Where (val_56, val_55, -inf)
    val_58 = Equal (val_52, val_57)
    val_59 = Sub (val_52, val_57)
    val_60 = Abs (val_59)
    val_61 = Where (val_58, 0.0, val_60)
    val_62 = Max (val_52, val_57)
    val_63 = Neg (val_61)
    val_64 = Softplus (val_63)
    val_65 = Add (val_62, val_64)
    val_66 = Squeeze (val_65, [1])
    val_67 = Neg (val_66)
    ctc_loss = ReduceSum <keepdims: int = 0> (val_67)
    ";
}
