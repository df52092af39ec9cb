//! Calls become the graphs that `checks!` shows beside the lowerings.

use proc_macro2::{TokenStream, TokenTree};
use pt2onnx_aten::{Detail, Options, Registry, lower};
use pt2onnx_fx::{passes, text};
use std::{env, fmt::Write, fs, sync::Arc};
use syn::{
    Ident, LitStr, Token, braced,
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

    /// Several groups of checks: `name { .. }`.
    fn parse_all(input: ParseStream) -> syn::Result<Vec<Self>> {
        let mut checks = Vec::new();
        while !input.is_empty() {
            input.parse::<Ident>()?;
            let group;
            braced!(group in input);
            while !group.is_empty() {
                checks.push(Self::parse(&group)?);
            }
        }
        Ok(checks)
    }

    fn run(&self, registry: &Registry) -> String {
        let options = Options {
            assume_finite: self.assume_finite,
            metadata: Detail::None,
            ..Options::default()
        };
        translated_with(registry, options, &self.call.value(), self.from.as_deref())
    }
}

/// The ONNX graph of a call, or the error.
pub fn translated_by(registry: &Registry, call: &str) -> String {
    let options = Options { metadata: Detail::None, ..Options::default() };
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
            let text = lowering.model.to_string();
            text.split_once("main_graph ").map(|(_, graph)| graph.to_owned()).unwrap_or(text)
        }
        Err(error) => error.to_string(),
    }
}

/// A string literal that shows `text` as `checks!` has it.
fn literal(text: &str) -> String {
    let hashes = if text.contains(['"', '\\']) { "#" } else { "" };
    let raw = if hashes.is_empty() { "" } else { "r" };
    let mut literal = format!("{raw}{hashes}\"\n");
    for line in text.trim_end().lines() {
        let indent = if line.is_empty() { "" } else { "        " };
        writeln!(literal, "{indent}{line}").unwrap();
    }
    literal + "        \"" + hashes
}

#[test]
fn calls_become_what_is_shown() {
    let registry = Registry::default();
    let (mut count, mut failed) = (0, String::new());
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
                let found = literal(&check.run(&registry));
                let place = check.expected.span();
                if found != source[place.byte_range()] {
                    let (file, line) = (path.display(), place.start().line);
                    writeln!(failed, "{file}:{line}: {} => {found}\n", check.call.value()).unwrap();
                    updated.replace_range(place.byte_range(), &found);
                }
            }
        }
        if updated != source && env::var_os("UPDATE_CASES").is_some() {
            fs::write(path, updated).unwrap();
            failed.clear();
        }
    }
    assert!(count > 200, "the checks are not found");
    assert!(failed.is_empty(), "other graphs than the sources show:\n\n{failed}");
}
