//! Which operator domains other than ONNX's own the model imports, and at which versions.

use pt2onnx_ir::{Attribute, InlineError, Model, NodeId, Type};
use pt2onnx_opt::means_the_same;
use pt2onnx_report::{Warning, WarningKind};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The reason why domains or functions cannot be in the model.
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
    /// A function is written for another opset than the model's, in which one of its operators has
    /// another form.
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
        /// The model's opset.
        opset: u32,
    },
    /// A function is written for another version of a domain than the model, or another function.
    #[error(
        "the function {function} imports the domain {domain} at version {written}, and the model at {version}"
    )]
    Version {
        /// Domain and name of the function.
        function: String,
        /// The domain.
        domain: String,
        /// The version that the function imports.
        written: u32,
        /// The version of the model, or of a function before.
        version: u32,
    },
}

/// Imports exactly the domains of the model's nodes: at the given versions, else at those of the
/// translations, else at those of functions, else at 1. Warns about versions of domains that no
/// node uses.
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
        let own = model.functions.iter().find_map(|f| f.imports.get(&domain)).copied();
        model.imports.entry(domain).or_insert(own.unwrap_or(1));
    }
    Ok(())
}

/// Domains that runtimes import if a model does not, and the version that is written then.
const KNOWN: [(&str, u32); 2] = [("ai.onnx.ml", 3), ("com.microsoft", 1)];

/// Imports known domains that a file uses without importing them. ONNX Runtime's optimiser and
/// converters write such files.
pub(crate) fn import_known(model: &mut Model) {
    let nodes = model.graph_nodes();
    for (domain, version) in KNOWN {
        if !model.imports.contains_key(domain) && nodes.iter().any(|n| model[*n].domain == domain) {
            model.imports.insert(domain.to_owned(), version);
        }
    }
}

/// Replaces calls of functions by their bodies.
pub(crate) fn inline(model: &mut Model) -> Result<(), DomainError> {
    model.drop_unused_functions();
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
    // Recorded types stay where none is inferred.
    for (value, ty) in given {
        let inferred = model[value].ty.as_ref().is_some_and(Type::has_shape);
        if !inferred && ty.as_ref().is_some_and(Type::has_shape) {
            model[value].ty = ty;
        }
    }
    Ok(())
}

/// Makes model and functions import the same versions: a file has one version of each operator. A
/// model without operators takes the versions of its functions.
pub(crate) fn functions(model: &mut Model) -> Result<(), DomainError> {
    let mut versions = model.imports.clone();
    let written = model.functions.iter().filter_map(|f| f.imports.get(""));
    let opset = if model.opset > 0 { model.opset } else { written.copied().max().unwrap_or(0) };
    let index = model.function_index();
    for function in &model.functions {
        let called = || format!("{}.{}", function.domain, function.name);
        let nodes = model.nodes_in(&[function.body]);
        for (domain, &written) in &function.imports {
            let calls = |n: &NodeId| index.called(model, &model[*n]).is_some();
            let mut own = nodes.iter().copied().filter(|n| *model[*n].domain == **domain);
            if !domain.is_empty() {
                if own.all(|n| calls(&n)) {
                    continue;
                }
                let version = *versions.entry(domain.clone()).or_insert(written);
                if version != written {
                    let (function, domain) = (called(), domain.clone());
                    return Err(DomainError::Version { function, domain, written, version });
                }
            } else if written != opset
                && let Some(node) = own.find(|n| !means_the_same(model, *n, written, opset))
            {
                let operator = model[node].op().to_string();
                return Err(DomainError::Opset { function: called(), operator, written, opset });
            }
        }
    }
    (model.opset, model.imports) = (opset, versions);
    for function in &mut model.functions {
        for (domain, version) in &mut function.imports {
            *version = match domain.as_str() {
                "" => opset,
                other => model.imports.get(other).copied().unwrap_or(*version),
            };
        }
    }
    Ok(())
}
