//! Infers the element types of outputs.

use super::node::Node;
use crate::{
    attribute::Attribute,
    ids::Value,
    schema::{self, OpSchema, Param},
    types::{element_name, from_onnx_name},
};
use pt2onnx_tensor::DType;

impl Node<'_> {
    /// Element type of output `i`: from an attribute such as `dtype`, else from the formal output's
    /// type or an input with the same type variable, else the operator's default. `None` for
    /// sequences and optionals.
    pub(super) fn dtype(&self, schema: &OpSchema, i: usize) -> Option<DType> {
        let formal = schema.output(i)?.ty;
        let set = schema.type_set(formal);
        // The output is a sequence or an optional.
        if set.map_or(!formal.starts_with("tensor("), |s| s.tensor == 0) {
            return None;
        }
        let named = ["to", "dtype", "output_dtype", "output_datatype"];
        if let Some(to) = named.iter().find_map(|a| self.int(a)).filter(|&to| to != 0) {
            return schema::dtype(to);
        }
        if let Some(inner) = element_name(formal) {
            return from_onnx_name(inner);
        }
        if let Some(only) = set.and_then(|set| set.only_tensor()) {
            return Some(only);
        }
        if let Some(Attribute::Tensor(value)) = self.node.attribute("value") {
            return Some(value.dtype());
        }
        let of_variable = |(i, value): (usize, &Option<Value>)| {
            let same = schema.input(i).is_some_and(|p: &Param| p.ty == formal);
            value.filter(|_| same).and_then(|v| self.known_dtype(v))
        };
        self.node.inputs().iter().enumerate().find_map(of_variable).or(match self.node.op() {
            "EyeLike" | "RandomNormalLike" | "RandomUniformLike" | "Bernoulli" => {
                self.known_dtype(self.input(0)?)
            }
            "QuantizeLinear" => Some(DType::U8),
            // Without `output_dtype`, the output has the type of the scale.
            "DequantizeLinear" => self.known_dtype(self.input(1)?),
            "Multinomial" => Some(DType::I32),
            "ConstantOfShape" | "RandomNormal" | "RandomUniform" | "BlackmanWindow"
            | "HannWindow" | "HammingWindow" => Some(DType::F32),
            _ => None,
        })
    }
}
