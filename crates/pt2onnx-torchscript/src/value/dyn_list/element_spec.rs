//! The type of the elements of lists of dynamic length.

use crate::{
    eval::Evaluator,
    schema::Type,
    types::Symbols,
    value::{Item, Ref, Value},
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The type of the elements of a list.
#[derive(Clone, Debug)]
pub(crate) struct ElementSpec {
    pub(crate) element: Type,
    pub(crate) dtype: DType,
    pub(crate) sizes: Vec<Expr>,
    /// The dimension along which the elements have different sizes.
    pub(crate) jagged: Option<usize>,
}

impl ElementSpec {
    /// The same, ragged along the dimension whose size was made from the symbol `first` on: each
    /// element may have another size there. `None` if these are several.
    pub(crate) fn jagged_from(&self, first: &Expr) -> Option<Self> {
        let is_new = |dim: &usize| self.sizes.get(*dim).is_some_and(|size| !is_older(size, first));
        match (0..self.sizes.len()).filter(is_new).collect::<Vec<_>>()[..] {
            [] => Some(self.clone()),
            [dim] if self.jagged.is_none_or(|jagged| jagged == dim) => {
                Some(Self { jagged: Some(dim), ..self.clone() })
            }
            _ => None,
        }
    }
}

/// Whether a size has no symbols that were made from `first` on.
fn is_older(size: &Expr, first: &Expr) -> bool {
    let first = first.as_symbol().and_then(Symbols::number).unwrap_or(0);
    size.all_symbols(|s| Symbols::number(s).is_none_or(|n| n < first))
}

impl Evaluator<'_> {
    /// The type of the elements of a list, by its last one; `None` if it has none, or other
    /// elements.
    pub(crate) fn element_spec(&self, list: Ref) -> Option<ElementSpec> {
        self.state.reads(list);
        self.spec_of_item(self.state.heap.get(list.0)?)
    }

    /// The same for the contents of a list.
    pub(crate) fn spec_of_item(&self, list: &Item) -> Option<ElementSpec> {
        let parts = match list {
            Item::DynList(parts) => parts,
            Item::List { items, .. } => return self.spec_of(items.last()?),
            _ => return None,
        };
        let meta = self.meta(&parts.tensor).ok()?;
        let jagged = parts.lengths().and_then(|_| usize::try_from(parts.dim).ok());
        let sizes = match jagged {
            Some(dim) => all_but(&meta.sizes, dim),
            None => meta.sizes.get(1..)?.to_vec(),
        };
        Some(ElementSpec { element: parts.element.clone(), dtype: meta.dtype, sizes, jagged })
    }

    /// The type of an element.
    pub(crate) fn spec_of(&self, item: &Value) -> Option<ElementSpec> {
        let (dtype, sizes) = match item {
            Value::Tensor(name) => {
                let meta = self.meta(name).ok()?;
                (meta.dtype, meta.sizes.clone())
            }
            number => (number.number_dtype()?, Vec::new()),
        };
        Some(ElementSpec { element: element_type(item)?, dtype, sizes, jagged: None })
    }
}

/// Sizes with 0 for one of them.
pub(crate) fn all_but(sizes: &[Expr], dim: usize) -> Vec<Expr> {
    let size = |(i, size): (usize, &Expr)| if i == dim { Expr::ZERO } else { size.clone() };
    sizes.iter().enumerate().map(size).collect()
}

/// The type of the elements of a list that has this one, if such lists can have unknown lengths.
pub(crate) fn element_type(value: &Value) -> Option<Type> {
    match value {
        Value::Tensor(_) => Some(Type::Tensor),
        Value::Int(_) => Some(Type::Int),
        Value::Float(_) => Some(Type::Float),
        Value::Bool(_) => Some(Type::Bool),
        _ => None,
    }
}
