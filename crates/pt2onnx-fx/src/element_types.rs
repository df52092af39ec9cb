//! Element types by their names in pickles, and by the numbers of c10, which schemas of ops and
//! TorchScript have, and of archives.

use pt2onnx_tensor::DType::{self, *};

/// The element types of PyTorch: the number of c10's `ScalarType`, that of schema.py's, and the
/// start of the name of the class of storages, if there is one.
const TYPES: &[(DType, i64, i64, &str)] = &[
    (U8, 0, 1, "Byte"),
    (I8, 1, 2, "Char"),
    (I16, 2, 3, "Short"),
    (I32, 3, 4, "Int"),
    (I64, 4, 5, "Long"),
    (F16, 5, 6, "Half"),
    (F32, 6, 7, "Float"),
    (F64, 7, 8, "Double"),
    (C32, 8, 9, ""),
    (C64, 9, 10, "ComplexFloat"),
    (C128, 10, 11, "ComplexDouble"),
    (Bool, 11, 12, "Bool"),
    (BF16, 15, 13, "BFloat16"),
    (F8E5M2, 23, 30, ""),
    (F8E4M3FN, 24, 29, ""),
    (F8E5M2FNUZ, 25, 32, ""),
    (F8E4M3FNUZ, 26, 31, ""),
    (U16, 27, 28, ""),
    (U32, 28, 34, ""),
    (U64, 29, 35, ""),
    (F8E8M0, 44, 33, ""),
];

/// schema.py's number of `torch.float4_e2m1fn_x2`, which it lacks: the Python package hands the
/// type over so.
const FLOAT4: i64 = 255;

/// The element type of a Python name: `torch.float32`.
pub fn element_type(global: &str) -> Option<DType> {
    let name = global.strip_prefix("torch.")?;
    TYPES.iter().map(|row| row.0).find(|dtype| dtype.name() == name)
}

/// The element type of a class of storages (`Some(None)` if it is untyped): `torch.FloatStorage`.
pub fn storage_type(global: &str) -> Option<Option<DType>> {
    let class = match global.strip_prefix("torch.")? {
        "storage.UntypedStorage" | "UntypedStorage" => return Some(None),
        class => class.strip_suffix("Storage").filter(|class| !class.is_empty())?,
    };
    TYPES.iter().find(|row| row.3 == class).map(|row| Some(row.0))
}

/// The element type of c10's `ScalarType` of this number.
pub fn dtype_of_c10(number: i64) -> Option<DType> {
    TYPES.iter().find(|row| row.1 == number).map(|row| row.0)
}

/// The number of c10's `ScalarType` for an element type.
pub fn c10_number(dtype: DType) -> Option<i64> {
    TYPES.iter().find(|row| row.0 == dtype).map(|row| row.1)
}

/// The element type that schema.py's `ScalarType` gives this number.
pub fn dtype_numbered(number: i64) -> Option<DType> {
    let listed = TYPES.iter().find(|row| row.2 == number).map(|row| row.0);
    listed.or((number == FLOAT4).then_some(F4E2M1))
}
