//! `pt2onnx ops` and `pt2onnx explain`: the ops that have a translation, and what they become.

use crate::{
    error::{CUSTOM_OPS, Code, CommandError},
    output::{print, print_json},
};
use pt2onnx::{OPSETS, Registry, aten::AtenOp};
use std::{
    collections::{BTreeSet, HashMap},
    fmt,
};

/// The ONNX operators of each op in the conformance cases. `cargo xtask regen-ops` writes it.
const TABLE: &str = include_str!("generated/ops.tsv");

/// A line of the table.
#[derive(Default, Clone, Copy)]
struct Tested<'a> {
    cases: &'a str,
    operators: &'a str,
    opset: &'a str,
    types: &'a str,
    /// Differences in older opsets: `13 -Trilu +Less +Where`, `9!` if no case can be written in
    /// opset 9, `9?` if some cannot.
    older: &'a str,
}

/// The operators that an op becomes in opsets `first` to `last`.
struct Form<'a> {
    first: u32,
    last: u32,
    operators: BTreeSet<&'a str>,
}

impl<'a> Tested<'a> {
    /// The op's forms, from new opsets to old ones; and the last opset in which some uses cannot be
    /// written.
    fn forms(&self) -> (Vec<Form<'a>>, Option<u32>) {
        let mut operators: BTreeSet<&str> = self.operators.split_whitespace().collect();
        let (mut first, mut last, mut refused) = (*OPSETS.start(), *OPSETS.end(), None);
        let mut forms = Vec::new();
        for step in self.older.split(';') {
            let mut words = step.split_whitespace();
            let Some(opset) = words.next() else { continue };
            let number = opset.trim_end_matches(['!', '?']).parse().unwrap_or(last);
            match opset.chars().last() {
                Some('!') => first = number + 1,
                Some('?') => refused = Some(number),
                _ => {
                    if number < last {
                        forms.push(Form { first: number + 1, last, operators: operators.clone() });
                    }
                    last = number;
                    for word in words {
                        match (word.strip_prefix('-'), word.strip_prefix('+')) {
                            (Some(gone), _) => _ = operators.remove(gone),
                            (_, Some(new)) => _ = operators.insert(new),
                            _ => {}
                        }
                    }
                }
            }
        }
        forms.push(Form { first, last, operators });
        forms.retain(|form| !form.operators.is_empty());
        (forms, refused)
    }
}

impl fmt::Display for Form<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, operators } = self;
        match (last == OPSETS.end(), first == last) {
            (true, _) => write!(f, "opset {first} and newer:")?,
            (_, true) => write!(f, "opset {first}:")?,
            _ => write!(f, "opset {first} to {last}:")?,
        }
        operators.iter().try_for_each(|operator| write!(f, " {operator}"))
    }
}

/// The table, by the names of ops.
fn table() -> HashMap<&'static str, Tested<'static>> {
    let row = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [name, cases, operators, opset, types, older] => {
            Some((name, Tested { cases, operators, opset, types, older }))
        }
        _ => None,
    };
    TABLE.lines().filter_map(row).collect()
}

/// Prints all ops that have a translation: one schema in a line, or JSON with everything known
/// about them.
pub fn list(json: bool) -> Result<(), CommandError> {
    let (ops, table) = (Registry::default().ops(), table());
    if !json {
        let lines: String = ops.into_iter().map(|op| format!("{}\n", op.schema)).collect();
        return print(&lines);
    }
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let form = |Form { first, last, operators }: &Form| serde_json::json!({ "first": first, "last": last, "operators": operators });
    let entry = |op: &&AtenOp| {
        let tested = table.get(op.name()).copied().unwrap_or_default();
        serde_json::json!({
            "name": op.name(),
            "schema": op.schema,
            "complex": op.takes_complex(),
            "cases": tested.cases.parse::<u32>().unwrap_or(0),
            "operators": words(tested.operators),
            "opset": tested.opset.parse::<u32>().ok(),
            "opsets": tested.forms().0.iter().map(form).collect::<Vec<_>>(),
            "types": words(tested.types),
        })
    };
    let all: Vec<_> = ops.iter().map(entry).collect();
    print_json(&all.into(), true)
}

/// All overloads of an op, or one of them: what the cases became before optimisation, in each
/// opset.
pub fn explain(op: &str) -> Result<String, CommandError> {
    let (registry, table) = (Registry::default(), table());
    let wanted = op.strip_prefix("torch.ops.").unwrap_or(op);
    let wanted = wanted.strip_suffix(".default").unwrap_or(wanted);
    let wanted = if wanted.contains("::") {
        wanted.to_owned()
    } else {
        format!("aten::{}", wanted.trim_start_matches("aten."))
    };
    let is_it =
        |op: &&&AtenOp| op.name() == wanted || op.name().split('.').next() == Some(&*wanted);
    let all = registry.ops();
    let found: Vec<_> = all.iter().filter(is_it).collect();
    if found.is_empty() {
        return Err(no_translation(op, &wanted, &registry));
    }
    let describe =
        |op: &&AtenOp| description(op, table.get(op.name()).copied().unwrap_or_default());
    Ok(found.into_iter().map(describe).collect())
}

/// The error for `wanted`, read as `op`, that has no translation; it lists ops that may be meant.
fn no_translation(op: &str, wanted: &str, registry: &Registry) -> CommandError {
    let all = registry.ops();
    let meant = |base: &str| -> Vec<&str> {
        let names = all.iter().map(|op| op.name());
        names.filter(|name| name.split('.').next() == Some(base)).collect()
    };
    // An overload that there is not, or Python's name of the function or module.
    let base = wanted.split('.').next().unwrap_or_default();
    let python = format!("aten::{}", op.rsplit('.').next().unwrap_or(op).to_lowercase());
    let meant = [base, &python].map(meant).into_iter().find(|ops| !ops.is_empty());
    let error = CommandError::new(Code::Program, format!("there is no translation of {wanted}"));
    error.help(match (meant, registry.nearest(wanted)) {
        (Some(ops), _) => format!("there is {}", ops.join(", ")),
        (None, Some(near)) => format!("the most similar supported op: {near}; or {CUSTOM_OPS}"),
        (None, None) if wanted.starts_with("aten::") => {
            format!("`pt2onnx ops` lists what there is; or {CUSTOM_OPS}")
        }
        (None, None) => CUSTOM_OPS.to_owned(),
    })
}

/// The form of an op in each opset, and its tests.
fn description(op: &AtenOp, tested: Tested<'_>) -> String {
    let complex = if op.takes_complex() { "yes" } else { "no" };
    let mut lines = vec![op.schema.to_string(), format!("  complex tensors: {complex}")];
    let (forms, refused) = tested.forms();
    lines.extend(forms.iter().map(|form| format!("  {form}")));
    let oldest = forms.iter().map(|form| form.first).min().unwrap_or(*OPSETS.start());
    if oldest > *OPSETS.start() {
        lines.push(format!("  opset {} and older: not possible", oldest - 1));
    }
    if let Some(refused) = refused {
        lines.push(format!("  some uses need opset {} or newer", refused + 1));
    }
    lines.push(format!("  tested by {} cases, results of type: {}\n", tested.cases, tested.types));
    lines.join("\n")
}
