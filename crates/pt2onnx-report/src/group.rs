//! Groups items by key.

use indexmap::IndexMap;
use std::hash::Hash;

/// Groups items by key, in order of the first item of each group. The items of groups smaller than
/// `min` are left ungrouped.
///
/// ```
/// use pt2onnx_report::group;
///
/// let words = ["a", "bb", "c", "dd", "e"];
/// assert_eq!(group(words, 3, |word| word.len()), [vec!["a", "c", "e"], vec!["bb"], vec!["dd"]]);
/// ```
pub fn group<T, K: Eq + Hash>(
    items: impl IntoIterator<Item = T>,
    min: usize,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut groups: IndexMap<K, Vec<(usize, T)>> = IndexMap::new();
    for item in items.into_iter().enumerate() {
        groups.entry(key(&item.1)).or_default().push(item);
    }
    let split = |group: Vec<(usize, T)>| {
        if group.len() >= min {
            vec![group]
        } else {
            group.into_iter().map(|item| vec![item]).collect()
        }
    };
    let mut groups: Vec<_> = groups.into_values().flat_map(split).collect();
    groups.sort_by_key(|group| group.first().map(|(place, _)| *place));
    groups.into_iter().map(|group| group.into_iter().map(|(_, item)| item).collect()).collect()
}
