//! Means and variances of the inputs of products, as far as the graph says them.
//!
//! Normalizations have the means and deviations of their channels as biases and scales. A value
//! behind one is computed here as a function of a normal distribution, at points of that. So is a
//! value behind `Relu`, before which nothing is known: its mean in deviations is the same for
//! numbers of any size.

use crate::{ChannelMoments, Options, Quantize, Weight, numbers, product_inputs, weight_selection};
use pt2onnx_ir::{Model, Node, Traits, Value, attrs};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Points of the normal distribution, and the last of them in deviations.
const POINTS: usize = 33;
const LAST: f32 = 4.0;

/// This part of the mean variance is added to each: no number is sure.
const FLOOR: f32 = 1e-3;

/// Nodes in a row, and channels, that are looked at.
const DEPTH: usize = 32;
const CHANNELS: usize = 1 << 16;

/// Norms, with the inputs that are the scales and the biases of channels.
const NORMS: &[(&str, usize, usize)] = &[
    ("BatchNormalization", 1, 2),
    ("InstanceNormalization", 1, 2),
    ("GroupNormalization", 1, 2),
    ("LayerNormalization", 1, 2),
    ("RMSNormalization", 1, 2),
    ("SimplifiedLayerNormalization", 1, 2),
    ("SkipLayerNormalization", 2, 3),
    ("SkipSimplifiedLayerNormalization", 2, 3),
];

/// For each weight of 4 bits, what the graph says of the inputs of its products. Optimisations fold
/// norms into other weights, so that more is known before them: it goes into
/// [`Calibrated`](crate::Calibrated).
pub fn channel_moments(model: &Model, options: &Options) -> FxHashMap<Value, Arc<ChannelMoments>> {
    of_weights(model, &weight_selection::weights(model, options), options)
}

/// The same for some weights.
pub(crate) fn of_weights(
    model: &Model,
    weights: &[Weight],
    options: &Options,
) -> FxHashMap<Value, Arc<ChannelMoments>> {
    let mut found = options.calibrated.channels.clone();
    let mut estimates = Estimates { model, known: FxHashMap::default() };
    for weight in weights.iter().filter(|_| options.quantize == Some(Quantize::Int4)) {
        let Some(width) = product_inputs::width(model, weight) else { continue };
        let mut inputs = product_inputs::inputs_of(model, weight);
        inputs.dedup();
        if let ([input], false) = (inputs.as_slice(), found.contains_key(&weight.value)) {
            let moments = estimates.of(*input, 0).moments(width);
            found.extend(moments.map(|moments| (weight.value, Arc::new(moments))));
        }
    }
    found
}

type Points = [f32; POINTS];

/// A value as a function of a normal distribution.
#[derive(Clone, Debug)]
struct Estimate {
    /// The value that has the distribution.
    root: Value,
    /// Whether the graph says more than that there are numbers.
    says: bool,
    /// The function of each channel, or of all.
    channels: Vec<Points>,
}

fn normal() -> Points {
    std::array::from_fn(|i| LAST * (2.0 * i as f32 / (POINTS - 1) as f32 - 1.0))
}

impl Estimate {
    fn unknown(root: Value) -> Self {
        Self { root, says: false, channels: vec![normal()] }
    }

    fn mapped(&self, f: impl Fn(f32) -> f32) -> Self {
        let channels = self.channels.iter().map(|points| points.map(&f)).collect();
        Self { channels, ..*self }
    }

    /// A function of this and another one; None if their channels do not fit.
    fn joined(&self, other: &[Points], f: impl Fn(f32, f32) -> f32) -> Option<Self> {
        let count = self.channels.len().max(other.len());
        let fits = |len: usize| len == 1 || len == count;
        if !fits(self.channels.len()) || !fits(other.len()) {
            return None;
        }
        let pairs = self.channels.iter().cycle().zip(other.iter().cycle()).take(count);
        let join = |(a, b): (&Points, &Points)| std::array::from_fn(|i| f(a[i], b[i]));
        Some(Self { channels: pairs.map(join).collect(), ..*self })
    }

    /// Means and variances of so many channels; None if the graph says nothing of them.
    fn moments(&self, width: usize) -> Option<ChannelMoments> {
        let count = self.channels.len();
        if !self.says || count != 1 && count != width {
            return None;
        }
        let weights = normal().map(|x| (-0.5 * x * x).exp());
        let total: f32 = weights.iter().sum();
        let mean = |points: &Points, f: &dyn Fn(f32) -> f32| {
            points.iter().zip(weights).map(|(y, weight)| f(*y) * weight).sum::<f32>() / total
        };
        let means: Vec<f32> = self.channels.iter().map(|points| mean(points, &|y| y)).collect();
        let squares = self.channels.iter().zip(&means);
        let mut variances: Vec<f32> =
            squares.map(|(points, m)| mean(points, &|y| (y - m) * (y - m))).collect();
        let sum = variances.iter().sum::<f32>();
        let known = sum > 0.0 && (sum + means.iter().map(|m| m * m).sum::<f32>()).is_finite();
        variances.iter_mut().for_each(|variance| *variance += FLOOR * sum / count as f32);
        let spread = |all: Vec<f32>| all.into_iter().cycle().take(width).collect();
        known.then(|| ChannelMoments { means: spread(means), variances: spread(variances) })
    }
}

struct Estimates<'a> {
    model: &'a Model,
    known: FxHashMap<Value, Arc<Estimate>>,
}

impl Estimates<'_> {
    fn of(&mut self, value: Value, depth: usize) -> Arc<Estimate> {
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        let made = (depth < DEPTH).then(|| self.computed(value, depth + 1)).flatten();
        let made = Arc::new(made.unwrap_or_else(|| Estimate::unknown(value)));
        self.known.insert(value, made.clone());
        made
    }

    /// None if the value is taken for standard normal.
    fn computed(&mut self, value: Value, depth: usize) -> Option<Estimate> {
        let node = &self.model[self.model.producer(value)?];
        let (op, first) = (node.op(), node.input(0)?);
        if node.outputs().first() != Some(&value) {
            return None;
        }
        if let Some((_, scale, bias)) = NORMS.iter().find(|(name, ..)| *name == op) {
            let scales = Estimate { says: true, ..Estimate::unknown(value) }
                .joined(&self.constant(node.input(*scale)?)?, |x, scale| x * scale)?;
            return match node.input(*bias) {
                Some(bias) => scales.joined(&self.constant(bias)?, |x, bias| x + bias),
                None => Some(scales),
            };
        }
        if node.traits().contains(Traits::SHAPE_ONLY)
            || matches!(op, "Identity" | "Cast" | "Dropout" | "Transpose" | "GlobalAveragePool")
        {
            return Some((*self.of(first, depth)).clone());
        }
        if let Some(f) = function(node) {
            let made = self.of(first, depth).mapped(f);
            return Some(Estimate { says: made.says || op == "Relu", ..made });
        }
        let second = node.input(1)?;
        let f: fn(f32, f32) -> f32 = match op {
            "Add" => |a, b| a + b,
            "Sub" => |a, b| a - b,
            "Mul" => |a, b| a * b,
            "Div" => |a, b| a / b,
            "Max" => f32::max,
            "Min" => f32::min,
            _ => return None,
        };
        if self.is_deviation(op, first, second) {
            return Some(Estimate { says: true, ..Estimate::unknown(value) });
        }
        if let Some(constants) = self.constant(second) {
            return self.of(first, depth).with(&constants, op, f);
        }
        if let Some(constants) = self.constant(first) {
            return self.of(second, depth).with(&constants, op, |a, b| f(b, a));
        }
        let (first, second) = (self.of(first, depth), self.of(second, depth));
        let joined = first.joined(&second.channels, f).filter(|_| first.root == second.root)?;
        Some(Estimate { says: first.says || second.says, ..joined })
    }

    /// Whether a value is divided by a root, as norms are that are spelled out.
    fn is_deviation(&self, op: &str, first: Value, second: Value) -> bool {
        let made = |value| self.model.producer(value).map(|node| &self.model[node]);
        let is = |value, name: &str| made(value).is_some_and(|node| node.is(name));
        let inverse = |value| {
            let of = made(value).filter(|node| node.is("Reciprocal"));
            of.and_then(|node| node.input(0)).is_some_and(|value| is(value, "Sqrt"))
        };
        match op {
            "Div" => is(second, "Sqrt"),
            "Mul" => inverse(first) || inverse(second),
            _ => false,
        }
    }

    /// A constant number or vector.
    fn constant(&self, value: Value) -> Option<Vec<Points>> {
        let tensor = self.model[value].constant()?;
        let longest = tensor.shape().iter().copied().max().unwrap_or(1);
        let plain = numbers::is_readable(tensor.dtype()) && tensor.has_data();
        if !plain || longest != tensor.numel() || longest > CHANNELS {
            return None;
        }
        let all = numbers::floats(tensor, 0, tensor.numel()).ok()??;
        Some(all.into_iter().map(|x| [x; POINTS]).collect())
    }
}

impl Estimate {
    /// A function of this and of constants. A bias says nothing beside numbers of unknown size.
    fn with(&self, constants: &[Points], op: &str, f: impl Fn(f32, f32) -> f32) -> Option<Self> {
        let is_bias = constants.len() > 1 && matches!(op, "Add" | "Sub");
        let joined = (self.says || !is_bias).then(|| self.joined(constants, f)).flatten()?;
        Some(Self { says: self.says || constants.len() > 1, ..joined })
    }
}

/// An activation function.
fn function(node: &Node) -> Option<Box<dyn Fn(f32) -> f32>> {
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    Some(match node.op() {
        "Relu" => Box::new(|x| x.max(0.0)),
        "Sigmoid" => Box::new(sigmoid),
        "Tanh" => Box::new(f32::tanh),
        "Erf" => Box::new(erf),
        "Gelu" | "FastGelu" => Box::new(|x| 0.5 * x * (1.0 + erf(x / std::f32::consts::SQRT_2))),
        "Swish" => {
            let alpha = attrs::Swish::read(node).ok()?.alpha;
            Box::new(move |x| x * sigmoid(alpha * x))
        }
        "QuickGelu" => {
            let alpha = node.read("alpha").ok()?.unwrap_or(1.702);
            Box::new(move |x: f32| x * sigmoid(alpha * x))
        }
        "Softplus" => Box::new(|x| x.exp().ln_1p()),
        "HardSigmoid" => {
            let given = attrs::HardSigmoid::read(node).ok()?;
            Box::new(move |x| (given.alpha * x + given.beta).clamp(0.0, 1.0))
        }
        "HardSwish" => Box::new(|x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        "LeakyRelu" => {
            let alpha = attrs::LeakyRelu::read(node).ok()?.alpha;
            Box::new(move |x| if x < 0.0 { alpha * x } else { x })
        }
        "Elu" => {
            let alpha = attrs::Elu::read(node).ok()?.alpha;
            Box::new(move |x| if x < 0.0 { alpha * x.exp_m1() } else { x })
        }
        _ => return None,
    })
}

/// The error function, to three digits.
fn erf(x: f32) -> f32 {
    (x * (std::f32::consts::FRAC_2_SQRT_PI + 0.100_91 * x * x)).tanh()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes, and the means and variances of the input of the product behind them.
    type Case = (&'static str, Option<([f32; 2], [f32; 2])>);

    /// Means and variances of the input of the last product.
    fn moments(nodes: &str) -> Option<ChannelMoments> {
        let text = format!(
            r#"<ir_version: 10, opset_import: ["" : 21]>
main_graph (float[n,2] x, float[n,2] y) => (float[n,2] out)
<float[2,2] w = {{1, 2, 3, 4}}, float[2] g = {{2, 0.5}}, float[2] b = {{-3, 1}}, float two = {{2}}>
{{ {nodes} out = MatMul (v, w) }}"#
        );
        let model: Model = text.parse().unwrap();
        let options =
            Options { quantize: Some(Quantize::Int4), min_elements: 4, ..Options::default() };
        let [one] =
            channel_moments(&model, &options).into_values().collect::<Vec<_>>().try_into().ok()?;
        Some((*one).clone())
    }

    #[test]
    fn graphs_say_moments() {
        let cases: &[Case] = &[
            ("v = LayerNormalization (x, g, b)", Some(([-3.0, 1.0], [4.0, 0.25]))),
            (
                "s = Sqrt (y) d = Div (x, s) m = Mul (g, d) v = Add (m, b)",
                Some(([-3.0, 1.0], [4.0, 0.25])),
            ),
            (
                "s = Sqrt (y) r = Reciprocal (s) d = Mul (x, r) v = Mul (d, g)",
                Some(([0.0, 0.0], [4.0, 0.25])),
            ),
            (
                "h = LayerNormalization (x, g, b) s = Sigmoid (h) v = Mul (h, s)",
                Some(([-0.08, 0.77], [0.09, 0.2])),
            ),
            (
                "h = LayerNormalization (x, g) e = Erf (h) m = Mul (h, e) a = Add (h, m) \
                 v = Div (a, two)",
                Some(([0.75, 0.12], [1.41, 0.08])),
            ),
            ("v = Relu (x)", Some(([0.4, 0.4], [0.34, 0.34]))),
            ("p = Add (x, b) s = Sigmoid (p) v = Mul (p, s)", None),
            ("v = Mul (x, y)", None),
            ("v = Identity (x)", None),
        ];
        for (nodes, expected) in cases {
            let found = moments(nodes);
            assert_eq!(found.is_some(), expected.is_some(), "{nodes}");
            let Some((ChannelMoments { means, variances }, expected)) = found.zip(*expected) else {
                continue;
            };
            let near = |a: &[f32], b: [f32; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.02);
            assert!(
                near(&means, expected.0) && near(&variances, expected.1),
                "{nodes}: {means:?} {variances:?}"
            );
        }
    }
}
