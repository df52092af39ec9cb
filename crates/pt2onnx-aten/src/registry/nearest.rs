//! The op with the most similar name, for messages.

use super::Registry;

impl Registry {
    /// The op of the tables whose name is most similar to `name`: another overload, or else one
    /// that differs in few letters.
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        let base = |n: &str| n.split('.').next().unwrap_or(n).to_owned();
        let wanted = base(name);
        let distance = |op: &&&'static str| {
            if base(op) == wanted { 0 } else { edit_distance(&base(op), &wanted) }
        };
        let mut names: Vec<_> = self.ops.0.keys().collect();
        names.sort();
        names
            .into_iter()
            .min_by_key(distance)
            .filter(|op| distance(op) <= wanted.rsplit("::").next().map_or(0, str::len) / 3)
            .copied()
    }
}

/// The Levenshtein distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
