//! Joins two models: outputs of the first become inputs of the second.

use crate::dims;
use pt2onnx_ir::{Metadata, Model, Type, Value, is_unknown};
use pt2onnx_symbolic::Expr;
use std::collections::BTreeMap;

/// Why two models cannot be joined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The first model has no such output.
    #[error("the first model has no output `{name}`; its outputs are {}", .outputs.join(", "))]
    NoOutput {
        /// The name that is given.
        name: String,
        /// The outputs.
        outputs: Vec<String>,
    },
    /// The second model has no such input.
    #[error("the second model has no input `{name}`; its inputs are {}", .inputs.join(", "))]
    NoInput {
        /// The name that is given.
        name: String,
        /// The inputs.
        inputs: Vec<String>,
    },
    /// An input would get two outputs.
    #[error("the input `{0}` of the second model is given two outputs")]
    Twice(
        /// The input.
        String,
    ),
    /// Nothing says which output belongs to which input.
    #[error(
        "no output of the first model ({}) is called as an input of the second ({}): say which belong together, as OUTPUT=INPUT",
        .outputs.join(", "), .inputs.join(", ")
    )]
    Nothing {
        /// The outputs.
        outputs: Vec<String>,
        /// The inputs.
        inputs: Vec<String>,
    },
    /// An output has another type than the input.
    #[error("the output `{output}` is {given}, but the input `{input}` takes {takes}")]
    Type {
        /// The output of the first model.
        output: String,
        /// Its type.
        given: String,
        /// The input of the second model.
        input: String,
        /// The type that it takes.
        takes: String,
    },
    /// The models import a domain at different versions.
    #[error("the models import the domain {domain} at the versions {first} and {second}")]
    Domain {
        /// The domain.
        domain: String,
        /// The version of the first model.
        first: u32,
        /// That of the second.
        second: u32,
    },
    /// Both models have a function of that name, and they differ.
    #[error("both models have a function {0}: replace its calls first, by `optimize --inline`")]
    Function(
        /// Domain and name.
        String,
    ),
}

/// Puts `second`, of the same opset, behind `first`, as [`OnnxProgram::join`](crate::OnnxProgram::join) says.
pub(crate) fn join(
    first: &mut Model,
    mut second: Model,
    links: &[(String, String)],
) -> Result<(), JoinError> {
    domains(first, &second)?;
    let pairs = pairs(first, &second, links)?;
    let sizes = sizes(first, &second, &pairs)?;
    dims::substitute(&mut second, &sizes);
    let given: Vec<_> = pairs.into_iter().map(|(output, input)| (input, output)).collect();
    first.append_graph(&second, &given);
    first.assign_names();
    add_entries(&mut first.metadata, second.metadata);
    add_entries(&mut first.graph_metadata, second.graph_metadata);
    first.doc_string = match (first.doc_string.take(), second.doc_string) {
        (Some(own), Some(other)) if own != other => Some(format!("{own}\n{other}")),
        (own, other) => own.or(other),
    };
    Ok(())
}

/// Adds metadata. A key that has another text already gets a number, as names that clash do.
fn add_entries(to: &mut Metadata, from: Metadata) {
    for (key, text) in from {
        let known = |to: &Metadata, key: &str| to.iter().position(|(own, _)| own == key);
        match known(to, &key) {
            None => to.push((key, text)),
            Some(at) if to.get(at).is_some_and(|(_, own)| *own == text) => {}
            Some(_) => {
                let mut others = (2..).map(|i| format!("{key}_{i}"));
                let free = others.find(|new| known(to, new).is_none());
                to.extend(free.map(|new| (new.into(), text)));
            }
        }
    }
}

/// Imports what the second model imports.
fn domains(first: &mut Model, second: &Model) -> Result<(), JoinError> {
    for (domain, &version) in &second.imports {
        let known = *first.imports.entry(domain.clone()).or_insert(version);
        if known != version {
            let domain = domain.clone();
            return Err(JoinError::Domain { domain, first: known, second: version });
        }
    }
    let shared = second.functions.iter().find(|f| first.functions.iter().any(|g| g.is_same_as(f)));
    match shared {
        Some(function) => {
            Err(JoinError::Function(format!("{}.{}", function.domain, function.name)))
        }
        None => Ok(()),
    }
}

fn name(model: &Model, value: Value) -> String {
    model[value].name.as_deref().unwrap_or_default().to_owned()
}

/// The outputs of the first model, and the inputs of the second that they become.
fn pairs(
    first: &Model,
    second: &Model,
    links: &[(String, String)],
) -> Result<Vec<(Value, Value)>, JoinError> {
    let made: Vec<Value> = first.output_values().collect();
    let taken: Vec<Value> = second.inputs().to_vec();
    let outputs = || made.iter().map(|v| name(first, *v)).collect::<Vec<_>>();
    let inputs = || taken.iter().map(|v| name(second, *v)).collect::<Vec<_>>();
    let mut pairs = Vec::new();
    for (output, input) in links {
        let from = made.iter().find(|v| name(first, **v) == *output);
        let to = taken.iter().find(|v| name(second, **v) == *input);
        let no_output = || JoinError::NoOutput { name: output.clone(), outputs: outputs() };
        let no_input = || JoinError::NoInput { name: input.clone(), inputs: inputs() };
        let pair = (*from.ok_or_else(no_output)?, *to.ok_or_else(no_input)?);
        if pairs.iter().any(|(_, to)| *to == pair.1) {
            return Err(JoinError::Twice(input.clone()));
        }
        pairs.push(pair);
    }
    if links.is_empty() {
        pairs.extend(made.iter().filter_map(|&output| {
            let same = taken.iter().find(|v| name(second, **v) == name(first, output));
            same.map(|input| (output, *input))
        }));
    }
    match (made.as_slice(), taken.as_slice()) {
        ([output], [input]) if pairs.is_empty() => pairs.push((*output, *input)),
        _ if pairs.is_empty() => {
            return Err(JoinError::Nothing { outputs: outputs(), inputs: inputs() });
        }
        _ => {}
    }
    Ok(pairs)
}

/// What the symbols of the second model become: the sizes that links give them; those that the first model has too get other names.
fn sizes(
    first: &Model,
    second: &Model,
    pairs: &[(Value, Value)],
) -> Result<BTreeMap<String, Expr>, JoinError> {
    let mut sizes = BTreeMap::new();
    for &(output, input) in pairs {
        let (made, takes) = (first[output].ty.as_ref(), second[input].ty.as_ref());
        let (Some(made), Some(takes)) = (made, takes) else {
            continue;
        };
        if !fits(made, takes, &mut sizes) {
            return Err(JoinError::Type {
                output: name(first, output),
                given: made.to_string(),
                input: name(second, input),
                takes: takes.to_string(),
            });
        }
    }
    let known = dims::symbols(first);
    for symbol in dims::symbols(second) {
        if known.contains(&symbol) && !symbol.starts_with('?') && !sizes.contains_key(&symbol) {
            let free = (2..).map(|i| format!("{symbol}_{i}")).find(|new| !known.contains(new));
            sizes.extend(free.map(|new| (symbol, Expr::symbol(&new))));
        }
    }
    Ok(sizes)
}

/// Whether a type can be given to an input. Notes the sizes that symbols of the input get.
fn fits(made: &Type, takes: &Type, sizes: &mut BTreeMap<String, Expr>) -> bool {
    let (Some(made), Some(takes)) = (made.as_tensor(), takes.as_tensor()) else {
        return std::mem::discriminant(made) == std::mem::discriminant(takes);
    };
    let (Some(own), Some(wanted)) = (&made.shape, &takes.shape) else {
        return made.dtype == takes.dtype;
    };
    for (own, wanted) in own.iter().zip(wanted) {
        match (own.as_int(), wanted.as_int()) {
            (Some(a), Some(b)) if a != b => return false,
            _ => {}
        }
        if let Some(symbol) = wanted.as_symbol().filter(|_| !is_unknown(wanted) && !is_unknown(own))
        {
            sizes.entry(symbol.to_owned()).or_insert_with(|| own.clone());
        }
    }
    made.dtype == takes.dtype && own.len() == wanted.len()
}
