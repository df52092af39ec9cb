//! Gives dynamic dimensions a size.

use super::{
    DimError,
    symbols::{Scope, substitute, symbols},
};
use pt2onnx_ir::{Model, is_possible, is_unknown};
use pt2onnx_symbolic::{Constraints, Expr, Func, Range};
use std::collections::BTreeMap;

/// Gives dimensions sizes: each is given as the user named it, its expression, and its size.
///
/// # Errors
/// A dimension cannot have the size.
pub(super) fn fix(
    model: &mut Model,
    scope: Scope,
    constraints: &mut Constraints,
    fixed: &[(&String, Expr, i64)],
) -> Result<(), DimError> {
    if fixed.is_empty() {
        return Ok(());
    }
    let mut sizes: BTreeMap<String, Expr> = BTreeMap::new();
    for (target, dim, size) in fixed {
        let impossible =
            |reason: String| DimError::Size { target: (*target).clone(), size: *size, reason };
        // Files need not name the dimensions of inputs.
        if is_unknown(dim) && !of_input(model, dim) {
            return Err(impossible(
                "it depends on the values of tensors, not on their sizes".into(),
            ));
        }
        let Some((symbol, whole)) = solved(constraints, dim, *size).map_err(impossible)? else {
            continue;
        };
        constraints.constrain(&Expr::symbol(&symbol), Range::exactly(whole));
        sizes.insert(symbol, Expr::int(whole));
    }
    // Also what is known to equal them.
    for symbol in symbols(model, scope) {
        let known =
            constraints.resolve(&Expr::symbol(&symbol)).substitute(&|s| sizes.get(s).cloned());
        if known.is_static() {
            sizes.insert(symbol, known);
        }
    }
    substitute(model, &sizes, scope);
    all_possible(model)
}

/// The symbol in a dimension, and the number that gives the dimension this size. `None` if it has
/// the size already; the reason if it cannot have it.
fn solved(
    constraints: &Constraints,
    dim: &Expr,
    size: i64,
) -> Result<Option<(String, i64)>, String> {
    let range = constraints.range_of(dim);
    if size < 0 || !range.contains(size) {
        return Err(format!("the program allows {}", bounds(&range)));
    }
    let equal = Expr::call(Func::Eq, vec![dim.clone(), Expr::int(size)]);
    if constraints.decide(&equal) == Some(false) {
        return Err("the program's guards exclude it".into());
    }
    let dim = constraints.resolve(dim);
    let mut symbols = dim.symbols().into_iter();
    let (Some(symbol), None) = (symbols.next(), symbols.next()) else {
        return if dim.as_int() == Some(size) {
            Ok(None)
        } else {
            Err(format!("it is computed as `{dim}`: fix the symbols in that"))
        };
    };
    let whole = dim.solve_linear(&symbol).and_then(|(slope, rest)| {
        let left = size.checked_sub(rest.as_int()?)?;
        (left.checked_rem(slope)? == 0).then(|| left / slope)
    });
    let Some(whole) = whole else {
        return Err(format!("no whole number `{symbol}` makes `{dim}` that size"));
    };
    if constraints.range_of(&Expr::symbol(&symbol)).contains(whole) {
        Ok(Some((symbol.to_string(), whole)))
    } else {
        Err(format!("`{symbol}` would have to be {whole}, which the program does not allow"))
    }
}

/// An error if a value has more elements than a tensor can have.
fn all_possible(model: &Model) -> Result<(), DimError> {
    let too_large = model.values().find_map(|(_, data)| {
        let shape = data.ty.as_ref()?.as_tensor()?.shape.as_deref()?;
        (!is_possible(shape)).then(|| data.name.as_deref().unwrap_or_default().to_owned())
    });
    too_large.map_or(Ok(()), |name| Err(DimError::TooLarge(name)))
}

/// Whether an input of the model has this dimension.
fn of_input(model: &Model, dim: &Expr) -> bool {
    let tensors = model.inputs().iter().filter_map(|v| model[*v].ty.as_ref()?.as_tensor());
    tensors.filter_map(|t| t.shape.as_deref()).any(|shape| shape.contains(dim))
}

/// The bounds of a range as text: `2 to 8`.
fn bounds(range: &Range) -> String {
    match (range.min.unwrap_or(0).max(0), range.max) {
        (min, Some(max)) if min == max => format!("{min} only"),
        (min, Some(max)) => format!("{min} to {max}"),
        (min, None) => format!("{min} and more"),
    }
}
