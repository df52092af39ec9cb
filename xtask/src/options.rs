//! Documentation of options, from their declaration: the tables of docs/options.md and Python's
//! `TypedDict`s.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The line of docs/options.md after which the page is generated.
const GENERATED: &str = "<!-- `cargo xtask regen-options` generates the rest. -->\n";

/// Options that are parameters of `pt2onnx.export`, or that it has no use for.
const PARAMETERS: [&str; 7] = [
    "dynamic-axes",
    "input-names",
    "keep-initializers-as-inputs",
    "optimize",
    "output-names",
    "program",
    "training",
];

/// The description of an option (`pt2onnx::OptionMeta::to_json`).
#[derive(Deserialize)]
pub struct Described {
    key: String,
    aliases: Vec<String>,
    summary: String,
    heading: String,
    tasks: Vec<String>,
    value_name: Option<String>,
    default: Option<String>,
    flag: String,
    choices: Vec<(String, String)>,
    python: String,
}

impl Described {
    fn takes(&self, task: &str) -> bool {
        self.tasks.iter().any(|taker| taker == task)
    }
}

/// Replaces the generated part of docs/options.md.
///
/// # Errors
/// The page has no such part.
pub fn page(old: &str, options: &[Described]) -> Result<String> {
    let (own, _) = old.split_once(GENERATED).context("docs/options.md has no generated part")?;
    Ok(format!("{own}{GENERATED}{}", tables(options)))
}

/// A table for each heading.
pub fn tables(options: &[Described]) -> String {
    let mut text = String::new();
    let mut headings: Vec<&str> = Vec::new();
    for option in options {
        if !headings.contains(&option.heading.as_str()) {
            headings.push(&option.heading);
        }
    }
    for heading in headings {
        text += &format!(
            "\n### {heading}\n\n| option | default | meaning | taken by |\n| --- | --- | --- | --- |\n"
        );
        for option in options.iter().filter(|option| option.heading == heading) {
            text += &row(option);
        }
    }
    text
}

fn row(option: &Described) -> String {
    let value = match &option.value_name {
        Some(name) => format!(" {name}"),
        None => String::new(),
    };
    let default = match (&option.default, option.flag.as_str()) {
        (Some(default), _) => default.clone(),
        (None, "switch") => "off".to_owned(),
        (None, _) => String::new(),
    };
    let meaning: String = { option.choices.iter() }
        .map(|(word, meaning)| format!("<br>`{word}`: {meaning}"))
        .collect();
    let cells = [
        format!("`{}{value}`", option.key),
        default,
        option.summary.clone() + &meaning,
        option.tasks.join(", "),
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

/// The source of python/pt2onnx/_options.py.
pub fn python(options: &[Described]) -> String {
    let mut text = "\
\"\"\"Options as keywords. `cargo xtask regen-options` generates this file from Rust's declaration.\"\"\"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, TypedDict

Path = str | PathLike[str]
"
    .to_owned();
    let parameter = |option: &&Described| PARAMETERS.contains(&option.key.as_str());
    let mut class = |head: &str, doc: &str, takes: &dyn Fn(&&Described) -> bool| {
        let fields: String = options.iter().filter(takes).map(keyword).collect();
        let _ = write!(text, "\n\nclass {head}:\n    \"\"\"{doc}\"\"\"\n\n{fields}");
    };
    class("SaveOptions(TypedDict, total=False)", "How a model is written.", &|o| o.takes("save"));
    class(
        "RewriteOptions(TypedDict, total=False)",
        "Options that ``export`` and ``optimize`` share.",
        &|o| o.takes("optimize") && !o.takes("save") && !parameter(o),
    );
    class(
        "OptimizeOptions(RewriteOptions, SaveOptions, total=False)",
        "The options of ``optimize``.",
        &|o| o.takes("optimize") && parameter(o),
    );
    class(
        "ExportOptions(RewriteOptions, SaveOptions, total=False)",
        "The options of ``export``, without its parameters.",
        &|o| o.takes("convert") && !o.takes("optimize") && !parameter(o),
    );
    class(
        "ConvertOptions(ExportOptions, total=False)",
        "The options of ``convert``, ``inspect`` and ``check``.",
        &|o| o.takes("convert") && parameter(o),
    );
    let renamed: BTreeMap<_, _> = { options.iter() }
        .flat_map(|option| option.aliases.iter().map(|old| (identifier(old), &option.key)))
        .collect();
    text += "\n\n#: Keywords before 0.1, which 0.2 drops, and their new spellings.\nRENAMED = {\n";
    for (old, key) in renamed {
        let _ = writeln!(text, "    \"{old}\": \"{}\",", identifier(key));
    }
    text + "}\n"
}

fn identifier(key: &str) -> String {
    key.replace('-', "_")
}

fn keyword(option: &Described) -> String {
    let (key, python) = (identifier(&option.key), &option.python);
    let mut doc = option.summary.clone() + ".";
    if let Some(default) = &option.default {
        let _ = write!(doc, " Default: {default}.");
    }
    annotation(&key, python) + &docstring(&doc)
}

/// The line of a keyword; lines, as ruff breaks it, where it has many values.
fn annotation(key: &str, python: &str) -> String {
    let line = format!("    {key}: {python} | None\n");
    let values = python.strip_prefix("Literal[").and_then(|values| values.strip_suffix(']'));
    let Some(values) = values.filter(|_| line.len() > 101) else { return line };
    let values: String =
        values.split(", ").map(|value| format!("            {value},\n")).collect();
    format!("    {key}: (\n        Literal[\n{values}        ]\n        | None\n    )\n")
}

/// A docstring, wrapped at 100 columns.
fn docstring(text: &str) -> String {
    let mut lines = vec![String::from("    \"\"\"")];
    for word in text.replace('`', "``").split(' ') {
        let line = lines.last_mut().map_or(0, |line| line.len());
        match lines.last_mut() {
            Some(last) if line + word.len() < 96 => {
                let blank = if last.ends_with([' ', '"']) { "" } else { " " };
                last.push_str(blank);
                last.push_str(word);
            }
            _ => lines.push(format!("    {word}")),
        }
    }
    lines.join("\n") + "\"\"\"\n"
}
