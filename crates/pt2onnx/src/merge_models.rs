//! Merges two models: outputs of the first become inputs of the second.

use crate::dims::{self, Scope};
use pt2onnx_ir::{Function, Metadata, Model, Type, Value, is_unknown};
use pt2onnx_symbolic::Expr;
use std::collections::{BTreeMap, BTreeSet};

/// The reason why two models cannot be joined.
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
    /// No names match, and no links are given.
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
        /// The version of the second model.
        second: u32,
    },
    /// Both models have a function of that name, and they differ.
    #[error("both models have a function {0}: inline it first")]
    Function(
        /// Domain and name.
        String,
    ),
    /// A function of one model is an operator of the runtime in the other.
    #[error(
        "{0} is a function in one model and an operator of the runtime in the other: inline the function first"
    )]
    Captured(
        /// Domain and name.
        String,
    ),
}

/// Appends `second`, of the same opset, to `first`
/// ([`OnnxProgram::join`](crate::OnnxProgram::join)). `scope` is that of symbols in both.
pub(crate) fn merge(
    first: &mut Model,
    mut second: Model,
    scope: Scope,
    links: &[(String, String)],
) -> Result<(), JoinError> {
    import_domains(first, &second)?;
    let pairs = pairs(first, &second, links)?;
    let sizes = sizes(first, &second, scope, &pairs)?;
    dims::substitute(&mut second, &sizes, scope);
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

/// Adds metadata. A key that has another text already gets a number.
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

/// Imports what the second model imports. Functions of one name must be the same.
pub(crate) fn import_domains(first: &mut Model, second: &Model) -> Result<(), JoinError> {
    for (domain, &version) in &second.imports {
        let known = *first.imports.entry(domain.clone()).or_insert(version);
        if known != version {
            let domain = domain.clone();
            return Err(JoinError::Domain { domain, first: known, second: version });
        }
    }
    let called = |f: &Function| format!("{}.{}", f.domain, f.name);
    let known = first.function_index();
    let differs = |f: &&Function| {
        let known = known.same_as(first, f);
        known.is_some_and(|g| written(first, g) != written(second, f))
    };
    if let Some(function) = second.functions.iter().find(differs) {
        return Err(JoinError::Function(called(function)));
    }
    let captured = captured(first, second).or_else(|| captured(second, first));
    captured.map_or(Ok(()), |function| Err(JoinError::Captured(called(function))))
}

/// A function and those that it calls, as in a file, without the names of nodes.
fn written(model: &Model, function: &Function) -> Option<Vec<u8>> {
    let mut alone = Model::new(model.opset);
    alone.copy_function(model, function);
    for node in alone.all_nodes() {
        alone[node].name = None;
    }
    pt2onnx_writer::to_bytes_unverified(&alone).ok().map(|bytes| bytes.to_vec())
}

/// A function of a model that nodes of the other would call, which mean an operator.
fn captured<'a>(model: &'a Model, other: &Model) -> Option<&'a Function> {
    let (own, others) = (model.function_index(), other.function_index());
    let called = other.all_nodes().into_iter().filter_map(|n| own.called(model, &other[n]));
    called.filter(|f| others.same_as(other, f).is_none()).min_by_key(|f| f.body)
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

/// The sizes that replace symbols of the second model: those of linked outputs, and new names for
/// symbols that the first model has too.
fn sizes(
    first: &Model,
    second: &Model,
    scope: Scope,
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
                takes: dims::substituted(takes, &sizes).to_string(),
            });
        }
    }
    let (known, own) = (dims::symbols(first, scope), dims::symbols(second, scope));
    let mut taken: BTreeSet<String> = known.union(&own).cloned().collect();
    for symbol in own.intersection(&known).filter(|s| !s.starts_with('?')) {
        if !sizes.contains_key(symbol) {
            let free = (2..).map(|i| format!("{symbol}_{i}")).find(|new| !taken.contains(new));
            taken.extend(free.clone());
            sizes.extend(free.map(|new| (symbol.clone(), Expr::symbol(&new))));
        }
    }
    Ok(sizes)
}

/// Whether a type can be given to an input. Notes the sizes that symbols of the input get; none can
/// get two.
fn fits(made: &Type, takes: &Type, sizes: &mut BTreeMap<String, Expr>) -> bool {
    let (made, takes) = match (made, takes) {
        (Type::Tensor(made), Type::Tensor(takes)) | (Type::Sparse(made), Type::Sparse(takes)) => {
            (made, takes)
        }
        (Type::Sequence(made), Type::Sequence(takes))
        | (Type::Optional(made), Type::Optional(takes)) => return fits(made, takes, sizes),
        (Type::Map(key, made), Type::Map(other, takes)) => {
            return key == other && fits(made, takes, sizes);
        }
        (made, takes) => return made == takes,
    };
    let (Some(own), Some(wanted)) = (&made.shape, &takes.shape) else {
        return made.dtype == takes.dtype;
    };
    let differ = |a: &Expr, b: &Expr| a.is_static() && b.is_static() && a != b;
    for (own, wanted) in own.iter().zip(wanted) {
        if differ(own, wanted) {
            return false;
        }
        if let Some(symbol) = wanted.as_symbol().filter(|_| !is_unknown(wanted) && !is_unknown(own))
        {
            let known = sizes.entry(symbol.to_owned()).or_insert_with(|| own.clone());
            if differ(known, own) {
                return false;
            }
            // A number is more specific than a name.
            if own.is_static() {
                known.clone_from(own);
            }
        }
    }
    made.dtype == takes.dtype && own.len() == wanted.len()
}
