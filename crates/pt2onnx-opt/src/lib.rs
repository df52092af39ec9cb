//! Passes over ONNX graphs: constant folding, clean-up, common subexpressions, dead nodes; opset legalisation.
//!
//! Layer 2: knows `pt2onnx-ir` and what is below it, does no IO. A [`Pass`] is a plain function over the model,
//! [`optimize`] runs [`PASSES`] until nothing changes. Every pass is linear in the size of the model.

mod cleanup;
mod cse;
mod dead;
pub mod eval;
mod fold;
mod generated;
mod legalise;
mod rewrite;
mod target;

pub use legalise::{Failure, LegaliseError, OPSETS, legalise, means_the_same};
pub use target::{Target, bridge_ort_cpu, lacking_ort_cpu};

use pt2onnx_ir::Model;

/// Whether a pass changed the model.
pub type Changed = bool;

/// What the passes may do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Results of at most this many bytes are folded whatever happens to the operands.
    pub max_folded_bytes: usize,
    /// Operands of more bytes than this, all taken together, are not read to fold a small result.
    pub max_read_bytes: usize,
    /// Whether a larger result may take the place of its operands, where those would then be needed no more and are
    /// not smaller: a transposed weight instead of the weight and a `Transpose`.
    pub replace_weights: bool,
    /// Names of passes that are left out.
    pub skip: Vec<String>,
    /// How often all passes run at most.
    pub max_rounds: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_folded_bytes: 8 << 10,
            max_read_bytes: 1 << 20,
            replace_weights: true,
            skip: Vec::new(),
            max_rounds: 16,
        }
    }
}

/// A pass.
#[derive(Debug)]
pub struct Pass {
    /// What it is called in options and logs.
    pub name: &'static str,
    /// What it does, and what it takes for granted.
    pub doc: &'static str,
    /// Does it.
    pub run: fn(&mut Model, &Options) -> Changed,
}

/// The passes of [`optimize`], in the order they run.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "cleanup",
        doc: "Removes nodes that do nothing and joins chains of reshapes, transposes and casts. \
              Types must be true: a size that a type states is the size at run time.",
        run: cleanup::run,
    },
    Pass {
        name: "fold",
        doc: "Replaces nodes whose inputs are constants, or whose result the types tell, by constants. \
              Nodes that are not in the form of the canonical opset are left alone.",
        run: fold::run,
    },
    Pass {
        name: "cse",
        doc: "Merges nodes that compute the same from the same, and small nameless constants of equal content. \
              Names of constants are kept: they may be given other contents later.",
        run: cse::run,
    },
    Pass {
        name: "dead",
        doc: "Erases nodes whose outputs nothing uses. No ONNX operator has side effects.",
        run: dead::run,
    },
];

/// Runs [`PASSES`] until none changes the model any more, or `max_rounds` times.
///
/// The model should be in the form of [`pt2onnx_ir::schema::CANONICAL_OPSET`], of any other only what looks the same
/// there is folded. Graph outputs keep their names and types, constants that have names keep them.
pub fn optimize(model: &mut Model, options: &Options) {
    for round in 0..options.max_rounds {
        let mut changed = false;
        for pass in PASSES
            .iter()
            .filter(|p| !options.skip.iter().any(|s| s == p.name))
        {
            changed |= run(pass, model, options, round);
        }
        if !changed {
            break;
        }
    }
}

fn run(pass: &Pass, model: &mut Model, options: &Options, round: usize) -> Changed {
    let valid = cfg!(debug_assertions) && pt2onnx_ir::verify(model).is_ok();
    let changed = (pass.run)(model, options);
    tracing::debug!(pass = pass.name, round, changed, "pass");
    if valid && changed {
        let errors = pt2onnx_ir::verify(model).err();
        debug_assert!(
            errors.is_none(),
            "{} broke the model: {errors:?}\n{model}",
            pass.name
        );
    }
    changed
}
