//! Clean-up: nodes that do nothing are removed, chains of nodes that one node can do are merged.
//!
//! `walk` goes through the nodes, asks the rules, and does what they say; `seen` is what a rule
//! sees of a node, and what it may say. A new rule goes into the file for the nodes that it looks
//! at:
//!
//! | the rule looks at | file |
//! | --- | --- |
//! | one node whose output is one of its inputs | `noop` |
//! | two nodes in a row that one node can replace: transposes, casts, slices, reshapes | `chain` |
//! | two transposes or reshapes with element-wise nodes between them | `through` |
//! | `Squeeze` and `Unsqueeze` with element-wise nodes between them | `kept` |
//! | a transpose behind `Unsqueeze` | `ones` |
//! | a transpose between two reshapes, of which one merges dimensions | `merged` |
//! | `Expand` before an operator that broadcasts | `broadcast` |
//! | `Gather`, and slices and other nodes that pick elements | `picks` |
//! | `Concat` of what was taken out of one tensor | `parts` |
//! | a `Reshape` of which one size is computed | `rest` |
//! | `Where` and others that guard against NaN or against no keys | `guards` |
//! | first states of recurrent networks | `states` |
//! | sequences of tensors | `sequences` |

mod broadcast;
mod chain;
mod guards;
mod kept;
mod merged;
mod noop;
mod ones;
mod parts;
mod picks;
mod rest;
mod seen;
mod sequences;
mod states;
mod through;
mod walk;

pub(crate) use walk::run;
