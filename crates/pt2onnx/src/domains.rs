//! Operator domains besides ONNX's own: which ones the model imports, and at which version.

use pt2onnx_ir::Model;
use std::collections::BTreeSet;

/// A version given to a domain that has none to be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the version of ONNX's own operators is the opset of the model, not a custom opset")]
pub struct DomainError;

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
            return Err(DomainError);
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
