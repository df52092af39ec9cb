//! Sets of operator types, for walks over all nodes that look for a few of them.

use crate::{Model, NodeId};
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// What a model notes of a node's operator type apart from the node, so that who looks for others does not touch it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpTag(u8);

impl OpTag {
    pub fn of(op: &str) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(op.as_bytes());
        Self((hasher.finish() >> 56) as u8)
    }
}

/// Some operator types.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpSet([u128; 2]);

impl<'a> FromIterator<&'a str> for OpSet {
    fn from_iter<I: IntoIterator<Item = &'a str>>(ops: I) -> Self {
        let mut set = Self::default();
        for op in ops {
            let OpTag(tag) = OpTag::of(op);
            set.0[usize::from(tag >> 7)] |= 1 << (tag & 0x7f);
        }
        set
    }
}

impl OpSet {
    fn contains(self, OpTag(tag): OpTag) -> bool {
        self.0[usize::from(tag >> 7)] >> (tag & 0x7f) & 1 == 1
    }
}

impl Model {
    /// Whether a node is there and may be of one of these types: no for nearly all others, without a look at the node.
    pub fn may_be(&self, node: NodeId, ops: OpSet) -> bool {
        let tag = self.tags.get(node.index()).copied().flatten();
        tag.is_some_and(|tag| ops.contains(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attributes, InsertPoint};

    #[test]
    fn what_a_node_may_be() {
        let mut model = Model::new(20);
        let end = InsertPoint::End(Model::MAIN);
        let node = model.add_node(end, "Relu", &[], Attributes::new(), 1);
        let (relu, others) = (OpSet::from_iter(["Relu", "Add"]), OpSet::from_iter(["Mul", "Tanh"]));
        assert!(model.may_be(node, relu) && !model.may_be(node, others));
        model.set_op(node, "Tanh");
        assert!(!model.may_be(node, relu) && model.may_be(node, others));
        assert!(model.erase(node));
        assert!(!model.may_be(node, others) && !model.contains(node));
    }
}
