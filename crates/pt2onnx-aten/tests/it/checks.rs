//! Calls become the nodes that `checks!` shows beside the lowerings.

use proc_macro2::{TokenStream, TokenTree};
use pt2onnx_aten::{Options, Provenance, Registry, lower};
use pt2onnx_fx::{passes, text};
use pt2onnx_ir::Model;
use std::{collections::HashMap, env, fmt::Write, fs, sync::Arc};
use syn::{
    Ident, LitStr, Token,
    parse::{ParseStream, Parser},
};

/// One call, the settings it is lowered with, and what should come out.
struct Check {
    call: LitStr,
    assume_finite: bool,
    /// The operator whose decomposition has the call.
    from: Option<String>,
    expected: LitStr,
}

impl Check {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let call = input.parse()?;
        let (mut assume_finite, mut from) = (false, None);
        while input.parse::<Option<Token![,]>>()?.is_some() {
            let setting: Ident = input.parse()?;
            if setting == "assume_finite" {
                assume_finite = true;
            } else if setting == "from" {
                input.parse::<Token![=]>()?;
                from = Some(input.parse::<LitStr>()?.value());
            } else {
                return Err(syn::Error::new(setting.span(), "`assume_finite` or `from`"));
            }
        }
        input.parse::<Token![=>]>()?;
        let expected = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Self { call, assume_finite, from, expected })
    }

    fn parse_all(input: ParseStream) -> syn::Result<Vec<Self>> {
        let mut checks = Vec::new();
        while !input.is_empty() {
            checks.push(Self::parse(input)?);
        }
        Ok(checks)
    }

    fn run(&self, registry: &Registry) -> String {
        let options = Options {
            assume_finite: self.assume_finite,
            metadata: Provenance::None,
            ..Options::default()
        };
        translated_with(registry, options, &self.call.value(), self.from.as_deref())
    }
}

/// The ONNX nodes of a call, or the error.
pub fn translated_by(registry: &Registry, call: &str) -> String {
    let options = Options { metadata: Provenance::None, ..Options::default() };
    translated_with(registry, options, call, None)
}

fn translated_with(
    registry: &Registry,
    options: Options,
    call: &str,
    from: Option<&str>,
) -> String {
    let mut program = match text::parse_call(call) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    for node in program.graph.nodes.iter_mut().map(Arc::make_mut) {
        Arc::make_mut(&mut node.meta).from_node = from.map(Into::into);
    }
    if let Err(error) = passes::prepare(&mut program) {
        return error.to_string();
    }
    match lower(&program, registry, options) {
        Ok(mut lowering) => {
            lowering.model.assign_names();
            nodes(&lowering.model)
        }
        Err(error) => error.to_string(),
    }
}

/// The nodes of a model's graph. Constants stand where they are used, unless they are long. Outputs
/// that no node gives follow as `=> NAMES`.
fn nodes(model: &Model) -> String {
    let text = model.to_string();
    let (head, body) = text.split_once("\n{\n").unwrap();
    let (mut words, mut lines) = (HashMap::new(), String::new());
    let constants = head.split_once("main_graph ").unwrap().1.lines();
    for constant in constants.filter_map(|line| line.strip_prefix("  ")) {
        let (typed, elements) = constant.trim_end_matches(',').split_once(" = ").unwrap();
        let (ty, name) = typed.rsplit_once(' ').unwrap();
        let text = literal_of(ty, elements);
        if text.len() <= 60 {
            words.insert(name.to_owned(), text);
        } else {
            writeln!(lines, "{name} = {text}").unwrap();
        }
    }
    for line in body.lines().filter(|line| *line != "}") {
        writeln!(lines, "{}", line.strip_prefix("  ").unwrap_or(line)).unwrap();
    }
    let mut outputs = model.output_values();
    if outputs.any(|value| model.producer(value).is_none()) {
        let names = model.output_values().filter_map(|value| model[value].name.as_deref());
        writeln!(lines, "=> {}", names.collect::<Vec<_>>().join(", ")).unwrap();
    }
    let mut count = 0;
    replace_words(&lines, |word| {
        let is_numbered = word.strip_prefix("val_").is_some_and(|n| n.parse::<usize>().is_ok());
        if is_numbered && !words.contains_key(word) {
            words.insert(word.to_owned(), format!("val_{count}"));
            count += 1;
        }
        words.get(word).cloned()
    })
}

/// A constant as an operand: `2.0` (float32), `2` and `[2, 3]` (int64), others with their type.
fn literal_of(ty: &str, elements: &str) -> String {
    let bare = elements.trim_matches(['{', '}']);
    match (ty.split_once('['), bare) {
        (None, "0") if ty == "bool" => "false".to_owned(),
        (None, "1") if ty == "bool" => "true".to_owned(),
        (None, _) if matches!(ty, "float" | "int64") => bare.to_owned(),
        (Some(("float" | "int64", dims)), _) if !dims.contains(',') => format!("[{bare}]"),
        _ => format!("{ty} {elements}"),
    }
}

/// `text` with other words where `new` gives some.
fn replace_words(text: &str, mut new: impl FnMut(&str) -> Option<String>) -> String {
    let between = |c: char| !c.is_alphanumeric() && c != '_';
    let replace = |part: &str| {
        let (word, rest) = part.split_at(part.find(between).unwrap_or(part.len()));
        new(word).unwrap_or_else(|| word.to_owned()) + rest
    };
    text.split_inclusive(between).map(replace).collect()
}

/// A string literal that shows `text` as `checks!` has it: in the call's line if it fits behind
/// `column`.
fn literal(text: &str, column: usize) -> String {
    let hashes = if text.contains(['"', '\\']) { "#" } else { "" };
    let raw = if hashes.is_empty() { "" } else { "r" };
    let text = text.trim_end();
    let inline = format!("{raw}{hashes}\"{text}\"{hashes}");
    if !text.contains('\n') && column + inline.chars().count() < 100 {
        return inline;
    }
    let mut literal = format!("{raw}{hashes}\"\n");
    for line in text.lines() {
        let indent = if line.is_empty() { "" } else { "    " };
        writeln!(literal, "{indent}{line}").unwrap();
    }
    literal + "    \"" + hashes
}

#[test]
fn calls_become_what_is_shown() {
    let registry = Registry::default();
    let (mut count, mut failed, mut unreadable) = (0, String::new(), String::new());
    for path in glob::glob(concat!(env!("CARGO_MANIFEST_DIR"), "/src/**/*.rs")).unwrap() {
        let path = path.unwrap();
        let source = fs::read_to_string(&path).unwrap();
        let mut updated = source.clone();
        let tokens: Vec<TokenTree> = source.parse::<TokenStream>().unwrap().into_iter().collect();
        let blocks = tokens.windows(3).rev().filter_map(|tokens| match tokens {
            [TokenTree::Ident(name), _, TokenTree::Group(block)] if name == "checks" => Some(block),
            _ => None,
        });
        for block in blocks {
            let checks = Check::parse_all.parse2(block.stream()).unwrap_or_else(|error| {
                panic!("{}:{}: {error}", path.display(), error.span().start().line)
            });
            count += checks.len();
            // From the end, so that the places before stay what they are.
            for check in checks.iter().rev() {
                let place = check.expected.span();
                let found = literal(&check.run(&registry), place.start().column);
                if found != source[place.byte_range()] {
                    let (file, line) = (path.display(), place.start().line);
                    let text = format!("{file}:{line}: {} => {found}\n\n", check.call.value());
                    if text::parse_call(&check.call.value()).is_ok() {
                        failed += &text;
                        updated.replace_range(place.byte_range(), &found);
                    } else {
                        unreadable += &text;
                    }
                }
            }
        }
        if updated != source && env::var_os("UPDATE_CASES").is_some() {
            fs::write(path, updated).unwrap();
            failed.clear();
        }
    }
    assert!(count > 200, "the checks are not found");
    // `UPDATE_CASES` does not record these: the call is wrong, not the result.
    assert!(unreadable.is_empty(), "calls that cannot be read:\n\n{unreadable}");
    assert!(failed.is_empty(), "other graphs than the sources show:\n\n{failed}");
}
