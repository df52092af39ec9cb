//! Folds arithmetic with constants into the weights and biases of the layer before or after it.

use super::{
    batch_norm::{alone, as_doubles, named},
    lazy_scale::{Real, scaled},
    ort_reserved::is_halved_gelu,
};
use crate::{
    fusion::Fusion,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Node, Traits, Value, attrs};
use pt2onnx_tensor::{DType, Tensor};

/// `f y + s` of the output `y` of a layer, with a factor and a summand for each channel.
struct Affine {
    factors: Option<Vec<f64>>,
    summands: Option<Vec<f64>>,
}

pub(crate) fn channel_fusions() -> Result<Vec<Fusion>, PatternError> {
    let mut fusions = Vec::new();
    for op in Traits::LAYER.operators() {
        for (pattern, kind) in [
            ("Add(w:LAYER(x, #weight), #c)", Kind::Add),
            ("Sub(w:LAYER(x, #weight), #c)", Kind::Sub),
            ("Sub(#c, w:LAYER(x, #weight))", Kind::SubFrom),
            ("Mul(w:LAYER(x, #weight), #c)", Kind::Mul),
            ("Div(w:LAYER(x, #weight), #c)", Kind::Div),
        ] {
            // The bias of a MatMul is a node of its own.
            if op == "MatMul" && !matches!(kind, Kind::Mul | Kind::Div) {
                continue;
            }
            let pattern = pattern.replace("LAYER", op);
            fusions.push(Fusion::new(&pattern, move |cx, found| layer(cx, found, op, kind))?);
        }
    }
    for (pattern, kind) in [
        ("Add(n:BatchNormalization(x, #scale, bias, mean, variance), #c)", Kind::Add),
        ("Sub(n:BatchNormalization(x, #scale, bias, mean, variance), #c)", Kind::Sub),
        ("Sub(#c, n:BatchNormalization(x, #scale, bias, mean, variance))", Kind::SubFrom),
        ("Mul(n:BatchNormalization(x, #scale, bias, mean, variance), #c)", Kind::Mul),
        ("Div(n:BatchNormalization(x, #scale, bias, mean, variance), #c)", Kind::Div),
    ] {
        fusions.push(Fusion::new(pattern, move |cx, found| normalized(cx, found, kind))?);
    }
    for (pattern, kind) in [
        ("Mul(a:Add(w:MatMul(x, #weight), #b), #c)", Kind::Mul),
        ("Div(a:Add(w:MatMul(x, #weight), #b), #c)", Kind::Div),
    ] {
        fusions.push(Fusion::new(pattern, move |cx, found| distributed(cx, found, kind))?);
    }
    Ok(fusions)
}

pub(crate) fn factor_fusions() -> Result<Vec<Fusion>, PatternError> {
    let mut fusions = Vec::new();
    for op in Traits::LAYER.operators() {
        for (pattern, kind) in [
            ("w:LAYER(m:Mul(x, #c), #weight)", Kind::Mul),
            ("w:LAYER(m:Div(x, #c), #weight)", Kind::Div),
        ] {
            let pattern = pattern.replace("LAYER", op);
            fusions.push(Fusion::new(&pattern, move |cx, found| of_input(cx, found, op, kind))?);
        }
    }
    Ok(fusions)
}

#[derive(Clone, Copy)]
enum Kind {
    Add,
    Sub,
    SubFrom,
    Mul,
    Div,
}

impl Kind {
    fn affine(self, c: Vec<f64>) -> Affine {
        let each = |f: fn(f64) -> f64| Some(c.iter().map(|&c| f(c)).collect::<Vec<f64>>());
        match self {
            Kind::Add => Affine { factors: None, summands: each(|c| c) },
            Kind::Sub => Affine { factors: None, summands: each(|c| -c) },
            Kind::SubFrom => Affine { factors: each(|_| -1.0), summands: each(|c| c) },
            Kind::Mul => Affine { factors: each(|c| c), summands: None },
            Kind::Div => Affine { factors: each(|c| 1.0 / c), summands: None },
        }
    }
}

fn layer(cx: &Builder, found: &Match, op: &'static str, kind: Kind) -> Option<Value> {
    match cx.known_dtype(found.output())? {
        DType::F32 => layer_as::<f32>(cx, found, op, kind),
        DType::F64 => layer_as::<f64>(cx, found, op, kind),
        _ => None,
    }
}

fn layer_as<T: Real>(cx: &Builder, found: &Match, op: &'static str, kind: Kind) -> Option<Value> {
    let node = found.node(cx, "w")?;
    let place = Channels::of(cx, &node, op)?;
    let affine = kind.affine(place.spread::<T>(cx, found.value("c")?)?);
    affine.folded::<T>(cx, &node, &place, found.value("c"))
}

fn normalized(cx: &Builder, found: &Match, kind: Kind) -> Option<Value> {
    match cx.known_dtype(found.output())? {
        DType::F32 => normalized_as::<f32>(cx, found, kind),
        DType::F64 => normalized_as::<f64>(cx, found, kind),
        _ => None,
    }
}

/// The scale and bias of a batch normalization are those of channels.
fn normalized_as<T: Real>(cx: &Builder, found: &Match, kind: Kind) -> Option<Value> {
    let op = "BatchNormalization";
    let node = found.node(cx, "n")?;
    if attrs::BatchNormalization::read(&node).ok()?.training_mode {
        return None;
    }
    let rank = cx.known_shape(found.value("x")?)?.len();
    let (scale, bias) = (found.value("scale")?, found.value("bias")?);
    let count = cx.constant_of(scale)?.numel();
    let place = Channels { op, count, from_end: rank.checked_sub(2)?, rank };
    let Affine { factors, summands } = kind.affine(place.spread::<T>(cx, found.value("c")?)?);
    let moved = |value: Value, summands: Option<Vec<f64>>| {
        let mut all = as_doubles::<T>(cx, value).filter(|all| all.len() == count)?;
        for (i, v) in all.iter_mut().enumerate() {
            let at = |of: &Option<Vec<f64>>| of.as_ref().and_then(|of| of.get(i).copied());
            *v = *v * at(&factors).unwrap_or(1.0) + at(&summands).unwrap_or(0.0);
        }
        let all: Vec<T> = all.into_iter().map(T::rounded).collect();
        let finite = all.iter().all(|&v| v.into().is_finite());
        finite.then(|| named(cx, Tensor::vector(&all), Some(value)))
    };
    let mut inputs = node.inputs().to_vec();
    (inputs[1], inputs[2]) = match factors {
        Some(_) => (Some(moved(scale, None)?), Some(moved(bias, summands)?)),
        None => (Some(scale), Some(moved(bias, summands)?)),
    };
    Some(cx.emit1(op, &inputs, node.attributes.clone()))
}

/// Factors far from where products overflow or vanish.
const USUAL: std::ops::Range<f64> = 1e-9..1e9;

/// A number that the input of a layer is multiplied by goes into the weight. The bias stays, and so
/// does the half of a GELU in front of a product ([`is_halved_gelu`]).
fn of_input(cx: &Builder, found: &Match, op: &'static str, kind: Kind) -> Option<Value> {
    let of_product = matches!(op, "Gemm" | "MatMul");
    if of_product && is_halved_gelu(&cx.model(), found.node(cx, "w")?.input(0)?) {
        return None;
    }
    match cx.known_dtype(found.output())? {
        DType::F32 => of_input_as::<f32>(cx, found, op, kind),
        DType::F64 => of_input_as::<f64>(cx, found, op, kind),
        _ => None,
    }
}

fn of_input_as<T: Real>(
    cx: &Builder,
    found: &Match,
    op: &'static str,
    kind: Kind,
) -> Option<Value> {
    let node = found.node(cx, "w")?;
    let place = Channels::of(cx, &node, op)?;
    let [x, c, given] = [found.value("x")?, found.value("c")?, node.input(1)?];
    // The product has the rank of the input.
    let number = cx.constant_of(c).filter(|t| t.numel() == 1 && t.rank() <= place.rank)?;
    let factors = kind.affine(place.spread::<T>(cx, c)?).factors?;
    if !factors.iter().all(|f| USUAL.contains(&f.abs())) || number.rank() > 1 && op == "MatMul" {
        return None;
    }
    let tensor = cx.constant_of(given).filter(|t| t.has_data() && alone(cx, given))?;
    let weight = scaled::<T>(&tensor, &node, place.scaled_as(), &factors)?;
    let mut inputs = node.inputs().to_vec();
    (inputs[0], inputs[1]) = (Some(x), Some(named(cx, weight, Some(given))));
    Some(cx.emit1(op, &inputs, node.attributes.clone()))
}

/// `(x w + b) c` is `x (w c) + b c`.
fn distributed(cx: &Builder, found: &Match, kind: Kind) -> Option<Value> {
    match cx.known_dtype(found.output())? {
        DType::F32 => distributed_as::<f32>(cx, found, kind),
        DType::F64 => distributed_as::<f64>(cx, found, kind),
        _ => None,
    }
}

fn distributed_as<T: Real>(cx: &Builder, found: &Match, kind: Kind) -> Option<Value> {
    let node = found.node(cx, "w")?;
    let place = Channels::of(cx, &node, "MatMul")?;
    let affine = kind.affine(place.spread::<T>(cx, found.value("c")?)?);
    let bias = found.value("b")?;
    let factors = affine.factors.as_ref()?;
    let summands = place.spread::<T>(cx, bias)?;
    let moved: Vec<T> = summands.iter().zip(factors).map(|(b, f)| T::rounded(b * f)).collect();
    if !moved.iter().all(|&v| v.into().is_finite()) {
        return None;
    }
    let product = affine.folded::<T>(cx, &node, &place, None)?;
    let bias = named(cx, Tensor::vector(&moved), Some(bias));
    Some(cx.emit1("Add", &[Some(product), Some(bias)], Vec::new()))
}

/// Where the channels of a layer's output are.
struct Channels {
    op: &'static str,
    count: usize,
    /// The dimension of the output, counted from the last one.
    from_end: usize,
    /// The number of dimensions that the output has at least.
    rank: usize,
}

impl Channels {
    fn of(cx: &Builder, node: &Node, op: &'static str) -> Option<Self> {
        let weight = cx.constant_of(node.input(1)?)?;
        let shape = weight.shape();
        let matrix = || (shape.len() == 2).then_some(());
        let (count, from_end, rank) = match op {
            "Conv" => (*shape.first()?, shape.len().checked_sub(2)?, shape.len()),
            "ConvTranspose" => {
                let groups = usize::try_from(attrs::Conv::read(node).ok()?.group).ok()?;
                (shape.get(1)?.checked_mul(groups)?, shape.len().checked_sub(2)?, shape.len())
            }
            "Gemm" => {
                matrix()?;
                let row = attrs::Gemm::read(node).ok()?.trans_b;
                (shape[usize::from(!row)], 0, 2)
            }
            _ => {
                matrix()?;
                (shape[1], 0, cx.known_shape(node.input(0)?).map_or(1, |s| s.len()))
            }
        };
        (count > 0).then_some(Self { op, count, from_end, rank })
    }

    /// The layer whose weight has its channels where this one has them.
    fn scaled_as(&self) -> &'static str {
        if self.op == "MatMul" { "Gemm" } else { self.op }
    }

    /// The elements of a constant for each channel, if it is the same in all other dimensions.
    fn spread<T: Real>(&self, cx: &Builder, value: Value) -> Option<Vec<f64>> {
        let t = cx.constant_of(value).filter(|t| t.has_data() && t.rank() <= self.rank)?;
        let own = t.rank().checked_sub(self.from_end + 1);
        let others = t.shape().iter().enumerate().filter(|(i, _)| Some(*i) != own);
        if others.into_iter().any(|(_, &size)| size != 1) {
            return None;
        }
        let elements: Vec<f64> = t.to_vec::<T>()?.into_iter().map(Into::into).collect();
        match elements.as_slice() {
            [one] => Some(vec![*one; self.count]),
            all if all.len() == self.count => Some(elements),
            _ => None,
        }
    }
}

impl Affine {
    /// The layer with the arithmetic in its weight and bias. `summand` is the constant that the
    /// bias may get its name from.
    fn folded<T: Real>(
        &self,
        cx: &Builder,
        node: &Node,
        place: &Channels,
        summand: Option<Value>,
    ) -> Option<Value> {
        let given = node.input(1)?;
        let usable = |v: &f64| v.is_finite() && *v != 0.0;
        let mut inputs = vec![node.input(0), Some(given)];
        let weight = match &self.factors {
            Some(factors) => {
                if !factors.iter().all(usable) || node.input(1) == node.input(2) {
                    return None;
                }
                let tensor = cx.constant_of(given).filter(|t| t.has_data() && alone(cx, given))?;
                Some(scaled::<T>(&tensor, node, place.scaled_as(), factors)?)
            }
            None => None,
        };
        let bias = self.bias::<T>(cx, node, place)?;
        if let Some(weight) = weight {
            inputs[1] = Some(named(cx, weight, Some(given)));
        }
        if let Some(bias) = bias {
            inputs.push(Some(named(cx, Tensor::vector(&bias), node.input(2).or(summand))));
        }
        let attributes = node.attributes.iter().filter(|(name, _)| name != "beta");
        Some(cx.emit1(place.op, &inputs, attributes.cloned().collect()))
    }

    /// The new bias; `Some(None)` if there is none.
    fn bias<T: Real>(&self, cx: &Builder, node: &Node, place: &Channels) -> Option<Option<Vec<T>>> {
        let beta = f64::from(attrs::Gemm::read(node).ok()?.beta);
        let given = match node.input(2) {
            Some(bias) if place.op == "Gemm" => Some(place.spread::<T>(cx, bias)?),
            Some(bias) => {
                let t = cx.constant_of(bias).filter(|t| t.shape() == [place.count])?;
                Some(t.to_vec::<T>()?.into_iter().map(Into::into).collect())
            }
            None => None,
        };
        if given.is_none() && self.summands.is_none() {
            return Some(None);
        }
        let at = |v: &Option<Vec<f64>>, c: usize, default: f64| {
            v.as_ref().map_or(default, |v| v.get(c).copied().unwrap_or(default))
        };
        let all: Vec<T> = (0..place.count)
            .map(|c| {
                at(&given, c, 0.0) * beta * at(&self.factors, c, 1.0) + at(&self.summands, c, 0.0)
            })
            .map(T::rounded)
            .collect();
        all.iter().all(|&v| v.into().is_finite()).then_some(Some(all))
    }
}
