//! Operator domains besides ONNX's own: which ones the model imports, and at which version.

use pt2onnx_ir::Model;
use pt2onnx_opt::means_the_same;
use std::collections::BTreeSet;

/// Why domains or functions cannot be in the model as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DomainError {
    /// A version is given to a domain that has none to be given.
    #[error("the version of ONNX's own operators is the opset of the model, not a custom opset")]
    Reserved,
    /// A function is written for another opset than the model, at which an operator has another form.
    #[error(
        "the function {function} uses {operator} as it is in opset {written}, in opset {opset} it is another: \
         write the function for opset {opset}, or choose opset {written}"
    )]
    Opset {
        /// Domain and name of the function.
        function: String,
        /// The operator.
        operator: String,
        /// The opset that the function imports.
        written: u32,
        /// The model's.
        opset: u32,
    },
}

/// Imports the domains of the model's nodes and no others: at the versions given for them, else as translations said, else
/// at 1. Warns of versions for domains of which there is no node.
pub(crate) fn import(
    model: &mut Model,
    versions: &[(String, u32)],
    warnings: &mut Vec<String>,
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
            warnings.push(format!(
                "no node is of the domain {domain}, for which version {version} is given"
            ));
        }
    }
    for domain in used {
        model.imports.entry(domain).or_insert(1);
    }
    Ok(())
}

/// Makes functions import what the model does: one file has one version of each operator.
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
