//! Element types by their names in pickles, and by c10's numbers, which schemas of ops and
//! TorchScript have.

use pt2onnx_tensor::DType;

/// The element type of a Python name: `torch.float32`.
pub fn element_type(global: &str) -> Option<DType> {
    Some(match global.strip_prefix("torch.")? {
        "float64" => DType::F64,
        "float32" => DType::F32,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "float8_e4m3fn" => DType::F8E4M3FN,
        "float8_e4m3fnuz" => DType::F8E4M3FNUZ,
        "float8_e5m2" => DType::F8E5M2,
        "float8_e5m2fnuz" => DType::F8E5M2FNUZ,
        "float8_e8m0fnu" => DType::F8E8M0,
        "int64" => DType::I64,
        "int32" => DType::I32,
        "int16" => DType::I16,
        "int8" => DType::I8,
        "uint64" => DType::U64,
        "uint32" => DType::U32,
        "uint16" => DType::U16,
        "uint8" => DType::U8,
        "bool" => DType::Bool,
        "complex32" => DType::C32,
        "complex64" => DType::C64,
        "complex128" => DType::C128,
        _ => return None,
    })
}

/// The element type of a class of storages (`Some(None)` if it is untyped): `torch.FloatStorage`.
pub fn storage_type(global: &str) -> Option<Option<DType>> {
    let class = match global.strip_prefix("torch.")? {
        "storage.UntypedStorage" | "UntypedStorage" => return Some(None),
        class => class.strip_suffix("Storage")?,
    };
    Some(Some(match class {
        "Double" => DType::F64,
        "Float" => DType::F32,
        "Half" => DType::F16,
        "BFloat16" => DType::BF16,
        "Long" => DType::I64,
        "Int" => DType::I32,
        "Short" => DType::I16,
        "Char" => DType::I8,
        "Byte" => DType::U8,
        "Bool" => DType::Bool,
        "ComplexFloat" => DType::C64,
        "ComplexDouble" => DType::C128,
        _ => return None,
    }))
}

/// The element type of c10's `ScalarType` of this number. Those of archives have others
/// ([`dtype_numbered`](crate::dtype_numbered)).
pub fn dtype_of_c10(number: i64) -> Option<DType> {
    C10.iter().find(|(n, _)| *n == number).map(|(_, dtype)| *dtype)
}

/// The number of c10's `ScalarType` for an element type.
pub fn c10_number(dtype: DType) -> Option<i64> {
    C10.iter().find(|(_, d)| *d == dtype).map(|(number, _)| *number)
}

const C10: &[(i64, DType)] = &[
    (0, DType::U8),
    (1, DType::I8),
    (2, DType::I16),
    (3, DType::I32),
    (4, DType::I64),
    (5, DType::F16),
    (6, DType::F32),
    (7, DType::F64),
    (8, DType::C32),
    (9, DType::C64),
    (10, DType::C128),
    (11, DType::Bool),
    (15, DType::BF16),
    (23, DType::F8E5M2),
    (24, DType::F8E4M3FN),
    (25, DType::F8E5M2FNUZ),
    (26, DType::F8E4M3FNUZ),
    (27, DType::U16),
    (28, DType::U32),
    (29, DType::U64),
    (44, DType::F8E8M0),
];
