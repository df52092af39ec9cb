//! The sizes of whole inputs: each becomes the size or the name of an axis.

use super::{DimError, lookup::end};
use crate::options::Options;
use pt2onnx_ir::{Model, Type};
use std::borrow::Cow;

/// The options with `input-shape` as sizes and names of axes. Inputs of an unknown number of
/// dimensions get as many as are given.
pub(super) fn expand<'a>(
    model: &mut Model,
    options: &'a Options,
) -> Result<Cow<'a, Options>, DimError> {
    let mut options = Cow::Borrowed(options);
    for (name, shape) in options.input_shape.clone() {
        let value = end(model, &name).ok().filter(|v| model.inputs().contains(v));
        let value = value.ok_or_else(|| {
            let inputs = model.inputs().iter().filter_map(|v| model[*v].name.as_deref());
            DimError::NoSuchInput {
                name: name.clone(),
                inputs: inputs.collect::<Vec<_>>().join(", "),
            }
        })?;
        let sizes: Vec<&str> = match shape.trim() {
            "" => Vec::new(),
            sizes => sizes.split(',').map(str::trim).collect(),
        };
        let tensor = model[value].ty.as_ref().and_then(Type::as_tensor);
        let Some(known) = tensor.map(|tensor| tensor.shape.as_ref().map(Vec::len)) else {
            return Err(DimError::NoTensor(name));
        };
        let given = sizes.len();
        match known {
            Some(rank) if rank != given => return Err(DimError::Rank { name, shape, given, rank }),
            Some(_) => {}
            None => {
                let dims = (0..given).map(|_| model.unknown_dim()).collect();
                if let Some(Type::Tensor(tensor)) = &mut model[value].ty {
                    tensor.shape = Some(dims);
                }
            }
        }
        for (axis, size) in sizes.into_iter().enumerate() {
            let target = format!("{name}.{axis}");
            let options = options.to_mut();
            match size.parse() {
                Ok(size) => options.fix_dim.push((target, size)),
                Err(_) if size == "?" => {}
                // Too large, or not whole.
                Err(_) if size.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                    return Err(DimError::NoSize { target, text: size.to_owned() });
                }
                Err(_) => options.rename_dim.push((target, size.to_owned())),
            }
        }
    }
    Ok(options)
}
