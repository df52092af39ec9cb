//! Attention as ONNX Runtime's own operator, which needs no transposed copies of its operands.

use super::{Fusion, Rule, ints, pattern};
use pt2onnx_ir::{Attribute, Attributes, Builder, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// `com.microsoft.MultiHeadAttention` of operands that are `(batch, length, heads, size)` before they are transposed, in
/// float32. A query whose every key is masked gives zeros: the operator gives NaN there, which is replaced.
pub(crate) static MULTI_HEAD: Fusion = Fusion {
    since: 9,
    rules: &[Rule {
        pattern: "tr:Transpose(MatMul({\
                    Where(mask, Softmax(Where(mask, MatMul({Mul(tq:Transpose(q), scale) | tq:Transpose(q)}, tk:Transpose(k)), -inf)), 0) \
                  | w:Softmax(Where(causal, MatMul({Mul(tq:Transpose(q), scale) | tq:Transpose(q)}, tk:Transpose(k)), -inf)) \
                  | w:Softmax(MatMul({Mul(tq:Transpose(q), scale) | tq:Transpose(q)}, tk:Transpose(k)))}, tv:Transpose(v)))",
        rewrite: |cx, seen| {
            let transposed = |name, perm: &[i64]| {
                let node = seen.node(cx, name)?;
                (ints(&node, "perm") == Some(perm)).then_some(())
            };
            for name in ["tr", "tq", "tv"] {
                transposed(name, &[0, 2, 1, 3])?;
            }
            transposed("tk", &[0, 2, 3, 1])?;
            let [q, k, v] = [seen.value("q")?, seen.value("k")?, seen.value("v")?];
            let heads = same_heads(cx, [q, k, v])?;
            let scale = match seen.value("scale") {
                Some(_) => seen.number(cx, "scale")? as f32,
                None => 1.0,
            };
            let mask = seen.value("mask").or(seen.value("causal"));
            let mask = match mask {
                Some(mask) => Some(Mask::new(cx, mask, q, k)?),
                None => None,
            };
            let bias = mask.as_ref().map(|m| m.bias);
            let [flat_q, flat_k, flat_v] = [flat(cx, q)?, flat(cx, k)?, flat(cx, v)?];
            let inputs = [Some(flat_q), Some(flat_k), Some(flat_v), None, None, bias];
            let attributes = [
                ("num_heads".into(), Attribute::Int(heads)),
                ("scale".into(), Attribute::Float(scale)),
            ];
            let [batch, length, ..] = &cx.shape(q)[..] else {
                return None;
            };
            let width = cx.dim(flat_v, 2);
            let ty = Type::tensor(DType::F32, [batch.clone(), length.clone(), width]);
            let attributes = Attributes::from_iter(attributes);
            let op = "MultiHeadAttention";
            let mut y = cx.emit_custom("com.microsoft", op, &inputs, attributes, &[Some(ty)])[0];
            if let Some(mask) = mask.filter(|_| seen.value("mask").is_some()) {
                y = cx.select(mask.sees_any(cx), y, 0.0);
            }
            let apart = cx.ints(&[0, 0, heads, cx.dim(v, 3).as_int()?]);
            Some(cx.reshape_op(y, apart, attrs::Reshape::default()))
        },
    }],
};

/// The number of heads of float32 operands with four dimensions of which batches and heads agree.
fn same_heads(cx: &Builder, [q, k, v]: [Value; 3]) -> Option<i64> {
    let shape = |x| {
        let model = cx.model();
        let (dtype, shape) = pattern::tensor_type(&model, x)?;
        (dtype == DType::F32 && shape.len() == 4).then(|| shape.clone())
    };
    let [q, k, v] = [shape(q)?, shape(k)?, shape(v)?];
    let same = |axis: usize| q[axis] == k[axis] && q[axis] == v[axis];
    let known = q.iter().chain(&k).chain(&v).all(crate::cleanup::known);
    (known && same(0) && same(2))
        .then(|| q[2].as_int())
        .flatten()
}

/// `(batch, length, heads * size)`
fn flat(cx: &Builder, x: Value) -> Option<Value> {
    let width = cx.dim(x, 2).as_int()?.checked_mul(cx.dim(x, 3).as_int()?)?;
    let sizes = cx.ints(&[0, 0, width]);
    Some(cx.reshape_op(x, sizes, attrs::Reshape::default()))
}

/// Which keys a query sees, as the operator wants it.
struct Mask {
    /// `(batch or 1, 1, queries or 1, keys or 1)`, added to the scores.
    added: Value,
    /// `(batch or 1, 1, queries, keys)`
    bias: Value,
}

impl Mask {
    /// Of a mask that is the same for all heads.
    fn new(cx: &Builder, mask: Value, q: Value, k: Value) -> Option<Self> {
        let shape = cx.known_shape(mask)?;
        if !shape.iter().all(crate::cleanup::known) || shape.len() > 4 {
            return None;
        }
        let missing: Vec<usize> = (0..4 - shape.len()).collect();
        let mask = cx.unsqueeze(mask, &missing);
        let (batch, queries, keys) = (cx.dim(q, 0), cx.dim(q, 1), cx.dim(k, 1));
        let is = |axis, wanted: &Expr| {
            let size = cx.dim(mask, axis);
            size.as_int() == Some(1) || size == *wanted
        };
        if !is(0, &batch)
            || cx.dim(mask, 1).as_int() != Some(1)
            || !is(2, &queries)
            || !is(3, &keys)
        {
            return None;
        }
        let added = cx.select(mask, cx.scalar(0.0, DType::F32), f64::NEG_INFINITY);
        cx.bind_dims(q);
        cx.bind_dims(k);
        let whole = [cx.dim(mask, 0), Expr::int(1), queries, keys];
        let bias = cx.expand(added, &whole);
        Some(Self { added, bias })
    }

    /// `(batch or 1, queries or 1, 1)`: whether a query sees a key at all.
    fn sees_any(&self, cx: &Builder) -> Value {
        let largest = cx.reduce("ReduceMax", self.added, &[3], true);
        cx.equal(cx.squeeze(largest, &[1]), 0.0)
    }
}
