//! Names of outputs, from the tree that the program returns.

use pt2onnx_fx::{Argument, ExportedProgram, OutputSpec, SymArg};
use serde_json::Value as Json;

/// Names of the outputs, from the tree that the program returns; `None` for outputs that are in tuples and lists
/// only.
pub(super) fn from_tree(program: &ExportedProgram) -> Option<Vec<Option<String>>> {
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

/// Keys of a dict or fields of a dataclass, from the context of a node of the tree. The context is a list of keys
/// (dicts, the outputs of transformers), a pair of that list and the fields that are None (dataclasses), or a table
/// with that list (`defaultdict`).
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
