//! Element types of tensors, from PyTorch's `ScalarType` and ONNX's `TensorProto.DataType`.

use std::fmt;

#[derive(PartialEq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Complex,
    Other,
}

/// Defines [`DType`]. A row is a type, its kind, the size of an element in bits, and its name.
macro_rules! types {
    ($($dtype:ident: $kind:ident, $bits:literal, $name:literal;)*) => {
        /// Element type of a tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the names are the documentation")]
        pub enum DType { $($dtype,)* }

        impl DType {
            /// All element types, in the order of their discriminants.
            pub const ALL: &[DType] = &[$(DType::$dtype),*];

            /// Size of an element in bits; 0 for strings.
            pub fn bits(self) -> usize {
                match self { $(DType::$dtype => $bits,)* }
            }

            /// The name in NumPy and ONNX's documentation: `float32`, `int64`, `bool`,
            /// `float8_e4m3fn`.
            pub fn name(self) -> &'static str {
                match self { $(DType::$dtype => $name,)* }
            }

            fn kind(self) -> Kind {
                match self { $(DType::$dtype => Kind::$kind,)* }
            }
        }
    };
}

types! {
    F64: Float, 64, "float64";
    F32: Float, 32, "float32";
    F16: Float, 16, "float16";
    BF16: Float, 16, "bfloat16";
    I64: Signed, 64, "int64";
    I32: Signed, 32, "int32";
    I16: Signed, 16, "int16";
    I8: Signed, 8, "int8";
    U64: Unsigned, 64, "uint64";
    U32: Unsigned, 32, "uint32";
    U16: Unsigned, 16, "uint16";
    U8: Unsigned, 8, "uint8";
    Bool: Other, 8, "bool";
    C32: Complex, 32, "complex32";
    C64: Complex, 64, "complex64";
    C128: Complex, 128, "complex128";
    F8E4M3FN: Float, 8, "float8_e4m3fn";
    F8E4M3FNUZ: Float, 8, "float8_e4m3fnuz";
    F8E5M2: Float, 8, "float8_e5m2";
    F8E5M2FNUZ: Float, 8, "float8_e5m2fnuz";
    F8E8M0: Float, 8, "float8_e8m0fnu";
    F4E2M1: Float, 4, "float4_e2m1";
    I4: Signed, 4, "int4";
    U4: Unsigned, 4, "uint4";
    I2: Signed, 2, "int2";
    U2: Unsigned, 2, "uint2";
    String: Other, 0, "string";
}

impl DType {
    /// The type of this [name](Self::name).
    pub fn from_name(name: &str) -> Option<DType> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }

    /// Whether the type is real floating point of any width.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// Whether the type is complex.
    pub fn is_complex(self) -> bool {
        self.kind() == Kind::Complex
    }

    /// Whether the type is an integer. `Bool` is not.
    pub fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Whether the type is an unsigned integer. `Bool` is not.
    pub fn is_unsigned(self) -> bool {
        self.kind() == Kind::Unsigned
    }

    /// The unsigned integer type of the same size, if that is 8, 16, 32 or 64 bits.
    pub fn to_unsigned(self) -> Option<DType> {
        Some(match self.bits() {
            8 => DType::U8,
            16 => DType::U16,
            32 => DType::U32,
            64 => DType::U64,
            _ => return None,
        })
    }

    /// The type of the real and imaginary parts of a complex type. Other types are returned
    /// unchanged.
    pub fn to_real(self) -> DType {
        match self {
            DType::C32 => DType::F16,
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
