//! Computes the strides of views.

use super::View;
use crate::{
    graph::TensorMeta,
    strides::{self, Reshape},
};
use pt2onnx_symbolic::{Constraints, Expr};

impl View {
    /// The strides of the view `shown` of `base`; `None` if they are not known.
    pub fn strides(
        &self,
        base: &TensorMeta,
        shown: &TensorMeta,
        known: &Constraints,
    ) -> Option<Vec<Expr>> {
        if !strides::has_strides(base) {
            return None;
        }
        let mut strides = base.strides.clone();
        let place = |dim: i64| usize::try_from(dim).ok().filter(|&dim| dim < base.sizes.len());
        match self {
            Self::Itself | Self::Same | Self::Conj | Self::Neg => {}
            Self::Shape => {
                return match strides::reshape(base, &shown.sizes, known) {
                    Reshape::View(strides) => Some(strides),
                    Reshape::Copy | Reshape::Unknown => None,
                };
            }
            Self::DType => return (base.dtype.bits() == shown.dtype.bits()).then_some(strides),
            Self::Permute(dims) => {
                let stride = |&dim: &i64| strides.get(place(dim)?).cloned();
                return dims.iter().map(stride).collect();
            }
            Self::Adjoint => {
                let last = strides.len().checked_sub(1)?;
                strides.swap(last.checked_sub(1)?, last);
            }
            Self::Select { dim, .. } => {
                strides.remove(place(*dim)?);
            }
            Self::Slice { dim, step, .. } => {
                let stride = strides.get_mut(place(*dim)?)?;
                *stride = &*stride * step.as_int()?;
            }
            Self::Diagonal { dim1, dim2, .. } => {
                let (a, b) = (place(*dim1)?, place(*dim2)?);
                if a == b {
                    return None;
                }
                let both = &strides[a] + &strides[b];
                strides.remove(a.max(b));
                strides.remove(a.min(b));
                strides.push(both);
            }
            Self::Unfold { dim, step, .. } => {
                let stride = strides.get_mut(place(*dim)?)?;
                let within = std::mem::replace(stride, &*stride * *step);
                strides.push(within);
            }
            Self::Expand => return expanded(base, shown, known),
            Self::Grid { dim } => {
                let along = strides.pop().unwrap_or(Expr::ONE);
                strides = vec![Expr::ZERO; shown.sizes.len()];
                *strides.get_mut(*dim)? = along;
            }
            Self::AsStrided { stride, .. } => strides.clone_from(stride),
            Self::Real | Self::Imag => strides.iter_mut().for_each(|stride| *stride = &*stride * 2),
            Self::AsReal => {
                strides.iter_mut().for_each(|stride| *stride = &*stride * 2);
                strides.push(Expr::ONE);
            }
            Self::AsComplex => {
                strides.pop();
                strides.iter_mut().for_each(|stride| *stride = stride.floor_div(&Expr::int(2)));
            }
            Self::Unknown => return None,
        }
        Some(strides)
    }
}

impl View {
    /// Whether the view `shown` of `base` may show an element more than once.
    pub(crate) fn overlaps(
        &self,
        base: &TensorMeta,
        shown: &TensorMeta,
        known: &Constraints,
    ) -> bool {
        match self {
            Self::Unfold { size, step, .. } => step < size,
            Self::Expand => repeats(base, shown, known),
            Self::Grid { dim } => {
                let mut across = shown.sizes.iter().enumerate().filter(|(i, _)| i != dim);
                !across.all(|(_, size)| known.prove_eq(size, &Expr::ONE) == Some(true))
            }
            Self::AsStrided { size, stride, .. } => !strides::no_overlap(size, stride),
            _ => false,
        }
    }

    /// Whether the view shows whole elements of its base, so that it can be taken of their indices.
    pub(crate) fn is_of_elements(&self) -> bool {
        !matches!(
            self,
            Self::DType
                | Self::Adjoint
                | Self::Real
                | Self::Imag
                | Self::AsReal
                | Self::AsComplex
                | Self::Conj
                | Self::Neg
                | Self::Unknown
        )
    }
}

/// The strides of `base` as large as `shown`; `None` if it is not known which dimensions are
/// repeated.
fn expanded(base: &TensorMeta, shown: &TensorMeta, known: &Constraints) -> Option<Vec<Expr>> {
    let new = shown.sizes.len().checked_sub(base.sizes.len())?;
    let mut strides = vec![Expr::ZERO; new];
    for ((size, old), stride) in shown.sizes.iter().skip(new).zip(&base.sizes).zip(&base.strides) {
        strides.push(match known.prove_eq(size, old) {
            Some(true) => stride.clone(),
            _ if old.as_int() == Some(1) => Expr::ZERO,
            _ => return None,
        });
    }
    Some(strides)
}

/// Whether an expanded tensor shows an element of its base more than once.
fn repeats(base: &TensorMeta, out: &TensorMeta, known: &Constraints) -> bool {
    let new = out.sizes.len().saturating_sub(base.sizes.len());
    let (added, kept) = out.sizes.split_at(new.min(out.sizes.len()));
    let one = |size: &Expr| known.prove_eq(size, &Expr::ONE) == Some(true);
    !added.iter().all(one) || !strides::same(kept, &base.sizes, known)
}
