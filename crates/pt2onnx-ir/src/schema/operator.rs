//! Schemas of operators: their inputs, outputs and attributes, and the types that they allow.

use crate::types::Type;
use pt2onnx_tensor::DType;

/// The schema of one version of an operator of the default domain.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpSchema {
    /// Operator type, such as `Gemm`.
    pub name: &'static str,
    /// The first opset with this version.
    pub since: u32,
    /// Whether the operator is deprecated from `since` on.
    pub deprecated: bool,
    /// Formal inputs in order.
    pub inputs: &'static [Param],
    /// Formal outputs in order.
    pub outputs: &'static [Param],
    /// The number of inputs that a node must have.
    pub min_inputs: u32,
    /// The number of outputs that a node must have.
    pub min_outputs: u32,
    /// Attributes, by name.
    pub attributes: &'static [AttributeSchema],
    /// The type variables, and the types that they may stand for.
    pub constraints: &'static [TypeConstraint],
    /// Whether the standard defines it by a function of other operators.
    pub has_function: bool,
}

/// A formal input or output.
#[derive(Debug)]
#[non_exhaustive]
pub struct Param {
    /// Its name in the standard.
    pub name: &'static str,
    /// A type variable (`T`) or a literal type (`tensor(int64)`).
    pub ty: &'static str,
    /// How often it occurs.
    pub kind: ParamKind,
    /// Whether all values of a variadic input or output must have the same type.
    pub homogeneous: bool,
}

/// How often a formal input or output occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// Exactly once.
    Single,
    /// At most once.
    Optional,
    /// Any number of times.
    Variadic,
}

/// An attribute that an operator takes.
#[derive(Debug)]
#[non_exhaustive]
pub struct AttributeSchema {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: AttributeKind,
    /// Whether it must be given.
    pub required: bool,
    /// Its value if it is not given.
    pub default: Option<AttributeDefault>,
}

pt2onnx_symbolic::named_enum! {
    /// Type of an attribute: `AttributeProto.AttributeType`.
    pub enum AttributeKind {
        Float = "float",
        Int = "int",
        String = "string",
        Tensor = "tensor",
        Graph = "graph",
        SparseTensor = "sparse_tensor",
        TypeProto = "type_proto",
        Floats = "floats",
        Ints = "ints",
        Strings = "strings",
        Tensors = "tensors",
        Graphs = "graphs",
        SparseTensors = "sparse_tensors",
        TypeProtos = "type_protos",
    }
}

/// An attribute's default value.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names are ONNX's")]
pub enum AttributeDefault {
    Float(f32),
    Int(i64),
    String(&'static str),
    Floats(&'static [f32]),
    Ints(&'static [i64]),
    Strings(&'static [&'static str]),
}

/// A type variable, and the types that it may stand for.
#[derive(Debug)]
#[non_exhaustive]
pub struct TypeConstraint {
    /// The variable, such as `T`.
    pub name: &'static str,
    /// The types that it may stand for.
    pub types: TypeSet,
}

/// A set of types; bit n of each mask stands for the [`DType`] of discriminant n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeSet {
    /// Tensors.
    pub tensor: u32,
    /// Sequences of tensors.
    pub sequence: u32,
    /// Optional tensors.
    pub optional: u32,
    /// Optional sequences of tensors.
    pub optional_sequence: u32,
}

impl TypeSet {
    /// Whether tensors of this element type are in the set.
    pub fn has_tensor(&self, dtype: DType) -> bool {
        self.tensor & (1 << dtype as u32) != 0
    }

    /// Whether the type is in the set. True for types that no set describes, such as maps and
    /// sequences of sequences.
    pub fn has(&self, ty: &Type) -> bool {
        let of = |set: u32, inner: &Type| {
            let tensor = inner.as_tensor();
            tensor.is_none_or(|t| set & (1 << t.dtype as u32) != 0)
        };
        match ty {
            Type::Tensor(t) => self.has_tensor(t.dtype),
            Type::Sequence(inner) => of(self.sequence, inner),
            Type::Optional(inner) => match &**inner {
                Type::Sequence(inner) => of(self.optional_sequence, inner),
                inner => of(self.optional, inner),
            },
            _ => true,
        }
    }

    /// The nearest wider element type in the set: it holds all values of `dtype`, or most of them.
    /// `None` if there is none.
    pub fn widened(&self, dtype: DType) -> Option<DType> {
        use DType::*;
        let order: &[DType] = match dtype {
            Bool => &[U8, I32, I64, F32],
            I8 | U8 => &[I32, I64, F32, F64],
            I16 | U16 => &[I32, I64, F32, F64],
            I32 => &[I64, F64, F32],
            U32 => &[I64, U64, F64, F32],
            I64 => &[F64, F32],
            U64 => &[I64, F64, F32],
            F16 | BF16 => &[F32, F64],
            F32 => &[F64],
            F64 => &[F32],
            F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0 | F4E2M1 => &[F16, F32],
            I4 | U4 | I2 | U2 => &[I32, I64, F32],
            _ => &[],
        };
        order.iter().copied().find(|&d| self.has_tensor(d))
    }

    /// The element type, if the set contains tensors of one element type and nothing else.
    pub fn only_tensor(&self) -> Option<DType> {
        let nothing_else = self.sequence | self.optional | self.optional_sequence == 0;
        let only = nothing_else && self.tensor.is_power_of_two();
        only.then(|| DType::ALL.iter().copied().find(|&d| self.has_tensor(d))).flatten()
    }
}

impl OpSchema {
    /// The types that a type variable may stand for; `None` for a literal type.
    pub fn type_set(&self, ty: &str) -> Option<&TypeSet> {
        self.constraints.iter().find(|c| c.name == ty).map(|c| &c.types)
    }

    /// The formal input of a node's input `index`; `None` if there are fewer.
    pub fn input(&self, index: usize) -> Option<&Param> {
        formal(self.inputs, index)
    }

    /// The formal output of a node's output `index`; `None` if there are fewer.
    pub fn output(&self, index: usize) -> Option<&Param> {
        formal(self.outputs, index)
    }

    /// The attribute of that name.
    pub fn attribute(&self, name: &str) -> Option<&AttributeSchema> {
        self.attributes.iter().find(|a| a.name == name)
    }
}

fn formal(params: &'static [Param], index: usize) -> Option<&'static Param> {
    params.get(index).or_else(|| params.last().filter(|p| p.kind == ParamKind::Variadic))
}
