//! Clean-up: nodes that do nothing are removed, chains of nodes that one node can do are merged.
//!
//! `walk` asks the rules about each node and applies their [rewrites](crate::rewrite::Rewrite); a
//! `node_view` is what a rule sees of a node. A new rule goes into the file for its nodes:
//!
//! | the rule looks at | file |
//! | --- | --- |
//! | one node whose output is one of its inputs | `identity_elimination` |
//! | two nodes in a row that one node can replace: transposes, casts, slices, reshapes | `chain` |
//! | two transposes or reshapes with element-wise nodes between them | `sink_transpose` |
//! | `Squeeze` and `Unsqueeze` with element-wise nodes between them | `keepdims` |
//! | a transpose behind `Unsqueeze` | `unit_dims` |
//! | a transpose between two reshapes, one merging dimensions | `reshape_transpose` |
//! | `Expand` before an operator that broadcasts | `broadcast` |
//! | `Gather`, and slices and other nodes that pick elements | `gather_slice` |
//! | `Concat` of values taken out of one tensor | `concat_of_slices` |
//! | a `Reshape` with one computed size | `infer_reshape_dim` |
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

use crate::{
    Measure, Pass,
    analysis::known,
    eval,
    pass::Run,
    rewrite::{Operand, Rewrite},
    slices,
};
use node_view::NodeView;

pub(crate) static CLEANUP: Pass = Pass {
    name: "cleanup",
    description: "Removes nodes that do nothing: a zero that is added may have made 0.0 of -0.0. \
                  Merges chains of reshapes, transposes, slices and casts, packs of all parts of a \
                  tensor, operands that are broadcast anyway, dimensions that are taken away and \
                  added again, initial states of zeros, parts without elements, and guards that \
                  change nothing. Takes items of sequences from where they were put in.",
    precondition: "A size given in a type is the size at run time.",
    lowers: Measure::Paths,
    run: Run::Graph(walk::run),
    ..Pass::SIMPLIFICATION
};
