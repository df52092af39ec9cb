//! Values of the interpreter. Numbers may be symbolic; a tensor is the name of a value of the
//! graph.

pub(crate) mod dyn_list;
pub(crate) mod quantized;

use crate::{
    error::{Problem, Step},
    schema::Type,
    value::quantized::Quantized,
};
use indexmap::IndexMap;
use pt2onnx_fx::{Device, Name, archive::c10_number};
use pt2onnx_symbolic::{Expr, View};
use pt2onnx_tensor::DType;
use pt2onnx_torchscript_archive::{ClassDef, FunctionDef};
use std::sync::Arc;

/// Arguments of an operator: `args![x, -1, 0.5]`.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::value::Value::from($value)),*] };
}
pub(crate) use args;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    None,
    /// A truth value: 0, 1 or a relation.
    Bool(Expr),
    Int(Expr),
    /// A number or an expression.
    Float(Expr),
    Complex(f64, f64),
    Str(Arc<str>),
    /// A text of values that are not known. Messages may show it, nothing else may read it.
    UnknownStr(Arc<str>),
    Tensor(Name),
    Quantized(Arc<Quantized>),
    /// Weights that an operator takes in one object.
    Packed(Arc<Packed>),
    List(Ref),
    Dict(Ref),
    Tuple(Arc<Tuple>),
    Object(Ref),
    Enum(Arc<EnumMember>),
    Device(Arc<Device>),
    /// A value that data may make None.
    Optional(Arc<Optional>),
    /// Functions, classes and methods are values while they are called.
    Callee(Arc<Callee>),
    /// An undefined value, such as `uninitialized(T)` or an object of C++; reading it is an error
    /// that shows this text.
    Undef(Arc<str>),
}

/// A place in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ref(pub(crate) usize);

/// A tuple; that of a NamedTuple has its class.
#[derive(Debug)]
pub(crate) struct Tuple {
    pub(crate) items: Vec<Value>,
    pub(crate) class: Option<Arc<ClassDef>>,
    /// How deeply tuples nest in it.
    depth: usize,
}

impl Tuple {
    pub(crate) fn new(items: Vec<Value>, class: Option<Arc<ClassDef>>) -> Self {
        let depth = |item: &Value| match item {
            Value::Tuple(tuple) => tuple.depth,
            _ => 0,
        };
        let depth = 1 + items.iter().map(depth).max().unwrap_or(0);
        Self { items, class, depth }
    }

    /// A tuple as a value. Its depth has a limit, because tuples are dropped recursively.
    pub(crate) fn checked(items: Vec<Value>, class: Option<Arc<ClassDef>>) -> Step<Value> {
        const MOST: usize = 40;
        let tuple = Self::new(items, class);
        if tuple.depth > MOST {
            Err(Problem::Depth(MOST))
        } else {
            Ok(Value::Tuple(Arc::new(tuple)))
        }
    }
}

/// Weights of an operator in one object: the arguments of the operator that packs them.
#[derive(Debug)]
pub(crate) struct Packed {
    /// `linear`, `conv2d`, `conv_transpose3d`, `embedding_bag` or `cell`.
    pub(crate) op: Name,
    pub(crate) args: Vec<(Name, Value)>,
}

impl Packed {
    pub(crate) fn new<const N: usize>(op: &str, args: [(&str, &Value); N]) -> Self {
        let args = args.map(|(name, value)| (name.into(), value.clone()));
        Self { op: op.into(), args: args.into() }
    }

    pub(crate) fn get(&self, name: &str) -> Value {
        let arg = self.args.iter().find(|(arg, _)| *arg == *name);
        arg.map_or(Value::None, |(_, value)| value.clone())
    }

    pub(crate) fn quantized_weight(&self) -> Step<Arc<Quantized>> {
        match self.get("weight") {
            Value::Quantized(weight) => Ok(weight),
            other => expected("a quantised weight", &other),
        }
    }
}

/// A value that is None unless a condition holds.
#[derive(Debug)]
pub(crate) struct Optional {
    pub(crate) present: Expr,
    pub(crate) value: Value,
}

impl Optional {
    /// A value that is there if a condition holds.
    pub(crate) fn of(present: Expr, value: Value) -> Value {
        match present.as_int() {
            Some(0) => Value::None,
            Some(_) => value,
            None => Value::Optional(Arc::new(Self { present, value })),
        }
    }

    /// Whether a value is there, and what it is then.
    pub(crate) fn parts(value: &Value) -> (Expr, Value) {
        match value {
            Value::None => (Expr::bool(false), Value::Undef("None".into())),
            Value::Optional(maybe) => (maybe.present.clone(), maybe.value.clone()),
            other => (Expr::bool(true), other.clone()),
        }
    }
}

/// A member of an Enum.
#[derive(Debug)]
pub(crate) struct EnumMember {
    pub(crate) class: String,
    pub(crate) name: Name,
    pub(crate) value: Value,
}

/// A callable, or a part of the name of one.
#[derive(Debug)]
pub(crate) enum Callee {
    /// `torch`, `ops.prim`, `__torch__.m`.
    Namespace(String),
    Function(FunctionDef),
    Class(Arc<ClassDef>),
    /// A method of an object or of a plain value.
    Method(Value, Name),
    /// A function of a class: `__torch__.C.f`.
    Unbound(Arc<ClassDef>, Name),
    /// A function within a function, with the names that it sees.
    Closure(FunctionDef, Arc<[(Name, Value)]>),
}

/// An item of the heap: lists, dicts and objects, addressed by index.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    List {
        items: Vec<Value>,
        element: Option<Type>,
    },
    /// A list whose length is not known.
    DynList(DynList),
    Dict(Vec<(Value, Value)>),
    Object {
        class: Arc<ClassDef>,
        attributes: IndexMap<Name, Value>,
        path: Name,
    },
}

/// The elements of a list whose length is not known: the parts of a tensor along a dimension.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DynList {
    pub(crate) tensor: Name,
    pub(crate) dim: i64,
    pub(crate) layout: Layout,
    /// The type of the elements: tensors, or the numbers that 0-d parts hold.
    pub(crate) element: Type,
}

/// How a tensor is divided into the elements of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Layout {
    /// Single slices: the dimension is not in the elements.
    Slices,
    /// Parts of this length, except for a shorter last one.
    Parts(Expr),
    /// Parts whose lengths are in a list.
    Jagged(Ref),
    /// It is not divided: it is the list as one value, whose tensors have this element type and any
    /// sizes.
    Sequence(DType),
}

impl DynList {
    /// The rows of a tensor, of any number: parts along the first dimension that do not have it.
    pub(crate) fn rows(tensor: Name, element: Type) -> Self {
        Self { tensor, dim: 0, layout: Layout::Slices, element }
    }

    /// A list that is one value.
    pub(crate) fn of_sequence(tensor: Name, dtype: DType) -> Self {
        Self { layout: Layout::Sequence(dtype), ..Self::rows(tensor, Type::Tensor) }
    }

    /// Whether both divide their tensors in the same way.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let is_divided = !matches!(self.layout, Layout::Sequence(_));
        is_divided && (self.dim, &self.layout) == (other.dim, &other.layout)
    }

    /// The list of the lengths of the parts, if they differ.
    pub(crate) fn lengths(&self) -> Option<Ref> {
        if let Layout::Jagged(lengths) = self.layout { Some(lengths) } else { None }
    }
}

impl Value {
    pub(crate) fn bool(value: bool) -> Self {
        Self::Bool(Expr::bool(value))
    }

    pub(crate) fn int(value: i64) -> Self {
        Self::Int(Expr::int(value))
    }

    pub(crate) fn float(value: f64) -> Self {
        Self::Float(Expr::float(value))
    }

    pub(crate) fn str(text: &str) -> Self {
        Self::Str(text.into())
    }

    /// The device of all tensors.
    pub(crate) fn cpu() -> Self {
        Self::Device(Arc::new(Device { kind: "cpu".into(), index: None }))
    }

    pub(crate) fn tuple(items: Vec<Value>) -> Self {
        Self::Tuple(Arc::new(Tuple::new(items, None)))
    }

    pub(crate) fn callee(callee: Callee) -> Self {
        Self::Callee(Arc::new(callee))
    }

    /// The type, as messages name it.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Complex(..) => "complex",
            Self::Str(_) => "str",
            Self::UnknownStr(_) => "the text of a value that is not known",
            Self::Tensor(_) => "Tensor",
            Self::Quantized(_) => "a quantised tensor",
            Self::Packed(_) => "packed weights",
            Self::List(_) => "List",
            Self::Dict(_) => "Dict",
            Self::Tuple(_) => "Tuple",
            Self::Object(_) => "an object",
            Self::Enum(_) => "an Enum",
            Self::Device(_) => "Device",
            Self::Optional(_) => "a value that data may make None",
            Self::Callee(_) => "a function",
            Self::Undef(what) => what,
        }
    }

    /// The expression of a number.
    pub(crate) fn number(&self) -> Option<&Expr> {
        match self {
            Self::Bool(e) | Self::Int(e) | Self::Float(e) => Some(e),
            _ => None,
        }
    }

    /// The element type of a tensor that holds this number.
    pub(crate) fn number_dtype(&self) -> Option<DType> {
        match self {
            Self::Bool(_) => Some(DType::Bool),
            Self::Int(_) => Some(DType::I64),
            Self::Float(_) => Some(DType::F64),
            _ => None,
        }
    }

    /// The value of an integer that is known.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(e) => e.as_int(),
            _ => None,
        }
    }

    /// The value of a truth value that is known.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(e) => e.as_int().map(|i| i != 0),
            _ => None,
        }
    }

    /// The value of a number that is known.
    pub(crate) fn as_f64(&self) -> Option<f64> {
        self.number().and_then(known)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn tensor(&self) -> Step<&Name> {
        if let Self::Tensor(name) = self { Ok(name) } else { expected("a tensor", self) }
    }

    pub(crate) fn list(&self) -> Step<Ref> {
        if let Self::List(list) = self { Ok(*list) } else { expected("a list", self) }
    }

    pub(crate) fn dict(&self) -> Step<Ref> {
        if let Self::Dict(dict) = self { Ok(*dict) } else { expected("a dict", self) }
    }

    pub(crate) fn integer(&self) -> Step<&Expr> {
        if let Self::Int(e) = self { Ok(e) } else { expected("an integer", self) }
    }

    pub(crate) fn known_int(&self) -> Step<i64> {
        self.as_int().map_or_else(|| expected("a known integer", self), Ok)
    }
}

macro_rules! values_of {
    ($($of:ty: |$value:ident| $made:expr,)*) => {$(
        impl From<$of> for Value {
            fn from($value: $of) -> Self {
                $made
            }
        }
    )*};
}

values_of! {
    bool: |truth| Self::bool(truth),
    i32: |number| Self::int(number.into()),
    i64: |number| Self::int(number),
    usize: |number| Self::int(i64::try_from(number).unwrap_or(i64::MAX)),
    f64: |number| Self::float(number),
    Expr: |size| Self::Int(size),
    &str: |text| Self::str(text),
    DType: |dtype| c10_number(dtype).map_or(Self::None, Self::int),
    Name: |name| Self::Tensor(name),
    &Name: |name| Self::Tensor(name.clone()),
    &Option<Name>: |name| name.clone().map_or(Self::None, Self::Tensor),
    &Value: |value| value.clone(),
    &Arc<Quantized>: |quantized| Self::Quantized(quantized.clone()),
}

/// The problem that a value is of another kind.
pub(crate) fn expected<T>(expected: &'static str, found: &Value) -> Step<T> {
    let unknown = found.number().is_some_and(|number| known(number).is_none());
    let found = if unknown {
        format!("{} that inputs, data or sizes decide", found.kind())
    } else {
        found.kind().to_owned()
    };
    Err(Problem::Kind { expected, found })
}

/// The value of an expression that is a number.
pub(crate) fn known(expr: &Expr) -> Option<f64> {
    match expr.view() {
        View::Int(i) => Some(i as f64),
        View::Float(f) => Some(f),
        View::Rational(n, d) => Some(n as f64 / d as f64),
        _ => None,
    }
}
