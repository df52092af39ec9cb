//! Attributes and constants of rules, compared with those of a model.

use super::part::{AttributePart, ConstantPart, Match};
use crate::analysis::{number_of, rounded};
use pt2onnx_ir::{
    Attribute, Def, Model, Node, Value,
    schema::{self, CANONICAL_OPSET},
};
use pt2onnx_tensor::{DType, Tensor};

/// Whether a value is a constant that a rule wants.
pub(super) fn is_constant<'p>(
    model: &Model,
    value: Value,
    wanted: &'p ConstantPart,
    found: &mut Match<'p>,
) -> bool {
    let Def::Constant(own) = model[value].def() else { return false };
    match wanted {
        ConstantPart::Equal(tensor) => is_equal(model, value, own, tensor),
        ConstantPart::Bound { name, kind } => {
            let ints = || own.to_vec::<i64>();
            // Other numbers would be rounded to float32.
            let number = || {
                let (_, x) = number_of(model, value)?;
                Some(x as f32).filter(|&held| f64::from(held) == x || x.is_nan())
            };
            let bound = match *kind {
                "float" => number().map(Attribute::Float),
                "int" => ints().filter(|v| v.len() == 1).map(|v| Attribute::Int(v[0])),
                "ints" => ints().filter(|_| own.shape().len() == 1).map(Attribute::Ints),
                "floats" => own.to_vec::<f32>().map(Attribute::Floats),
                "tensor" => own.has_data().then(|| Attribute::Tensor(own.clone())),
                _ => None,
            };
            bound.is_some_and(|bound| bind(name, bound, found))
        }
        ConstantPart::Never => false,
    }
}

/// Whether a node has the attributes of the pattern, and the defaults of all others.
pub(super) fn hold<'p>(node: &Node, wanted: &'p [AttributePart], found: &mut Match<'p>) -> bool {
    let formal = schema::lookup(node.op(), CANONICAL_OPSET).filter(|_| node.domain.is_empty());
    let default = |name: &str| {
        let known = formal.and_then(|f| f.attributes.iter().find(|a| a.name == name));
        known.and_then(|a| a.default.as_ref()).map(Attribute::from)
    };
    let given = |name: &str| node.attribute(name).cloned().or_else(|| default(name));
    let is_wanted = |name: &str| wanted.iter().any(|part| part.name == name);
    let mut others = node.attributes.iter().filter(|(name, _)| !is_wanted(name));
    others.all(|(name, own)| default(name).is_some_and(|default| default.equals(own, equal)))
        && wanted.iter().all(|part| match (&part.value, given(&part.name)) {
            (Attribute::Reference { name, .. }, Some(own)) => bind(name, own, found),
            (wanted, Some(own)) => wanted.equals(&own, equal),
            (_, None) => false,
        })
}

fn bind<'p>(name: &'p str, value: Attribute, found: &mut Match<'p>) -> bool {
    match found.attribute(name) {
        Some(known) => known.equals(&value, equal),
        None => {
            found.attributes.push((name, value));
            true
        }
    }
}

fn equal(a: &Tensor, b: &Tensor) -> bool {
    (a.dtype(), a.shape()) == (b.dtype(), b.shape())
        && a.has_data()
        && b.has_data()
        && a.to_bytes() == b.to_bytes()
}

fn is_equal(model: &Model, value: Value, own: &Tensor, wanted: &Tensor) -> bool {
    let single = |t: &Tensor| t.numel() == 1 && t.has_data();
    let number = match wanted.dtype() {
        DType::F32 if single(wanted) => wanted.to_vec::<f32>().map(|v| f64::from(v[0])),
        DType::F64 if single(wanted) => wanted.to_vec::<f64>().map(|v| v[0]),
        _ => None,
    };
    match (number, number_of(model, value)) {
        (Some(number), Some((dtype, own))) => {
            // The decimals of a float32 in the pattern may be fewer than those in the model.
            rounded(dtype, number) == own || (dtype == DType::F64 && (own as f32) == number as f32)
        }
        _ => equal(own, wanted),
    }
}
