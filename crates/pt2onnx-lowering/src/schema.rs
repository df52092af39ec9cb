//! Op schemas in PyTorch's notation: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar
//! alpha=1) -> Tensor`.

use crate::{default, param_type::ParamType};
use pt2onnx_fx::graph::Argument;

/// The parsed schema of an op.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The name, such as `aten::add.Tensor`. The default overload has no suffix.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The results' types.
    pub returns: Vec<ParamType>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ParamType,
    /// Its value if it is not given.
    pub default: Option<Argument>,
    /// Whether the op writes into it.
    pub mutated: bool,
}

/// Why a text is not the schema of an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It has another form.
    #[error(
        "`{text}` is not the schema of an op: {reason}; a schema looks like `mylib::foo(Tensor x, int n=2) -> Tensor`"
    )]
    Text {
        /// The text.
        text: String,
        /// The reason.
        reason: pt2onnx_schemas::SchemaError,
    },
    /// A default is not a value of its parameter's type, or cannot be read.
    #[error("the default `{default}` of the parameter `{ty} {param}` cannot be read")]
    Default {
        /// The parameter's name.
        param: String,
        /// Its type.
        ty: String,
        /// The text of the default.
        default: String,
    },
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// Returns an error if the text is not a schema, or if a default is not a value of its
    /// parameter's type.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let wrong = |reason| SchemaError::Text { text: text.to_owned(), reason };
        let schema = pt2onnx_schemas::Schema::parse(text).map_err(wrong)?;
        let param = |param: pt2onnx_schemas::Param| {
            let ty = ParamType::from(param.slot.ty);
            let read = |text: &str| {
                default::read(&ty, param.slot.length, text).ok_or_else(|| SchemaError::Default {
                    param: param.name.to_owned(),
                    ty: ty.to_string(),
                    default: text.to_owned(),
                })
            };
            let default = param.default.map(read).transpose()?;
            Ok(Param { name: param.name.to_owned(), default, ty, mutated: param.slot.written })
        };
        let name = text.split('(').next().unwrap_or_default().trim();
        Ok(Self {
            name: name.to_owned(),
            params: schema.params.into_iter().map(param).collect::<Result<_, _>>()?,
            returns: schema.returns.into_iter().map(|slot| slot.ty.into()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_pytorchs_schemas() {
        let s = Schema::parse(
            "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], bool ceil_mode=False) -> (Tensor, Tensor)",
        )
        .unwrap();
        assert_eq!((s.name.as_str(), s.returns.len()), ("aten::max_pool2d_with_indices", 2));
        assert_eq!(s.params[2].default, Some(Argument::Ints(vec![])));
        assert!(s.params[1].ty.list && s.params[1].ty.base == "int");

        let s = Schema::parse(
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        )
        .unwrap();
        assert!(s.params[0].mutated && s.params[0].ty.base == "Tensor");
        assert_eq!(s.params[2].default, Some(Argument::Int(1)));

        let s =
            Schema::parse("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor").unwrap();
        assert!(
            s.params[1].ty.list && s.params[1].ty.optional_elements && !s.params[1].ty.optional
        );

        let s = Schema::parse(
            "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        );
        assert!(s.unwrap().params[1].ty.optional);
        let error = Schema::parse("not a schema").unwrap_err();
        assert!(error.to_string().contains("of an op: no `(` begins parameters;"), "{error}");
    }
}
