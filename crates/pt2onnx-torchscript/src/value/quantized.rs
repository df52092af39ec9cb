//! Quantised tensors and packed weights as the interpreter holds them: small integers, and how they
//! stand for numbers.

use pt2onnx_fx::Name;
use pt2onnx_tensor::DType;
use std::sync::Arc;

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

    /// PyTorch's name and number of the element type.
    fn names(self) -> (&'static str, i64) {
        match self {
            Self::Qint8 => ("qint8", 12),
            Self::Quint8 => ("quint8", 13),
            Self::Qint32 => ("qint32", 14),
            Self::Quint4x2 => ("quint4x2", 16),
        }
    }

    pub(crate) fn of_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    pub(crate) fn number(self) -> i64 {
        self.names().1
    }

    /// The kind of the elements of a storage: `torch.QInt8Storage`.
    pub(crate) fn of_storage(class: &str) -> Option<Self> {
        let name = class.strip_prefix("torch.")?.strip_suffix("Storage")?;
        Self::ALL.into_iter().find(|kind| kind.names().0.eq_ignore_ascii_case(name))
    }

    /// The kind of the elements of a tensor, by PyTorch's name of the element type: `quint8`.
    pub(crate) fn named(dtype: &str) -> Option<Self> {
        let mut kinds = Self::ALL.into_iter().filter(|kind| *kind != Self::Quint4x2);
        kinds.find(|kind| kind.names().0 == dtype)
    }

    /// The kind whose integers have this element type, one in each element.
    pub(crate) fn of_ints(dtype: DType) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.ints() == dtype)
    }

    /// The element type of the integers.
    pub(crate) fn ints(self) -> DType {
        match self {
            Self::Qint8 => DType::I8,
            Self::Quint8 | Self::Quint4x2 => DType::U8,
            Self::Qint32 => DType::I32,
        }
    }

    /// The least and the greatest element.
    pub(crate) fn range(self) -> (i64, i64) {
        match self {
            Self::Qint8 => (-128, 127),
            Self::Quint8 => (0, 255),
            Self::Qint32 => (i32::MIN.into(), i32::MAX.into()),
            Self::Quint4x2 => (0, 15),
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
        input: Arc<Packed>,
        hidden: Arc<Packed>,
        reduce_range: bool,
    },
    Embedding(Arc<Quantized>),
}

/// A weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Weight {
    Quantized(Arc<Quantized>),
    /// Floats that are rounded to half precision.
    Half(Name),
}

/// The weights and settings of a convolution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conv {
    pub(crate) weight: Arc<Quantized>,
    pub(crate) bias: Option<Name>,
    /// One number for each dimension, by the names of `SETTINGS`.
    pub(crate) settings: [Vec<i64>; 4],
    pub(crate) groups: i64,
    pub(crate) transpose: bool,
}

impl Conv {
    /// The names of the settings.
    pub(crate) const SETTINGS: [&str; 4] = ["stride", "padding", "dilation", "output_padding"];
}
