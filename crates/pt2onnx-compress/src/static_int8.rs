//! Makes weights and activations 8 bits wide, with scales that were found on samples.
//!
//! A pair of `QuantizeLinear` and `DequantizeLinear` stands after each activation, which runtimes
//! join with the operators between them.

use crate::{
    Compressed, Edit, Error, Format, NewNode, Options, Quantize, Scheme,
    activations::{Activation, Plan, weight},
    dequantize::CHANNELS,
    quantise,
    ranges::Range,
    weight_selection::scales_terms,
    with_dtype,
};
use pt2onnx_ir::{Model, NodeId, Use, Value};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

/// Quantises the layers of the main graph, and the weights of all products and tables.
pub(crate) fn convert(
    model: &mut Model,
    options: &Options,
    done: &mut Compressed,
) -> Result<(), Error> {
    if model.opset < 10 {
        let what = "activations of int8".to_owned();
        return Err(Error::Opset { what, needs: 10, opset: model.opset });
    }
    if model.opset < CHANNELS {
        let what = "below opset 13, a quantized weight has one scale for all its channels: results \
                    are more exact with opset 13";
        done.warnings.push(what.to_owned());
    }
    let plan = Plan::of(model, options)?;
    let mut work = Work { edit: Edit::new(model), options, params: FxHashMap::default() };
    for activation in &plan.activations {
        work.pair(*activation, &plan);
    }
    if work.params.is_empty() && !plan.activations.is_empty() {
        let what = "no activation is quantised: on the samples, none was finite and had elements";
        done.warnings.push(what.to_owned());
    }
    let least = least_scales(model, &plan.layers);
    let none = FxHashMap::default();
    quantise::quantise(model, options, Quantize::StaticInt8, &none, least, done)?;
    // TensorRT computes sums with floats.
    if !options.symmetric_activations {
        let mut edit = Edit::new(model);
        for layer in plan.layers {
            let _: Option<()> = bias(&mut edit, layer);
        }
    }
    Ok(())
}

struct Work<'a> {
    edit: Edit<'a>,
    options: &'a Options,
    /// Scale and zero point of each range.
    params: FxHashMap<Value, (Value, Value)>,
}

impl Work<'_> {
    /// Quantises an activation, if its range is known, and restores it for the nodes that take it
    /// so.
    fn pair(&mut self, activation: Activation, plan: &Plan) {
        let Activation { value, range, whole } = activation;
        let Some((scale, zero)) = self.params(range) else { return };
        let model = &*self.edit.model;
        let users = model[value].uses().filter_map(Use::input);
        let users: Vec<(NodeId, usize)> =
            users.filter(|(node, _)| whole || plan.takers.contains(node)).collect();
        let like = model.producer(value).or(users.first().map(|(node, _)| *node));
        let (float, coded) = (model[value].ty.clone(), with_dtype(model, value, self.dtype()));
        let place = (self.edit.after(value), like);
        let quantize = NewNode::of("QuantizeLinear", [value, scale, zero]);
        let codes = self.edit.add1(place, quantize, coded);
        let restore = NewNode::of("DequantizeLinear", [codes, scale, zero]);
        let restored = self.edit.add1(place, restore, float);
        for (node, index) in users {
            self.edit.model.replace_input(node, index, Some(restored));
        }
    }

    /// Runtimes on CPUs compute with unsigned activations, TensorRT with signed ones.
    fn dtype(&self) -> DType {
        if self.options.symmetric_activations { DType::I8 } else { DType::U8 }
    }

    fn params(&mut self, range: Value) -> Option<(Value, Value)> {
        if let Some(known) = self.params.get(&range) {
            return Some(*known);
        }
        let (min, max) = *self.options.calibrated.ranges.get(&range)?;
        let symmetric = self.options.symmetric_activations;
        let scheme = Scheme {
            format: Format::Int8,
            symmetric,
            unsigned: !symmetric,
            scale: DType::F32,
            restored: DType::F32,
        };
        let param = scheme.param(Range { min, max, check: 0.0 });
        let name = self.edit.model[range].name.clone();
        let name = name.map_or_else(|| format!("value_{}", range.index()), |name| name.to_string());
        let scale = self.edit.constant(Tensor::scalar(param.scale), &name, "scale");
        let zero = match self.dtype() {
            DType::I8 => Tensor::scalar(param.zero as i8),
            _ => Tensor::scalar(param.zero as u8),
        };
        let zero = self.edit.constant(zero, &name, "zero_point");
        self.params.insert(range, (scale, zero));
        Some((scale, zero))
    }
}

/// The smallest scales of the weights of layers, by channel: with them, a bias has room in int32.
/// Without room it would stay a float, which ONNX Runtime (`WeightBiasQuantization`) quantises
/// anyway. Where a scale becomes larger, the products hardly count beside the bias.
fn least_scales(model: &Model, layers: &[NodeId]) -> FxHashMap<Value, Vec<f32>> {
    let mut least: FxHashMap<Value, Vec<f32>> = FxHashMap::default();
    for id in layers {
        let node = &model[*id];
        let scales = || {
            let bias = model[node.input(2)?].constant().filter(|t| t.rank() == 1)?;
            let [input] = *scales(model, node.input(0)?)?.as_slice() else { return None };
            let room = ROOM / 2.0;
            let scale = |x: f32| (f64::from(x.abs()) / f64::from(input) / room) as f32;
            let scale = |x: f32| Some(scale(x)).filter(|s| s.is_finite()).unwrap_or_default();
            let all = bias.evaluated().ok()?.to_vec::<f32>()?.into_iter().map(scale);
            Some((weight(model, node.input(1)?)?, all.collect::<Vec<_>>()))
        };
        let Some((weight, scales)) = scales() else { continue };
        let known = least.entry(weight).or_default();
        known.resize(known.len().max(scales.len()), 0.0);
        known.iter_mut().zip(scales).for_each(|(known, scale)| *known = known.max(scale));
    }
    least
}

/// The integers of a bias are smaller. Sums are added to them: half of the range is left to these.
const ROOM: f64 = (1 << 30) as f64;

/// Steps that the largest number of a bias has at least where all channels share a scale.
const FINE: f32 = 128.0;

/// Makes the bias of a layer integers, with the scales of the layer's sums. A bias stays as it is
/// if its integers would be too large, or too coarse because all channels share a scale. Where each
/// channel has a scale, that is fine enough: the integers of sums are larger by far.
fn bias(edit: &mut Edit<'_>, id: NodeId) -> Option<()> {
    let model = &*edit.model;
    let node = &model[id];
    let value = node.input(2).filter(|_| !scales_terms(node))?;
    let given = model[value].constant().filter(|t| t.dtype() == DType::F32 && t.rank() == 1)?;
    let numbers = given.to_vec::<f32>()?;
    let scales = scales_of_sums(model, id, &numbers)?;
    let codes = bias_codes(&numbers, &scales)?;
    // Before opset 13, `DequantizeLinear` has no axis.
    let shared = model.opset < 13;
    if shared && scales.iter().any(|scale| *scale != scales[0]) {
        return None;
    }
    let name = model[value].name.as_deref().unwrap_or("bias").to_owned();
    let ty = model[value].ty.clone();
    let place = edit.before(&[(id, 2)]);
    let codes = edit.constant(Tensor::vector(&codes), &name, "quantized");
    let scales = match (shared, scales.first()) {
        (true, Some(one)) => Tensor::scalar(*one),
        _ => Tensor::vector(&scales),
    };
    let scales = edit.constant(scales, &name, "scale");
    let mut restore = NewNode::of("DequantizeLinear", [codes, scales]);
    if !shared {
        restore = restore.int("axis", 0);
    }
    let restored = edit.add1(place, restore, ty);
    edit.model.replace_input(id, 2, Some(restored));
    Some(())
}

fn scales_of_sums(model: &Model, id: NodeId, bias: &[f32]) -> Option<Vec<f32>> {
    let node = &model[id];
    let [input, weight] = [scales(model, node.input(0)?)?, scales(model, node.input(1)?)?];
    let [input] = input.as_slice() else { return None };
    let largest = bias.iter().fold(0f32, |most, x| most.max(x.abs()));
    match weight.as_slice() {
        [one] if bias.len() > 1 && one * input * FINE > largest => None,
        [one] => Some(vec![one * input; bias.len()]),
        all if all.len() == bias.len() => Some(all.iter().map(|scale| scale * input).collect()),
        _ => None,
    }
}

fn bias_codes(numbers: &[f32], scales: &[f32]) -> Option<Vec<i32>> {
    let code = |(x, scale): (&f32, &f32)| {
        let code = (f64::from(*x) / f64::from(*scale)).round_ties_even();
        (code.abs() < ROOM).then_some(code as i32)
    };
    numbers.iter().zip(scales).map(code).collect()
}

/// The scales of a value that a `DequantizeLinear` makes.
fn scales(model: &Model, value: Value) -> Option<Vec<f32>> {
    let node = &model[model.producer(value)?];
    let scales = model[node.input(1).filter(|_| node.is("DequantizeLinear"))?].constant()?;
    scales.evaluated().ok()?.to_vec::<f32>()
}
