//! The types of values at which a model is cut.

use crate::{domains, naming::find};
use pt2onnx_ir::{Model, TensorType, Type, is_unknown};
use pt2onnx_opt::{OPSETS, convert, infer_types};

/// Infers the types of the model's values from its inputs. Values of these names that have no such
/// type keep the file's; results of functions have the types of the functions' bodies, and results
/// of operators in an older form those of the newest opset.
pub(crate) fn infer_types_of(model: &mut Model, names: &[String]) {
    let stated = model.clone();
    infer_types(model);
    let mut flat = stated.clone();
    let inlined = !stated.functions.is_empty() && domains::inline(&mut flat).is_ok();
    let mut left = Vec::new();
    for name in names {
        let Some(value) = find(&stated, name) else { continue };
        let follows = model[value].ty.take();
        let follows = follows.or_else(|| flat[find(&flat, name).filter(|_| inlined)?].ty.clone());
        model[value].ty = or_stated(follows, stated[value].ty.clone());
        left.extend(model[value].ty.is_none().then_some((name, value)));
    }
    if !left.is_empty() && convert(&mut flat, *OPSETS.end()).is_ok() {
        for (name, value) in left {
            model[value].ty = find(&flat, name).and_then(|v| flat[v].ty.clone());
        }
    }
}

/// An inferred type, with the shape, sizes and names that the file states where none are inferred.
fn or_stated(inferred: Option<Type>, stated: Option<Type>) -> Option<Type> {
    let (inferred, stated) = match (inferred, stated) {
        (Some(Type::Tensor(inferred)), Some(Type::Tensor(stated))) => (inferred, stated),
        (inferred, stated) => return inferred.or(stated),
    };
    let shape = match (inferred.shape, stated.shape) {
        (Some(own), Some(stated)) if own.len() == stated.len() => {
            let dims = own.into_iter().zip(stated).map(|(own, stated)| {
                let named = own.as_symbol().is_some() && !is_unknown(&own);
                if own.is_static() || named || is_unknown(&stated) { own } else { stated }
            });
            Some(dims.collect())
        }
        (own, stated) => own.or(stated),
    };
    Some(Type::Tensor(TensorType { dtype: inferred.dtype, shape }))
}
