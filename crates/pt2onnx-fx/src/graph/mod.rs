//! The model of an exported program: what the passes and the lowering work on.
//!
//! Names are the names of FX nodes. A node with several results has no `getitem` nodes after it: its
//! outputs carry the names those had (`split_0`, `X_unused_1`).

mod arg;
pub(crate) mod build;
mod guards;
mod meta;
mod op_name;
mod program;
mod value_map;

pub use arg::{ArgKind, Argument, CustomObj, Device, Layout, MemoryFormat, NamedArg, SymArg};
pub use meta::{ModuleFrame, NodeMeta, Site, SourceLine};
pub use op_name::{OpName, OpParts};
pub use program::{
    Constant, ConstantValue, ExportedProgram, GraphSignature, InputSpec, ModuleCallEntry,
    ModuleCallSignature, Mutation, MutationKind, OutputSpec,
};

pub use value_map::ValueMap;

use indexmap::IndexMap;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};
use rustc_hash::FxBuildHasher;
use smol_str::SmolStr;
use std::sync::Arc;

/// Name of a node or value: an FX name, unique in its graph. Cheap to clone; a short one lies in place.
pub type Name = SmolStr;

/// What is known of each value of a graph.
pub type Values = IndexMap<Name, ValueMeta, FxBuildHasher>;

/// A graph: that of a program, or a body of a higher-order op.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// In execution order.
    pub nodes: Vec<Node>,
    /// Placeholders. Constants given as inputs (`Argument::Int`, `None`, ...) have no name here.
    pub inputs: Vec<Argument>,
    /// Results.
    pub outputs: Vec<Argument>,
    /// What is known of each named value; a body lists also the values it is given. Clones of a graph share it until one is changed.
    pub values: Arc<Values>,
    /// Whether a body returns a bare tensor rather than a tuple.
    pub is_single_tensor_return: bool,
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueMeta {
    /// A tensor.
    Tensor(Box<TensorMeta>),
    /// An integer that may be symbolic.
    SymInt {
        /// Its value.
        expr: Expr,
        /// Its value for the example inputs.
        hint: Option<Hint>,
    },
    /// A float that may be symbolic.
    SymFloat {
        /// Its value: a number, or a sympy expression.
        expr: Expr,
        /// Its value for the example inputs.
        hint: Option<Hint>,
    },
    /// A truth value that may be symbolic.
    SymBool {
        /// The relation, 0 or 1.
        expr: Expr,
        /// Its value for the example inputs.
        hint: Option<Hint>,
    },
    /// A script object or opaque Python object.
    CustomObj {
        /// Qualified name of its class.
        class: Name,
    },
}

impl From<TensorMeta> for ValueMeta {
    fn from(meta: TensorMeta) -> Self {
        Self::Tensor(Box::new(meta))
    }
}

/// The value an expression had for the example inputs.
pub type Hint = Scalar;

/// What is known of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMeta {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub sizes: Vec<Expr>,
    /// Strides, in elements.
    pub strides: Vec<Expr>,
    /// First element in the storage.
    pub storage_offset: Expr,
    /// Whether autograd follows it.
    pub requires_grad: bool,
    /// Where it lived.
    pub device: Device,
    /// Dense or one of the sparse layouts.
    pub layout: Layout,
}

impl TensorMeta {
    /// Of a tensor with values.
    pub(crate) fn of(tensor: &Tensor) -> Self {
        let int = |&size: &usize| Expr::int(i64::try_from(size).unwrap_or(i64::MAX));
        Self {
            dtype: tensor.dtype(),
            sizes: tensor.shape().iter().map(int).collect(),
            strides: tensor.strides().iter().map(int).collect(),
            storage_offset: int(&tensor.offset()),
            requires_grad: false,
            device: Device { kind: "cpu".into(), index: None },
            layout: Layout::Strided,
        }
    }
}

/// A call of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Name of the FX node; that of the only result where there is one tensor.
    pub name: Name,
    /// What is called.
    pub target: OpName,
    /// Arguments that were given; those at their default are mostly absent.
    pub args: Vec<NamedArg>,
    /// Results, naming the values they define.
    pub outputs: Vec<Argument>,
    /// Whether a higher-order op returns a bare tensor rather than a tuple; `None` for ordinary operators.
    pub single_return: Option<bool>,
    /// Where it came from.
    pub meta: Arc<NodeMeta>,
}

impl Node {
    /// The argument of this name.
    pub fn arg(&self, name: &str) -> Option<&Argument> {
        self.args.iter().find(|a| &*a.name == name).map(|a| &a.value)
    }

    /// The bodies that it is given: a higher-order op; others have none.
    pub fn bodies(&self) -> impl Iterator<Item = &Graph> {
        let args = self.target.is_higher_order().then_some(&self.args);
        args.into_iter().flatten().filter_map(|a| match &a.value {
            Argument::Graph { graph, .. } => Some(&**graph),
            _ => None,
        })
    }

    /// As [`bodies`](Self::bodies), to be changed.
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

    /// Names of all values the node reads, in order; those read by bodies are the bodies' arguments, listed too.
    pub fn input_names(&self) -> Vec<Name> {
        let mut names = Vec::new();
        self.args.iter().for_each(|a| a.value.for_each_name(&mut |n| names.push(n.clone())));
        names
    }
}

impl Graph {
    /// What is known of each named value, to be changed.
    pub fn values_mut(&mut self) -> &mut Values {
        Arc::make_mut(&mut self.values)
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorMeta> {
        match self.values.get(name) {
            Some(ValueMeta::Tensor(meta)) => Some(meta),
            _ => None,
        }
    }
}
