//! Checks a lowering's parameters against the op's schema, without a program.

use super::{FromArg, bind::is_meaningless, from_arg::brief};
use crate::{ParamType, Schema};
use pt2onnx_fx::graph::Argument;

/// The parameters that a lowering can take (those of the schema, and the values of the table's
/// row), and which of them it takes.
#[derive(Debug)]
pub struct Claims {
    op: String,
    offered: Vec<Offered>,
    next: usize,
    partial: bool,
}

#[derive(Debug)]
struct Offered {
    name: String,
    ty: ParamType,
    /// Whether a lowering need not take it: it has a default, or is taken.
    settled: bool,
}

impl Claims {
    /// The parameters of `schema`, then the values that the row gives. If `partial`, the function
    /// need not take all of them.
    pub fn new(schema: &Schema, given: &[(&str, Argument)], partial: bool) -> Result<Self, String> {
        let meaningful = schema.params.iter().filter(|p| !is_meaningless(schema, &p.name));
        let mut offered: Vec<Offered> = meaningful
            .map(|p| Offered {
                name: p.name.clone(),
                ty: p.ty.clone(),
                settled: p.default.is_some(),
            })
            .collect();
        for (name, value) in given {
            if schema.params.iter().any(|p| p.name == *name) {
                return Err(format!(
                    "{}: the row gives a value for `{name}`, which is a parameter of the schema",
                    schema.name
                ));
            }
            let base = match value {
                Argument::Bool(_) => "bool",
                Argument::Int(_) => "int",
                Argument::Float(_) => "float",
                Argument::String(_) => "str",
                Argument::DType(_) => "ScalarType",
                other => {
                    let value = brief(other);
                    return Err(format!("{}: a row cannot give the value {value}", schema.name));
                }
            };
            let ty = ParamType::of(base);
            offered.push(Offered { name: (*name).to_owned(), ty, settled: false });
        }
        Ok(Self { op: schema.name.clone(), offered, next: 0, partial })
    }

    /// Takes the next parameter for a `T`.
    pub(crate) fn next<T: FromArg>(&mut self) -> Result<(), String> {
        let at = self.next;
        self.next += 1;
        match self.offered.get_mut(at) {
            Some(offered) => offered.claim::<T>(&self.op),
            None if T::absent().is_some() => Ok(()),
            None => {
                Err(format!("{}: the function takes more parameters than the schema has", self.op))
            }
        }
    }

    /// Takes the parameter `name` for a `T`.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter, or if it has another type.
    pub fn named<T: FromArg>(&mut self, name: &str) -> Result<(), String> {
        let name = name.trim_start_matches("r#");
        let found = self.offered.iter().position(|o| o.name == name);
        let receiver = || self.offered.iter().position(|o| o.name == "self" && name == "input");
        match found.or_else(receiver).and_then(|i| self.offered.get_mut(i)) {
            Some(offered) => offered.claim::<T>(&self.op),
            None if T::absent().is_some() => Ok(()),
            None => Err(format!(
                "{}: the function takes `{name}`, which the schema does not have",
                self.op
            )),
        }
    }

    /// Checks that each parameter is taken or has a default.
    pub fn finish(self) -> Result<(), String> {
        match self.offered.iter().find(|o| !o.settled && !self.partial) {
            None => Ok(()),
            Some(left) => Err(format!(
                "{}: the function does not take `{}`, which has no default",
                self.op, left.name
            )),
        }
    }
}

impl Offered {
    fn claim<T: FromArg>(&mut self, op: &str) -> Result<(), String> {
        self.settled = true;
        if T::accepts(&self.ty) {
            Ok(())
        } else {
            Err(format!(
                "{op}: a parameter of type {} cannot take `{} {}`",
                without_paths(std::any::type_name::<T>()),
                self.ty,
                self.name
            ))
        }
    }
}

/// A type's name without the paths of modules: `Option<String>`.
fn without_paths(name: &str) -> String {
    let words = name.split_inclusive(['<', '(', '[', '&', ' ']);
    words.map(|word| word.rsplit("::").next().unwrap_or(word)).collect()
}
