//! Quantised tensors and packed weights as the interpreter holds them: small integers, and how they
//! stand for numbers.

use pt2onnx_fx::Name;
use pt2onnx_symbolic::Expr;
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
    /// All kinds, by PyTorch's number of the element type.
    const NUMBERS: [(i64, Self); 4] =
        [(12, Self::Qint8), (13, Self::Quint8), (14, Self::Qint32), (16, Self::Quint4x2)];

    pub(crate) fn of_number(number: i64) -> Option<Self> {
        Self::NUMBERS.iter().find(|(n, _)| *n == number).map(|(_, kind)| *kind)
    }

    pub(crate) fn number(self) -> i64 {
        Self::NUMBERS.iter().find(|(_, kind)| *kind == self).map_or(0, |(number, _)| *number)
    }

    /// The kind of the elements of a storage: `torch.QInt8Storage`.
    pub(crate) fn of_storage(class: &str) -> Option<Self> {
        Some(match class {
            "torch.QInt8Storage" => Self::Qint8,
            "torch.QUInt8Storage" => Self::Quint8,
            "torch.QInt32Storage" => Self::Qint32,
            "torch.QUInt4x2Storage" => Self::Quint4x2,
            _ => return None,
        })
    }

    /// The kind of the elements of a tensor, by PyTorch's name of the element type: `quint8`.
    pub(crate) fn named(dtype: &str) -> Option<Self> {
        Some(match dtype {
            "qint8" => Self::Qint8,
            "quint8" => Self::Quint8,
            "qint32" => Self::Qint32,
            _ => return None,
        })
    }

    /// The kind whose integers have this element type, one in each element.
    pub(crate) fn of_ints(dtype: DType) -> Option<Self> {
        [Self::Qint8, Self::Quint8, Self::Qint32].into_iter().find(|kind| kind.ints() == dtype)
    }

    /// The element type of the integers.
    pub(crate) fn ints(self) -> DType {
        match self {
            Self::Qint8 => DType::I8,
            Self::Quint8 | Self::Quint4x2 => DType::U8,
            Self::Qint32 => DType::I32,
        }
    }

    /// The range of the elements, and PyTorch's number of the type of their integers.
    pub(crate) fn range(self) -> (i64, i64, i64) {
        match self {
            Self::Qint8 => (-128, 127, 1),
            Self::Quint8 => (0, 255, 0),
            Self::Qint32 => (i64::from(i32::MIN), i64::from(i32::MAX), 3),
            Self::Quint4x2 => (0, 15, 0),
        }
    }
}

/// Weights of an operator in one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Packed {
    Linear {
        weight: Weight,
        bias: Option<Name>,
    },
    Conv(Conv),
    /// A step of a recurrent layer: what it computes of the input, and of its state.
    Cell {
        input: Box<Packed>,
        hidden: Box<Packed>,
        reduce_range: bool,
    },
    Embedding(Quantized),
}

/// A weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Weight {
    Quantized(Quantized),
    /// Floats that are rounded to half precision.
    Half(Name),
}

/// The weights and settings of a convolution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conv {
    pub(crate) weight: Quantized,
    pub(crate) bias: Option<Name>,
    pub(crate) stride: Vec<i64>,
    pub(crate) padding: Vec<i64>,
    pub(crate) output_padding: Vec<i64>,
    pub(crate) dilation: Vec<i64>,
    pub(crate) groups: i64,
    pub(crate) transpose: bool,
}

/// A known integer as an expression.
pub(crate) fn ints(values: &[i64]) -> Vec<Expr> {
    values.iter().map(|&i| Expr::int(i)).collect()
}
