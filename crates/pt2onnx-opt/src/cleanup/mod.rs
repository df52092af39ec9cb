//! Clean-up: nodes that do nothing are removed, chains of nodes that one node can do are merged.
//!
//! `walk` goes through the nodes, asks the rules, and does what they say; `node_view` is what a rule
//! sees of a node, and what it may say. A new rule goes into the file for the nodes that it looks
//! at:
//!
//! | the rule looks at | file |
//! | --- | --- |
//! | one node whose output is one of its inputs | `identity_elimination` |
//! | two nodes in a row that one node can replace: transposes, casts, slices, reshapes | `chain` |
//! | two transposes or reshapes with element-wise nodes between them | `sink_transpose` |
//! | `Squeeze` and `Unsqueeze` with element-wise nodes between them | `keepdims` |
//! | a transpose behind `Unsqueeze` | `unit_dims` |
//! | a transpose between two reshapes, of which one merges dimensions | `reshape_transpose` |
//! | `Expand` before an operator that broadcasts | `broadcast` |
//! | `Gather`, and slices and other nodes that pick elements | `gather_slice` |
//! | `Concat` of what was taken out of one tensor | `concat_of_slices` |
//! | a `Reshape` of which one size is computed | `infer_reshape_dim` |
//! | `Where` and others that guard against NaN or against no keys | `nan_guards` |
//! | first states of recurrent networks | `rnn_initial_state` |
//! | sequences of tensors | `sequences` |

mod broadcast;
mod chain;
mod concat_of_slices;
mod gather_slice;
mod identity_elimination;
mod infer_reshape_dim;
mod keepdims;
mod nan_guards;
mod node_view;
mod reshape_transpose;
mod rnn_initial_state;
mod sequences;
mod sink_transpose;
mod unit_dims;
mod walk;

pub(crate) use walk::run;
