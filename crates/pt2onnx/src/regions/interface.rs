//! The inputs and outputs that models of one program have in common, and the names of their sizes.

use super::error::ChooseError;
use crate::dims::{self, Scope};
use indexmap::IndexMap;
use pt2onnx_ir::{Model, TensorType, Type, Value, is_unknown};
use pt2onnx_symbolic::Expr;
use std::collections::{BTreeMap, BTreeSet};

/// Where each size is read, by its name: an input and its axis, or None for an input of one
/// element, whose condition is whether it is true.
pub(crate) type Places = IndexMap<String, (String, Option<usize>)>;

/// The inputs of all models by name, with types that hold for all of them.
pub(super) struct Interface {
    pub inputs: IndexMap<String, Option<Type>>,
}

pub(super) fn name(model: &Model, value: Value) -> String {
    model[value].name.as_deref().unwrap_or_default().to_owned()
}

fn shape(ty: Option<&Type>) -> &[Expr] {
    let tensor = ty.and_then(Type::as_tensor);
    tensor.and_then(|tensor| tensor.shape.as_deref()).unwrap_or_default()
}

impl Interface {
    /// The inputs of all models. A size is called as `places` say, or else as in the first model
    /// where it is not a number.
    pub fn new(models: &[Model], places: &Places) -> Result<Self, ChooseError> {
        let mut inputs: IndexMap<String, Option<Type>> = IndexMap::new();
        for model in models {
            for &input in model.inputs() {
                let (name, ty) = (name(model, input), model[input].ty.clone());
                match inputs.get_mut(&name) {
                    None => _ = inputs.insert(name, ty),
                    Some(known) => join(&name, known, ty)?,
                }
            }
        }
        for (symbol, (input, axis)) in places {
            let Some(axis) = axis else { continue };
            let ty = inputs.get_mut(input).and_then(Option::as_mut);
            let size = match ty {
                Some(Type::Tensor(TensorType { shape: Some(sizes), .. })) => sizes.get_mut(*axis),
                _ => None,
            };
            let (symbol, input) = (symbol.clone(), input.clone());
            let size =
                size.ok_or(ChooseError::NoAxis { symbol: symbol.clone(), input, axis: *axis })?;
            *size = Expr::symbol(&symbol);
        }
        // Sizes that are different numbers in models.
        let mut taken: BTreeSet<String> = inputs
            .values()
            .flat_map(|ty| shape(ty.as_ref()).iter().flat_map(Expr::symbols))
            .map(|symbol| symbol.to_string())
            .collect();
        for (name, ty) in &mut inputs {
            let Some(Type::Tensor(TensorType { shape: Some(sizes), .. })) = ty else { continue };
            for (axis, size) in sizes.iter_mut().enumerate().filter(|(_, size)| is_unknown(size)) {
                *size = Expr::symbol(&free(&format!("{name}_dim_{axis}"), &mut taken));
            }
        }
        Ok(Self { inputs })
    }

    /// Gives the symbols of a model the names of the interface, where they are sizes of its inputs,
    /// and names that no model has, where they are not. `taken` are the names of other models.
    pub fn rename(&self, model: &mut Model, scope: Scope, taken: &mut BTreeSet<String>) {
        let mut names: BTreeMap<String, Expr> = BTreeMap::new();
        for &input in model.inputs() {
            let common = self.inputs.get(&name(model, input)).and_then(Option::as_ref);
            for (own, common) in shape(model[input].ty.as_ref()).iter().zip(shape(common)) {
                if let Some(symbol) = own.as_symbol().filter(|_| !is_unknown(own)) {
                    names.entry(symbol.to_owned()).or_insert_with(|| common.clone());
                }
            }
        }
        let common: BTreeSet<String> = self
            .inputs
            .values()
            .flat_map(|ty| shape(ty.as_ref()).iter().flat_map(Expr::symbols))
            .map(|symbol| symbol.to_string())
            .collect();
        for symbol in dims::symbols(model, scope) {
            if names.contains_key(&symbol) || symbol.starts_with('?') {
                continue;
            }
            if common.contains(&symbol) || taken.contains(&symbol) {
                let new = free(&symbol, taken);
                names.insert(symbol, Expr::symbol(&new));
            } else {
                taken.insert(symbol);
            }
        }
        names.retain(|symbol, size| size.as_symbol() != Some(symbol));
        dims::substitute(model, &names, scope);
    }
}

/// A name that is not taken yet, which it then is.
pub(super) fn free(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut names = std::iter::once(name.to_owned()).chain((2..).map(|i| format!("{name}_{i}")));
    let free = names.find(|name| !taken.contains(name)).unwrap_or_else(|| name.to_owned());
    taken.insert(free.clone());
    free
}

/// Makes the type of an input one for another model, too. Sizes that are different numbers become
/// unknown.
fn join(name: &str, known: &mut Option<Type>, other: Option<Type>) -> Result<(), ChooseError> {
    let (Some(first), Some(second)) = (known.as_mut(), other) else {
        *known = None;
        return Ok(());
    };
    let differ = |first: &Type| ChooseError::Differ {
        end: "input",
        name: name.to_owned(),
        first: first.to_string(),
        second: second.to_string(),
    };
    let (Type::Tensor(a), Type::Tensor(b)) = (&mut *first, &second) else {
        return if *first == second { Ok(()) } else { Err(differ(first)) };
    };
    let rank = |ty: &TensorType| ty.shape.as_ref().map(Vec::len);
    if a.dtype != b.dtype || rank(a) != rank(b) {
        return Err(differ(first));
    }
    for (a, b) in a.shape.iter_mut().flatten().zip(b.shape.iter().flatten()) {
        match (a.as_int(), b.as_int()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), Some(_)) => *a = Expr::symbol("?"),
            (Some(_), None) => *a = b.clone(),
            _ => {}
        }
    }
    Ok(())
}
