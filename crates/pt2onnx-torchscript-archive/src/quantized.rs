//! The element types of quantised tensors.

use pt2onnx_tensor::DType;

/// The element type of a quantised tensor: small integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Kind {
    Qint8,
    Quint8,
    Qint32,
    /// Two elements in a byte.
    Quint4x2,
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

    /// PyTorch's number.
    pub fn number(self) -> i64 {
        self.row().1
    }

    /// The element type of the integers.
    pub fn ints(self) -> DType {
        self.row().2
    }

    /// The least and the greatest element.
    pub fn range(self) -> (i64, i64) {
        self.row().3
    }

    /// The kind with a number of PyTorch.
    pub fn of_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The kind of the elements of a storage: `torch.QInt8Storage`.
    pub fn of_storage(class: &str) -> Option<Self> {
        let name = class.strip_prefix("torch.")?.strip_suffix("Storage")?;
        Self::ALL.into_iter().find(|kind| kind.row().0.eq_ignore_ascii_case(name))
    }

    /// The kind of the elements of a tensor, by PyTorch's name of the element type: `quint8`.
    pub fn named(dtype: &str) -> Option<Self> {
        let mut kinds = Self::ALL.into_iter().filter(|kind| *kind != Self::Quint4x2);
        kinds.find(|kind| kind.row().0 == dtype)
    }

    /// The kind whose integers have this element type, one in each element.
    pub fn of_ints(dtype: DType) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.ints() == dtype)
    }
}
