//! Which operator domains other than ONNX's own the model imports, and at which versions.

use crate::{Warning, WarningKind};
use pt2onnx_ir::{Attribute, InlineError, Model, NodeId, Type};
use pt2onnx_opt::means_the_same;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Why domains or functions cannot be in the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DomainError {
    /// A version is given for ONNX's own domain.
    #[error(
        "the version of ONNX's own domain is the opset of the model: set that instead of a custom opset"
    )]
    Reserved,
    /// A function cannot be inlined.
    #[error(transparent)]
    Inline(#[from] InlineError),
    /// A function is written for another opset than the model's, in which one of its operators has another form.
    #[error(
        "the function {function} is written for opset {written}, and its {operator} is not the same in opset {opset}: \
         write the function for opset {opset}, or choose opset {written}"
    )]
    Opset {
        /// Domain and name of the function.
        function: String,
        /// The operator.
        operator: String,
        /// The opset that the function imports.
        written: u32,
        /// That of the model.
        opset: u32,
    },
}

/// Imports exactly the domains of the model's nodes: at the given versions, else at those of the translations, else
/// at 1. Warns about versions of domains that no node uses.
pub(crate) fn import(
    model: &mut Model,
    versions: &[(String, u32)],
    warnings: &mut Vec<Warning>,
) -> Result<(), DomainError> {
    let mut used: BTreeSet<String> = BTreeSet::new();
    for node in model.all_nodes() {
        let domain = &model[node].domain;
        if !domain.is_empty() && !used.contains(&**domain) {
            used.insert(domain.to_string());
        }
    }
    model.imports.retain(|domain, _| used.contains(domain));
    for (domain, version) in versions {
        if matches!(domain.as_str(), "" | "ai.onnx") {
            return Err(DomainError::Reserved);
        }
        if used.contains(domain) {
            model.imports.insert(domain.clone(), *version);
        } else {
            let text = format!(
                "version {version} is given for the domain {domain}, but no node uses that domain"
            );
            warnings.push(Warning::new(WarningKind::Domain, text));
        }
    }
    for domain in used {
        model.imports.entry(domain).or_insert(1);
    }
    Ok(())
}

/// Puts the bodies of functions in the places of their calls.
pub(crate) fn inline(model: &mut Model) -> Result<(), DomainError> {
    functions(model)?;
    let before: FxHashSet<NodeId> = model.graph_nodes().into_iter().collect();
    model.inline_functions()?;
    // Functions cannot have constants other than as nodes.
    for node in model.graph_nodes().into_iter().filter(|node| !before.contains(node)) {
        let tensor = match model[node].attribute("value") {
            Some(Attribute::Tensor(tensor)) if model[node].is("Constant") => tensor.clone(),
            _ => continue,
        };
        let constant = model.add_constant(tensor);
        if let Some(&value) = model[node].outputs().first() {
            model[constant].name = model[value].name.take();
            model[constant].metadata = std::mem::take(&mut model[value].metadata);
            model.replace_all_uses(value, constant);
        }
        model.erase(node);
    }
    let nodes = model.graph_nodes();
    let outputs = nodes.iter().flat_map(|&node| model[node].outputs().iter().copied());
    let given: Vec<_> = outputs.map(|value| (value, model[value].ty.clone())).collect();
    pt2onnx_opt::infer_types(model);
    // What is not inferred stays as it was recorded.
    for (value, ty) in given {
        let inferred = model[value].ty.as_ref().is_some_and(Type::has_shape);
        if !inferred && ty.as_ref().is_some_and(Type::has_shape) {
            model[value].ty = ty;
        }
    }
    Ok(())
}

/// Makes functions import the versions that the model imports: a file has one version of each operator.
pub(crate) fn functions(model: &mut Model) -> Result<(), DomainError> {
    let opset = model.opset;
    for function in &model.functions {
        let Some(&written) = function.imports.get("").filter(|w| **w != opset) else {
            continue;
        };
        let mut nodes = model.nodes_in(&[function.body]).into_iter();
        if let Some(node) = nodes.find(|n| !means_the_same(model, *n, written, opset)) {
            return Err(DomainError::Opset {
                function: format!("{}.{}", function.domain, function.name),
                operator: model[node].op().to_string(),
                written,
                opset,
            });
        }
    }
    let imports = model.imports.clone();
    for function in &mut model.functions {
        for (domain, version) in &mut function.imports {
            *version = match domain.as_str() {
                "" => opset,
                other => imports.get(other).copied().unwrap_or(*version),
            };
        }
    }
    Ok(())
}
