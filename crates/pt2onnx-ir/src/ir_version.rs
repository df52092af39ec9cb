//! The IR version: the version of the file format.

use crate::{Attribute, Model, Type};
use pt2onnx_tensor::DType;

impl Model {
    /// The IR version to write: the field `ir_version` if it is set, else the lowest that supports
    /// the opset (as in `onnx.helper.OP_SET_ID_VERSION_MAP`) and everything in the model.
    pub fn ir_version(&self) -> u32 {
        let came_with = match self.opset {
            ..=8 => 3,
            9 => 4,
            10 => 5,
            11 => 6,
            12..=14 => 7,
            15..=18 => 8,
            19 | 20 => 9,
            21 | 22 => 10,
            23 => 11,
            24 => 12,
            25..=27 => 13,
            28.. => 14,
        };
        let used = self.ir_version_used();
        self.ir_version.unwrap_or(used.map_or(came_with, |(version, _)| version.max(came_with)))
    }

    /// The lowest IR version that supports everything in the model, and the feature that needs it;
    /// `None` if every version does. Metadata of nodes and values came with version 10, but does
    /// not count: older readers skip it.
    pub fn ir_version_used(&self) -> Option<(u32, String)> {
        let overloads = self.functions.iter().any(|f| !f.overload.is_empty());
        let defaults = self.functions.iter().any(|f| !f.defaults.is_empty());
        let functions = match (overloads, defaults, self.functions.is_empty()) {
            (true, ..) => Some((10, "functions with overloads".to_owned())),
            (_, true, _) => Some((9, "functions whose attributes have defaults".to_owned())),
            (.., false) => Some((8, "functions".to_owned())),
            _ => None,
        };
        let used = self.values().filter(|(_, v)| v.uses().len() > 0);
        let types = used.filter_map(|(_, v)| v.ty.as_ref().and_then(came));
        let nodes = self.all_nodes();
        let attributes = nodes.iter().flat_map(|&n| &self[n].attributes);
        let tensors = attributes.filter_map(|(_, a)| match a {
            Attribute::Tensor(t) => of_elements(t.dtype()),
            Attribute::Type(t) => came(t),
            _ => None,
        });
        let all = functions.into_iter().chain(types).chain(tensors);
        all.max_by(|a, b| a.0.cmp(&b.0))
    }
}

/// The first IR version with this type, and its name in messages; `None` if every version has it.
fn came(ty: &Type) -> Option<(u32, String)> {
    match ty {
        Type::Tensor(t) | Type::Sparse(t) => of_elements(t.dtype),
        Type::Optional(inner) => came(inner).or_else(|| Some((8, "optional values".to_owned()))),
        Type::Sequence(inner) | Type::Map(_, inner) => came(inner),
        Type::Opaque(..) => None,
    }
}

fn of_elements(dtype: DType) -> Option<(u32, String)> {
    use DType::*;
    let version = match dtype {
        F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ => 9,
        I4 | U4 => 10,
        F4E2M1 => 11,
        F8E8M0 => 12,
        I2 | U2 => 13,
        _ => return None,
    };
    Some((version, format!("elements of type {dtype}")))
}
