//! Ops of libraries: the ONNX operators that PyTorch offers (`torch.onnx.ops`), and grouped matrix
//! products.

use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, checks, cx::Outputs, op};
use pt2onnx_ir::{Attribute, Attributes, TensorType, Type, Value, attrs, conforms, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_grouped_mm, biased_grouped_mm),
    op!(
        "onnx::Attention.opset23(Tensor Q, Tensor K, Tensor V, Tensor? attn_mask=None, Tensor? past_key=None, Tensor? past_value=None, *, bool is_causal=False, int kv_num_heads=0, int q_num_heads=0, int qk_matmul_output_mode=0, float? scale=None, float softcap=0.0, int? softmax_precision=None) -> (Tensor, Tensor, Tensor, Tensor)",
        onnx_attention
    ),
    op!(
        "onnx::RotaryEmbedding.opset23(Tensor x, Tensor cos_cache, Tensor sin_cache, Tensor? position_ids=None, *, bool interleaved=False, int num_heads=0, int rotary_embedding_dim=0) -> Tensor",
        onnx_rotary_embedding
    ),
    op!(
        "onnx_symbolic::_symbolic(Tensor?[] inputs, str op_type, int onnx_dtype, *, SymInt[] shape, str[] attr_keys, str[] attr_types, int[][] attr_pos, int[] attr_ints, float[] attr_floats, str[] attr_strs, str[] metadata_props_keys, str[] metadata_props_values, str domain='', int? version=None) -> Tensor",
        symbolic
    ),
    op!(
        "onnx_symbolic::_symbolic_multi_out(Tensor?[] inputs, str op_type, int[] onnx_dtypes, *, SymInt[][] shapes, str[] attr_keys, str[] attr_types, int[][] attr_pos, int[] attr_ints, float[] attr_floats, str[] attr_strs, str[] metadata_props_keys, str[] metadata_props_values, str domain='', int? version=None) -> Tensor[]",
        symbolic
    ),
    op!("pt2onnx::list_append(Tensor self, Tensor item) -> Tensor[]", list_append),
    op!(
        "pt2onnx::list_of_parts(Tensor self, int dim, SymInt? size=None, Tensor? lengths=None) -> Tensor[]",
        list_of_parts
    ),
    op!(
        "pt2onnx::list_of_tensors(Tensor[] tensors, ScalarType dtype) -> Tensor[]",
        list_of_tensors
    ),
    op!("pt2onnx::optional(Tensor self, Tensor present) -> Tensor[]", optional),
    op!(
        "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
        grouped_mm
    ),
];

/// The parts of a tensor as one value, a sequence: `SplitToSequence`. Without a size or lengths,
/// each part is one slice, without the dimension.
fn list_of_parts(
    cx: &Cx,
    x: Value,
    dim: i64,
    size: Option<Expr>,
    lengths: Option<Value>,
) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let mut sizes = cx.shape(x);
    let keepdims = size.is_some() || lengths.is_some();
    if keepdims {
        sizes[axis] = cx.unknown_dim();
    } else {
        sizes.remove(axis);
    }
    let size = lengths.or_else(|| size.map(|size| cx.size(&size)));
    let options = attrs::SplitToSequence { axis: axis as i64, keepdims };
    let list = cx.split_to_sequence(x, size, options);
    cx.set_type(list, Type::Sequence(Box::new(Type::tensor(cx.dtype(x), sizes))));
    Ok(list)
}

/// Tensors of one element type and any sizes as one value: `SequenceConstruct`, or `SequenceEmpty`
/// if there are none.
fn list_of_tensors(cx: &Cx, tensors: Vec<Value>, dtype: DType) -> Lowered {
    let list = if tensors.is_empty() {
        cx.sequence_empty(attrs::SequenceEmpty { dtype: Some(schema::data_type(dtype)) })
    } else {
        cx.sequence_construct(&tensors)
    };
    cx.set_type(list, any_sizes(dtype));
    Ok(list)
}

/// A list of [`list_of_tensors`] and one more tensor: `SequenceInsert`.
fn list_append(cx: &Cx, list: Value, item: Value) -> Lowered {
    let longer = cx.sequence_insert(list, item, None);
    cx.set_type(longer, any_sizes(cx.dtype(item)));
    Ok(longer)
}

/// The type of lists of tensors of any sizes.
fn any_sizes(dtype: DType) -> Type {
    Type::Sequence(Box::new(Type::Tensor(TensorType { dtype, shape: None })))
}

/// The tensor if `present` holds, otherwise None.
fn optional(cx: &Cx, x: Value, present: Value) -> Lowered {
    let ty = Type::tensor(cx.dtype(x), cx.shape(x));
    let of = |result: Value| {
        cx.set_type(result, Type::Optional(Box::new(ty.clone())));
        result
    };
    let given = cx.region(&[], |_| vec![of(cx.optional(x, attrs::Optional::default()))]);
    let none = attrs::Optional { type_: Some(ty.clone()) };
    let none = cx.region(&[], |_| vec![of(cx.optional(None, none))]);
    Ok(of(cx.if_op(1, present, given, none)[0]))
}

/// [`grouped_mm`] plus `bias`, as `out_dtype`, by default that of `x`; without offsets, the batched
/// product `x @ weights`.
fn biased_grouped_mm(
    cx: &Cx,
    x: Value,
    weights: Value,
    offsets: Option<Value>,
    bias: Option<Value>,
    out_dtype: Option<DType>,
) -> Lowered {
    let result = match offsets {
        Some(offsets) => grouped_mm(cx, x, weights, offsets)?,
        None => cx.matmul(x, weights),
    };
    let result = bias.map_or(result, |b| cx.add(result, b));
    Ok(cx.cast(result, out_dtype.unwrap_or(cx.dtype(x))))
}

/// The dimension that the groups of a grouped product divide.
#[derive(Clone, Copy, PartialEq)]
enum Groups {
    /// The rows of `x`, `(rows, width)`. Each has a matrix of `(groups, width, out)`.
    Rows,
    /// The columns of `weights`, `(width, columns)`. Each has a matrix of `(groups, rows, width)`.
    Columns,
    /// The dimension that both are summed over: the result is `(groups, rows, columns)`.
    Summed,
}

/// The product of each group of `x` and its part of `weights`: a `Loop` over the groups. Group i
/// ends before `offsets[i]`. Rows or columns after the last group are zero.
fn grouped_mm(cx: &Cx, x: Value, weights: Value, offsets: Value) -> Lowered {
    let kind = match (cx.rank(x), cx.rank(weights)) {
        (2, 3) => Groups::Rows,
        (3, 2) => Groups::Columns,
        (2, 2) => Groups::Summed,
        _ => {
            return Err(LowerError::unsupported(
                "the offsets of a grouped product divide a matrix, but both operands are batches of matrices",
            ));
        }
    };
    let dtype = cx.dtype(x);
    let (rows, columns) = (cx.dim(x, -2), cx.dim(weights, -1));
    let ends = cx.cast(offsets, DType::I64);
    let (one, nothing) = (Expr::int(1), Expr::int(0));
    // The results so far, `length` along `axis`.
    let results = |length: Expr| match kind {
        Groups::Rows => [length, columns.clone()].to_vec(),
        Groups::Columns => [rows.clone(), length].to_vec(),
        Groups::Summed => [length, rows.clone(), columns.clone()].to_vec(),
    };
    let axis = usize::from(kind == Groups::Columns);
    let grown = || Type::tensor(dtype, results(cx.unknown_dim()));
    let position = Type::tensor(DType::I64, [one.clone()]);
    let inputs = [Type::tensor(DType::I64, []), Type::tensor(DType::Bool, []), position, grown()];
    let body = cx.region(&inputs, |inputs| {
        let (group, go_on, start, before) = (inputs[0], inputs[1], inputs[2], inputs[3]);
        let end = cx.reshape(cx.gather(ends, group, 0), std::slice::from_ref(&one));
        let part = |v: Value, axis: i64| cx.slice_op(v, start, end, cx.ints(&[axis]), None);
        let one_of = |v: Value| cx.gather(v, group, 0);
        let product = || match kind {
            Groups::Rows => cx.matmul(part(x, 0), one_of(weights)),
            Groups::Columns => cx.matmul(one_of(x), part(weights, 1)),
            Groups::Summed => cx.unsqueeze(cx.matmul(part(x, 1), part(weights, 0)), &[0]),
        };
        let with_product = || cx.concat(&[before, product()], axis);
        let joined = if kind == Groups::Summed {
            with_product()
        } else {
            // An operator that takes the matrix of a group out copies it: most have no rows where
            // experts get a single token.
            let some = cx.reshape(cx.less(start, end), &[]);
            let more = cx.region(&[], |_| vec![with_product()]);
            let same = cx.region(&[], |_| vec![cx.identity(before)]);
            let joined = cx.if_op(1, some, more, same)[0];
            cx.set_type(joined, grown());
            joined
        };
        vec![cx.identity(go_on), end, joined]
    });
    let none = cx.full(&results(nothing), 0, dtype);
    let groups = cx.dim(offsets, 0);
    let found = cx.loop_op(2, cx.size(&groups), None, &[cx.ints(&[0]), none], body);
    cx.set_type(found[1], grown());
    let (last, length) = match kind {
        Groups::Summed => {
            cx.set_type(found[1], Type::tensor(dtype, results(groups)));
            return Ok(found[1]);
        }
        Groups::Rows => (found[0], rows.clone()),
        Groups::Columns => (found[0], columns.clone()),
    };
    cx.set_type(last, Type::tensor(DType::I64, [one]));
    let missing = cx.sub(cx.sizes(std::slice::from_ref(&length)), last);
    let pads = cx.concat(&[cx.ints(&[0]), missing], 0);
    let mode = attrs::Pad { mode: "constant" };
    let result = cx.pad(found[1], pads, None, cx.ints(&[axis as i64]), mode);
    cx.set_type(result, Type::tensor(dtype, results(length)));
    Ok(result)
}

arguments! {
    /// Arguments of [`symbolic`]. Element types and sizes of the outputs are the recorded ones.
    struct SymbolicArgs {
        inputs: Vec<Option<Value>>,
        op_type: String,
        onnx_dtype: Ignored,
        onnx_dtypes: Ignored,
        shape: Ignored,
        shapes: Ignored,
        attr_keys: Vec<String>,
        attr_types: Vec<String>,
        attr_pos: Vec<Vec<i64>>,
        attr_ints: Vec<i64>,
        attr_floats: Vec<f64>,
        attr_strs: Vec<String>,
        metadata_props_keys: Vec<String>,
        metadata_props_values: Vec<String>,
        domain: String,
        version: Option<i64>,
    }
}

/// The node that the arguments of `torch.onnx.ops.symbolic` describe: operator, attributes and
/// metadata.
///
/// Attribute i has the name `attr_keys[i]` and the type `attr_types[i]`. Its value is the range
/// `attr_pos[i]` of the list of that type.
fn symbolic(cx: &Cx, args: SymbolicArgs) -> Lowered<Outputs> {
    if let Some(origin) = cx.origin() {
        let keys = args.metadata_props_keys.iter().cloned();
        let entries = keys.zip(args.metadata_props_values.iter().cloned());
        let entries = entries.map(|(k, v)| (k.into(), v.into()));
        cx.edit(|model| model[origin].metadata.extend(entries));
    }
    let mut attributes = Attributes::new();
    for ((key, kind), place) in args.attr_keys.iter().zip(&args.attr_types).zip(&args.attr_pos) {
        let value = attribute(&args, kind, place).ok_or_else(|| {
            LowerError::unsupported(format!(
                "the attribute `{key}` has an unknown type, or a range outside of its list"
            ))
        })?;
        attributes.push((key.clone().into(), value));
    }
    let SymbolicArgs { inputs, op_type: op, domain, version, .. } = args;
    let outputs: Option<Vec<Type>> = (0..cx.recorded_len())
        .map(|i| Some(Type::tensor(cx.recorded(i)?.dtype, cx.recorded(i)?.sizes.clone())))
        .collect();
    let outputs =
        outputs.ok_or_else(|| LowerError::unsupported("the types of its outputs are not known"))?;
    if domain.is_empty() || domain == "ai.onnx" {
        let schema = schema::lookup(&op, schema::CANONICAL_OPSET)
            .ok_or_else(|| LowerError::unsupported(format!("ONNX has no operator `{op}`")))?;
        let results = cx.emit(schema.name, &inputs, attributes, outputs.len());
        let model = cx.model();
        if let Some(node) = results.first().and_then(|&v| model.producer(v)) {
            conforms(&model, &model[node], schema).map_err(LowerError::Unsupported)?;
        }
        drop(model);
        for (&result, ty) in results.iter().zip(outputs) {
            cx.set_type(result, ty);
        }
        return Ok(results.to_vec().into());
    }
    let outputs: Vec<_> = outputs.into_iter().map(Some).collect();
    let results = cx.emit_custom(&domain, &op, &inputs, attributes, &outputs);
    if let Some(version) = version.and_then(|v| u32::try_from(v).ok()) {
        cx.edit(|model| {
            let import = model.imports.entry(domain).or_insert(version);
            *import = version.max(*import);
        });
    }
    Ok(results.to_vec().into())
}

/// The attribute of type `kind` whose elements are the range `place` (start and end) of the list of
/// that type. `None` if the list is too short.
fn attribute(args: &SymbolicArgs, kind: &str, place: &[i64]) -> Option<Attribute> {
    let [start, end] = place else { return None };
    let range = usize::try_from(*start).ok()?..usize::try_from(*end).ok()?;
    let ints = || args.attr_ints.get(range.clone());
    let floats = || -> Option<Vec<f32>> {
        Some(args.attr_floats.get(range.clone())?.iter().map(|&f| f as f32).collect())
    };
    let strings = || args.attr_strs.get(range.clone());
    Some(match kind {
        "i" => Attribute::Int(*ints()?.first()?),
        "f" => Attribute::Float(*floats()?.first()?),
        "s" => Attribute::String(strings()?.first()?.clone()),
        "is" => Attribute::Ints(ints()?.to_vec()),
        "fs" => Attribute::Floats(floats()?),
        "ss" => Attribute::Strings(strings()?.to_vec()),
        _ => return None,
    })
}

arguments! {
    /// Arguments of [`onnx_rotary_embedding`].
    struct RotaryEmbeddingArgs {
        x: Value,
        cos_cache: Value,
        sin_cache: Value,
        position_ids: Option<Value>,
        interleaved: bool,
        num_heads: i64,
        rotary_embedding_dim: i64,
    }
}

/// `RotaryEmbedding`.
fn onnx_rotary_embedding(cx: &Cx, args: RotaryEmbeddingArgs) -> Lowered {
    let RotaryEmbeddingArgs { x, cos_cache, sin_cache, position_ids, num_heads, .. } = args;
    if cx.rank(x) != 4 && num_heads <= 0 {
        return Err(LowerError::unsupported(
            "a rotary embedding needs a tensor with a dimension of heads",
        ));
    }
    let options = attrs::RotaryEmbedding {
        interleaved: args.interleaved,
        num_heads: (num_heads > 0).then_some(num_heads),
        rotary_embedding_dim: args.rotary_embedding_dim,
    };
    Ok(cx.rotary_embedding(x, cos_cache, sin_cache, position_ids, options))
}

arguments! {
    /// Arguments of [`onnx_attention`].
    #[expect(non_snake_case, reason = "the op's names")]
    struct OnnxAttentionArgs {
        Q: Value,
        K: Value,
        V: Value,
        attn_mask: Option<Value>,
        past_key: Option<Value>,
        past_value: Option<Value>,
        is_causal: bool,
        kv_num_heads: i64,
        q_num_heads: i64,
        qk_matmul_output_mode: i64,
        scale: Option<f64>,
        softcap: f64,
        softmax_precision: Option<i64>,
    }
}

/// `Attention`, with as many outputs as are used. Where PyTorch computes something else,
/// [`attention_of_pytorch`].
fn onnx_attention(cx: &Cx, args: OnnxAttentionArgs) -> Lowered<Outputs> {
    let masked = args.is_causal || args.attn_mask.is_some();
    let past = args.is_causal && args.past_key.is_some();
    let inner = matches!(args.qk_matmul_output_mode, 1 | 2) && cx.is_used(3);
    if past || (masked && (inner || args.softcap != 0.0)) {
        return attention_of_pytorch(cx, args);
    }
    let positive = |n: i64| (n != 0).then_some(n);
    let options = attrs::Attention {
        is_causal: args.is_causal,
        kv_num_heads: positive(args.kv_num_heads),
        q_num_heads: positive(args.q_num_heads),
        // PyTorch's mode 1 is the masked product, which is the product if nothing is masked.
        qk_matmul_output_mode: match args.qk_matmul_output_mode {
            1 => 0,
            other => other,
        },
        scale: args.scale.map(|s| s as f32),
        softcap: args.softcap as f32,
        softmax_precision: args.softmax_precision,
        ..Default::default()
    };
    let used = (0..4).rev().find(|&i| cx.is_used(i)).unwrap_or(0) + 1;
    let (q, k, v) = (args.Q, args.K, args.V);
    let past = (args.past_key, args.past_value);
    let results = cx.attention_n(used, q, k, v, args.attn_mask, past.0, past.1, None, options);
    for (i, &result) in results.iter().enumerate() {
        if let Some(meta) = cx.recorded(i) {
            cx.set_type(result, Type::tensor(meta.dtype, meta.sizes.clone()));
        }
    }
    Ok(results.to_vec().into())
}

/// `torch.onnx.ops.attention` as PyTorch computes it: the mask is added before the softcap, and a
/// causal mask begins at the first key of the cache.
fn attention_of_pytorch(cx: &Cx, args: OnnxAttentionArgs) -> Lowered<Outputs> {
    let packed = cx.rank(args.Q) == 3;
    let heads = |x: Value, count: i64| {
        if packed {
            let (size, count) = (cx.shape(x), Expr::int(count));
            let width = size[2].floor_div(&count);
            let split = cx.reshape(x, &[size[0].clone(), size[1].clone(), count, width]);
            cx.transpose(split, &[0, 2, 1, 3])
        } else {
            x
        }
    };
    let q = heads(args.Q, args.q_num_heads);
    let with_past = |x: Value, past: Option<Value>| {
        let x = heads(x, args.kv_num_heads);
        past.map_or(x, |past| cx.concat(&[past, x], 2))
    };
    let (key, value) = (with_past(args.K, args.past_key), with_past(args.V, args.past_value));
    let [k, v] = [key, value].map(|x| {
        let mut wide = cx.shape(x);
        let repeats = cx.dim(q, 1).floor_div(&wide[1]);
        let mut shape = wide.clone();
        shape[1] = cx.dim(q, 1);
        wide.insert(2, repeats);
        cx.reshape(cx.expand(cx.unsqueeze(x, &[2]), &wide), &shape)
    });
    let size = || cx.dim(q, 3).as_int().map(|size| 1.0 / (size as f64).sqrt());
    let scale = args.scale.or_else(size);
    let scale = scale.ok_or_else(|| LowerError::unsupported("the size of a head is not known"))?;
    let [q, k] = [q, k].map(|x| cx.mul(x, scale.sqrt()));
    let product = cx.matmul(q, cx.swap_axes(k, 2, 3));
    let (dtype, hidden) = (cx.dtype(q), f64::NEG_INFINITY);
    let mut scores = product;
    if args.is_causal {
        let numbers = |axis: i64, x| {
            cx.range(cx.scalar(0, DType::I64), cx.size(&cx.dim(x, axis)), cx.scalar(1, DType::I64))
        };
        let seen = cx.greater_or_equal(cx.unsqueeze(numbers(2, q), &[1]), numbers(2, k));
        scores = cx.select(seen, scores, hidden);
    }
    if let Some(mask) = args.attn_mask {
        scores = match cx.dtype(mask) {
            DType::Bool => cx.select(mask, scores, hidden),
            _ => cx.add(scores, mask),
        };
    }
    let biased = scores;
    if args.softcap > 0.0 {
        scores = cx.mul(cx.tanh(cx.div(scores, args.softcap)), args.softcap);
    }
    let precision = args.softmax_precision.and_then(schema::dtype).unwrap_or(dtype);
    let weights = cx.softmax(cx.cast(scores, precision), attrs::Softmax { axis: -1 });
    let weights = cx.cast(weights, dtype);
    let mut result = cx.matmul(weights, v);
    if packed {
        result = cx.reshape(cx.transpose(result, &[0, 2, 1, 3]), &cx.out_shape()?);
    }
    let inner = match args.qk_matmul_output_mode {
        0 => product,
        1 => biased,
        2 => scores,
        _ => weights,
    };
    Ok([result, key, value, inner].into())
}

checks! {
    // Rotary embedding is an operator.
    "onnx.RotaryEmbedding.opset23(x: f32[1, 2, s0, 4], c: f32[1, s0, 2], s: f32[1, s0, 2]) -> f32[1, 2, s0, 4]" => "
    RotaryEmbedding = RotaryEmbedding (x, c, s)
    ";

    // A tensor that may be None.
    "pt2onnx.optional(x: f32[2], c: b8[]) -> Token()" => "
    optional = If <then_branch: graph = then_branch () => (optional(float[2]) val_0)
    {
      val_0 = Optional (x)
    }, else_branch: graph = else_branch () => (optional(float[2]) val_1)
    {
      val_1 = Optional <type: type_proto = float[2]> ()
    }> (c)
    ";

    // Lists of tensors of any sizes.
    "pt2onnx.list_of_tensors([x: f32[2], y: f32[s0, 3]], torch.float32) -> Token()" => "
    list_of_tensors = SequenceConstruct (x, y)
    ";
    "pt2onnx.list_of_tensors([], torch.float16) -> Token()" => "
    list_of_tensors = SequenceEmpty <dtype: int = 10> ()
    ";

    // Groups of columns.
    "aten._grouped_mm(x: f32[2, 4, 3], w: f32[3, 8], o: i32[2]) -> f32[4, 8]" => r#"
    val_0 = Cast <to: int = 7> (o)
    val_1 = Expand (0.0, [4, 0])
    val_2, val_3 = Loop <body: graph = body (int64 val_4, bool val_5, int64[1] val_6, float[4,?] val_7) => (bool val_8, int64[1] val_9, float[4,?] val_10)
    {
      val_11 = Gather <axis: int = 0> (val_0, val_4)
      val_9 = Reshape (val_11, [1])
      val_12 = Less (val_6, val_9)
      val_13 = Reshape (val_12, [])
      val_10 = If <then_branch: graph = then_branch () => (float[4,"?1 + ?2"] val_14)
      {
        val_15 = Gather <axis: int = 0> (x, val_4)
        val_16 = Slice (w, val_6, val_9, [1])
        val_17 = MatMul (val_15, val_16)
        val_14 = Concat <axis: int = 1> (val_7, val_17)
      }, else_branch: graph = else_branch () => (float[4,?] val_18)
      {
        val_18 = Identity (val_7)
      }> (val_13)
      val_8 = Identity (val_5)
    }> (2, "", [0], val_1)
    val_19 = Sub ([8], val_2)
    val_20 = Concat <axis: int = 0> ([0], val_19)
    _grouped_mm = Pad (val_3, val_20, "", [1])
    "#;

    // A mask before the softcap.
    "onnx.Attention.opset23(q: f32[1, 2, 4, 8], k: f32[1, 2, 6, 8], v: f32[1, 2, 6, 8], m: f32[4, 6], softcap = 2.0) -> (f32[1, 2, 4, 8], f32[1, 2, 6, 8], f32[1, 2, 6, 8], f32[1, 2, 4, 6])" => "
    val_0 = Unsqueeze (k, [2])
    val_1 = Reshape (val_0, [1, 2, 6, 8])
    val_2 = Unsqueeze (v, [2])
    val_3 = Reshape (val_2, [1, 2, 6, 8])
    val_4 = Mul (q, 0.59460354)
    val_5 = Mul (val_1, 0.59460354)
    val_6 = Transpose <perm: ints = [0, 1, 3, 2]> (val_5)
    Attention_3 = MatMul (val_4, val_6)
    val_7 = Add (Attention_3, m)
    val_8 = Div (val_7, 2.0)
    val_9 = Tanh (val_8)
    val_10 = Mul (val_9, 2.0)
    val_11 = Softmax (val_10)
    Attention_0 = MatMul (val_11, val_3)
    Attention_1 = Identity (k)
    Attention_2 = Identity (v)
    ";
}
