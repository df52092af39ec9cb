//! Builds arguments.

use super::{
    builder::{Builder, Built},
    enums::{dtype, layout, memory_format},
};
use crate::{
    error::Invalid,
    graph::{Argument, CustomObj, Name, OpName, SymArg},
    schema as s,
};

impl Builder {
    pub(super) fn tensor(&mut self, t: &s::TensorArgument) -> Name {
        self.name(&t.name)
    }

    fn tensors(&mut self, ts: &[s::TensorArgument]) -> Vec<Name> {
        ts.iter().map(|t| self.tensor(t)).collect()
    }

    pub(super) fn optional(&mut self, t: &s::OptionalTensorArgument) -> Option<Name> {
        match t {
            s::OptionalTensorArgument::Tensor(t) => Some(self.tensor(t)),
            s::OptionalTensorArgument::None(_) => None,
        }
    }

    fn sym<S: Copy, T: From<S>>(&mut self, a: &s::SymArgument<S>) -> SymArg<T> {
        match a {
            s::SymArgument::Name(n) => SymArg::Name(self.name(n)),
            s::SymArgument::Value(v) => SymArg::Value((*v).into()),
        }
    }

    fn syms<S: Copy, T: From<S>>(&mut self, args: &[s::SymArgument<S>]) -> Vec<SymArg<T>> {
        args.iter().map(|a| self.sym(a)).collect()
    }

    pub(super) fn custom_obj(&mut self, o: &s::CustomObjArgument) -> CustomObj {
        CustomObj { name: self.name(&o.name), class: self.name(&o.class_fqn) }
    }

    /// An argument of a call. A bound that an assertion compares a size with may be beyond all
    /// integers of 64 bits, and so beyond all sizes.
    pub(super) fn given(&mut self, target: &OpName, a: &s::Argument) -> Built<Argument> {
        let compares = &*target.namespace == "_operator"
            && matches!(&*target.name, "lt" | "le" | "gt" | "ge" | "eq" | "ne");
        match a {
            s::Argument::Int(bound) if compares => Ok(Argument::Int(saturated(*bound))),
            _ => self.argument(a),
        }
    }

    pub(super) fn argument(&mut self, a: &s::Argument) -> Built<Argument> {
        let floats = |fs: &[s::Float]| fs.iter().map(|f| f.0).collect::<Vec<f64>>();
        let of = || "an argument".to_owned();
        Ok(match a {
            s::Argument::None(_) => Argument::None,
            s::Argument::Tensor(t) => Argument::Tensor(self.tensor(t)),
            s::Argument::Tensors(ts) => Argument::Tensors(self.tensors(ts)),
            s::Argument::OptionalTensor(t) => Argument::OptionalTensor(self.optional(t)),
            s::Argument::OptionalTensors(ts) => {
                Argument::OptionalTensors(ts.iter().map(|t| self.optional(t)).collect())
            }
            s::Argument::NestedTensors(tss) => {
                Argument::NestedTensors(tss.iter().map(|ts| self.tensors(ts)).collect())
            }
            s::Argument::Int(value) => {
                let fits = i64::try_from(*value);
                Argument::Int(fits.map_err(|_| Invalid::Integer { owner: of(), value: *value })?)
            }
            s::Argument::Ints(is) => Argument::Ints(is.clone()),
            s::Argument::IntLists(iss) => Argument::IntLists(iss.clone()),
            s::Argument::Float(f) => Argument::Float(f.0),
            s::Argument::Floats(fs) => Argument::Floats(floats(fs)),
            s::Argument::FloatLists(fss) => {
                Argument::FloatLists(fss.iter().map(|fs| floats(fs)).collect())
            }
            s::Argument::Bool(b) => Argument::Bool(*b),
            s::Argument::Bools(bs) => Argument::Bools(bs.clone()),
            s::Argument::String(t) => Argument::String(self.name(t)),
            s::Argument::Strings(ts) => {
                Argument::Strings(ts.iter().map(|t| self.name(t)).collect())
            }
            s::Argument::SymInt(a) => Argument::SymInt(self.sym(a)),
            s::Argument::SymInts(xs) => Argument::SymInts(self.syms(xs)),
            s::Argument::SymFloat(a) => Argument::SymFloat(self.sym(a)),
            s::Argument::SymFloats(xs) => Argument::SymFloats(self.syms(xs)),
            s::Argument::SymBool(a) => Argument::SymBool(self.sym(a)),
            s::Argument::SymBools(xs) => Argument::SymBools(self.syms(xs)),
            s::Argument::Complex(c) => Argument::Complex(c.real.0, c.imag.0),
            s::Argument::ScalarType(i) => Argument::DType(dtype(*i, of)?),
            s::Argument::MemoryFormat(i) => Argument::MemoryFormat(memory_format(*i, of)?),
            s::Argument::Layout(i) => Argument::Layout(layout(*i, of)?),
            s::Argument::Device(d) => Argument::Device(self.device(d)),
            s::Argument::Graph(g) => {
                Argument::Graph { name: self.name(&g.name), graph: Box::new(self.graph(&g.graph)?) }
            }
            s::Argument::CustomObj(o) => Argument::CustomObj(self.custom_obj(o)),
            s::Argument::Operator(t) => Argument::Operator(self.name(t)),
            s::Argument::Dict(entries) => {
                let entries = entries.0.iter();
                let built = entries.map(|(k, v)| Ok((self.name(k), self.argument(v)?)));
                Argument::Dict(Box::new(built.collect::<Built<_>>()?))
            }
        })
    }
}

/// The nearest integer of 64 bits.
fn saturated(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}
