//! Texts that share their start.

use smallvec::SmallVec;
use std::{
    fmt::{self, Debug, Display, Formatter},
    iter,
    sync::Arc,
};

/// A text whose start other texts have, too. The metadata of all nodes of a module start with the
/// same words: these are kept once. Cheap to clone.
///
/// ```
/// use pt2onnx_ir::SharedText;
///
/// let layer = SharedText::from("layer: m.Layer/").into();
/// let node = SharedText::after(&layer, "relu: aten.relu.default");
/// assert_eq!(node.to_string(), "layer: m.Layer/relu: aten.relu.default");
/// assert_eq!(node, SharedText::from(node.to_string()));
/// ```
#[derive(Clone)]
pub struct SharedText {
    start: Option<Arc<SharedText>>,
    end: Arc<str>,
}

impl SharedText {
    /// The text `start`, and then `end`.
    pub fn after(start: &Arc<Self>, end: impl Into<Arc<str>>) -> Self {
        Self { start: Some(Arc::clone(start)), end: end.into() }
    }

    /// Its parts, in order.
    pub fn parts(&self) -> SmallVec<[&str; 16]> {
        let mut parts: SmallVec<_> = self.parts_from_end().collect();
        parts.reverse();
        parts
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.parts_from_end().map(str::len).sum()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn parts_from_end(&self) -> impl Iterator<Item = &str> {
        iter::successors(Some(self), |text| text.start.as_deref()).map(|text| &*text.end)
    }
}

impl<T: Into<Arc<str>>> From<T> for SharedText {
    fn from(text: T) -> Self {
        Self { start: None, end: text.into() }
    }
}

/// As [`Display`], at once.
impl From<&SharedText> for String {
    fn from(text: &SharedText) -> Self {
        text.parts().concat()
    }
}

impl Display for SharedText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.parts().iter().try_for_each(|part| f.write_str(part))
    }
}

impl Debug for SharedText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.to_string(), f)
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        String::from(self) == String::from(other)
    }
}

impl Eq for SharedText {}

impl Drop for SharedText {
    /// Drops a long chain of starts without recursion.
    fn drop(&mut self) {
        let mut start = self.start.take();
        while let Some(mut text) = start.and_then(Arc::into_inner) {
            start = text.start.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_chains_are_dropped() {
        let mut text = SharedText::from("");
        for _ in 0..200_000 {
            text = SharedText::after(&text.into(), "a");
        }
        assert_eq!(text.to_string().len(), 200_000);
    }
}
