//! Element types of tensors, from PyTorch's `ScalarType` and ONNX's `TensorProto.DataType`.

use std::fmt;

/// Element type of a tensor.
///
/// The enum is exhaustive on purpose: if a type is added, the compiler finds each table that lacks
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DType {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
    C32,
    C64,
    C128,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F4E2M1,
    I4,
    U4,
    I2,
    U2,
    String,
}

impl DType {
    /// All element types, in the order of their discriminants.
    pub const ALL: [DType; 27] = {
        use DType::*;
        [
            F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool, C32, C64, C128,
            F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F4E2M1, I4, U4, I2, U2, String,
        ]
    };

    /// Size of an element in bits; 0 for strings.
    pub fn bits(self) -> usize {
        use DType::*;
        match self {
            C128 => 128,
            F64 | I64 | U64 | C64 => 64,
            F32 | I32 | U32 | C32 => 32,
            F16 | BF16 | I16 | U16 => 16,
            I8 | U8 | Bool | F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0 => 8,
            F4E2M1 | I4 | U4 => 4,
            I2 | U2 => 2,
            String => 0,
        }
    }

    /// Whether the type is real floating point of any width.
    pub fn is_float(self) -> bool {
        use DType::*;
        matches!(
            self,
            F64 | F32 | F16 | BF16 | F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0 | F4E2M1
        )
    }

    /// Whether the type is complex.
    pub fn is_complex(self) -> bool {
        matches!(self, DType::C32 | DType::C64 | DType::C128)
    }

    /// Whether the type is an integer. `Bool` is not.
    pub fn is_int(self) -> bool {
        use DType::*;
        matches!(self, I64 | I32 | I16 | I8 | U64 | U32 | U16 | U8 | I4 | U4 | I2 | U2)
    }

    /// Whether the type is an unsigned integer. `Bool` is not.
    pub fn is_unsigned(self) -> bool {
        use DType::*;
        matches!(self, U64 | U32 | U16 | U8 | U4 | U2)
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

    /// The name in NumPy and ONNX's documentation: `float32`, `int64`, `bool`, `float8_e4m3fn`.
    pub fn name(self) -> &'static str {
        use DType::*;
        match self {
            F64 => "float64",
            F32 => "float32",
            F16 => "float16",
            BF16 => "bfloat16",
            I64 => "int64",
            I32 => "int32",
            I16 => "int16",
            I8 => "int8",
            U64 => "uint64",
            U32 => "uint32",
            U16 => "uint16",
            U8 => "uint8",
            Bool => "bool",
            C32 => "complex32",
            C64 => "complex64",
            C128 => "complex128",
            F8E4M3FN => "float8_e4m3fn",
            F8E4M3FNUZ => "float8_e4m3fnuz",
            F8E5M2 => "float8_e5m2",
            F8E5M2FNUZ => "float8_e5m2fnuz",
            F8E8M0 => "float8_e8m0fnu",
            F4E2M1 => "float4_e2m1",
            I4 => "int4",
            U4 => "uint4",
            I2 => "int2",
            U2 => "uint2",
            String => "string",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
