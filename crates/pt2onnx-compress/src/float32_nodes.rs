//! Which nodes of a graph in float16 compute in float32.

use crate::{
    Error, Options,
    numbers::{STAND_IN, floats},
    weight_selection::is_named,
};
use half::{f16, slice::HalfFloatSliceExt};
use pt2onnx_ir::{
    Model, Node, NodeId, RegionId, Traits, Type, Use, Value,
    schema::{self, OpSchema},
};
use pt2onnx_tensor::{DType, Tensor};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// The largest number of float16.
const LARGEST: f32 = 65504.0;

/// The relative error of an element in float16 from which nodes that take it stay in float32.
const TOO_MUCH: f32 = 1.0 / 256.0;

/// Added to a smaller number that is not negative, it leaves the nearest integer.
const WITHOUT_FRACTION: f32 = 8_388_608.0;

/// Elements that are looked at together.
const READ: usize = 1 << 18;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Former integers, such as positions: float16 has no odd numbers above 2048.
    Count,
    /// Sums and squares.
    Sum,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    /// It has numbers that float16 has not.
    large: bool,
    /// It has numbers that stand for infinity.
    stand_in: bool,
    /// The largest magnitude of its other numbers.
    largest: f32,
    /// Some number is rounded too much.
    uneven: bool,
    /// All numbers are integers.
    whole: bool,
    /// Some number is rounded.
    rounded: bool,
}

impl Known {
    const NOTHING: Self = Self {
        large: false,
        stand_in: false,
        largest: 0.0,
        uneven: false,
        whole: true,
        rounded: false,
    };

    fn of(tensor: &Tensor) -> Self {
        let count = tensor.numel();
        let part = |i: usize| {
            // Errors of reading appear when the weight is written.
            let numbers = floats(tensor, i * READ, READ.min(count - i * READ));
            let numbers = numbers.ok().flatten().unwrap_or_default();
            let mut halves = vec![f16::ZERO; numbers.len()];
            halves.convert_from_f32_slice(&numbers);
            let mut back = vec![0.0; numbers.len()];
            halves.convert_to_f32_slice(&mut back);
            Self::of_usual(&numbers, &back).unwrap_or_else(|| Self::of_any(&numbers, &back))
        };
        (0..count.div_ceil(READ)).into_par_iter().map(part).reduce(
            || Self::NOTHING,
            |a, b| Self {
                large: a.large || b.large,
                stand_in: a.stand_in || b.stand_in,
                largest: a.largest.max(b.largest),
                uneven: a.uneven || b.uneven,
                whole: a.whole && b.whole,
                rounded: a.rounded || b.rounded,
            },
        )
    }

    /// The facts of numbers, by what float16 makes of each.
    fn of_any(numbers: &[f32], back: &[f32]) -> Self {
        let mut known = Self::NOTHING;
        for (x, half) in numbers.iter().zip(back).filter(|(x, _)| x.is_finite()) {
            let (size, error) = (x.abs(), (half - x).abs());
            if size >= STAND_IN {
                known.stand_in = true;
                continue;
            }
            known.large |= size >= LARGEST + 16.0;
            known.largest = known.largest.max(size);
            known.uneven |= error > size * TOO_MUCH;
            known.whole &= x.fract() == 0.0;
            known.rounded |= error > 0.0;
        }
        known
    }

    /// [`of_any`](Self::of_any) of numbers that float16 has, as a loop that compilers make wide:
    /// without branches, calls, or the largest of floats, whose order matters if there is a NaN.
    fn of_usual(numbers: &[f32], back: &[f32]) -> Option<Self> {
        // Bits of numbers that are not negative are in their order.
        let bits = |x: f32| x.to_bits() as i32;
        let (mut largest, mut error, mut uneven, mut fraction) = (0i32, 0i32, 0u32, 0u32);
        let mut inside = 1u32;
        for (x, back) in numbers.iter().zip(back) {
            let (size, off) = (x.abs(), (back - x).abs());
            // False for NaN, too.
            inside &= u32::from(size < LARGEST);
            largest = largest.max(bits(size));
            error = error.max(bits(off));
            uneven |= u32::from(off > size * TOO_MUCH);
            fraction |= u32::from(size + WITHOUT_FRACTION - WITHOUT_FRACTION != size);
        }
        let [largest, error] = [largest, error].map(|bits| f32::from_bits(bits as u32));
        (inside == 1).then_some(Self {
            large: false,
            stand_in: false,
            largest,
            uneven: uneven != 0,
            whole: fraction == 0,
            rounded: error > 0.0,
        })
    }

    /// Whether float16 loses what the constant says as an input of a node.
    fn is_lost(self, node: &Node, index: usize) -> bool {
        // Sums take no notice of a small bias, and quotients of each element.
        let bias = matches!((node.op(), index), ("Conv" | "ConvTranspose" | "Gemm", 2));
        let each = matches!(
            (node.op(), index),
            ("Div" | "DequantizeLinear" | "QuantizeLinear", 1)
                | ("QLinearMatMul", _)
                | ("Log" | "Reciprocal" | "Sqrt", 0)
        );
        let vanishes =
            (f16::from_f32(self.largest).to_f32() - self.largest).abs() > self.largest * TOO_MUCH;
        self.large || vanishes && !bias || self.uneven && each
    }

    /// Whether it has positions.
    fn counts(self) -> bool {
        self.whole && self.rounded
    }
}

pub(crate) fn nodes(model: &Model, options: &Options) -> Result<FxHashSet<NodeId>, Error> {
    let graph = model.graph_nodes();
    let is_op = |pattern: &&String| graph.iter().any(|n| model[*n].op() == *pattern);
    let mut choice = Choice {
        model,
        options,
        only: options.include.iter().filter(is_op).collect(),
        constants: constants(model)?,
        kept: FxHashMap::default(),
    };
    let owners: FxHashMap<RegionId, NodeId> =
        graph.iter().flat_map(|id| model[*id].regions().map(move |r| (r, *id))).collect();
    let mut full = FxHashSet::default();
    for id in graph {
        let kept = choice.kept(id);
        if let Some(kept) = kept {
            choice.kept.extend(model[id].outputs().iter().map(|v| (*v, kept)));
        }
        let owner = owners.get(&model[id].region());
        if kept.is_some() || owner.is_some_and(|o| full.contains(o)) || choice.needs_full(id) {
            full.insert(id);
        }
    }
    Ok(full)
}

fn constants(model: &Model) -> Result<FxHashMap<Value, Known>, Error> {
    let used = |(value, data): (Value, &pt2onnx_ir::ValueData)| {
        let tensor = data.constant().filter(|t| t.dtype() == DType::F32)?;
        (data.uses().len() > 0).then(|| (value, tensor.clone()))
    };
    let all: Vec<(Value, Tensor)> = model.values().filter_map(used).collect();
    if let Some((value, _)) = all.iter().find(|(_, t)| !t.has_data() && t.numel() > 0) {
        let name = model[*value].name.as_deref().unwrap_or_default();
        return Err(Error::NoValues(name.to_owned()));
    }
    Ok(all.into_iter().map(|(value, tensor)| (value, Known::of(&tensor))).collect())
}

struct Choice<'a> {
    model: &'a Model,
    options: &'a Options,
    /// The operators that are asked for; none are all.
    only: Vec<&'a String>,
    constants: FxHashMap<Value, Known>,
    kept: FxHashMap<Value, Kept>,
}

impl Choice<'_> {
    fn is_float(&self, value: Value) -> bool {
        self.model.dtype(value) == Some(DType::F32)
    }

    fn kept(&self, id: NodeId) -> Option<Kept> {
        let node = &self.model[id];
        if !node.domain.is_empty() || node.regions().next().is_some() {
            return None;
        }
        let first = node.input(0);
        let whole = first.is_some_and(|v| self.model.dtype(v).is_some_and(DType::is_int));
        match node.op() {
            "Range" => return Some(Kept::Count),
            "Cast" if whole => return Some(Kept::Count),
            "CumSum" if first.is_some_and(|v| self.was_whole(v)) => return Some(Kept::Count),
            _ => {}
        }
        let kept = self.inputs_are(node);
        let square = node.is("Mul") && first == node.input(1) && self.is_summed(id);
        if kept.is_none() && (square || node.traits().contains(Traits::OVERFLOWING)) {
            return Some(Kept::Sum);
        }
        kept
    }

    /// The kind that all float inputs have. Weights have none.
    fn inputs_are(&self, node: &Node) -> Option<Kept> {
        let counts = |v: &Value| self.constants.get(v).is_some_and(|known| known.counts());
        let moves = matches!(node.op(), "Add" | "Sub" | "Mul" | "Div");
        if moves && node.inputs().iter().flatten().any(counts) {
            return Some(Kept::Sum);
        }
        let mut all = Vec::new();
        for value in node.inputs().iter().flatten() {
            match self.constants.get(value) {
                Some(known) if known.stand_in => return None,
                Some(known) if known.counts() => all.push(Kept::Count),
                Some(_) => {}
                None if matches!(self.model.dtype(*value), Some(DType::F32 | DType::F64)) => {
                    all.push(*self.kept.get(value)?);
                }
                None => {}
            }
        }
        if all.contains(&Kept::Sum) {
            node.traits().contains(Traits::AFTER_OVERFLOW).then_some(Kept::Sum)
        } else {
            all.first().copied()
        }
    }

    /// Whether a value is a cast of integers or of truth values.
    fn was_whole(&self, value: Value) -> bool {
        let is_whole = |t: DType| t.is_int() || t == DType::Bool;
        let node = self.model.producer(value).map(|id| &self.model[id]);
        let cast = node.filter(|n| n.is("Cast")).and_then(|n| n.input(0));
        self.model.dtype(value).is_some_and(is_whole) || cast.is_some_and(|v| self.was_whole(v))
    }

    fn is_summed(&self, id: NodeId) -> bool {
        let mut users = self.model.uses_of(id).filter_map(Use::input);
        users.any(|(user, _)| self.model[user].traits().contains(Traits::REDUCTION))
    }

    fn needs_full(&self, id: NodeId) -> bool {
        let (model, node) = (self.model, &self.model[id]);
        if matches!(node.op(), "If" | "Loop" | "Scan") && node.domain.is_empty() {
            // Inputs and results of bodies must have one type.
            let bodies = node.regions().flat_map(|region| {
                model[region].inputs().iter().copied().chain(model[region].output_values())
            });
            let values = node.inputs().iter().flatten().chain(node.outputs()).copied();
            return bodies.chain(values).any(|v| model[v].ty.is_none());
        }
        let others = !self.only.is_empty() && !self.only.iter().any(|op| *op == node.op());
        let full = Traits::OVERFLOWING | Traits::FLOAT32 | Traits::RANDOM;
        let named = node.traits().intersects(full);
        let excluded = self.options.exclude.iter().any(|p| p == node.op());
        if others || named || excluded || !node.domain.is_empty() || self.is_quantised(id) {
            return true;
        }
        let Some(schema) = schema::lookup(node.op(), model.opset) else { return true };
        let inputs = node.inputs().iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
        let mut variables = Vec::new();
        for (i, value) in inputs {
            if !self.is_float(value) {
                // An unknown type may be float32, or have it inside.
                match model[value].ty.as_ref() {
                    Some(ty) if !contains_float(ty) => continue,
                    _ => return true,
                }
            }
            let Some(variable) = schema.input(i).map(|p| p.ty) else { return true };
            let lost = self.constants.get(&value).is_some_and(|k| k.is_lost(node, i));
            if lost || self.is_left_out(value) || !takes_half(schema, variable) {
                return true;
            }
            variables.push(variable);
        }
        node.outputs().iter().enumerate().any(|(i, value)| {
            let (ty, used) = (model[*value].ty.as_ref(), model[*value].uses().len() > 0);
            let other = ty.map_or(used, contains_float) && !self.is_float(*value);
            let variable = schema.output(i).map_or("", |p| p.ty);
            let own = self.is_float(*value) && !node.is("Cast") && !variables.contains(&variable);
            other || own && takes_half(schema, variable)
        })
    }

    /// Whether runtimes compute with quantised numbers here: a node between `DequantizeLinear` and
    /// `QuantizeLinear`, and these two. Their kernels take scales of float32.
    fn is_quantised(&self, id: NodeId) -> bool {
        let (model, node) = (self.model, &self.model[id]);
        let restored = |v: Value| model.producer(v).filter(|&n| model[n].is("DequantizeLinear"));
        let users = |id: NodeId| model.uses_of(id).map(|at| Some(at.input()?.0));
        let between = |id: NodeId| {
            let mut floats = model[id].inputs().iter().flatten().filter(|v| self.is_float(**v));
            let quantised = |user: NodeId| model[user].is("QuantizeLinear");
            floats.clone().next().is_some()
                && floats.all(|&v| restored(v).is_some())
                && users(id).all(|user| user.is_some_and(quantised))
        };
        match node.op() {
            "QuantizeLinear" => true,
            "DequantizeLinear" => {
                let computed = node.input(0).is_some_and(|v| model.producer(v).is_some());
                computed || users(id).any(|user| user.is_some_and(between))
            }
            _ => between(id),
        }
    }

    fn is_left_out(&self, value: Value) -> bool {
        let name = self.model[value].name.as_deref();
        self.constants.contains_key(&value)
            && name.is_some_and(|name| is_named(&self.options.exclude, name))
    }
}

pub(crate) fn takes_half(schema: &OpSchema, variable: &str) -> bool {
    schema.type_set(variable).is_some_and(|set| set.has_tensor(DType::F16))
}

/// Whether a type has float32 inside, as a sequence of tensors.
fn contains_float(ty: &Type) -> bool {
    match ty {
        Type::Tensor(tensor) => tensor.dtype == DType::F32,
        Type::Sequence(inner) | Type::Optional(inner) => contains_float(inner),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_numbers_are_known_as_any() {
        let parts: [&[f32]; 7] = [
            &[],
            &[0.0, -0.0, 3.0, -2048.0],
            &[0.5, 1.0],
            &[2049.0, 65503.0],
            &[1e-8, 1.0],
            &[0.1, -7.3e-5],
            &[f32::MIN_POSITIVE / 2.0],
        ];
        for numbers in parts {
            let back: Vec<f32> = numbers.iter().map(|x| f16::from_f32(*x).to_f32()).collect();
            let any = Known::of_any(numbers, &back);
            assert_eq!(Known::of_usual(numbers, &back), Some(any), "{numbers:?}");
        }
        for unusual in [LARGEST, f32::INFINITY, f32::NAN] {
            assert!(Known::of_usual(&[1.0, unusual], &[1.0, unusual]).is_none());
        }
    }
}
