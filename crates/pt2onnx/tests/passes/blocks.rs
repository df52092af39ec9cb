//! Models put together out of the blocks in `blocks.txt`.

use pt2onnx::{
    ir::{Model, Value},
    tensor::DType,
};
use std::{fmt::Write, sync::LazyLock};

/// Which block, and which values its `x` and `y` are.
pub type Choice = (u8, u8, u8);

struct Block {
    constants: &'static str,
    nodes: &'static str,
}

static BLOCKS: LazyLock<Vec<Block>> = LazyLock::new(|| {
    let blocks = include_str!("blocks.txt").split("\n## ").skip(1);
    let block = |text: &'static str| {
        let (_, body) = text.split_once('\n').unwrap();
        let (constants, nodes) = body.split_once('\n').unwrap();
        Block { constants: constants.trim_start_matches('-'), nodes }
    };
    blocks.map(block).collect()
});

/// The model of these blocks, one behind the other; its outputs are the last value and one in
/// between. With `in_body`, all are nodes of a branch that takes inputs and constants from around
/// it.
pub fn model(choices: &[Choice], in_body: bool) -> Model {
    let (mut constants, mut nodes) = (Vec::new(), String::new());
    for (i, &(block, x, y)) in choices.iter().enumerate() {
        let block = &BLOCKS[usize::from(block) % BLOCKS.len()];
        // Mostly the last value, so that blocks stand in a row.
        let last = i + 1;
        let x = if x % 4 == 0 { usize::from(x / 4) % (i + 2) } else { last };
        let y = usize::from(y) % (i + 2);
        let name = |word: &str| match word {
            "x" => format!("v{x}"),
            "y" => format!("v{y}"),
            "o" => format!("v{}", i + 2),
            "mask" => "mask".to_owned(),
            local => match local.strip_prefix('_') {
                Some(nameless) => format!("_b{i}_{nameless}"),
                None => format!("b{i}_{local}"),
            },
        };
        if !block.constants.is_empty() {
            constants.push(renamed(&numbers(block.constants, i), &name));
        }
        nodes.push_str(&renamed(block.nodes, &name));
        nodes.push('\n');
    }
    let last = choices.len() + 1;
    let between = choices.last().map_or(0, |c| usize::from(c.1 ^ c.2)) % choices.len() + 2;
    let mut outputs = vec![last];
    outputs.extend(Some(between).filter(|b| *b != last));
    let typed = |start: &str| {
        let all = outputs.iter().map(|o| format!("float[N,4,6,8] {start}{o}"));
        all.collect::<Vec<_>>().join(", ")
    };
    if in_body {
        let names = |start: &str| outputs.iter().map(|o| format!("{start}{o}")).collect::<Vec<_>>();
        let other: String = names("n").iter().map(|n| format!("{n} = Neg (v0)\n")).collect();
        nodes = format!(
            "size = Size (v0)\nnone = Sub (size, size)\ngo = GreaterOrEqual (size, none)\n\
             {} = If (go) <then_branch = yes () => ({}) {{\n{nodes}}}, else_branch = no () => ({}) {{\n{other}}}>\n",
            names("w").join(", "),
            typed("v"),
            typed("n"),
        );
    }
    let text = format!(
        "g (float[N,4,6,8] v0, float[N,4,6,8] v1, bool[N,1,6,6] mask) => ({})\n< {} >\n{{\n{nodes}}}",
        typed(if in_body { "w" } else { "v" }),
        constants.join(", ")
    );
    let mut model: Model = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    more_outputs(&mut model, choices.first().map_or(0, |c| c.1));
    let nameless =
        model.values().filter(|(_, d)| d.name.as_deref().is_some_and(|n| n.starts_with('_')));
    for value in nameless.map(|(v, _)| v).collect::<Vec<Value>>() {
        model[value].name = None;
    }
    model
}

/// Some models also have a value as two outputs, or an input or a constant as an output.
fn more_outputs(model: &mut Model, choice: u8) {
    let mut outputs: Vec<Value> = model.output_values().collect();
    let more = match choice % 6 {
        0 => outputs.first().copied(),
        1 => model.inputs().first().copied(),
        2 => {
            let mut constants = model.values().filter(|(_, d)| {
                d.constant().is_some_and(|t| t.dtype() == DType::F32) && d.uses().len() > 0
            });
            constants.next().map(|(value, _)| value)
        }
        _ => None,
    };
    let before = outputs.len();
    outputs.extend(more);
    model.set_outputs(Model::MAIN, &outputs);
    if before < outputs.len() {
        model.set_output_name(Model::MAIN, before, "more");
    }
}

/// `@3` as three numbers.
fn numbers(text: &str, seed: usize) -> String {
    let mut parts = text.split('@');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let (count, rest) = part.split_at(digits);
        let number = |k: usize| format!("{:.4}", ((k * 7 + seed * 3 + 1) as f32).cos() * 0.5);
        let all: Vec<String> = (0..count.parse().unwrap()).map(number).collect();
        write!(out, "{}{rest}", all.join(", ")).unwrap();
    }
    out
}

/// The text with other names for its values: words that are no types, no attributes, no operators.
fn renamed(text: &str, name: &dyn Fn(&str) -> String) -> String {
    const WORDS: &[&str] = &[
        "bool",
        "else_branch",
        "float",
        "inf",
        "int",
        "int64",
        "ints",
        "string",
        "then_branch",
        "uint8",
    ];
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut out, mut rest, mut quoted) = (String::new(), text, false);
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end.max(c.len_utf8()));
        quoted ^= c == '"';
        let is_name = (c.is_ascii_lowercase() || c == '_')
            && !quoted
            && !behind.starts_with(':')
            && !WORDS.contains(&word);
        if is_name {
            out.push_str(&name(word))
        } else {
            out.push_str(word)
        }
        rest = behind;
    }
    out
}
