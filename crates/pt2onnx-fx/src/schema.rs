//! The JSON of a program as torch/_export/serde/schema.py defines it, major version 8.
//!
//! Field names and their order are that file's. Unknown fields are ignored, absent ones take
//! schema.py's defaults. Text is borrowed where it can be.

pub(crate) mod upgrade;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{borrow::Cow, fmt, marker::PhantomData, ops::Deref};

/// The major version that the types here are of, and the newest that is read.
pub const MAJOR: u32 = 8;

/// Text, borrowed unless it holds escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(v.to_owned())))
            }
        }
        d.deserialize_str(V)
    }
}

impl From<Float> for f64 {
    fn from(Float(value): Float) -> f64 {
        value
    }
}

/// A float; not-a-number and the infinities are written as strings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Float(pub f64);

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Float;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"Infinity\", \"-Infinity\" or \"NaN\"")
            }
            fn visit_f64<E>(self, v: f64) -> Result<Float, E> {
                Ok(Float(v))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Float, E> {
                Ok(Float(v as f64))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Float, E> {
                Ok(Float(v as f64))
            }
            fn visit_str<E: Error>(self, v: &str) -> Result<Float, E> {
                Ok(Float(match v {
                    "Infinity" => f64::INFINITY,
                    "-Infinity" => f64::NEG_INFINITY,
                    "NaN" => f64::NAN,
                    _ => return Err(E::invalid_value(serde::de::Unexpected::Str(v), &self)),
                }))
            }
        }
        d.deserialize_any(V)
    }
}

/// A JSON object of any keys, in the order written.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries<'a, V>(pub Vec<(Text<'a>, V)>);

impl<V> Default for Entries<'_, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Entries<'a, V> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct M<'a, V>(PhantomData<(&'a (), V)>);
        impl<'de: 'a, 'a, V: Deserialize<'de>> Visitor<'de> for M<'a, V> {
            type Value = Entries<'a, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        d.deserialize_map(M(PhantomData))
    }
}

// Each type borrows from the JSON text; the bound says so for all fields at once.
macro_rules! record {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $ty:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, PartialEq)]
        #[serde(bound(deserialize = "'de: 'a"))]
        #[expect(missing_docs, reason = "schema.py's names")]
        pub struct $name<'a> { $($(#[$attr])* pub $field: $ty,)* }
    )*};
}

// A union is an object of one key, which says what its value is.
macro_rules! union {
    ($($(#[$doc:meta])* $name:ident { $($tag:literal => $variant:ident($ty:ty)),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, PartialEq)]
        #[serde(bound(deserialize = "'de: 'a"))]
        #[expect(missing_docs, reason = "schema.py's names")]
        pub enum $name<'a> { $(#[serde(rename = $tag)] $variant($ty),)* }
    )*};
}

record! {
    Device {
        #[serde(rename = "type")]
        kind: Text<'a>,
        index: Option<i64>,
    }
    /// An expression and its value for the example inputs.
    SymExpr {
        expr_str: Text<'a>,
        #[serde(default)]
        hint: Option<SymExprHint>,
    }
    /// The type of a tensor. `dtype` and `layout` are numbers of `ScalarType` and `Layout`.
    TensorMeta {
        dtype: i64,
        sizes: Vec<SymInt<'a>>,
        #[serde(default)]
        requires_grad: bool,
        device: Device<'a>,
        strides: Vec<SymInt<'a>>,
        storage_offset: SymInt<'a>,
        layout: i64,
    }
    TensorArgument { name: Text<'a> }
    GraphArgument { name: Text<'a>, graph: Graph<'a> }
    CustomObjArgument { name: Text<'a>, class_fqn: Text<'a> }
    /// An argument of a call. `kind` is a number of `ArgumentKind`.
    NamedArgument { name: Text<'a>, arg: Argument<'a>, kind: Option<i64> }
    Node {
        target: Text<'a>,
        inputs: Vec<NamedArgument<'a>>,
        outputs: Vec<Argument<'a>>,
        #[serde(default)]
        metadata: Entries<'a, Text<'a>>,
        is_hop_single_tensor_return: Option<bool>,
        name: Option<Text<'a>>,
    }
    Graph {
        inputs: Vec<Argument<'a>>,
        outputs: Vec<Argument<'a>>,
        nodes: Vec<Node<'a>>,
        tensor_values: Entries<'a, TensorMeta<'a>>,
        #[serde(default)]
        sym_int_values: Entries<'a, SymInt<'a>>,
        #[serde(default)]
        sym_bool_values: Entries<'a, SymBool<'a>>,
        #[serde(default)]
        is_single_tensor_return: bool,
        #[serde(default)]
        custom_obj_values: Entries<'a, CustomObjArgument<'a>>,
        #[serde(default)]
        sym_float_values: Entries<'a, SymFloat<'a>>,
    }
    /// An input of the user's, or an output.
    UserSpec { arg: Argument<'a> }
    InputToConstantInputSpec { name: Text<'a>, value: ConstantValue<'a> }
    InputToBufferSpec { arg: TensorArgument<'a>, buffer_name: Text<'a>, persistent: bool }
    InputToCustomObjSpec { arg: CustomObjArgument<'a>, custom_obj_name: Text<'a> }
    TokenSpec { arg: TensorArgument<'a> }
    /// A tensor that is, or is the new value or gradient of, a parameter, buffer, constant or
    /// input; schema.py has a class for each.
    TargetSpec {
        arg: TensorArgument<'a>,
        #[serde(
            alias = "parameter_name",
            alias = "buffer_name",
            alias = "tensor_constant_name",
            alias = "user_input_name"
        )]
        target: Text<'a>,
    }
    GraphSignature { input_specs: Vec<InputSpec<'a>>, output_specs: Vec<OutputSpec<'a>> }
    ModuleCallSignature {
        inputs: Vec<Argument<'a>>,
        outputs: Vec<Argument<'a>>,
        in_spec: Text<'a>,
        out_spec: Text<'a>,
        #[serde(default)]
        forward_arg_names: Option<Vec<Text<'a>>>,
    }
    ModuleCallEntry {
        fqn: Text<'a>,
        #[serde(default)]
        signature: Option<ModuleCallSignature<'a>>,
    }
    GraphModule {
        graph: Graph<'a>,
        signature: GraphSignature<'a>,
        #[serde(default)]
        module_call_graph: Vec<ModuleCallEntry<'a>>,
        #[serde(default)]
        metadata: Entries<'a, Text<'a>>,
        #[serde(default)]
        treespec_namedtuple_fields: Entries<'a, NamedTupleDef<'a>>,
    }
    NamedTupleDef { field_names: Vec<Text<'a>> }
    ExportedProgram {
        graph_module: GraphModule<'a>,
        #[serde(default)]
        opset_version: Entries<'a, i64>,
        #[serde(default)]
        range_constraints: Entries<'a, RangeConstraint>,
        schema_version: SchemaVersion,
        #[serde(default)]
        verifiers: Vec<Text<'a>>,
        #[serde(default = "old_torch")]
        torch_version: Text<'a>,
        #[serde(default)]
        guards_code: Vec<Text<'a>>,
    }
    /// The part of a program that all majors share: read first.
    Header {
        #[serde(deserialize_with = "version")]
        schema_version: SchemaVersion,
        #[serde(default = "old_torch")]
        torch_version: Text<'a>,
    }
    /// One entry of a `*_config.json`.
    PayloadMeta {
        path_name: Text<'a>,
        #[serde(default)]
        is_param: bool,
        #[serde(default)]
        use_pickle: bool,
        tensor_meta: Option<TensorMeta<'a>>,
    }
    /// A `*_config.json`: qualified names of tensors and where their bytes are.
    PayloadConfig { config: Entries<'a, PayloadMeta<'a>> }
}

union! {
    SymInt { "as_expr" => Expr(Box<SymExpr<'a>>), "as_int" => Int(i64) }
    SymFloat { "as_expr" => Expr(Box<SymExpr<'a>>), "as_float" => Float(Float) }
    SymBool { "as_expr" => Expr(Box<SymExpr<'a>>), "as_bool" => Bool(bool) }
    OptionalTensorArgument {
        "as_tensor" => Tensor(TensorArgument<'a>),
        "as_none" => None(IgnoredAny),
    }
    Argument {
        "as_none" => None(IgnoredAny),
        "as_tensor" => Tensor(TensorArgument<'a>),
        "as_tensors" => Tensors(Vec<TensorArgument<'a>>),
        "as_int" => Int(i128),
        "as_ints" => Ints(Vec<i64>),
        "as_float" => Float(Float),
        "as_floats" => Floats(Vec<Float>),
        "as_string" => String(Text<'a>),
        "as_strings" => Strings(Vec<Text<'a>>),
        "as_sym_int" => SymInt(SymArgument<'a, i64>),
        "as_sym_ints" => SymInts(Vec<SymArgument<'a, i64>>),
        "as_scalar_type" => ScalarType(i64),
        "as_memory_format" => MemoryFormat(i64),
        "as_layout" => Layout(i64),
        "as_device" => Device(Device<'a>),
        "as_bool" => Bool(bool),
        "as_bools" => Bools(Vec<bool>),
        "as_sym_bool" => SymBool(SymArgument<'a, bool>),
        "as_sym_bools" => SymBools(Vec<SymArgument<'a, bool>>),
        "as_graph" => Graph(Box<GraphArgument<'a>>),
        "as_optional_tensors" => OptionalTensors(Vec<OptionalTensorArgument<'a>>),
        "as_custom_obj" => CustomObj(CustomObjArgument<'a>),
        "as_operator" => Operator(Text<'a>),
        "as_sym_float" => SymFloat(SymArgument<'a, Float>),
        "as_sym_floats" => SymFloats(Vec<SymArgument<'a, Float>>),
        "as_optional_tensor" => OptionalTensor(OptionalTensorArgument<'a>),
        "as_complex" => Complex(ComplexValue),
        "as_nested_tensors" => NestedTensors(Vec<Vec<TensorArgument<'a>>>),
        "as_int_lists" => IntLists(Vec<Vec<i64>>),
        "as_string_to_argument" => Dict(Entries<'a, Argument<'a>>),
        "as_float_lists" => FloatLists(Vec<Vec<Float>>),
    }
    ConstantValue {
        "as_none" => None(IgnoredAny),
        "as_int" => Int(i64),
        "as_float" => Float(Float),
        "as_string" => String(Text<'a>),
        "as_bool" => Bool(bool),
    }
    InputSpec {
        "user_input" => UserInput(UserSpec<'a>),
        "parameter" => Parameter(TargetSpec<'a>),
        "buffer" => Buffer(InputToBufferSpec<'a>),
        "tensor_constant" => TensorConstant(TargetSpec<'a>),
        "custom_obj" => CustomObj(InputToCustomObjSpec<'a>),
        "token" => Token(TokenSpec<'a>),
        "constant_input" => Constant(InputToConstantInputSpec<'a>),
    }
    OutputSpec {
        "user_output" => UserOutput(UserSpec<'a>),
        "loss_output" => Loss(TokenSpec<'a>),
        "buffer_mutation" => BufferMutation(TargetSpec<'a>),
        "gradient_to_parameter" => GradientToParameter(TargetSpec<'a>),
        "gradient_to_user_input" => GradientToUserInput(TargetSpec<'a>),
        "user_input_mutation" => UserInputMutation(TargetSpec<'a>),
        "token" => Token(TokenSpec<'a>),
        "parameter_mutation" => ParameterMutation(TargetSpec<'a>),
    }
}

/// An integer, float or truth value, or the name of one.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(bound(deserialize = "'de: 'a, T: Deserialize<'de>"))]
#[expect(missing_docs, reason = "schema.py's names")]
pub enum SymArgument<'a, T> {
    #[serde(rename = "as_name")]
    Name(Text<'a>),
    #[serde(rename = "as_int", alias = "as_float", alias = "as_bool")]
    Value(T),
}

/// A complex number.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[expect(missing_docs, reason = "schema.py's names")]
pub struct ComplexValue {
    pub real: Float,
    pub imag: Float,
}

/// Bounds of an expression; absent where infinite.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[expect(missing_docs, reason = "schema.py's names")]
pub struct RangeConstraint {
    #[serde(default, deserialize_with = "bound")]
    pub min_val: Option<i64>,
    #[serde(default, deserialize_with = "bound")]
    pub max_val: Option<i64>,
}

/// A bound; none beyond 64 bits, as of a size that is another one plus 2.
fn bound<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let given = Option::<i128>::deserialize(from)?;
    Ok(given.and_then(|bound| i64::try_from(bound).ok()))
}

/// Version of the schema.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "schema.py's names")]
pub struct SchemaVersion {
    pub major: u32,
    pub minor: u32,
}

/// Value for the example inputs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[expect(missing_docs, reason = "schema.py's names")]
pub enum SymExprHint {
    #[serde(rename = "as_int")]
    Int(i64),
    #[serde(rename = "as_bool")]
    Bool(bool),
    #[serde(rename = "as_float")]
    Float(Float),
}

/// Schemas 1 and 2 wrote one number.
fn version<'de, D: Deserializer<'de>>(d: D) -> Result<SchemaVersion, D::Error> {
    struct V;
    impl<'de> Visitor<'de> for V {
        type Value = SchemaVersion;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a schema version")
        }
        fn visit_u64<E: Error>(self, major: u64) -> Result<SchemaVersion, E> {
            let major = u32::try_from(major).map_err(E::custom)?;
            Ok(SchemaVersion { major, minor: 0 })
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SchemaVersion, A::Error> {
            SchemaVersion::deserialize(MapAccessDeserializer::new(map))
        }
    }
    d.deserialize_any(V)
}

fn old_torch() -> Text<'static> {
    Text(Cow::Borrowed("<=2.4"))
}
