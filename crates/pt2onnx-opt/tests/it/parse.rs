//! Cases as models. `{0 ...}` stands for as many zeros as there are; values whose name begins with
//! `_` get none.

use pt2onnx_ir::{Model, Value};
use std::fmt::Write;

/// A model of the canonical opset.
pub fn model(text: &str) -> Model {
    let mut model: Model = zeros(text).parse().unwrap_or_else(|e| panic!("{e}"));
    model.name = "main_graph".to_owned();
    let nameless = model.values().filter(|(_, d)| {
        let name = d.name.as_deref();
        name.is_some_and(|n| n.starts_with('_'))
    });
    for value in nameless.map(|(v, _)| v).collect::<Vec<Value>>() {
        model[value].name = None;
    }
    model
}

/// Spells out `float[2,3] w = {0 ...}`.
fn zeros(text: &str) -> String {
    let mut spelled = String::new();
    let mut parts = text.split("{0 ...}").peekable();
    while let Some(part) = parts.next() {
        spelled.push_str(part);
        if parts.peek().is_some() {
            let sizes = part.rsplit_once('[').and_then(|(_, s)| s.split_once(']'));
            let sizes = sizes.map_or("1", |(sizes, _)| sizes).split(',');
            let count = sizes.map(|n| n.trim().parse::<usize>().unwrap()).product();
            write!(spelled, "{{{}}}", vec!["0"; count].join(", ")).unwrap();
        }
    }
    spelled
}

/// The items of a list in brackets and what follows the list, which begins with `(`.
pub fn items(text: &str) -> (Vec<&str>, &str) {
    let (mut depth, mut quoted, mut start, mut items) = (0, false, 1, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        let last = depth == 0;
        if last || (depth == 1 && c == ',' && !quoted) {
            let item = text[start..i].trim();
            items.extend((!item.is_empty()).then_some(item));
            start = i + 1;
        }
        if last {
            return (items, text[i + 1..].trim());
        }
    }
    panic!("no list: {text}")
}
