//! Graphs, their nodes, and the arguments of these.
//!
//! A body of a higher-order op is an argument, so that each of the three may hold the others.

use super::{
    device::{Device, Layout, MemoryFormat},
    meta::NodeMeta,
    name::Name,
    op_name::OpName,
    value::{TensorMeta, ValueMeta, Values},
};
use indexmap::IndexMap;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use std::sync::Arc;

/// A graph: that of a program, or a body of a higher-order op.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// In execution order. Clones of a graph share them until they are changed.
    pub nodes: Vec<Arc<Node>>,
    /// Placeholders. Constants given as inputs (`Argument::Int`, `None`, ...) have no name here.
    pub inputs: Vec<Argument>,
    /// Results.
    pub outputs: Vec<Argument>,
    /// The types of all named values, a body's inputs among them. Clones of a graph share this map
    /// until one of them is changed.
    pub values: Arc<Values>,
    /// Whether a body returns a bare tensor rather than a tuple.
    pub is_single_tensor_return: bool,
}

/// A call of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Name of the FX node. It is also the name of the result if that is one tensor.
    pub name: Name,
    /// The operator or function that is called.
    pub target: OpName,
    /// Arguments. Most of those that have their default value are absent.
    pub args: Vec<NamedArg>,
    /// Results, naming the values they define.
    pub outputs: Vec<Argument>,
    /// Whether a higher-order op returns a bare tensor rather than a tuple; `None` for ordinary
    /// operators.
    pub single_return: Option<bool>,
    /// The source line and module that it comes from.
    pub meta: Arc<NodeMeta>,
}

impl NamedArg {
    /// An argument given by position.
    pub fn positional(name: &str, value: Argument) -> Self {
        Self { name: name.into(), kind: ArgKind::Positional, value }
    }

    /// An argument given by name.
    pub fn keyword(name: &str, value: Argument) -> Self {
        Self { name: name.into(), kind: ArgKind::Keyword, value }
    }
}

impl Node {
    /// A call of an operator that returns one tensor.
    pub fn call(result: Name, target: OpName, args: Vec<NamedArg>, meta: Arc<NodeMeta>) -> Self {
        let outputs = vec![Argument::Tensor(result.clone())];
        Self { name: result, target, args, outputs, single_return: None, meta }
    }

    /// The argument of this name.
    pub fn arg(&self, name: &str) -> Option<&Argument> {
        self.args.iter().find(|a| &*a.name == name).map(|a| &a.value)
    }

    /// The bodies of a higher-order op; other nodes have none.
    pub fn bodies(&self) -> impl Iterator<Item = &Graph> {
        let args = self.target.is_higher_order().then_some(&self.args);
        args.into_iter().flatten().filter_map(|a| match &a.value {
            Argument::Graph { graph, .. } => Some(&**graph),
            _ => None,
        })
    }

    /// As [`bodies`](Self::bodies), mutable.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Graph> {
        let args = self.target.is_higher_order().then_some(&mut self.args);
        args.into_iter().flatten().filter_map(|a| match &mut a.value {
            Argument::Graph { graph, .. } => Some(&mut **graph),
            _ => None,
        })
    }

    /// Names of all values the node defines, in order.
    pub fn output_names(&self) -> Vec<Name> {
        let mut names = Vec::new();
        self.outputs.iter().for_each(|o| o.for_each_name(&mut |n| names.push(n.clone())));
        names
    }

    /// Names of all values that the node reads, in order, those that its bodies read included.
    pub fn input_names(&self) -> Vec<Name> {
        let mut names = Vec::new();
        self.args.iter().for_each(|a| a.value.for_each_name(&mut |n| names.push(n.clone())));
        names
    }
}

impl Graph {
    /// The bodies of all nodes, mutable.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Graph> {
        let nodes = self.nodes.iter_mut().filter(|node| node.target.is_higher_order());
        nodes.flat_map(|node| Arc::make_mut(node).bodies_mut())
    }

    /// The types of all named values, mutable.
    pub fn values_mut(&mut self) -> &mut Values {
        Arc::make_mut(&mut self.values)
    }

    /// The type of the tensor of this name; `None` if there is no such tensor.
    pub fn tensor(&self, name: &str) -> Option<&TensorMeta> {
        self.values.get(name)?.tensor()
    }

    /// Whether any value is a complex tensor. In most graphs none is, and need not be asked one by
    /// one.
    pub fn has_complex(&self) -> bool {
        self.values.values().filter_map(ValueMeta::tensor).any(|meta| meta.dtype.is_complex())
    }
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedArg {
    /// Parameter of the operator's schema; empty for positional arguments of higher-order ops.
    pub name: Name,
    /// How it was passed.
    pub kind: ArgKind,
    /// The value.
    pub value: Argument,
}

/// How an argument was passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[non_exhaustive]
pub enum ArgKind {
    /// Written before schema 8.7.
    #[default]
    Unknown,
    Positional,
    Keyword,
}

/// A value or the name of one: what a call may take or return.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[non_exhaustive]
pub enum Argument {
    None,
    Tensor(Name),
    /// The empty list of any kind is stored as this.
    Tensors(Vec<Name>),
    /// `Tensor?` that is given (`None` otherwise).
    OptionalTensor(Option<Name>),
    OptionalTensors(Vec<Option<Name>>),
    NestedTensors(Vec<Vec<Name>>),
    /// A number known at export.
    Int(i64),
    Ints(Vec<i64>),
    IntLists(Vec<Vec<i64>>),
    Float(f64),
    Floats(Vec<f64>),
    FloatLists(Vec<Vec<f64>>),
    Bool(bool),
    Bools(Vec<bool>),
    String(Name),
    Strings(Vec<Name>),
    /// An integer, known or the result of a node.
    SymInt(SymArg<i64>),
    SymInts(Vec<SymArg<i64>>),
    SymFloat(SymArg<f64>),
    SymFloats(Vec<SymArg<f64>>),
    SymBool(SymArg<bool>),
    SymBools(Vec<SymArg<bool>>),
    /// Real and imaginary part.
    Complex(f64, f64),
    DType(DType),
    MemoryFormat(MemoryFormat),
    Layout(Layout),
    Device(Device),
    /// A body of a higher-order op.
    Graph {
        /// Attribute of the root module that held it: `true_graph_0`.
        name: Name,
        graph: Box<Graph>,
    },
    CustomObj(CustomObj),
    /// An operator, as higher-order ops take.
    Operator(Name),
    Dict(Box<IndexMap<Name, Argument>>),
}

/// A value that is known or the result of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum SymArg<T> {
    /// The value of this name.
    Name(Name),
    /// A known value.
    Value(T),
    /// An expression over the program's symbols that no node computes. Only passes make it, and
    /// only as an integer of [`Argument::SymInt`] or [`Argument::SymInts`].
    Expr(Expr),
}

/// A script object or opaque Python object.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomObj {
    /// Name of the value.
    pub name: Name,
    /// Qualified name of its class.
    pub class: Name,
}

macro_rules! from {
    ($($t:ty => $variant:ident),*) => {$(
        impl From<$t> for Argument {
            fn from(value: $t) -> Self {
                Argument::$variant(value.into())
            }
        }
    )*};
}
from!(bool => Bool, i64 => Int, f64 => Float, DType => DType, &str => String);

/// Defines a method that calls `f` with the name of every value in an argument.
macro_rules! for_each_name {
    ($(#[$doc:meta])* $method:ident, $iter:ident, $values:ident $(, $mut:tt)?) => {
        $(#[$doc])*
        pub fn $method<'a>(&'a $($mut)? self, f: &mut dyn FnMut(&'a $($mut)? Name)) {
            fn name<T>(arg: & $($mut)? SymArg<T>) -> Option<& $($mut)? Name> {
                match arg {
                    SymArg::Name(name) => Some(name),
                    _ => None,
                }
            }
            match self {
                Argument::Tensor(n)
                | Argument::OptionalTensor(Some(n))
                | Argument::SymInt(SymArg::Name(n))
                | Argument::SymFloat(SymArg::Name(n))
                | Argument::SymBool(SymArg::Name(n))
                | Argument::CustomObj(CustomObj { name: n, .. }) => f(n),
                Argument::Tensors(names) => names.$iter().for_each(f),
                Argument::OptionalTensors(names) => names.$iter().flatten().for_each(f),
                Argument::NestedTensors(names) => names.$iter().flatten().for_each(f),
                Argument::SymInts(args) => args.$iter().filter_map(name).for_each(f),
                Argument::SymFloats(args) => args.$iter().filter_map(name).for_each(f),
                Argument::SymBools(args) => args.$iter().filter_map(name).for_each(f),
                Argument::Dict(args) => args.$values().for_each(|a| a.$method(f)),
                _ => {}
            }
        }
    };
}

impl Argument {
    for_each_name! {
        /// Calls `f` with the name of every value in it, in order. Names within bodies are not
        /// visited.
        for_each_name, iter, values
    }
    for_each_name! {
        /// As [`Argument::for_each_name`], with mutable names.
        for_each_name_mut, iter_mut, values_mut, mut
    }

    /// A size.
    pub fn size(size: &Expr) -> Self {
        size.as_int().map_or_else(|| Self::SymInt(SymArg::Expr(size.clone())), Self::Int)
    }

    /// Sizes.
    pub fn sizes(sizes: &[Expr]) -> Self {
        let sym = |size: &Expr| match size.as_int() {
            Some(i) => SymArg::Value(i),
            None => SymArg::Expr(size.clone()),
        };
        match sizes.iter().map(Expr::as_int).collect() {
            Some(known) => Self::Ints(known),
            None => Self::SymInts(sizes.iter().map(sym).collect()),
        }
    }

    /// The integer, if it is one that is known at export.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => Some(*i),
            _ => None,
        }
    }

    /// The elements of a list; `None` if it is not one.
    pub(crate) fn elements(&self) -> Option<Vec<Argument>> {
        fn all<T: Clone>(list: &[T], element: fn(T) -> Argument) -> Option<Vec<Argument>> {
            Some(list.iter().cloned().map(element).collect())
        }
        match self {
            Argument::Tensors(list) => all(list, Argument::Tensor),
            Argument::OptionalTensors(list) => all(list, Argument::OptionalTensor),
            Argument::NestedTensors(list) => all(list, Argument::Tensors),
            Argument::Ints(list) => all(list, Argument::Int),
            Argument::IntLists(list) => all(list, Argument::Ints),
            Argument::Floats(list) => all(list, Argument::Float),
            Argument::FloatLists(list) => all(list, Argument::Floats),
            Argument::Bools(list) => all(list, Argument::Bool),
            Argument::Strings(list) => all(list, Argument::String),
            Argument::SymInts(list) => all(list, Argument::SymInt),
            Argument::SymFloats(list) => all(list, Argument::SymFloat),
            Argument::SymBools(list) => all(list, Argument::SymBool),
            _ => None,
        }
    }

    /// The name of the tensor, symbol or object that this is, if it is one.
    pub fn name(&self) -> Option<&Name> {
        match self {
            Argument::Tensor(n)
            | Argument::OptionalTensor(Some(n))
            | Argument::SymInt(SymArg::Name(n))
            | Argument::SymFloat(SymArg::Name(n))
            | Argument::SymBool(SymArg::Name(n))
            | Argument::CustomObj(CustomObj { name: n, .. }) => Some(n),
            _ => None,
        }
    }

    /// Calls `f` with each expression over the program's symbols.
    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        let args = match self {
            Argument::SymInt(arg) => std::slice::from_ref(arg),
            Argument::SymInts(args) => args,
            _ => &[],
        };
        for arg in args {
            if let SymArg::Expr(e) = arg {
                f(e);
            }
        }
    }
}
