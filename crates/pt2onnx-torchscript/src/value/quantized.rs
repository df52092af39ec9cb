//! Quantised tensors as the interpreter holds them: small integers, and how they stand for numbers.

use pt2onnx_fx::Name;
use pt2onnx_tensor::DType;

/// A quantised tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantized {
    /// The tensor of its integers.
    pub(crate) ints: Name,
    pub(crate) kind: Kind,
    pub(crate) scheme: Scheme,
}

/// The element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Qint8,
    Quint8,
    Qint32,
    /// Two elements in a byte.
    Quint4x2,
}

/// How integers stand for numbers: `(q - zero_point) * scale`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scheme {
    /// One scale and zero point that are known.
    Known { scale: f64, zero_point: i64 },
    /// One scale and zero point that the program computes: tensors of one element.
    Computed { scale: Name, zero_point: Name },
    /// Vectors of them along a dimension.
    Channels { scales: Name, zero_points: Name, axis: i64 },
}

impl Kind {
    const ALL: [Self; 4] = [Self::Qint8, Self::Quint8, Self::Qint32, Self::Quint4x2];

    /// PyTorch's name and number, the element type of the integers, and the range.
    fn row(self) -> (&'static str, i64, DType, (i64, i64)) {
        match self {
            Self::Qint8 => ("qint8", 12, DType::I8, (-128, 127)),
            Self::Quint8 => ("quint8", 13, DType::U8, (0, 255)),
            Self::Qint32 => ("qint32", 14, DType::I32, (i32::MIN.into(), i32::MAX.into())),
            Self::Quint4x2 => ("quint4x2", 16, DType::U8, (0, 15)),
        }
    }

    pub(crate) fn number(self) -> i64 {
        self.row().1
    }

    /// The element type of the integers.
    pub(crate) fn ints(self) -> DType {
        self.row().2
    }

    /// The least and the greatest element.
    pub(crate) fn range(self) -> (i64, i64) {
        self.row().3
    }

    pub(crate) fn of_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The kind of the elements of a storage: `torch.QInt8Storage`.
    pub(crate) fn of_storage(class: &str) -> Option<Self> {
        let name = class.strip_prefix("torch.")?.strip_suffix("Storage")?;
        Self::ALL.into_iter().find(|kind| kind.row().0.eq_ignore_ascii_case(name))
    }

    /// The kind of the elements of a tensor, by PyTorch's name of the element type: `quint8`.
    pub(crate) fn named(dtype: &str) -> Option<Self> {
        let mut kinds = Self::ALL.into_iter().filter(|kind| *kind != Self::Quint4x2);
        kinds.find(|kind| kind.row().0 == dtype)
    }

    /// The kind whose integers have this element type, one in each element.
    pub(crate) fn of_ints(dtype: DType) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.ints() == dtype)
    }
}
