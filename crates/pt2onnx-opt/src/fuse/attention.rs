//! Attention written out: scaled products of queries and keys, a mask, a softmax, the values it weighs.

use super::{Fusion, Rule, Seen, expanded, ints, pattern};
use crate::{Changed, Options, cleanup::known};
use pt2onnx_ir::{
    Attribute, Builder, InsertPoint, Model, Node, NodeId, Shape, Use, Value, attrs, schema,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// Of four dimensions, with what stands around it. What `Attention` gives for a row without any key is zeros: what is
/// written out must have no such row, or give zeros as well.
pub(crate) static ATTENTION: Fusion = Fusion {
    since: 23,
    rules: &[
        Rule {
            pattern: "MatMul(?c:Cast(?guard:Where(allowed, s:Softmax(?masked:Where(allowed, ?Add(?h:Cast(?Mul(?Div( \
                      MatMul(q, ?Mul(t:Transpose(k), right)), over), scale)), bias), -inf)), 0)), v)",
            rewrite: attention,
        },
        Rule {
            pattern: "MatMul(?c:Cast(guard:Where(Equal(r:ReduceMax(b:Add(?h:Cast(MatMul(q, t:Transpose(k))), bias)), -inf), 0, \
                      s:Softmax(b:Add(?h:Cast(MatMul(q, t:Transpose(k))), bias)))), v)",
            rewrite: attention,
        },
        Rule { pattern: "a:Attention(Mul(x, scale))", rewrite: |cx, seen| scaled(cx, seen, 0) },
        Rule { pattern: "a:Attention(q, Mul(x, scale))", rewrite: |cx, seen| scaled(cx, seen, 1) },
        Rule {
            pattern: "a:Attention(q, Reshape(ek:Expand(uk:Unsqueeze(k))), Reshape(ev:Expand(uv:Unsqueeze(v))))",
            rewrite: grouped,
        },
        Rule {
            pattern: "a:Attention(q, k, v, mask)",
            rewrite: |cx, seen| {
                let (node, mask) = (seen.node(cx, "a")?, seen.value("mask")?);
                let [rows, columns] = [seen.value("q")?, seen.value("k")?].map(|x| length(cx, x));
                let free = node.int("is_causal").unwrap_or(0) == 0 && node.inputs().len() == 4;
                let causal = free && is_causal(&cx.model(), mask, &rows?, &columns?);
                let attributes = node.attributes.iter().cloned();
                let attributes = attributes.chain([("is_causal".into(), 1.into())]);
                causal.then(|| cx.emit1("Attention", &node.inputs()[..3], attributes.collect()))
            },
        },
    ],
};

/// The whole of it, from the product with the values.
fn attention(cx: &Builder, seen: &Seen) -> Option<Value> {
    let (q, k, v) = (seen.value("q")?, seen.value("k")?, seen.value("v")?);
    let perm = ints(&seen.node(cx, "t")?, "perm")?.to_vec();
    let [a, b, c, d] = perm[..] else {
        return None;
    };
    let perm = [a, b, d, c].map(usize::try_from);
    let perm: Vec<usize> = perm.into_iter().collect::<Result<_, _>>().ok()?;
    let dims: Shape =
        perm.iter().map(|&p| Some(cx.known_shape(k)?.get(p)?.clone())).collect::<Option<_>>()?;
    let (queries, values) = (cx.known_shape(q)?, cx.known_shape(v)?);
    let fit = queries.len() == 4
        && values.len() == 4
        && queries[..2] == dims[..2]
        && queries[3] == dims[3]
        // As many values as keys there are in any case: the product with the weights takes no others.
        && values[..2] == dims[..2]
        && [&queries, &dims, &values]
            .into_iter()
            .flatten()
            .all(known);
    let dtype = cx.dtype(q);
    let half = matches!(dtype, DType::F16 | DType::BF16);
    let wide = seen.value("h").map_or(dtype, |h| cx.dtype(h));
    let typed = dtype == cx.dtype(v)
        && (half || matches!(dtype, DType::F32 | DType::F64))
        && (wide == dtype || (half && wide == DType::F32));
    let softmax = seen.node(cx, "s")?;
    let last = |axis: i64| axis == -1 || axis == 3;
    let reduced = match seen.value("r") {
        Some(_) => {
            let node = seen.node(cx, "r")?;
            let axes = cx.model()[node.input(1)?].constant()?.to_vec::<i64>()?;
            matches!(axes[..], [axis] if last(axis)) && node.int("keepdims") != Some(0)
        }
        None => true,
    };
    if !fit || !typed || !reduced || !last(softmax.int("axis").unwrap_or(-1)) {
        return None;
    }
    let factor = |name: &str| match seen.value(name) {
        Some(_) => seen.number(cx, name),
        None => Some(1.0),
    };
    let scale = (factor("scale")? / factor("over")? * factor("right")?) as f32;
    if !scale.is_normal() || scale < 0.0 {
        return None;
    }
    let sizes = [&queries[..3], &dims[2..3]].concat();
    let (allowed, bias) = (seen.value("allowed"), seen.value("bias"));
    let guarded = seen.value("guard").is_some();
    // A guard without the mask that it guards is something else.
    if allowed.is_some() && seen.value("masked").is_none() {
        return None;
    }
    let (mask, causal) = match (allowed, bias) {
        (None, None) => (None, false),
        (Some(allowed), None) => {
            let causal = is_causal(&cx.model(), allowed, &sizes[2], &sizes[3]);
            if !guarded && !causal && !has_keys(&cx.model(), allowed) {
                return None;
            }
            (Some(allowed).filter(|_| !causal), causal)
        }
        (None, Some(bias)) => {
            let source = uncast(&cx.model(), bias, dtype)?;
            let sound =
                has_keys(&cx.model(), source) || (guarded && is_choice(&cx.model(), source));
            (Some(source).filter(|_| sound).map(Some)?, false)
        }
        (Some(_), Some(_)) => return None,
    };
    let mask = match mask {
        Some(mask) => Some(full(cx, mask, &sizes)?),
        None => None,
    };
    let k = cx.transpose(k, &perm);
    let options = attrs::Attention {
        scale: Some(scale),
        is_causal: causal,
        softmax_precision: (wide != dtype).then(|| schema::data_type(wide)),
        ..Default::default()
    };
    Some(cx.attention(q, k, v, mask, None, None, None, options))
}

/// Queries or keys that are multiplied by a number.
fn scaled(cx: &Builder, seen: &Seen, i: usize) -> Option<Value> {
    let node = seen.node(cx, "a")?;
    let Some(Attribute::Float(given)) = node.attribute("scale") else {
        return None;
    };
    let scale = (f64::from(*given) * seen.number(cx, "scale")?) as f32;
    let product = node.input(i)?;
    let kept = cx.known_shape(product).filter(|s| s.iter().all(known));
    if !scale.is_normal()
        || scale < 0.0
        || kept.is_none()
        || kept != cx.known_shape(seen.value("x")?)
    {
        return None;
    }
    let mut inputs = node.inputs().to_vec();
    inputs[i] = seen.value("x");
    let others = node.attributes.iter().filter(|(n, _)| n != "scale").cloned();
    let attributes = others.chain([("scale".into(), scale.into())]).collect();
    Some(cx.emit1("Attention", &inputs, attributes))
}

/// Keys and values whose heads several of the queries' share, each repeated for all of them.
fn grouped(cx: &Builder, seen: &Seen) -> Option<Value> {
    let node = seen.node(cx, "a")?;
    let repeated = |shared: &str, unsqueezed: &str, expanded: &str, i: usize| {
        let shape = |value| cx.known_shape(value).filter(|s| s.iter().all(known));
        let (few, many) = (shape(seen.value(shared)?)?, shape(node.input(i)?)?);
        let (apart, wide) = (shape(seen.value(unsqueezed)?)?, shape(seen.value(expanded)?)?);
        let ([b, heads, s, d], [_, repeats]) = (&few[..], [&wide[1], &wide[2]]) else {
            return None;
        };
        let one = Expr::int(1);
        let right = apart[..] == [b, heads, &one, s, d].map(Clone::clone)
            && wide[..] == [b, heads, repeats, s, d].map(Clone::clone)
            && many[..] == [b, &(heads * repeats), s, d].map(Clone::clone);
        right.then(|| seen.value(shared)).flatten()
    };
    let (k, v) = (repeated("k", "uk", "ek", 1)?, repeated("v", "uv", "ev", 2)?);
    let mut inputs = node.inputs().to_vec();
    (inputs[1], inputs[2]) = (Some(k), Some(v));
    Some(cx.emit1("Attention", &inputs, node.attributes))
}

/// Keys and values that stand behind those of a cache, where the cache is given out again: `Attention` appends them
/// itself. Nothing else may use them.
pub(crate) fn cache(model: &mut Model, options: &Options) -> Changed {
    let mut changed = false;
    if ATTENTION.since > options.opset.min(model.opset) {
        return changed;
    }
    for id in model.graph_nodes() {
        let node = &model[id];
        let plain = node.is("Attention")
            && node.outputs().len() == 1
            && node.inputs().len() <= 4
            && node.int("is_causal").unwrap_or(0) == 0;
        let joined = plain.then(|| Some((appended(model, id, 1)?, appended(model, id, 2)?)));
        let Some(([past_key, key], [past_value, value])) = joined.flatten() else {
            continue;
        };
        let old =
            [node.outputs()[0], node.inputs()[1].unwrap_or(key), node.inputs()[2].unwrap_or(value)];
        let mask = node.input(3);
        let inputs =
            [node.input(0), Some(key), Some(value), mask, Some(past_key), Some(past_value)];
        let (attributes, origins) = (node.attributes.clone(), node.origins.clone());
        let new = model.add_node(InsertPoint::Before(id), "Attention", &inputs, attributes, 3);
        model[new].origins = origins;
        let outputs = model[new].outputs().to_vec();
        for (old, new) in old.into_iter().zip(outputs) {
            model[new].ty = model[old].ty.clone();
            if model[new].name.is_none() {
                model[new].name = model[old].name.take();
            }
            let Some(maker) = model.producer(old) else {
                continue;
            };
            if let Some(owner) = model.producer(new) {
                model.merge_origins(owner, maker);
            }
            model.replace_all_uses(old, new);
            model.erase(maker);
        }
        changed = true;
    }
    changed
}

/// The two parts of a node's input that is joined out of them along the lengths, an output of the graph that no other
/// node uses.
fn appended(model: &Model, id: NodeId, input: usize) -> Option<[Value; 2]> {
    let joined = model[id].input(input)?;
    let node = &model[model.producer(joined)?];
    let given_out = model[joined].uses().any(|u| matches!(u, Use::Output(..)));
    let own = model[joined].uses().all(|u| match u {
        Use::Input(user, i) => user == id && i as usize == input,
        Use::Output(..) => true,
    });
    let here = node.is("Concat") && node.region() == model[id].region() && given_out && own;
    let &[Some(past), Some(new)] = node.inputs() else {
        return None;
    };
    let shape = |v| pattern::tensor_type(model, v).map(|(_, s)| s);
    let (new_sizes, queries) = (shape(new)?, shape(model[id].input(0)?)?);
    let lengths = new_sizes.get(2)? == queries.get(2)? && known(&new_sizes[2]);
    (here && lengths && matches!(node.int("axis"), Some(2 | -2))).then_some([past, new])
}

/// How many queries or keys there are.
fn length(cx: &Builder, x: Value) -> Option<Expr> {
    cx.known_shape(x)?.get(2).cloned()
}

/// The mask for each query and each key: `Attention` broadcasts over batch and heads only, as runtimes have it.
pub(super) fn full(cx: &Builder, mask: Value, sizes: &[Expr]) -> Option<Value> {
    let shape = cx.known_shape(mask)?;
    let fits =
        |(have, want): (&Expr, &Expr)| have.as_int() == Some(1) || (have == want && known(have));
    if shape.len() > 4 || !shape.iter().rev().zip(sizes.iter().rev()).all(fits) {
        return None;
    }
    if shape.len() >= 2 && shape.ends_with(&sizes[2..]) {
        return Some(mask);
    }
    let leading = shape.len().saturating_sub(2);
    let wide: Shape = shape[..leading].iter().chain(&sizes[2..]).cloned().collect();
    Some(expanded(cx, mask, &wide))
}

/// What a value was cast from, if that is of the type.
fn uncast(model: &Model, value: Value, dtype: DType) -> Option<Value> {
    let of_type = |v: &Value| pattern::tensor_type(model, *v).is_some_and(|(d, _)| d == dtype);
    let cast = || model.producer(value).map(|n| &model[n]).filter(|n| n.is("Cast"))?.input(0);
    Some(value).filter(of_type).or_else(|| cast().filter(of_type))
}

/// The elements of a constant mask as what is added to the scores.
fn elements(t: &Tensor) -> Option<Vec<f64>> {
    let added = |b: bool| if b { 0.0 } else { f64::NEG_INFINITY };
    Some(match t.dtype() {
        DType::Bool => t.to_vec::<bool>()?.into_iter().map(added).collect(),
        DType::F64 => t.to_vec::<f64>()?,
        DType::F32 => t.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        DType::F16 => t.to_vec::<half::f16>()?.into_iter().map(f64::from).collect(),
        DType::BF16 => t.to_vec::<half::bf16>()?.into_iter().map(f64::from).collect(),
        _ => return None,
    })
}

/// Whether what is added hides a key: -inf, or about the lowest number of the type, which runtimes take for the same.
fn hides(added: f64, dtype: DType) -> bool {
    let lowest = if dtype == DType::F16 { -65504.0 } else { f64::from(f32::MIN) };
    added < lowest / 2.0
}

/// Whether every query of a constant mask has a key.
fn has_keys(model: &Model, mask: Value) -> bool {
    let rows = || {
        let t = model[mask].constant().filter(|t| t.has_data())?;
        let width = t.shape().last().copied().filter(|&w| w > 0)?;
        let all = elements(t)?;
        Some(all.chunks(width).all(|row| row.iter().any(|&e| !hides(e, t.dtype()))))
    };
    rows() == Some(true)
}

/// Whether all that a float mask hides, it hides by -inf: it chooses between two numbers.
fn is_choice(model: &Model, mask: Value) -> bool {
    let producer = |v| model.producer(v).map(|n| &model[n]);
    let mut node = producer(mask);
    while let Some(moved) =
        node.filter(|n| matches!(n.op(), "Unsqueeze" | "Squeeze" | "Expand" | "Reshape"))
    {
        node = moved.input(0).and_then(producer);
    }
    let infinite = |branch: Option<Value>| {
        let number = branch.and_then(|v| pattern::number_of(model, v));
        number.is_some_and(|(dtype, n)| n == f64::NEG_INFINITY || !hides(n, dtype))
    };
    node.is_some_and(|n| n.is("Where") && infinite(n.input(1)) && infinite(n.input(2)))
}

/// Whether a mask lets each query see the keys up to its own place, those and no others.
fn is_causal(model: &Model, mask: Value, rows: &Expr, columns: &Expr) -> bool {
    let constant = || {
        let t = model[mask].constant().filter(|t| t.has_data())?;
        let (rows, columns) = (rows.as_int()? as usize, columns.as_int()? as usize);
        let (leading, sizes) = t.shape().split_at_checked(t.rank().checked_sub(2)?)?;
        let fits = leading.iter().all(|&d| d == 1) && sizes == [rows, columns] && columns > 0;
        let all = elements(t).filter(|_| fits)?;
        let right = |(i, row): (usize, &[f64])| {
            let (seen, hidden) = row.split_at(columns.min(i + 1));
            seen.iter().all(|&e| e == 0.0) && hidden.iter().all(|&e| hides(e, t.dtype()))
        };
        Some(all.chunks(columns).enumerate().all(right))
    };
    let producer = |v: Option<Value>| Some(&model[model.producer(v?)?]);
    let ints = |v: Option<Value>| model[v?].constant()?.to_vec::<i64>();
    let counts = |node: &Node| {
        node.is("Range")
            && ints(node.input(0)) == Some(vec![0])
            && ints(node.input(2)) == Some(vec![1])
    };
    let compared = || {
        let node = producer(Some(mask)).filter(|n| n.is("GreaterOrEqual"))?;
        let column = producer(node.input(0)).filter(|n| n.is("Unsqueeze"))?;
        let (_, shape) = pattern::tensor_type(model, mask)?;
        let sizes = shape[..] == [rows.clone(), columns.clone()] && shape.iter().all(known);
        let upright = matches!(ints(column.input(1))?[..], [1 | -1]);
        Some(
            sizes
                && upright
                && counts(producer(column.input(0))?)
                && counts(producer(node.input(1))?),
        )
    };
    constant().or_else(compared) == Some(true)
}
