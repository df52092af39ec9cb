//! Reading rules: which functions belong together, and what is wrong with them.

use super::rule::{PATTERN, REPLACEMENT, Rule, Rules};
use crate::{Pattern, legalise::means_the_same};
use pt2onnx_ir::{Attribute, Def, Function, Model, ParseError, schema::CANONICAL_OPSET};
use std::sync::Arc;

pub(super) fn rules(text: &str) -> Result<Rules, ParseError> {
    let library = Arc::new(Model::parse_functions(text)?);
    let places = places(text, &library);
    let mut rules = Vec::new();
    for (function, &place) in library.functions.iter().zip(&places) {
        let wrong = |what: String| Err(error(text, place, what));
        let name = &function.name;
        let other = match function.domain.as_str() {
            PATTERN => REPLACEMENT,
            REPLACEMENT => PATTERN,
            domain => {
                return wrong(format!(
                    "a rule has functions of the domains \"{PATTERN}\" and \"{REPLACEMENT}\", not \"{domain}\""
                ));
            }
        };
        if let Some(what) = unfit(&library, function) {
            return wrong(what);
        }
        let same = |f: &&Function| f.name == *name && f.domain == function.domain;
        if library.functions.iter().filter(same).count() > 1 {
            return wrong(format!("there are several {}s `{name}`", function.domain));
        }
        let mut others = library.functions.iter();
        let Some(partner) = others.find(|f| f.domain == other && f.name == *name) else {
            return wrong(format!(
                "the {} `{name}` has no {other} of the same name",
                function.domain
            ));
        };
        if function.domain != PATTERN {
            continue;
        }
        if let Some(what) = mismatch(&library, function, partner) {
            let at = library.functions.iter().position(|f| f.domain == other && f.name == *name);
            let place = at.and_then(|i| places.get(i)).copied().unwrap_or(place);
            return Err(error(text, place, what));
        }
        rules.extend(Pattern::of_function(&library, function.body).map(|pattern| Rule {
            pattern,
            library: Arc::clone(&library),
            replacement: partner.clone(),
        }));
    }
    Ok(Rules { rules })
}

/// Patterns are searched depth first, so that they have a limit.
const MAX_NODES: usize = 256;

/// Why a function cannot be a part of a rule.
fn unfit(library: &Model, function: &Function) -> Option<String> {
    let name = &function.name;
    if library.nodes(function.body).count() > MAX_NODES {
        return Some(format!("`{name}` has more than {MAX_NODES} nodes"));
    }
    let body = &library[function.body];
    let written = function.imports.get("").copied().unwrap_or(CANONICAL_OPSET);
    for node in library.nodes(function.body) {
        if library[node].regions().next().is_some() {
            return Some(format!("`{name}` has a node with a body, which rules cannot have"));
        }
        if !means_the_same(library, node, written, CANONICAL_OPSET) {
            let op = library[node].op();
            return Some(format!(
                "`{name}` is written for opset {written}, and its {op} is not the same in opset {CANONICAL_OPSET}: write it for opset \
                 {CANONICAL_OPSET}"
            ));
        }
    }
    if body.outputs().len() != 1 {
        return Some(format!("`{name}` must have one output, but has {}", body.outputs().len()));
    }
    let made = body.output_values().all(|v| matches!(library[v].def(), Def::Node(..)));
    (function.domain == PATTERN && !made)
        .then(|| format!("the pattern `{name}` has no node that computes its output"))
}

/// Why a replacement does not fit its pattern.
fn mismatch(library: &Model, pattern: &Function, replacement: &Function) -> Option<String> {
    let name = &pattern.name;
    let names = |f: &Function| -> Vec<String> {
        let inputs = library[f.body].inputs().iter();
        inputs.map(|v| library[*v].name.as_deref().unwrap_or_default().to_owned()).collect()
    };
    let known = names(pattern);
    if let Some(unknown) = names(replacement).iter().find(|n| !known.contains(n)) {
        return Some(format!(
            "the replacement `{name}` has an input `{unknown}`, but the inputs of its pattern are: {}",
            known.join(", ")
        ));
    }
    let mut referred = Vec::new();
    for node in library.nodes(pattern.body) {
        referred.extend(library[node].attributes.iter().filter_map(|(_, a)| match a {
            Attribute::Reference { name, .. } => Some(name.as_str()),
            _ => None,
        }));
    }
    let own = replacement.defaults.iter().map(|(name, _)| &**name);
    let bound: Vec<&str> = own.chain(referred).collect();
    let needed = library.nodes(replacement.body);
    let needed = needed.flat_map(|n| library[n].attributes.iter());
    needed.filter_map(|(_, a)| match a {
        Attribute::Reference { name, .. } => Some(name),
        _ => None,
    })
    .find(|name| !bound.contains(&name.as_str()))
    .map(|missing| {
        format!("the replacement `{name}` uses the attribute `@{missing}`, which its pattern does not have")
    })
}

/// The number of bytes before each function's name.
fn places(text: &str, library: &Model) -> Vec<usize> {
    let mut at = 0;
    let places = library.functions.iter().map(|function| {
        for word in [format!("\"{}\"", function.domain), function.name.clone()] {
            at += text.get(at..).and_then(|rest| rest.find(&word)).unwrap_or_default();
        }
        let place = at;
        at += function.name.len();
        place
    });
    places.collect()
}

fn error(text: &str, place: usize, what: String) -> ParseError {
    ParseError::at(text, place, what)
}
