//! Names that the user gives to inputs, outputs and other values.

use pt2onnx_fx::{Argument, ExportedProgram, OutputSpec, SymArg};
use pt2onnx_ir::{Def, Model, Value, ValueData};
use serde_json::Value as Json;
use std::{collections::HashMap, fmt};

/// Metadata of a renamed value: what it was called in the program.
const ORIGINAL: &str = "pkg.torch.onnx.original_node_name";

/// Metadata of a renamed weight: what a state dict calls it. The name above is that of its placeholder.
const TARGET: &str = "pkg.pt2onnx.target";

/// Why values cannot be called so.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// More names than there are inputs or outputs.
    #[error("{given} {what} names are given, but the program has {has}: {names}")]
    #[expect(missing_docs, reason = "the text explains them")]
    Surplus { what: &'static str, given: usize, has: usize, names: String },
    /// A name is given to two values.
    #[error("the name `{0}` is given twice")]
    Duplicate(
        /// The name.
        String,
    ),
    /// Two names are given to one value.
    #[error("`{old}` is given two names, `{first}` and `{second}`")]
    #[expect(missing_docs, reason = "the text explains them")]
    Twice { old: String, first: String, second: String },
    /// Something else is called so already.
    #[error("`{old}` cannot be called `{new}`, which is the name of {holder}")]
    #[expect(missing_docs, reason = "the text explains them")]
    Clash { old: String, new: String, holder: &'static str },
    /// No value is called so.
    #[error("there is no value `{0}` to rename: the program has none, or it was optimised away")]
    Unknown(
        /// The name.
        String,
    ),
    /// The empty name means that there is no value.
    #[error("`{0}` is given an empty name")]
    Empty(
        /// Its name until now.
        String,
    ),
    /// The archive does not tell how the outputs nest.
    #[error("the outputs cannot be named from the tree: the archive does not tell how they nest")]
    NoTree,
}

/// How to call the outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputNames {
    /// In order; outputs behind the last name keep theirs.
    List(Vec<String>),
    /// By the keys and fields that lead to them in the dict or dataclass that the program returns: `hidden_0`. What is
    /// only in tuples and lists keeps its name.
    FromTree,
}

impl Default for OutputNames {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// As the command line has it.
impl fmt::Display for OutputNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(names) => f.write_str(&names.join(", ")),
            Self::FromTree => f.write_str("from-tree"),
        }
    }
}

/// All names that the user gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub inputs: Vec<String>,
    pub outputs: OutputNames,
    /// Old and new name.
    pub renames: Vec<(String, String)>,
}

/// Names inputs, outputs, and those values to be renamed that have names already.
pub(crate) fn name(
    model: &mut Model,
    program: &ExportedProgram,
    names: &Names,
) -> Result<(), NameError> {
    let outputs = match &names.outputs {
        OutputNames::List(names) => names.iter().cloned().map(Some).collect(),
        OutputNames::FromTree => from_tree(program).ok_or(NameError::NoTree)?,
    };
    let inputs: Vec<_> = names.inputs.iter().cloned().map(Some).collect();
    let mut plan = Vec::new();
    for (what, values, new) in [
        ("input", model.inputs().to_vec(), inputs),
        ("output", model.output_values().collect(), outputs),
    ] {
        if new.len() > values.len() {
            let names: Vec<String> = values.iter().map(|v| called(&model[*v])).collect();
            return Err(NameError::Surplus {
                what,
                given: new.len(),
                has: values.len(),
                names: names.join(", "),
            });
        }
        let given = values.iter().zip(new);
        plan.extend(given.filter_map(|(v, n)| Some((*v, n?))));
    }
    for (old, new) in &names.renames {
        plan.extend(find(model, old).map(|v| (v, new.clone())));
    }
    give(model, plan)
}

/// Names everything, then renames those values that only now have the name.
pub(crate) fn finish(model: &mut Model, names: &Names) -> Result<(), NameError> {
    model.assign_names();
    let mut plan = Vec::new();
    for (old, new) in &names.renames {
        // Weights tell the name of their placeholder, whatever they are renamed from.
        let gone = find(model, old).is_none();
        let done = find(model, new).is_some_and(|v| gone || original(&model[v]) == Some(old));
        if !done {
            let value = find(model, old).ok_or_else(|| NameError::Unknown(old.clone()))?;
            plan.push((value, new.clone()));
        }
    }
    give(model, plan)?;
    // What had one of these names gets another.
    model.assign_names();
    Ok(())
}

/// The value of that name, inputs and outputs first; also by the name it had before.
pub(crate) fn find(model: &Model, name: &str) -> Option<Value> {
    let ends = || model.inputs().iter().copied().chain(model.output_values());
    let is = |v: &Value| model[*v].name.as_deref() == Some(name);
    let was = |v: &Value| original(&model[*v]) == Some(name);
    let live = || model.values().map(|(v, _)| v).filter(|v| lives(model, *v));
    ends().find(is).or_else(|| ends().find(was)).or_else(|| live().find(is))
}

fn lives(model: &Model, value: Value) -> bool {
    match model[value].def() {
        Def::Node(node, _) => model.contains(*node),
        Def::Constant(_) => model[value].uses().len() > 0,
        Def::Input(..) => true,
    }
}

fn original(data: &ValueData) -> Option<&str> {
    entry(data, ORIGINAL)
}

/// What a state dict calls a renamed weight.
pub(crate) fn target(data: &ValueData) -> Option<&str> {
    entry(data, TARGET)
}

/// What a value's metadata have under a key.
pub(crate) fn entry<'a>(data: &'a ValueData, key: &str) -> Option<&'a str> {
    let entry = data.metadata.iter().find(|(k, _)| k == key);
    entry.map(|(_, value)| &**value)
}

fn called(data: &ValueData) -> String {
    data.name.as_deref().unwrap_or_default().to_owned()
}

/// Gives all names at once, so that two values may swap theirs.
fn give(model: &mut Model, plan: Vec<(Value, String)>) -> Result<(), NameError> {
    if plan.is_empty() {
        return Ok(());
    }
    let mut new_names: HashMap<Value, String> = HashMap::new();
    let mut values: HashMap<String, Value> = HashMap::new();
    for (value, new) in plan {
        let old = called(&model[value]);
        if new.is_empty() {
            return Err(NameError::Empty(old));
        }
        if let Some(first) = new_names.insert(value, new.clone()).filter(|n| *n != new) {
            let second = new;
            return Err(NameError::Twice { old, first, second });
        }
        if values.insert(new.clone(), value).is_some_and(|v| v != value) {
            return Err(NameError::Duplicate(new));
        }
    }
    for (other, data) in model.values().filter(|(v, _)| !new_names.contains_key(v)) {
        let holder = match data.def() {
            _ if model.output_values().any(|v| v == other) => "another output",
            Def::Input(region, _) if *region == Model::MAIN => "another input",
            Def::Constant(_) if data.uses().len() > 0 => "a weight",
            // Values in between are nobody's interface: they step aside and are named anew.
            _ => continue,
        };
        if let Some(value) = data.name.as_deref().and_then(|n| values.get(n)) {
            let (old, new) = (called(&model[*value]), called(data));
            return Err(NameError::Clash { old, new, holder });
        }
    }
    let taken = |d: &ValueData| d.name.as_deref().is_some_and(|n| values.contains_key(n));
    let aside: Vec<Value> = model
        .values()
        .filter(|(v, d)| !new_names.contains_key(v) && taken(d))
        .map(|(v, _)| v)
        .collect();
    for value in aside {
        model[value].name = None;
    }
    for (value, new) in new_names {
        let data = &mut model[value];
        if data.name.as_deref() == Some(&*new) {
            continue;
        }
        let Some(old) = data.name.replace(new.into()) else {
            continue;
        };
        if data.constant().is_some() && target(data).is_none() {
            data.metadata.push((TARGET.into(), old.as_str().into()));
        }
        if original(data).is_none() {
            data.metadata.push((ORIGINAL.into(), old.as_str().into()));
        }
    }
    Ok(())
}

/// Names for the outputs from the tree that the program returns; `None` for those that no key leads to.
fn from_tree(program: &ExportedProgram) -> Option<Vec<Option<String>>> {
    let root = program.module_call_graph.iter().find(|e| e.fqn.is_empty())?;
    let spec: Json = serde_json::from_str(&root.signature.as_ref()?.out_spec).ok()?;
    let mut leaves = Vec::new();
    walk(spec.get(1)?, "", false, &mut leaves)?;
    let outputs = program.signature.outputs.iter().filter_map(|o| match o {
        OutputSpec::UserOutput(arg) => Some(arg),
        _ => None,
    });
    let outputs: Vec<&Argument> = outputs.collect();
    let left_out = |a: &Argument| {
        matches!(
            a,
            Argument::None | Argument::OptionalTensor(None) | Argument::SymInt(SymArg::Expr(_))
        )
    };
    (outputs.len() == leaves.len()).then(|| {
        let named = outputs.into_iter().zip(leaves);
        named.filter(|(a, _)| !left_out(a)).map(|(_, n)| n).collect()
    })
}

/// Collects the names of the leaves. The JSON parser bounds the depth.
fn walk(spec: &Json, path: &str, keyed: bool, leaves: &mut Vec<Option<String>>) -> Option<()> {
    let children = spec.get("children_spec")?.as_array()?;
    if spec.get("type")?.is_null() {
        leaves.push(keyed.then(|| path.to_owned()));
        return Some(());
    }
    let context = spec.get("context").and_then(Json::as_str).unwrap_or("null");
    let keys = keys(&serde_json::from_str(context).unwrap_or_default(), children.len());
    for (i, child) in children.iter().enumerate() {
        let key = keys.as_ref().and_then(|k| k.get(i).cloned());
        let named = key.is_some();
        let step = key.unwrap_or_else(|| i.to_string());
        let path = if path.is_empty() { step } else { format!("{path}_{step}") };
        walk(child, &path, keyed || named, leaves)?;
    }
    Some(())
}

/// Keys of a dict or fields of a dataclass, where the context of a tree's node has them: a list of them (dicts, the
/// outputs of transformers), that list and one of the fields that are None (dataclasses), or an entry (`defaultdict`).
fn keys(context: &Json, children: usize) -> Option<Vec<String>> {
    if let Some(inner) = context.get("dict_context") {
        return keys(inner, children);
    }
    let list = context.as_array()?;
    let text = |key: &Json| match key {
        Json::String(s) => Some(s.clone()),
        Json::Number(n) => Some(n.to_string()),
        _ => None,
    };
    let direct: Option<Vec<String>> = list.iter().map(text).collect();
    match direct {
        Some(keys) => (keys.len() == children).then_some(keys),
        None => keys(list.first()?, children),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_name_their_leaves() {
        const LEAF: &str = r#"{"type":null,"context":null,"children_spec":[]}"#;
        let node = |context: &str, children: &[&str]| {
            format!(
                r#"{{"type":"t","context":{},"children_spec":[{}]}}"#,
                serde_json::to_string(context).unwrap(),
                children.join(",")
            )
        };
        let pair = node("null", &[LEAF, LEAF]);
        for (tree, expected) in [
            (LEAF.to_owned(), "-"),
            (pair.clone(), "- -"),
            (node(r#"["y"]"#, &[LEAF]), "y"),
            (node(r#"["a", 7]"#, &[&pair, LEAF]), "a_0 a_1 7"),
            (node("null", &[&node(r#"["a"]"#, &[LEAF]), LEAF]), "0_a -"),
            (node(r#"[["f", "g"], ["h"]]"#, &[LEAF, LEAF]), "f g"),
            (node(r#"{"dict_context": ["d"], "default_factory_name": "list"}"#, &[LEAF]), "d"),
            (node(r#""m.Point""#, &[LEAF]), "-"),
            (node(r#"["too", "many"]"#, &[LEAF]), "-"),
        ] {
            let mut leaves = Vec::new();
            walk(&serde_json::from_str(&tree).unwrap(), "", false, &mut leaves).unwrap();
            let leaves: Vec<&str> = leaves.iter().map(|l| l.as_deref().unwrap_or("-")).collect();
            assert_eq!(leaves.join(" "), expected, "{tree}");
        }
    }
}
