//! Passes over ONNX graphs: constant folding, clean-up, common subexpressions, fusions; and older
//! opsets.
//!
//! Layer 3: knows `pt2onnx-ir` and what is below it, does no IO. It works on any ONNX model,
//! whatever made it:
//!
//! - [`optimize`] runs the [standard passes](Passes::standard) and your own until nothing changes.
//! - [`legalise`] rewrites a model for an older opset, or reports every node that has no older
//!   form.
//! - [`fit`] adapts a model to a runtime ([`Target`]).
//!
//! ```
//! use pt2onnx_ir::Model;
//!
//! let text = r#"<ir_version: 9, opset_import: ["" : 20]>
//! main_graph (float[n,2] x) => (float[n,2] y)
//! <float[2] a = {1.0, 2.0}, float[2] b = {3.0, 4.0}>
//! { sum = Add (a, b)
//!   same = Identity (x)
//!   y = Mul (same, sum) }"#;
//! let mut model: Model = text.parse()?;
//! pt2onnx_opt::optimize(&mut model, &pt2onnx_opt::Options::default());
//! let nodes: Vec<_> = model.nodes(Model::MAIN).collect();
//! assert_eq!(nodes.len(), 1);
//! assert!(model[nodes[0]].is("Mul"));
//! # Ok::<(), pt2onnx_ir::ParseError>(())
//! ```
//!
//! A [`Pass`] is a function over a graph ([`GraphMut`]). Most passes replace patterns of nodes:
//! write those as [`Fusion`]s. A pass that edits nodes itself has [`substitute`], [`bypass`] and
//! [`become_node`]. Every standard pass is made of these same items and takes time linear in the
//! size of the model. See the crate's `examples/`.

#![warn(missing_debug_implementations)]

mod analysis;
mod bounded;
mod budget;
mod casts;
mod cleanup;
mod contrib_types;
mod convert;
mod cse;
mod cse_layers;
mod dead;
mod decoder_masks;
mod dims;
pub mod eval;
mod fixpoint;
mod fold;
mod fold_control_flow;
mod folded_constants;
mod fuse;
mod fusion;
mod generated;
mod graph;
mod grouped;
mod legalise;
mod licm;
mod loop_append_to_scan;
mod masks;
mod measure;
mod merge_branches;
mod ml_types;
mod no_fusion;
mod opaque;
mod opsets;
mod optimize;
mod ort_reserved;
mod outline;
mod pass;
mod pass_stats;
mod pattern;
mod pool;
mod resize;
mod rewrite;
mod rounding_sensitivity;
mod rules;
mod size_checks;
mod sizes;
mod slices;
mod standard;
mod tail_merge;
mod target;
mod types;
mod unreachable_branches;

pub use budget::Walk;
pub use convert::{convert, convert_for};
pub use dims::regions_of_main;
pub use fixpoint::{Endless, EndlessKind};
pub use fusion::Fusion;
pub use graph::{Changed, GraphMut};
pub use legalise::{Inexpressible, LegaliseError, legalise, legalise_for, means_the_same};
pub use measure::Measure;
pub use merge_branches::merge_branches;
pub use no_fusion::{Because, NoFusion};
pub use opsets::{CONVERTED_OPSETS, OPSETS, OPTIMISED_OPSETS};
pub use optimize::{optimize, optimize_imported};
pub use outline::outline;
pub use pass::{Level, Options, Pass, Passes, UnknownPass, fuse};
pub use pass_stats::{PassEffect, PassStats, Refusal};
pub use pattern::{Match, Pattern, PatternError};
pub use pt2onnx_ir as ir;
pub use rewrite::{become_node, bypass, substitute};
pub use rules::Rules;
pub use size_checks::{SizeCheck, SizeCheckError, SizeSources, check_sizes, compute_conditions};
pub use target::{Target, TargetError, Unrunnable, fit, fit_imported};
pub use types::{infer_output_types, infer_types};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
