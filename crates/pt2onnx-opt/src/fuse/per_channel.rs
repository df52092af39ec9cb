//! Arithmetic with a constant for each channel of a layer.

use super::{
    batch_norm::{MISFIT, NOT_FLOAT, SHARED},
    lazy_scale::{Real, scaled},
};
use crate::{
    fusion::{Because, NoFusion},
    pattern::Match,
};
use pt2onnx_ir::{Builder, Node, Value, attrs};
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

/// Whether the result of a fold is float64. An error if it is not float32 either.
pub(super) fn is_double(cx: &Builder, found: &Match) -> Result<bool, NoFusion> {
    match cx.known_dtype(found.output()) {
        Some(DType::F32) => Ok(false),
        Some(DType::F64) => Ok(true),
        _ => Err(NoFusion::Because(NOT_FLOAT)),
    }
}

/// Where the channels of a layer's output are.
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

    /// The layer whose weight has its channels where this one has them.
    pub fn scaled_as(&self) -> &'static str {
        if self.op == "MatMul" { "Gemm" } else { self.op }
    }

    /// The elements of a constant for each channel, if it is the same in all other dimensions.
    pub fn spread<T: Real>(&self, cx: &Builder, value: Value) -> Result<Vec<f64>, NoFusion> {
        self.elements::<T>(cx, value).because(SPREAD)
    }

    fn elements<T: Real>(&self, cx: &Builder, value: Value) -> Option<Vec<f64>> {
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
    pub fn folded<T: Real>(
        &self,
        cx: &Builder,
        found: &Match,
        node: &Node,
        place: &Channels,
        summand: Option<Value>,
    ) -> Result<Value, NoFusion> {
        let given = node.input(1).ok_or(NoFusion::NoMatch)?;
        let usable = |v: &f64| v.is_finite() && *v != 0.0;
        let mut inputs = vec![node.input(0), Some(given)];
        let weight = match &self.factors {
            Some(factors) => {
                factors.iter().all(usable).because("a factor is 0 or not finite")?;
                (node.input(1) != node.input(2)).because("the weight is the bias, too")?;
                let tensor = cx.constant_of(given);
                let tensor = tensor.filter(|t| t.has_data() && found.is_unshared(cx, given));
                let tensor = tensor.because(SHARED)?;
                let weight = scaled::<T>(&tensor, node, place.scaled_as(), factors);
                Some(weight.because(MISFIT)?)
            }
            None => None,
        };
        let bias = self.bias::<T>(cx, node, place)?;
        if let Some(weight) = weight {
            inputs[1] = Some(found.add_folded(cx, weight, Some(given)));
        }
        if let Some(bias) = bias {
            let after = node.input(2).or(summand);
            inputs.push(Some(found.add_folded(cx, Tensor::vector(&bias), after)));
        }
        let attributes = node.attributes.iter().filter(|(name, _)| name != "beta");
        Ok(cx.emit1(place.op, &inputs, attributes.cloned().collect()))
    }

    /// The new bias; `Ok(None)` if there is none.
    fn bias<T: Real>(
        &self,
        cx: &Builder,
        node: &Node,
        place: &Channels,
    ) -> Result<Option<Vec<T>>, NoFusion> {
        let beta = f64::from(attrs::Gemm::read(node).map_err(|_| NoFusion::NoMatch)?.beta);
        let given = match node.input(2) {
            Some(bias) if place.op == "Gemm" => Some(place.spread::<T>(cx, bias)?),
            Some(bias) => {
                let own = cx.constant_of(bias).filter(|t| t.shape() == [place.count]);
                let own = own.and_then(|t| t.to_vec::<T>());
                let own = own.because("the bias is not a constant for each channel")?;
                Some(own.into_iter().map(Into::into).collect())
            }
            None => None,
        };
        if given.is_none() && self.summands.is_none() {
            return Ok(None);
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
        all.iter().all(|&v| v.into().is_finite()).because(MISFIT)?;
        Ok(Some(all))
    }
}
