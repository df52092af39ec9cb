//! Names of inputs and outputs, from the trees that the program takes and returns.

use super::{
    caches::{self, CacheTensor},
    spec::{children, keys_of},
};
use pt2onnx_fx::{Argument, ExportedProgram, InputSpec, Name, OutputKind, SymArg};
use rustc_hash::FxHashSet;
use serde_json::Value as Json;

/// A tensor or number in a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// The parameters, keys, fields and numbers that lead to it, or to the cache that it is in.
    pub steps: Vec<String>,
    /// Whether there is more than numbers among them.
    pub keyed: bool,
    /// Its place in a cache of keys and values.
    pub cache: Option<CacheTensor>,
}

impl Leaf {
    /// The name that it should have: that of the way to it if names come `from_tree`, and that of a
    /// tensor of a cache by the template, or else below the way to the cache and `word`.
    pub fn wanted(&self, from_tree: bool, template: Option<&str>, word: &str) -> Option<String> {
        match (&self.cache, template) {
            (Some(cache), Some(template)) => Some(cache.named(template)),
            (Some(cache), None) => {
                Some(cache.named(&format!("{}.{word}.{{layer}}.{{part}}", self.steps.join("."))))
            }
            (None, _) => (from_tree && self.keyed).then(|| self.steps.join("_")),
        }
    }
}

/// The trees of a program.
pub(super) struct Trees {
    /// The inputs, by their names in the program.
    pub inputs: Vec<(Name, Leaf)>,
    /// The outputs that the model has.
    pub outputs: Vec<Leaf>,
}

/// The trees of a program; `None` if the archive does not have them, or if they do not fit its
/// signature.
pub(super) fn trees(program: &ExportedProgram) -> Option<Trees> {
    let root = program.module_call_graph.iter().find(|e| e.fqn.is_empty())?;
    let signature = root.signature.as_ref()?;
    let parameters = signature.forward_arg_names.as_deref().unwrap_or_default();
    Some(Trees {
        inputs: inputs(program, &signature.in_spec, parameters)?,
        outputs: outputs(program, &signature.out_spec)?,
    })
}

/// The tree is a pair of positional and keyword arguments.
fn inputs(
    program: &ExportedProgram,
    spec: &str,
    parameters: &[String],
) -> Option<Vec<(Name, Leaf)>> {
    let spec: Json = serde_json::from_str(spec).ok()?;
    let parts = children(spec.get(1)?)?;
    let [positional, keywords] = parts.as_slice() else {
        return None;
    };
    let mut leaves = Vec::new();
    for (i, child) in children(positional)?.iter().enumerate() {
        let parameter = parameters.get(i);
        let step = parameter.cloned().unwrap_or_else(|| i.to_string());
        let path = Path { steps: vec![step], keyed: parameter.is_some() };
        walk(child, &path, &mut leaves)?;
    }
    walk(keywords, &Path::default(), &mut leaves)?;
    let specs = program.signature.inputs.iter();
    let given: Vec<Option<&Name>> = specs
        .filter(|spec| matches!(spec, InputSpec::UserInput(_) | InputSpec::Constant { .. }))
        .map(InputSpec::name)
        .collect();
    (given.len() == leaves.len()).then(|| {
        let named = given.into_iter().zip(leaves);
        named.filter_map(|(name, leaf)| Some((name?.clone(), leaf))).collect()
    })
}

fn outputs(program: &ExportedProgram, spec: &str) -> Option<Vec<Leaf>> {
    let spec: Json = serde_json::from_str(spec).ok()?;
    let mut leaves = Vec::new();
    walk(spec.get(1)?, &Path::default(), &mut leaves)?;
    let outputs = program.signature.outputs.iter();
    let outputs = outputs.filter(|output| output.kind == OutputKind::UserOutput);
    let outputs: Vec<&Argument> = outputs.map(|output| &output.value).collect();
    let left_out = |a: &Argument| {
        matches!(
            a,
            Argument::None | Argument::OptionalTensor(None) | Argument::SymInt(SymArg::Expr(_))
        )
    };
    (outputs.len() == leaves.len()).then(|| {
        let named = outputs.into_iter().zip(leaves);
        named.filter(|(a, _)| !left_out(a)).map(|(_, leaf)| leaf).collect()
    })
}

/// The way to a part of a tree.
#[derive(Clone, Default)]
struct Path {
    steps: Vec<String>,
    keyed: bool,
}

/// Collects the leaves. The JSON parser bounds the depth.
fn walk(spec: &Json, path: &Path, leaves: &mut Vec<Leaf>) -> Option<()> {
    let children = children(spec)?;
    let Path { steps, keyed } = path;
    if spec.get("type")?.is_null() {
        leaves.push(Leaf { steps: steps.clone(), keyed: *keyed, cache: None });
        return Some(());
    }
    if let Some(tensors) = caches::tensors(spec, steps) {
        let leaf = |cache| Leaf { steps: steps.clone(), keyed: *keyed, cache: Some(cache) };
        leaves.extend(tensors.into_iter().map(leaf));
        return Some(());
    }
    let keys = keys_of(spec);
    for (i, child) in children.iter().enumerate() {
        let key = keys.as_ref().and_then(|k| k.get(i).cloned());
        let keyed = *keyed || key.is_some();
        let steps = steps.iter().cloned().chain([key.unwrap_or_else(|| i.to_string())]);
        walk(child, &Path { steps: steps.collect(), keyed }, leaves)?;
    }
    Some(())
}

/// A name that is not taken: that of an output which an input has, too, gets `_out`.
pub(super) fn free(name: String, taken: &mut FxHashSet<String>, output: bool) -> String {
    let numbered = (1..).map(|n| format!("{name}_{n}"));
    let out = output.then(|| format!("{name}_out"));
    let mut names = std::iter::once(name.clone()).chain(out).chain(numbered);
    let free = names.find(|name| !taken.contains(name)).unwrap_or(name);
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: &str = r#"{"type":null,"context":null,"children_spec":[]}"#;

    fn node(ty: &str, context: &str, children: &[&str]) -> String {
        let context = serde_json::to_string(context).unwrap();
        format!(r#"{{"type":"{ty}","context":{context},"children_spec":[{}]}}"#, children.join(","))
    }

    fn names(tree: &str) -> String {
        let mut leaves = Vec::new();
        walk(&serde_json::from_str(tree).unwrap(), &Path::default(), &mut leaves).unwrap();
        let name = |l: &Leaf| match &l.cache {
            Some(cache) => format!("{}/{}", l.steps.join("_"), cache.named("{layer}.{part}")),
            None if l.keyed => l.steps.join("_"),
            None => "-".to_owned(),
        };
        leaves.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn trees_name_their_leaves() {
        let pair = node("t", "null", &[LEAF, LEAF]);
        for (tree, expected) in [
            (LEAF.to_owned(), "-"),
            (pair.clone(), "- -"),
            (node("t", r#"["y"]"#, &[LEAF]), "y"),
            (node("t", r#"["a", 7]"#, &[&pair, LEAF]), "a_0 a_1 7"),
            (node("t", "null", &[&node("t", r#"["a"]"#, &[LEAF]), LEAF]), "0_a -"),
            (node("t", r#"[["f", "g"], ["h"]]"#, &[LEAF, LEAF]), "f g"),
            (node("t", r#"{"dict_context": ["d"], "default_factory_name": "list"}"#, &[LEAF]), "d"),
            (node("t", r#""m.Point""#, &[LEAF]), "-"),
            (node("t", r#"["too", "many"]"#, &[LEAF]), "-"),
        ] {
            assert_eq!(names(&tree), expected, "{tree}");
        }
    }

    #[test]
    fn caches_name_their_tensors() {
        let list = |n: usize| node("builtins.list", "null", &vec![LEAF; n]);
        let cache = |class: &str, context: &str, children: &[&str]| {
            node(&format!("transformers.cache_utils.{class}"), context, children)
        };
        let two = r#"[["key_cache", "value_cache"], [null, null]]"#;
        let dynamic = cache("DynamicCache", two, &[&list(2), &list(2)]);
        let halves = r#"["self_attention_cache", "cross_attention_cache"]"#;
        let both = cache("EncoderDecoderCache", halves, &[&dynamic, &dynamic]);
        let tensor = r#"{"tensor": null}"#;
        let layer =
            format!(r#"{{"object": "L", "items": [["keys", {tensor}], ["values", {tensor}]]}}"#);
        let packed = format!(r#"{{"object": "C", "items": [["layers", [{layer}]], ["n", 3]]}}"#);
        let packed = cache("DynamicCache", &serde_json::to_string(&packed).unwrap(), &[LEAF, LEAF]);
        let tuples = |inner: usize| {
            let inner = node("builtins.tuple", "null", &vec![LEAF; inner]);
            node("builtins.tuple", "null", &[&inner, &inner])
        };
        let keyed = |tree: &str| node("builtins.dict", r#"["past_key_values"]"#, &[tree]);
        for (tree, expected) in [
            (dynamic.clone(), "/0.key /1.key /0.value /1.value"),
            (
                keyed(&both),
                "past_key_values/0.decoder.key past_key_values/1.decoder.key \
                 past_key_values/0.decoder.value past_key_values/1.decoder.value \
                 past_key_values/0.encoder.key past_key_values/1.encoder.key \
                 past_key_values/0.encoder.value past_key_values/1.encoder.value",
            ),
            (packed, "/0.key /0.value"),
            (
                keyed(&tuples(2)),
                "past_key_values/0.key past_key_values/0.value past_key_values/1.key past_key_values/1.value",
            ),
            (tuples(2), "- - - -"),
            // Not a cache.
            (
                keyed(&tuples(3)).replace("past_key_values", "p"),
                "p_0_0 p_0_1 p_0_2 p_1_0 p_1_1 p_1_2",
            ),
        ] {
            assert_eq!(names(&tree), expected, "{tree}");
        }
    }
}
