//! Embedding bags: rows of a table, looked up and reduced bag by bag.

use crate::math::precision::widened;
use crate::meta::{sized, unknown};
use crate::{AtenOp, Cx, LowerError, Lowered, arguments, checks, cx::Outputs, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_embedding_bag, embedding_bag_with_padding, meta = meta_embedding_bag::<false>),
    op!(
        aten::_embedding_bag_forward_only,
        embedding_bag_with_padding,
        meta = meta_embedding_bag::<false>
    ),
    op!(aten::embedding_bag, embedding_bag, meta = meta_embedding_bag::<false>),
    op!(aten::embedding_bag_padding_idx, embedding_bag, meta = meta_embedding_bag::<true>),
    op!(aten::embedding_renorm, embedding_renorm),
];

arguments! {
    /// Arguments of [`embedding_bag`]: a table `(rows, width)`, a vector of rows to look up, and
    /// where in that vector each bag starts.
    struct EmbeddingBagArgs {
        weight: Value,
        indices: Value,
        offsets: Value,
        mode: i64,
        per_sample_weights: Option<Value>,
        include_last_offset: bool,
        padding_idx: Option<i64>,
    }
}

/// [`embedding_bag`], where a negative padding index means none.
fn embedding_bag_with_padding(cx: &Cx, mut args: EmbeddingBagArgs) -> Lowered<Outputs> {
    args.padding_idx = args.padding_idx.filter(|&p| p >= 0);
    embedding_bag(cx, args)
}

/// The sum (mode 0), mean (1) or maximum (2) of the rows of each bag, without those of the padding
/// index: a `ScatterND` of the rows to their bags. An index belongs to the last bag that starts at
/// it or before.
fn embedding_bag(cx: &Cx, args: EmbeddingBagArgs) -> Lowered<Outputs> {
    let (mode, dtype) = (args.mode, cx.dtype(args.weight));
    let width = cx.dim(args.weight, 1);
    let bags = Bags::of(cx, args)?;
    let result = match mode {
        0 => bags.sums(cx),
        1 => {
            let sums = bags.sums(cx);
            // As in PyTorch, indices from the last offset on count in the size of the last bag.
            cx.div(sums, cx.maximum(bags.sizes(cx, bags.unpadded), 1.0))
        }
        2 => {
            let largest = bags.largest(cx);
            cx.select(cx.greater(bags.sizes(cx, bags.counting), 0.0), largest, 0.0)
        }
        other => return Err(LowerError::unknown("reduction of bags", other)),
    };
    cx.set_type(result, pt2onnx_ir::Type::tensor(bags.wide, [bags.number, width]));
    Ok(cx.cast(result, dtype).into())
}

/// Rows of a table, each in a bag.
struct Bags {
    rows: Value,
    /// How many rows there are.
    count: Expr,
    /// The bag of each row, as a column.
    bag: Value,
    /// How many bags there are.
    number: Expr,
    /// The type in which rows are reduced: float32 for float16 and bfloat16.
    wide: DType,
    /// Which rows are not those of the padding index, as a column of bools; all if there is none.
    unpadded: Option<Value>,
    /// Which of these are in a bag.
    counting: Option<Value>,
}

impl Bags {
    fn of(cx: &Cx, args: EmbeddingBagArgs) -> Lowered<Self> {
        let EmbeddingBagArgs { weight, indices, offsets, .. } = args;
        if cx.rank(indices) != 1 {
            return Err(LowerError::unsupported("the indices of bags must be a vector"));
        }
        let (indices, mut starts) = (cx.cast(indices, DType::I64), cx.cast(offsets, DType::I64));
        let mut number = cx.dim(offsets, 0);
        let count = cx.dim(indices, 0);
        let mut used = None;
        if args.include_last_offset {
            number = number - 1;
            // Indices from the last offset on belong to no bag.
            let end = cx.slice(starts, 0, &number, &(&number + 1), 1);
            used = Some(cx.unsqueeze(cx.less(cx.iota(&count), end), &[1]));
            starts = cx.slice(starts, 0, &Expr::int(0), &number, 1);
        }
        // The number of bags that start at each index or before it.
        let begun = cx.less_or_equal(starts, cx.unsqueeze(cx.iota(&count), &[1]));
        let bag = cx.sub(cx.reduce(Reduction::Sum, cx.cast(begun, DType::I64), &[1], true), 1);
        let from_end = |p| if p < 0 { cx.dim(weight, 0) + p } else { Expr::int(p) };
        let padding = args.padding_idx.map(|p| cx.size(&from_end(p)));
        let unpadded = padding.map(|p| cx.not(cx.unsqueeze(cx.equal(indices, p), &[1])));
        let counting = match (unpadded, used) {
            (Some(unpadded), Some(used)) => Some(cx.and(unpadded, used)),
            (unpadded, used) => unpadded.or(used),
        };
        let mut rows = cx.gather(weight, indices, 0);
        if let Some(scales) = args.per_sample_weights {
            rows = cx.mul(rows, cx.unsqueeze(scales, &[1]));
        }
        let wide = widened(cx.dtype(weight));
        Ok(Self { rows, count, bag, number, wide, unpadded, counting })
    }

    /// The values of the rows of each bag, reduced.
    fn reduced(&self, cx: &Cx, values: Value, start: f64, reduction: &'static str) -> Value {
        let empty = cx.full(&[self.number.clone(), cx.dim(values, 1)], start, self.wide);
        let values = cx.cast(values, self.wide);
        cx.scatter_nd(empty, self.bag, values, attrs::ScatterND { reduction })
    }

    /// The values of rows that count, and others instead of the rest.
    fn counted(&self, cx: &Cx, values: Value, instead: f64) -> Value {
        self.counting.map_or(values, |counting| cx.select(counting, values, instead))
    }

    fn sums(&self, cx: &Cx) -> Value {
        self.reduced(cx, self.counted(cx, self.rows, 0.0), 0.0, "add")
    }

    /// How many of these rows each bag has.
    fn sizes(&self, cx: &Cx, of: Option<Value>) -> Value {
        let ones = cx.full(&[self.count.clone(), Expr::int(1)], 1, cx.dtype(self.rows));
        let ones = of.map_or(ones, |of| cx.select(of, ones, 0.0));
        self.reduced(cx, ones, 0.0, "add")
    }

    /// The largest number of each column. A NaN stays if it is the first of its bag.
    fn largest(&self, cx: &Cx) -> Value {
        let (rows, none) = (self.rows, f64::NEG_INFINITY);
        if !cx.propagates_nan(rows) {
            return self.reduced(cx, self.counted(cx, rows, none), none, "max");
        }
        let numbers = cx.select(cx.is_nan(rows), none, rows);
        let largest = self.reduced(cx, self.counted(cx, numbers, none), none, "max");
        let places = cx.cast(cx.unsqueeze(cx.iota(&self.count), &[1]), DType::F32);
        let empty = cx.full(&[self.number.clone(), Expr::int(1)], f64::INFINITY, DType::F32);
        let options = attrs::ScatterND { reduction: "min" };
        let places = self.counted(cx, places, f64::INFINITY);
        let first = cx.scatter_nd(empty, self.bag, places, options);
        let last = cx.cast(cx.size(&(&self.count - 1)), DType::F32);
        let first = cx.cast(cx.minimum(cx.squeeze(first, &[1]), last), DType::I64);
        let first = cx.gather(rows, first, 0);
        cx.select(cx.is_nan(first), f64::NAN, largest)
    }
}

/// `x` with each row in `indices` whose norm is above `max_norm` scaled by `max_norm / (norm +
/// 1e-7)` (ATen/native/Embedding.cpp).
fn embedding_renorm(cx: &Cx, x: Value, indices: Value, max_norm: f64, norm_type: f64) -> Lowered {
    let norm = if norm_type == 1.0 {
        cx.reduce(Reduction::L1, x, &[1], true)
    } else if norm_type == 2.0 {
        cx.reduce(Reduction::L2, x, &[1], true)
    } else if norm_type == f64::INFINITY {
        cx.reduce(Reduction::Max, cx.abs(x), &[1], true)
    } else {
        let sums = cx.reduce(Reduction::Sum, cx.pow(cx.abs(x), norm_type), &[1], true);
        cx.pow(sums, 1.0 / norm_type)
    };
    let factor = cx.div(max_norm, cx.add(norm, 1e-7));
    let shortened = cx.select(cx.greater(norm, max_norm), cx.mul(x, factor), x);
    let flat = cx.reshape(cx.cast(indices, DType::I64), &[cx.numel(indices), Expr::int(1)]);
    let rows = cx.gather(shortened, cx.squeeze(flat, &[1]), 0);
    Ok(cx.scatter_nd(x, flat, rows, attrs::ScatterND::default()))
}

arguments! {
    struct MetaBags {
        weight: Value, indices: Value, offsets: Value, mode: i64, include_last_offset: bool,
        padding_idx: Option<i64>,
    }
}

/// The bags, the bag of each index, the sizes of the bags, and where the largest elements were.
/// With `WRAPS`, a negative `padding_idx` counts from the end.
fn meta_embedding_bag<const WRAPS: bool>(cx: &Cx, args: MetaBags) -> Lowered<[Value; 4]> {
    if cx.rank(args.indices) != 1 {
        return unknown("its indices are no vector");
    }
    let given = cx.numel(args.offsets);
    let bags = &given - i64::from(args.include_last_offset);
    let size = [bags.clone(), cx.dim(args.weight, 1)];
    let index = |size: &[Expr]| sized(cx, args.indices, size);
    let largest = if args.mode == 2 { &size[..] } else { &size[..1] };
    // Sums without padding do not need the bag of each index.
    let padded = args.padding_idx.is_some_and(|i| i >= 0 || WRAPS);
    let quick = args.mode == 0 && !padded && cx.dtype(args.weight) != DType::F64;
    let places = if quick { Expr::ZERO } else { cx.numel(args.indices) };
    Ok([sized(cx, args.weight, &size), index(&[places]), index(&[given]), index(largest)])
}

checks! {
    // Padding from the end.
    "aten.embedding_bag.padding_idx(w: f32[s0, 4], i: i64[6], o: i64[3], False, 0, False, None, False, -1) -> f32[3, 4]" => r#"
    val_0 = LessOrEqual (o, int64[6,1] {0, 1, 2, 3, 4, 5})
    val_1 = Cast <to: int = 7> (val_0)
    val_2 = ReduceSum <keepdims: int = 1> (val_1, [1])
    val_3 = Sub (val_2, 1)
    val_4 = Shape <start: int = 0, end: int = 1> (w)
    val_5 = Sub (val_4, [1])
    val_6 = Reshape (val_5, [])
    val_7 = Equal (i, val_6)
    val_8 = Unsqueeze (val_7, [1])
    val_9 = Not (val_8)
    val_10 = Gather <axis: int = 0> (w, i)
    val_11 = Where (val_9, val_10, 0.0)
    val_12 = Expand (0.0, [3, 4])
    embedding_bag = ScatterND <reduction: string = "add"> (val_12, val_3, val_11)
    "#;

    // Means counted.
    "aten.embedding_bag.padding_idx(w: f32[10, 4], i: i64[6], o: i64[3], False, 1, False, None, True, -1) -> f32[2, 4]" => r#"
    val_0 = Slice (o, [2], [3], [0])
    val_1 = Less ([0, 1, 2, 3, 4, 5], val_0)
    val_2 = Unsqueeze (val_1, [1])
    val_3 = Slice (o, [0], [2], [0])
    val_4 = LessOrEqual (val_3, int64[6,1] {0, 1, 2, 3, 4, 5})
    val_5 = Cast <to: int = 7> (val_4)
    val_6 = ReduceSum <keepdims: int = 1> (val_5, [1])
    val_7 = Sub (val_6, 1)
    val_8 = Equal (i, 9)
    val_9 = Unsqueeze (val_8, [1])
    val_10 = Not (val_9)
    val_11 = And (val_10, val_2)
    val_12 = Gather <axis: int = 0> (w, i)
    val_13 = Where (val_11, val_12, 0.0)
    val_14 = Expand (0.0, [2, 4])
    val_15 = ScatterND <reduction: string = "add"> (val_14, val_7, val_13)
    val_16 = Expand (1.0, [6, 1])
    val_17 = Where (val_10, val_16, 0.0)
    val_18 = Expand (0.0, [2, 1])
    val_19 = ScatterND <reduction: string = "add"> (val_18, val_7, val_17)
    val_20 = Max (val_19, 1.0)
    embedding_bag = Div (val_15, val_20)
    "#;
}
