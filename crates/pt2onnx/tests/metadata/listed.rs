//! Differences, text by text, and the list of those that have a reason.

use crate::{Props, Said};
use std::{collections::BTreeSet, path::Path};

/// Lines `WHAT: only PyTorch`, `WHAT: only pt2onnx` and `WHAT: KEY: THEIRS -> OURS`.
pub fn differences(theirs: &Said, ours: &Said) -> Vec<String> {
    let mut lines = Vec::new();
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for name in names {
        match (theirs.get(name), ours.get(name)) {
            (Some(_), None) => lines.push(format!("{name}: only PyTorch")),
            (None, _) => lines.push(format!("{name}: only pt2onnx")),
            (Some(theirs), Some(ours)) => {
                let texts = texts(theirs, ours);
                lines.extend(texts.iter().map(|text| format!("{name}: {text}")));
            }
        }
    }
    lines
}

pub fn texts(theirs: &Props, ours: &Props) -> Vec<String> {
    let keys: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let texts = keys.into_iter().filter_map(|key| {
        let short = key.rsplit('.').next().unwrap_or(key);
        match (theirs.get(key), ours.get(key)) {
            (Some(t), Some(o)) if t == o => None,
            (Some(t), Some(o)) => Some(format!("{short}: {}", changed(t, o))),
            (t, o) => Some(format!("{short}: {t:?} -> {o:?}")),
        }
    });
    texts.collect()
}

/// The replacements that make one text of the other, with their places: `@7 "1.0" -> "%one"`.
pub fn changed(theirs: &str, ours: &str) -> String {
    let (t, o): (Vec<char>, Vec<char>) = (theirs.chars().collect(), ours.chars().collect());
    let head = t.iter().zip(&o).take_while(|(a, b)| a == b).count();
    let (t, o) = (&t[head..], &o[head..]);
    let tail = t.iter().rev().zip(o.iter().rev());
    let tail = tail.take_while(|(a, b)| a == b).count();
    let middle = |s: &[char]| s[..s.len() - tail].iter().collect::<String>();
    format!("@{head} {:?} -> {:?}", middle(t), middle(o))
}

/// Wants the differences to be those of `differences.txt`.
pub fn check(found: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/metadata/differences.txt");
    let text = std::fs::read_to_string(path).expect("differences.txt");
    let mut listed: BTreeSet<&str> =
        text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let new = found.iter().filter(|l| !listed.remove(l.as_str()));
    let new: Vec<&str> = new.map(String::as_str).collect();
    let gone: Vec<&str> = listed.into_iter().collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "not listed:\n{}\nlisted, but not so:\n{}",
        new.join("\n"),
        gone.join("\n")
    );
}
