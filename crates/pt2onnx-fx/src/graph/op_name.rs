//! Names of operators and functions that nodes call.

use super::name::Name;
use smol_str::format_smolstr;
use std::{fmt, ops::Deref, sync::Arc};

/// Name of an operator or function: `aten.add.Tensor`, `_operator.add`, `torch.sym_max`,
/// `higher_order.cond`. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpName(Arc<OpParts>);

/// The parts of an [`OpName`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpParts {
    /// `aten`, `prims`, `higher_order`, the library of a custom op; for plain functions their
    /// module: `_operator`, `math`, `torch`, `torch.sym_int`.
    pub namespace: Name,
    /// `add`.
    pub name: Name,
    /// `Tensor`, `default`; empty for functions and higher-order ops, which have none.
    pub overload: Name,
    /// See [`OpName::schema_name`].
    schema: Name,
}

impl OpName {
    /// Parses a target as the archive writes it: `torch.ops.aten.add.Tensor`, `_operator.add`,
    /// `torch.ops.higher_order.cond`.
    pub fn parse(target: &str) -> Self {
        let (namespace, name, overload) = match target.strip_prefix("torch.ops.") {
            Some(op) => {
                let (namespace, rest) = op.split_once('.').unwrap_or(("", op));
                match rest.rsplit_once('.') {
                    Some((name, overload)) => (namespace, name, overload),
                    None => (namespace, rest, ""),
                }
            }
            None => {
                let (module, name) = target.rsplit_once('.').unwrap_or(("", target));
                (module, name, "")
            }
        };
        Self::new(namespace, name, overload)
    }

    /// The name of an operator. Without overload, the name of a function or higher-order op.
    pub fn new(namespace: &str, name: &str, overload: &str) -> Self {
        let schema = match overload {
            "" | "default" => format_smolstr!("{namespace}::{name}"),
            overload => format_smolstr!("{namespace}::{name}.{overload}"),
        };
        Self(Arc::new(OpParts {
            namespace: namespace.into(),
            name: name.into(),
            overload: overload.into(),
            schema,
        }))
    }

    /// Whether it is ATen's operator of this name, whatever the overload.
    pub fn is_aten(&self, name: &str) -> bool {
        &*self.namespace == "aten" && &*self.name == name
    }

    /// Whether it is a higher-order op.
    pub fn is_higher_order(&self) -> bool {
        &*self.namespace == "higher_order"
    }

    /// Whether it is an operator of PyTorch's dispatcher rather than a Python function or
    /// higher-order op.
    pub fn is_operator(&self) -> bool {
        !self.overload.is_empty()
    }

    /// As its schema writes it: `aten::add.Tensor`, `aten::relu` for the default overload.
    /// Functions and higher-order ops, which have no schema: `_operator::add`,
    /// `higher_order::cond`.
    pub fn schema_name(&self) -> &str {
        &self.schema
    }

    /// As FX prints it, and as the archive writes it: `torch.ops.aten.add.Tensor`, `_operator.add`.
    pub fn qualified(&self) -> String {
        if self.is_operator() || self.is_higher_order() {
            format!("torch.ops.{self}")
        } else {
            self.to_string()
        }
    }
}

impl Deref for OpName {
    type Target = OpParts;

    fn deref(&self) -> &OpParts {
        &self.0
    }
}

/// As PyTorch prints an operator: `aten.add.Tensor`, `_operator.add`, `higher_order.cond`.
impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.namespace, &self.name, &self.overload] {
            if part.is_empty() {
                continue;
            }
            if !std::ptr::eq(part, &self.namespace) && !self.namespace.is_empty() {
                f.write_str(".")?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::OpName;

    #[test]
    fn names_are_printed_as_pytorch_and_schemas_have_them() {
        for (target, display, schema) in [
            ("torch.ops.aten.add.Tensor", "aten.add.Tensor", "aten::add.Tensor"),
            ("torch.ops.aten.relu.default", "aten.relu.default", "aten::relu"),
            ("torch.ops.aten.__and__.Scalar", "aten.__and__.Scalar", "aten::__and__.Scalar"),
            ("_operator.add", "_operator.add", "_operator::add"),
            ("torch.sym_max", "torch.sym_max", "torch::sym_max"),
            ("torch.ops.higher_order.cond", "higher_order.cond", "higher_order::cond"),
            ("add", "add", "::add"),
            ("torch.ops.", "", "::"),
        ] {
            let name = OpName::parse(target);
            assert_eq!(
                (name.to_string().as_str(), name.schema_name(), name.qualified().as_str()),
                (display, schema, if display.is_empty() { "" } else { target })
            );
        }
    }
}
