//! The types of values at which a model is cut.

use crate::{domains, naming::find};
use pt2onnx_ir::{Model, TensorType, Type, is_unknown};
use pt2onnx_opt::{OPSETS, convert, infer_types};

/// The model with the types that follow from its inputs. Of the values with these names, what does
/// not follow is what the file states, as of inputs and outputs; results of functions have the
/// types of the functions' bodies, and those of operators in an older form what follows in the
/// newest opset.
pub(crate) fn typed(model: &Model, names: &[String]) -> Model {
    let mut typed = model.clone();
    infer_types(&mut typed);
    let mut flat = model.clone();
    let inlined = !model.functions.is_empty() && domains::inline(&mut flat).is_ok();
    let mut left = Vec::new();
    for name in names {
        let Some(value) = find(model, name) else { continue };
        let follows = typed[value].ty.take();
        let follows = follows.or_else(|| flat[find(&flat, name).filter(|_| inlined)?].ty.clone());
        typed[value].ty = with_claim(follows, model[value].ty.clone());
        left.extend(typed[value].ty.is_none().then_some((name, value)));
    }
    if !left.is_empty() && convert(&mut flat, *OPSETS.end()).is_ok() {
        for (name, value) in left {
            typed[value].ty = find(&flat, name).and_then(|v| flat[v].ty.clone());
        }
    }
    typed
}

/// A type with what the file states where nothing follows: the shape, sizes and their names.
fn with_claim(follows: Option<Type>, claim: Option<Type>) -> Option<Type> {
    let (follows, claim) = match (follows, claim) {
        (Some(Type::Tensor(follows)), Some(Type::Tensor(claim))) => (follows, claim),
        (follows, claim) => return follows.or(claim),
    };
    let shape = match (follows.shape, claim.shape) {
        (Some(own), Some(stated)) if own.len() == stated.len() => {
            let dims = own.into_iter().zip(stated).map(|(own, stated)| {
                let named = own.as_symbol().is_some() && !is_unknown(&own);
                let says = !own.is_static() && !named && !is_unknown(&stated);
                if says { stated } else { own }
            });
            Some(dims.collect())
        }
        (own, stated) => own.or(stated),
    };
    Some(Type::Tensor(TensorType { dtype: follows.dtype, shape }))
}
