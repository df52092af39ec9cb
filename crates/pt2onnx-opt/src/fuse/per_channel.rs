//! Arithmetic with a constant for each channel of a layer.

use super::{Because, Match, NoFusion, lazy_scale::scaled};
use crate::analysis::{every, perm};
use pt2onnx_ir::{Builder, Node, Value, attrs};
use pt2onnx_symbolic::axis;
use pt2onnx_tensor::{DType, Tensor};

/// `f y + s` of the output `y` of a layer, with a factor and a summand for each channel.
pub(super) struct Affine {
    pub factors: Option<Vec<f64>>,
    pub summands: Option<Vec<f64>>,
}

/// The arithmetic on the output `y` of a layer.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Add,
    Sub,
    SubFrom,
    Mul,
    Div,
}

impl Kind {
    /// The arithmetic with these constants.
    pub fn affine(self, c: Vec<f64>) -> Affine {
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

/// A reason of these folds.
pub(super) const SPREAD: &str = "the constant differs in other dimensions than the channels";

/// A reason of these folds.
pub(super) const MISFIT: &str =
    "a constant has other sizes than the channels, or a product is not finite";

/// The element type of the result of a fold, float32 or float64.
pub(super) fn float_type(cx: &Builder, found: &Match) -> Result<DType, NoFusion> {
    let dtype = cx.known_dtype(found.output());
    let float = dtype.filter(|dtype| matches!(dtype, DType::F32 | DType::F64));
    float.because("the type is not float32 or float64")
}

pub(super) fn doubles(cx: &Builder, value: Value, dtype: DType) -> Option<Vec<f64>> {
    cx.constant_of(value).filter(|t| t.dtype() == dtype)?.to_doubles()
}

/// A vector of these numbers, rounded to the type. An error if one is not finite.
pub(super) fn vector(dtype: DType, numbers: impl Iterator<Item = f64>) -> Result<Tensor, NoFusion> {
    let vector = match dtype {
        DType::F64 => Tensor::vector(&numbers.collect::<Vec<f64>>()),
        _ => Tensor::vector(&numbers.map(|v| v as f32).collect::<Vec<f32>>()),
    };
    Some(vector).filter(|vector| every(vector, f64::is_finite)).because(MISFIT)
}

/// The weight of a layer, which nothing else uses, with its channels multiplied by factors.
pub(super) fn scaled_weight(
    cx: &Builder,
    found: &Match,
    node: &Node,
    op: &str,
    dtype: DType,
    factors: &[f64],
) -> Result<Tensor, NoFusion> {
    let weight = node.input(1).ok_or(NoFusion::NoMatch)?;
    let tensor = cx.constant_of(weight).filter(|t| t.has_data() && found.is_unshared(cx, weight));
    let tensor = tensor.because("the weight is not a constant, or it is shared")?;
    scaled(&tensor, node, op, dtype, factors).because(MISFIT)
}

#[derive(Clone, Copy)]
pub(super) struct Channels {
    pub op: &'static str,
    pub count: usize,
    /// The dimension of the output, counted from the last one.
    pub from_end: usize,
    /// The number of dimensions that the output has at least.
    pub rank: usize,
}

impl Channels {
    /// Those of a layer with a constant weight.
    pub fn of(cx: &Builder, node: &Node, op: &'static str) -> Result<Self, NoFusion> {
        Self::find(cx, node, op).because("the weight is not a constant of a usual shape")
    }

    fn find(cx: &Builder, node: &Node, op: &'static str) -> Option<Self> {
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

    /// The same behind a `Transpose`, `Squeeze` or `Unsqueeze` of the output.
    pub fn behind(self, cx: &Builder, view: &Node) -> Result<Self, NoFusion> {
        let places = places(cx, view).because("the dimensions that move are not known")?;
        let moved = |rank: usize| {
            let channel = rank.checked_sub(self.from_end + 1)?;
            let at = places.iter().position(|&from| from == Some(channel))?;
            Some(places.len() - 1 - at)
        };
        let rank = view.input(0).and_then(|v| cx.known_shape(v)).map(|shape| shape.len());
        let from_end = rank.and_then(moved).because("the channels are not a dimension")?;
        Ok(Self { from_end, rank: places.len(), ..self })
    }

    /// The layer whose weight has its channels where this one has them.
    pub fn scaled_as(&self) -> &'static str {
        if self.op == "MatMul" { "Gemm" } else { self.op }
    }

    /// The elements of a constant for each channel, if it is the same in all other dimensions.
    pub fn spread(&self, cx: &Builder, value: Value, dtype: DType) -> Result<Vec<f64>, NoFusion> {
        self.elements(cx, value, dtype).because(SPREAD)
    }

    fn elements(&self, cx: &Builder, value: Value, dtype: DType) -> Option<Vec<f64>> {
        let t = cx.constant_of(value).filter(|t| t.dtype() == dtype && t.rank() <= self.rank)?;
        let own = t.rank().checked_sub(self.from_end + 1);
        let others = t.shape().iter().enumerate().filter(|(i, _)| Some(*i) != own);
        if others.into_iter().any(|(_, &size)| size != 1) {
            return None;
        }
        let elements = t.to_doubles()?;
        match elements.as_slice() {
            [one] => Some(vec![*one; self.count]),
            all if all.len() == self.count => Some(elements),
            _ => None,
        }
    }
}

/// The dimension of the input that each dimension of the output of a view is; `None` for new ones.
fn places(cx: &Builder, view: &Node) -> Option<Vec<Option<usize>>> {
    let model = cx.model();
    let rank = model.rank(view.input(0)?)?;
    let axes = |rank: usize| {
        let ints = model.const_ints(view.input(1)?)?;
        ints.into_iter().map(|a| axis(a, rank)).collect::<Option<Vec<usize>>>()
    };
    match view.op() {
        "Transpose" => Some(perm(&model, view)?.iter().map(|&p| usize::try_from(p).ok()).collect()),
        "Squeeze" => {
            let removed = axes(rank)?;
            Some((0..rank).filter(|i| !removed.contains(i)).map(Some).collect())
        }
        _ => {
            let rank = rank + model.const_ints(view.input(1)?)?.len();
            let (added, mut kept) = (axes(rank)?, 0..);
            Some((0..rank).map(|i| if added.contains(&i) { None } else { kept.next() }).collect())
        }
    }
}

impl Affine {
    /// The layer with the arithmetic in its weight and bias. `summand` is the constant that the
    /// bias may get its name from.
    pub fn folded(
        &self,
        cx: &Builder,
        found: &Match,
        node: &Node,
        place: &Channels,
        dtype: DType,
        summand: Option<Value>,
    ) -> Result<Value, NoFusion> {
        let usable = |v: &f64| v.is_finite() && *v != 0.0;
        let weight = match &self.factors {
            Some(factors) => {
                factors.iter().all(usable).because("a factor is 0 or not finite")?;
                (node.input(1) != node.input(2)).because("the weight is the bias, too")?;
                Some(scaled_weight(cx, found, node, place.scaled_as(), dtype, factors)?)
            }
            None => None,
        };
        let bias = self.bias(cx, node, place, dtype)?;
        let mut inputs = vec![node.input(0), node.input(1)];
        if let Some(weight) = weight {
            inputs[1] = Some(found.add_folded(cx, weight, node.input(1)));
        }
        if let Some(bias) = bias {
            inputs.push(Some(found.add_folded(cx, bias, node.input(2).or(summand))));
        }
        let attributes = node.attributes.iter().filter(|(name, _)| name != "beta");
        Ok(cx.emit1(place.op, &inputs, attributes.cloned().collect()))
    }

    /// The new bias; `Ok(None)` if there is none.
    fn bias(
        &self,
        cx: &Builder,
        node: &Node,
        place: &Channels,
        dtype: DType,
    ) -> Result<Option<Tensor>, NoFusion> {
        let beta = f64::from(attrs::Gemm::read(node).map_err(|_| NoFusion::NoMatch)?.beta);
        let given = match node.input(2) {
            Some(bias) if place.op == "Gemm" => Some(place.spread(cx, bias, dtype)?),
            Some(bias) => {
                let own = cx.constant_of(bias).is_some_and(|t| t.shape() == [place.count]);
                let own = doubles(cx, bias, dtype).filter(|_| own);
                Some(own.because("the bias is not a constant for each channel")?)
            }
            None => None,
        };
        if given.is_none() && self.summands.is_none() {
            return Ok(None);
        }
        let at = |v: &Option<Vec<f64>>, c: usize, default: f64| {
            v.as_ref().map_or(default, |v| v.get(c).copied().unwrap_or(default))
        };
        let moved = |c: usize| {
            at(&given, c, 0.0) * beta * at(&self.factors, c, 1.0) + at(&self.summands, c, 0.0)
        };
        vector(dtype, (0..place.count).map(moved)).map(Some)
    }
}
