//! PyTorch's type promotion (`promoteTypes` in c10/core/ScalarType.h, `result_type` in
//! ATen/native/TypeProperties.cpp).

use crate::DType;

/// The type to which PyTorch promotes two types.
pub fn promote_types(a: DType, b: DType) -> DType {
    use DType::*;
    if a == b {
        return a;
    }
    match (a, b) {
        (Bool, other) | (other, Bool) => other,
        (C128, _) | (_, C128) => C128,
        (C64 | C32, F64) | (F64, C64 | C32) => C128,
        (C64, _) | (_, C64) => C64,
        (C32, F32 | BF16) | (F32 | BF16, C32) => C64,
        (C32, _) | (_, C32) => C32,
        (F64, _) | (_, F64) => F64,
        (F32, _) | (_, F32) => F32,
        (F16, BF16) | (BF16, F16) => F32,
        (F16, _) | (_, F16) => F16,
        (BF16, _) | (_, BF16) => BF16,
        _ if a.is_float() => a,
        _ if b.is_float() => b,
        // The wider integer. uint8 and int8 need the next wider signed type.
        (U8, I8) | (I8, U8) => I16,
        _ if a.bits() > b.bits() => a,
        _ if b.bits() > a.bits() => b,
        _ if a.is_unsigned() => b,
        _ => a,
    }
}

/// The type in which an operator computes with these operands; `None` if there are no operands.
///
/// 0-d tensors and numbers count only if their kind (bool, integer, float, complex) is higher than
/// that of the tensors with dimensions, and numbers only if it is higher than that of the 0-d
/// tensors.
pub fn result_type(operands: impl IntoIterator<Item = (DType, Category)>) -> Option<DType> {
    let mut by_category = [None; 3];
    for (dtype, category) in operands {
        let slot: &mut Option<DType> = &mut by_category[category as usize];
        *slot = Some(slot.map_or(dtype, |d| promote_types(d, dtype)));
    }
    let [dim, zero, number] = by_category;
    combine(dim, combine(zero, number))
}

/// The category of an operand in type promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A tensor with at least one dimension.
    Dim,
    /// A 0-d tensor.
    Zero,
    /// A Python number.
    Number,
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let (Some(higher), Some(lower)) = (higher, lower) else {
        return higher.or(lower);
    };
    Some(match () {
        () if higher.is_complex() => higher,
        () if higher.is_float() && lower.is_complex() => to_complex(higher),
        () if higher.is_float() => higher,
        () if higher == DType::Bool || lower.is_float() || lower.is_complex() => {
            promote_types(higher, lower)
        }
        () => higher,
    })
}

fn to_complex(real: DType) -> DType {
    match real {
        DType::F64 => DType::C128,
        DType::F16 => DType::C32,
        _ => DType::C64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Category::*;
    use DType::*;

    #[test]
    fn numbers_only_lift_the_kind() {
        for (operands, expected) in [
            (vec![(I32, Dim), (I64, Number)], I32),
            (vec![(I32, Dim), (F32, Number)], F32),
            (vec![(F16, Dim), (F32, Number)], F16),
            (vec![(F16, Dim), (F64, Zero)], F16),
            (vec![(F16, Dim), (F32, Dim)], F32),
            (vec![(U8, Dim), (I8, Dim)], I16),
            (vec![(Bool, Dim), (I64, Number)], I64),
            (vec![(I8, Zero), (I64, Number)], I8),
            (vec![(I64, Zero), (F32, Number), (I8, Dim)], F32),
            (vec![(F16, Dim), (BF16, Dim)], F32),
            (vec![(F64, Dim), (C64, Number)], C128),
        ] {
            assert_eq!(result_type(operands.clone()), Some(expected), "{operands:?}");
        }
    }
}
