//! Binds a node's arguments to the parameters of its op's schema.

use super::{FromArg, from_arg::brief};
use crate::{ArgError, Cx, LowerError, Lowered, Schema, cx::Mode};
use pt2onnx_fx::graph::{Argument, NamedArg};

/// Parameters for where and how PyTorch computes. ONNX has nothing like them.
const MEANINGLESS: &[&str] = &[
    "assume_unique",
    "check_errors",
    "copy",
    "cudnn_enable",
    "cudnn_enabled",
    "device",
    "generator",
    "implicit",
    "layout",
    "level",
    "memory_format",
    "non_blocking",
    "path",
    "pin_memory",
    "scale_grad_by_freq",
    "sparse",
    "sparse_grad",
    "stable",
    "unroll_dim",
    "unsafe",
    "use_fast_accum",
];

/// Tensors that say where, not what: beside complex tensors, they have no imaginary parts.
const PLACES: &[&str] = &[
    "condition",
    "index",
    "indices",
    "mask",
    "repeats",
    "shape",
    "spacing",
    "tensor_indices_or_sections",
];

/// Whether a parameter of PyTorch's own ops has no meaning in ONNX.
pub(super) fn is_meaningless(schema: &Schema, param: &str) -> bool {
    let of_pytorch = ["aten::", "prims::"].iter().any(|n| schema.name.starts_with(n));
    of_pytorch && MEANINGLESS.contains(&param)
}

/// A node's arguments, bound to the schema of its op. A lowering takes them in order or by name.
#[derive(Debug)]
pub struct Args<'a> {
    bound: Vec<Bound<'a>>,
    next: usize,
    /// Whether a lowering may leave out arguments.
    partial: bool,
}

#[derive(Debug)]
struct Bound<'a> {
    name: &'a str,
    value: Argument,
    /// Whether a lowering need not take it: it is at its default, or was taken.
    settled: bool,
}

impl Bound<'_> {
    fn convert<T: FromArg>(&self, cx: &Cx) -> Result<T, ArgError> {
        let found = match cx.mode() {
            Mode::Part(_) if PLACES.contains(&self.name) => {
                T::from_arg(&cx.in_mode(Mode::Real), &self.value)
            }
            _ => T::from_arg(cx, &self.value),
        };
        found.map_err(|what| error(self.name, what))
    }
}

fn error(name: &str, what: impl Into<String>) -> ArgError {
    ArgError { name: name.to_owned(), what: what.into() }
}

impl<'a> Args<'a> {
    /// Binds positional arguments in order and the others by name. Parameters that are not given
    /// get their defaults.
    pub fn bind(schema: &'a Schema, given: &[NamedArg]) -> Lowered<Self> {
        let mut bound = Vec::with_capacity(schema.params.len());
        let known = |arg: &NamedArg| schema.params.iter().any(|p| *p.name == *arg.name);
        // The functional variant of an in-place op may have another name for `self`, such as
        // `input`.
        let places = |arg: &NamedArg| arg.name.is_empty() || (&*arg.name == "self" && !known(arg));
        if let Some(arg) = given.iter().find(|a| !known(a) && !places(a)) {
            return Err(error(&arg.name, format!("{} has no such parameter", schema.name)).into());
        }
        for (i, param) in schema.params.iter().enumerate() {
            if is_meaningless(schema, &param.name) {
                continue;
            }
            let by_name = || given.iter().find(|a| *a.name == *param.name);
            let by_place = || given.get(i).filter(|a| places(a));
            let given = by_name().or_else(by_place).map(|a| a.value.clone());
            let settled = given.is_none() || given == param.default;
            let value = given.or_else(|| param.default.clone());
            let missing = || LowerError::MissingArgument(param.name.to_string());
            let value = value.ok_or_else(missing)?;
            bound.push(Bound { name: &param.name, value, settled });
        }
        Ok(Self { bound, next: 0, partial: false })
    }

    /// The same arguments for a function that need not take all of them: a meta function.
    pub fn partial(self) -> Self {
        Self { partial: true, ..self }
    }

    /// Adds arguments that the schema does not have.
    pub fn give(&mut self, given: Vec<(&'static str, Argument)>) {
        let bound = |(name, value)| Bound { name, value, settled: false };
        self.bound.extend(given.into_iter().map(bound));
    }

    /// Takes the next argument as a `T`.
    pub(crate) fn next<T: FromArg>(&mut self, cx: &Cx) -> Lowered<T> {
        let at = self.next;
        self.next += 1;
        match self.bound.get(at) {
            Some(bound) => Ok(bound.convert(cx)?),
            None => T::absent().ok_or_else(|| {
                let what = "the function takes more parameters than the schema has";
                error(&format!("#{at}"), what).into()
            }),
        }
    }

    /// Takes the argument of the parameter `name` as a `T`.
    ///
    /// # Errors
    /// Returns an error if the schema has no such parameter, or the argument does not fit.
    pub fn get<T: FromArg>(&mut self, cx: &Cx, name: &str) -> Lowered<T> {
        let found = self.bound.iter_mut().find(|b| b.name == name);
        let bound = found.ok_or_else(|| error(name, "the schema has no such parameter"))?;
        bound.settled = true;
        Ok(bound.convert(cx)?)
    }

    /// Takes the argument for the field `field` of a struct of [`arguments!`](crate::arguments!).
    #[doc(hidden)]
    pub fn named<T: FromArg>(&mut self, cx: &Cx, field: &str) -> Lowered<T> {
        let field = field.trim_start_matches("r#");
        let has = |name: &str| self.bound.iter().any(|b| b.name == name);
        match T::absent() {
            _ if has(field) => self.get(cx, field),
            _ if field == "input" && has("self") => self.get(cx, "self"),
            Some(absent) => Ok(absent),
            None => Err(error(field, "the schema has no such parameter").into()),
        }
    }

    /// Checks that the arguments that the lowering did not take are at their defaults.
    pub fn finish(&mut self) -> Lowered<()> {
        match self.bound.iter().skip(self.next).find(|b| !b.settled && !self.partial) {
            Some(Bound { name, value, .. }) => {
                let what = format!("only its default is supported, found {}", brief(value));
                Err(error(name, what).into())
            }
            None => Ok(()),
        }
    }
}
