//! Replaces loops over tokens whose state is a sum of products of keys and values by ONNX Runtime's
//! own operator.

use super::{Measure, Pass, Phase, Run};
use crate::{
    Changed, GraphMut, Match, Options, Pattern, Target,
    analysis::{counted, known},
    rewrite,
};
use pt2onnx_ir::{
    Builder, InsertPoint, Model, NodeId, RegionId, Shape, Traits, Type, Value, attrs,
};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;
use std::sync::LazyLock;

pub(crate) static LINEAR_ATTENTION: Pass = Pass {
    name: "linear-attention",
    description: "Replaces Scan over tokens by com.microsoft.LinearAttention, for the targets \
                  `ort` and `ort-genai` only.",
    precondition: "The state decays by exponentials, and products of keys and values are added: \
                   the gated delta rule, or a selective state space. Operands are float32 of known \
                   sizes, and computed before the Scan.",
    lowers: Measure::Operators(&["Scan"]),
    targets: Target::CONTRIB,
    phase: Phase::Late,
    run: Run::Graph(run),
    ..Pass::FUSION
};

/// The next state of the gated delta rule: the decayed one, and the products of keys with what
/// values lack.
static DELTA: Written = LazyLock::new(|| {
    "Add(d:Mul(s, decay:Unsqueeze(Exp(g))), \
     Mul(k, lack:Unsqueeze(Mul(Sub(v, had:ReduceSum(Mul(d, k))), beta))))"
        .parse()
        .ok()
});

/// Its row of results.
static DELTA_ROW: Written = LazyLock::new(|| "row:ReduceSum(Mul(n, q))".parse().ok());

/// The next state of a selective state space.
static SELECTIVE: Written = LazyLock::new(|| "Add(Mul(a, b), products)".parse().ok());

/// Its row of results.
static SELECTIVE_ROW: Written = LazyLock::new(|| "Gather(MatMul(n, q), at)".parse().ok());

/// A pattern; none if it cannot be read, which a test excludes.
type Written = LazyLock<Option<Pattern>>;

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    graph.change_each(|model, id| {
        let scan = Scan::read(model, id)?;
        let sum = scan.delta(model).or_else(|| scan.selective(model))?;
        scan.replace(model, sum);
        Some(())
    })
}

/// A `Scan` over the numbers of tokens, with one state and one row of results.
struct Scan {
    id: NodeId,
    body: RegionId,
    state: Value,
    token: Value,
    next: Value,
    row: Value,
    tokens: Expr,
}

/// The operands of the operator, in the order of dimensions that they have before the `Scan`.
struct Sum {
    rule: &'static str,
    /// `(batch, heads, tokens, size)`; or `(batch, tokens, size)`, the same for all heads.
    queries: Value,
    /// `(batch, heads, tokens, size)`.
    keys: Value,
    /// `(batch, heads, tokens, size)`; or without the last, which is 1.
    values: Value,
    /// `(batch, heads, tokens)`, or one for each element of a key.
    decay: Value,
    /// `(batch, heads, tokens)`.
    rate: Option<Value>,
    /// Batch, heads, the sizes of keys and values.
    sizes: [Expr; 4],
    ints: [i64; 3],
}

impl Scan {
    fn read(model: &Model, id: NodeId) -> Option<Self> {
        let node = Some(&model[id]).filter(|n| n.is("Scan"))?;
        let options = attrs::Scan::read(node).ok()?;
        let forwards = options.scan_input_directions.is_none_or(|all| all == [0])
            && options.scan_output_directions.is_none_or(|all| all == [0]);
        let first = options.scan_input_axes.is_none_or(|all| all == [0])
            && options.scan_output_axes.is_none_or(|all| all == [0]);
        let one = attrs::Scan::num_scan_inputs(node).ok()? == 1;
        let body = attrs::Scan::body(node).ok().filter(|_| forwards && first && one)?;
        let &[Some(_), Some(numbers)] = node.inputs() else { return None };
        let (&[state, token], [next, row]) =
            (model[body].inputs(), &model[body].output_values().collect::<Vec<_>>()[..])
        else {
            return None;
        };
        let tokens = counted(model, numbers)?.clone();
        Some(Self { id, body, state, token, next: *next, row: *row, tokens })
    }

    /// The operands of the gated delta rule.
    fn delta(&self, model: &Model) -> Option<Sum> {
        let (next, row) =
            (self.found(model, &DELTA, self.next)?, self.found(model, &DELTA_ROW, self.row)?);
        let value = |name| next.value(name);
        let query = row.value("q")?;
        let [b, h, k, v] = <[Expr; 4]>::try_from(self.state_sizes(model)?.to_vec()).ok()?;
        let (one, t) = (Expr::ONE, &self.tokens);
        let fits = value("s") == Some(self.state)
            && row.value("n") == Some(self.next)
            && in_batches(model, value("decay")?, &[&h, &one, &one])
            && in_batches(model, value("lack")?, &[&h, &one, &v])
            && [value("k")?, query].iter().all(|x| in_batches(model, *x, &[&h, &k, &one]))
            && in_batches(model, value("v")?, &[&h, &v])
            && in_batches(model, value("beta")?, &[&h, &one])
            && [value("had")?, self.row].iter().all(|x| over_keys(model, *x));
        let taken = |x: Value, sizes: &[&Expr]| self.sliced(model, x, 2, sizes);
        fits.then_some(())?;
        let sum = Sum {
            rule: "gated_delta",
            queries: taken(query, &[&b, &h, t, &k])?,
            keys: taken(value("k")?, &[&b, &h, t, &k])?,
            values: taken(value("v")?, &[&b, &h, t, &v])?,
            decay: taken(value("g")?, &[&b, &h, t])?,
            rate: Some(taken(value("beta")?, &[&b, &h, t])?),
            ints: [h.as_int()?, k.as_int()?, v.as_int()?],
            sizes: [b, h, k, v],
        };
        Some(sum)
    }

    /// The operands of a selective state space. Its channels are heads with values of one element.
    fn selective(&self, model: &Model) -> Option<Sum> {
        let next = self.found(model, &SELECTIVE, self.next)?;
        let row = self.found(model, &SELECTIVE_ROW, self.row)?;
        let (query, t, one) = (row.value("q")?, &self.tokens, Expr::ONE);
        let [b, h, k] = <[Expr; 3]>::try_from(self.state_sizes(model)?.to_vec()).ok()?;
        // The product may be in either order.
        let (one_of, other) = (next.value("a")?, next.value("b")?);
        let decay = if one_of == self.state { other } else { one_of };
        let fits = [one_of, other].contains(&self.state)
            && row.value("n") == Some(self.next)
            && in_batches(model, query, &[&k, &one])
            && in_batches(model, self.row, &[&h])
            && gathers_last(model, self.row);
        fits.then_some(())?;
        let taken = |part: Value| {
            in_batches(model, part, &[&h, &k]).then_some(())?;
            let all = self.sliced(model, part, 2, &[&b, &h, t, &k])?;
            Some(&model[model.producer(all)?])
        };
        let decay = taken(decay).filter(|node| node.is("Exp"))?.input(0)?;
        let products = taken(next.value("products")?).filter(|node| node.is("Mul"))?;
        let factors = [products.input(0)?, products.input(1)?];
        let at = factors.iter().position(|x| has_sizes(model, *x, &[&b, &h, t, &one]))?;
        let (keys, wide) = (factors[1 - at], &model[model.producer(factors[at])?]);
        let values = wide.input(0).filter(|_| wide.is("Unsqueeze"))?;
        let right = has_sizes(model, keys, &[&b, &h, t, &k])
            && has_sizes(model, values, &[&b, &h, t])
            && has_sizes(model, decay, &[&b, &h, t, &k]);
        let sum = Sum {
            rule: "gated",
            queries: self.sliced(model, query, 1, &[&b, t, &k])?,
            keys,
            values,
            decay,
            rate: None,
            ints: [h.as_int()?, k.as_int()?, 1],
            sizes: [b, h, k, one],
        };
        right.then_some(sum)
    }

    fn found<'p>(&self, model: &Model, pattern: &'p Written, value: Value) -> Option<Match<'p>> {
        let last = model.producer(value).filter(|id| model[*id].region() == self.body)?;
        pattern.as_ref()?.find_shared(model, last)
    }

    /// The sizes of the state, if they are known and its elements are float32. It has those of the
    /// first one in all rounds.
    fn state_sizes<'m>(&self, model: &'m Model) -> Option<&'m Shape> {
        let (dtype, sizes) = model.tensor_type(model[self.id].input(0)?)?;
        (dtype == DType::F32 && sizes.iter().all(known)).then_some(sizes)
    }

    /// The tensor of all tokens from which the body takes a value of one token.
    fn sliced(&self, model: &Model, value: Value, axis: i64, sizes: &[&Expr]) -> Option<Value> {
        let gather = &model[model.producer(unshaped(model, value))?];
        let of = attrs::Gather::read(gather).ok().filter(|_| gather.is("Gather"))?;
        let (all, index) = (gather.input(0)?, unshaped(model, gather.input(1)?));
        let outside = model.producer(all).is_none_or(|id| model[id].region() != self.body);
        let fits = of.axis == axis && index == self.token && outside;
        let float = model.dtype(all) == Some(DType::F32);
        (fits && float && has_sizes(model, all, sizes)).then_some(all)
    }

    fn replace(&self, model: &mut Model, sum: Sum) {
        let node = model[self.id].clone();
        let (&[state, rows], Some(first)) = (node.outputs(), node.input(0)) else { return };
        let ([b, h, k, v], [heads, key, value]) = (sum.sizes, sum.ints);
        let cx = Builder::new(model, InsertPoint::Before(self.id), Constraints::default());
        cx.set_origins(&node.origins);
        // `(batch, tokens, heads * size)`
        let flat = |x: Value, size: i64| {
            let rank = cx.model().rank(x);
            if rank != Some(4) {
                return cx.transpose(x, &[0, 2, 1]);
            }
            let x = cx.transpose(x, &[0, 2, 1, 3]);
            cx.reshape_op(x, cx.ints(&[0, 0, heads * size]), attrs::Reshape::default())
        };
        let shared = cx.model().rank(sum.queries) == Some(3);
        let queries = if shared { sum.queries } else { flat(sum.queries, key) };
        let single = cx.model().rank(first) == Some(3);
        let past = if single { cx.unsqueeze(first, &[3]) } else { first };
        let inputs = [
            Some(queries),
            Some(flat(sum.keys, key)),
            Some(flat(sum.values, value)),
            Some(past),
            Some(flat(sum.decay, key)),
            sum.rate.map(|rate| flat(rate, 1)),
        ];
        let attributes = [
            ("q_num_heads".into(), if shared { 1 } else { heads }.into()),
            ("kv_num_heads".into(), heads.into()),
            ("update_rule".into(), sum.rule.into()),
            ("scale".into(), 1.0_f32.into()),
        ];
        let width = Expr::int(heads * value);
        let types = [
            Some(Type::tensor(DType::F32, [b.clone(), self.tokens.clone(), width])),
            Some(Type::tensor(DType::F32, [b, h, k, v])),
        ];
        let (domain, op) = ("com.microsoft", "LinearAttention");
        let made = cx.emit_custom(domain, op, &inputs, attributes.into_iter().collect(), &types);
        let (by_token, last) = if single {
            (cx.transpose(made[0], &[1, 0, 2]), cx.squeeze(made[1], &[3]))
        } else {
            let apart = cx.ints(&[0, 0, heads, value]);
            let apart = cx.reshape_op(made[0], apart, attrs::Reshape::default());
            (cx.transpose(apart, &[1, 0, 2, 3]), made[1])
        };
        drop(cx);
        rewrite::substitute(model, state, last);
        rewrite::substitute(model, rows, by_token);
        model.erase(self.id);
    }
}

fn has_sizes(model: &Model, value: Value, sizes: &[&Expr]) -> bool {
    model.shape(value).is_some_and(|found| found.iter().eq(sizes.iter().copied()))
}

/// Whether the sizes behind the first are these. The body of a `Scan` may know another name for
/// the batch than the tensors before it.
fn in_batches(model: &Model, value: Value, sizes: &[&Expr]) -> bool {
    let found = model.shape(value).and_then(|found| found.split_first());
    found.is_some_and(|(_, found)| found.iter().eq(sizes.iter().copied()))
}

/// Whether a sum is over the last dimension but one, which it leaves out.
fn over_keys(model: &Model, sum: Value) -> bool {
    let read = || {
        let node = &model[model.producer(sum)?];
        let options = attrs::ReduceSum::read(node).ok().filter(|options| !options.keepdims)?;
        let axes = model.const_ints(node.input(1)?)?;
        Some(matches!(axes[..], [-2 | 2]) && !options.noop_with_empty_axes)
    };
    read() == Some(true)
}

/// Whether a value is gathered along the last of three dimensions.
fn gathers_last(model: &Model, value: Value) -> bool {
    let gather = model.producer(value).map(|id| &model[id]);
    let axis = gather.and_then(|node| attrs::Gather::read(node).ok()).map(|options| options.axis);
    matches!(axis, Some(-1 | 2))
}

/// The value of the same elements before they got other sizes.
fn unshaped(model: &Model, mut value: Value) -> Value {
    while let Some(id) = model.producer(value)
        && model[id].traits().contains(Traits::SHAPE_ONLY)
        && let Some(input) = model[id].input(0)
    {
        value = input;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read() {
        for pattern in [&DELTA, &DELTA_ROW, &SELECTIVE, &SELECTIVE_ROW] {
            assert!(pattern.is_some());
        }
    }
}
