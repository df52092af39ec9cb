//! Groups many of the same, which are shown as one.

use indexmap::IndexMap;
use std::hash::Hash;

/// Groups what has one key, in the order of the first of each. What there are few of stays apart.
///
/// ```
/// use pt2onnx::alike;
///
/// let words = ["a", "bb", "c", "dd", "e"];
/// assert_eq!(alike(words, 2, |word| word.len()), [vec!["a", "c", "e"], vec!["bb"], vec!["dd"]]);
/// ```
pub fn alike<T, K: Eq + Hash>(
    all: impl IntoIterator<Item = T>,
    few: usize,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut groups: IndexMap<K, Vec<(usize, T)>> = IndexMap::new();
    for item in all.into_iter().enumerate() {
        groups.entry(key(&item.1)).or_default().push(item);
    }
    let apart = |group: Vec<(usize, T)>| {
        if group.len() > few {
            vec![group]
        } else {
            group.into_iter().map(|item| vec![item]).collect()
        }
    };
    let mut groups: Vec<_> = groups.into_values().flat_map(apart).collect();
    groups.sort_by_key(|group| group.first().map(|(place, _)| *place));
    groups.into_iter().map(|group| group.into_iter().map(|(_, item)| item).collect()).collect()
}
