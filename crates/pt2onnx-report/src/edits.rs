//! How one list becomes another: its edits, and those of lines as a unified diff.

use similar::{
    DiffOp, DiffTag,
    algorithms::{Capture, Compact, Replace, patience},
    group_diff_ops,
};
use std::{collections::HashMap, fmt::Write, hash::Hash, ops::Range};

/// The edits that make `new` of `old`.
pub(crate) fn edits<T: Hash + Eq>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    // Equal items have the same number, so that the algorithm is compiled once, for numbers.
    let mut numbers: HashMap<&T, usize> = HashMap::new();
    let mut number = |item| {
        let next = numbers.len();
        *numbers.entry(item).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(&mut number).collect();
    let new: Vec<usize> = new.iter().map(&mut number).collect();
    of_numbers(&old, &new)
}

fn of_numbers(old: &[usize], new: &[usize]) -> Vec<DiffOp> {
    let mut found = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = patience::diff(&mut found, old, 0..old.len(), new, 0..new.len());
    found.into_inner().into_inner().into_ops()
}

/// The edits of lines as a unified diff, with one line of context and without a header.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let mut text = String::new();
    for hunk in group_diff_ops(edits(&old, &new), 1) {
        if let (Some(first), Some(last)) = (hunk.first(), hunk.last()) {
            let old = place(first.old_range().start..last.old_range().end);
            let new = place(first.new_range().start..last.new_range().end);
            let _ = writeln!(text, "@@ -{old} +{new} @@");
        }
        for op in hunk {
            let mut lines = |sign: char, lines: &[&str]| {
                lines.iter().for_each(|line| {
                    let _ = writeln!(text, "{sign}{line}");
                });
            };
            match op.tag() {
                DiffTag::Equal => lines(' ', &old[op.old_range()]),
                DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                    lines('-', &old[op.old_range()]);
                    lines('+', &new[op.new_range()]);
                }
            }
        }
    }
    text
}

/// A range of lines as a hunk names it: the first one, counted from 1, and how many there are.
fn place(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_that_are_gone_new_and_other() {
        let text = super::unified("a\nb\nc\nd\ne\nf\n", "new\na\nb\nc\nd\nother\nf\n");
        assert_eq!(text, "@@ -1 +1,2 @@\n+new\n a\n@@ -4,3 +5,3 @@\n d\n-e\n+other\n f\n");
        assert_eq!(super::unified("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
        assert_eq!(super::unified("a\n", "a\n"), "");
    }
}
