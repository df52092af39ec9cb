//! Where code comes from: `*.py.debug_pkl` has the user's lines for each part of a file.

use pt2onnx_fx::archive::pickle::{Id, Pickle, Value};
use std::sync::Arc;

/// The most bytes of a source text that is looked at.
const MAX_TEXT: usize = 1 << 20;
/// The most frames of a Python stack.
const MAX_FRAMES: usize = 64;
/// The files of tracers: frames outside of theirs are those of their callers.
const TRACERS: [&str; 2] = ["torch/jit/_trace.py", "pt2onnx/_capture/_trace.py"];
/// Files whose frames are between those of the user's code.
const WITHIN: [&str; 3] = [
    "torch/nn/modules/module.py",
    "pt2onnx/_capture/_module_trace.py",
    "pt2onnx/_capture/_numbers.py",
];

#[derive(Debug)]
pub(crate) struct SourceRanges {
    pickle: Pickle,
    /// Texts that ranges refer to by position; none in older files.
    strings: Vec<Arc<str>>,
    /// First byte and range of each part, in order.
    parts: Vec<(usize, Id)>,
}

/// A line of Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its file.
    pub file: String,
    /// Its number, counted from 1.
    pub line: u64,
    /// `None`: the function of the archive that has this part.
    pub function: Option<String>,
    /// Its text; empty if it is not known.
    pub code: String,
}

/// Where a part of the code comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a function that was scripted.
    Line(Line),
    /// The Python stack of a trace, outermost frame first.
    Stack(Vec<Line>),
}

impl SourceRanges {
    /// Takes the ranges out of a pickle; `None` if it is of another form.
    pub(crate) fn new(pickle: Pickle) -> Option<Self> {
        let root = items(&pickle, pickle.root_id())?;
        let (strings, entries) = match root {
            &[format, strings, entries]
                if pickle
                    .text(format)
                    .is_some_and(|text| &**text == "FORMAT_WITH_STRING_TABLE") =>
            {
                let strings = items(&pickle, strings)?.iter().map(|&id| pickle.text(id).cloned());
                (strings.collect::<Option<Vec<_>>>()?, items(&pickle, entries)?)
            }
            entries => (Vec::new(), entries),
        };
        let part = |&entry: &Id| match items(&pickle, entry)? {
            &[at, range, ..] => Some((pickle.size(at)?, range)),
            _ => None,
        };
        let mut parts = entries.iter().map(part).collect::<Option<Vec<_>>>()?;
        parts.sort_by_key(|(at, _)| *at);
        Some(Self { pickle, strings, parts })
    }

    /// Where the byte `at` of the code, or else the first part before `end`, comes from.
    pub(crate) fn origin(&self, at: usize, end: usize) -> Option<Origin> {
        let first = self.parts.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        let parts = self.parts.get(first..)?.iter();
        let mut parts = parts.take_while(|(start, _)| *start <= at || *start < end);
        parts.find_map(|(_, range)| self.resolve(*range))
    }

    fn resolve(&self, range: Id) -> Option<Origin> {
        let &[source, start, ..] = items(&self.pickle, range)? else {
            return None;
        };
        let &[text, file, first, ..] = items(&self.pickle, source)? else {
            return None;
        };
        let text = self.text(text).filter(|text| !text.is_empty())?;
        if let Some(stack) = stack(&text) {
            return Some(Origin::Stack(stack));
        }
        let (file, first) = (self.string(file)?, self.pickle.size(first)? as u64);
        let start = self.pickle.size(start)?;
        let before = text.as_bytes().get(..start)?.iter().filter(|&&b| b == b'\n').count();
        let code = text.lines().nth(before).unwrap_or_default().trim().to_owned();
        let line = first.saturating_add(before as u64);
        Some(Origin::Line(Line { file: file.to_string(), line, function: None, code }))
    }

    /// The text of a source: a string, or the positions of its lines in the table.
    fn text(&self, id: Id) -> Option<String> {
        if let Some(text) = self.pickle.text(id) {
            return Some(text.chars().take(MAX_TEXT).collect());
        }
        let mut text = String::new();
        for &piece in items(&self.pickle, id)? {
            let piece = self.string(piece)?;
            if text.len().saturating_add(piece.len()) > MAX_TEXT {
                break;
            }
            text.push_str(&piece);
        }
        Some(text)
    }

    /// A string, or one of the table.
    fn string(&self, id: Id) -> Option<Arc<str>> {
        match self.pickle.get(id) {
            Value::Text(text) => Some(text.clone()),
            _ => self.strings.get(self.pickle.size(id)?).cloned(),
        }
    }
}

/// The value within tags of its type.
pub(crate) fn untagged(pickle: &Pickle, id: Id) -> Id {
    match pickle.get(id) {
        Value::Call { global, arguments } if global.starts_with("torch.jit._pickle.") => {
            let items = pickle.tuple(*arguments);
            items.map_or(*arguments, |items| items.first().copied().unwrap_or(id))
        }
        _ => id,
    }
}

fn items(pickle: &Pickle, id: Id) -> Option<&[Id]> {
    match pickle.get(untagged(pickle, id)) {
        Value::Tuple(items) => Some(items),
        Value::List(items) => Some(items),
        _ => None,
    }
}

/// The Python stack that a trace keeps as its source, innermost frame first: `model.py(12):
/// forward`. Frames of the tracer, of its callers and of the calls of modules are left out, as
/// `torch.export` leaves them out.
pub(crate) fn stack(text: &str) -> Option<Vec<Line>> {
    let mut frames = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (place, function) = line.rsplit_once("): ")?;
        let (file, number) = place.rsplit_once('(')?;
        let line = number.parse().ok()?;
        if TRACERS.iter().any(|tracer| file.ends_with(tracer)) || frames.len() == MAX_FRAMES {
            break;
        }
        if !WITHIN.iter().any(|within| file.ends_with(within)) {
            let (file, function) = (file.to_owned(), Some(function.to_owned()));
            frames.push(Line { file, line, function, code: String::new() });
        }
    }
    frames.reverse();
    (!frames.is_empty()).then_some(frames)
}
