//! Passes over ONNX graphs: constant folding, clean-up, common subexpressions, fusions, dead nodes; opset legalisation.
//!
//! Layer 2: knows `pt2onnx-ir` and what is below it, does no IO. A [`Pass`] is a plain function over the model,
//! [`optimize`] runs [`PASSES`] until nothing changes. Every pass is linear in the size of the model.
//! Alone it serves whoever has ONNX models, whatever made them:
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

mod aside;
mod cleanup;
mod cse;
mod dead;
pub mod eval;
mod fold;
mod fuse;
mod generated;
mod legalise;
mod rewrite;
mod sizes;
mod target;
mod types;

pub use aside::OPTIMISED_OPSETS;
pub use legalise::{Failure, LegaliseError, OPSETS, legalise, legalise_for, means_the_same};
pub use target::{Target, TargetError, Unrunnable, fit};
pub use types::infer_types;

use pt2onnx_ir::Model;

/// Whether a pass changed the model.
pub type Changed = bool;

/// How far [`optimize`] goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is done.
    Off,
    /// What is needless goes, what is known is folded.
    Simplify,
    /// And what one operator does becomes that operator.
    #[default]
    Fuse,
}

/// What the passes may do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How far they go.
    pub level: Level,
    /// The opset that the model is to be written for: fusions make no operator that it lacks.
    pub opset: u32,
    /// The runtime that it is to be written for: its own operators are made for no other.
    pub target: Target,
    /// Results of at most this many bytes are folded whatever happens to the operands.
    pub max_folded_bytes: usize,
    /// Operands of more bytes than this, all taken together, are not read to fold a small result.
    pub max_read_bytes: usize,
    /// Whether a larger result may take the place of its operands, where those would then be needed no more and are
    /// not smaller: a transposed weight instead of the weight and a `Transpose`.
    pub replace_weights: bool,
    /// Whether weights of equal content become one, whose name is that of the first. Who gives the model other weights later
    /// then gives all of them the same; their bytes are read to compare them.
    pub merge_weights: bool,
    /// How often all passes run at most.
    pub max_rounds: usize,
    /// Passes that are left out.
    pub skip: Vec<&'static Pass>,
}

/// A pass of that name does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no pass `{0}`; there are {list}", list = PASSES.iter().map(|p| p.name).collect::<Vec<_>>().join(", "))]
pub struct UnknownPass(pub String);

impl Options {
    /// The passes that run, in order.
    pub fn passes(&self) -> impl Iterator<Item = &'static Pass> + '_ {
        PASSES
            .iter()
            .filter(|p| p.level <= self.level && !self.skip.iter().any(|s| s.name == p.name))
    }
}

/// The defaults of a level.
impl From<Level> for Options {
    fn from(level: Level) -> Self {
        Self { level, ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: Level::default(),
            opset: pt2onnx_ir::schema::CANONICAL_OPSET,
            target: Target::Standard,
            max_folded_bytes: 8 << 10,
            max_read_bytes: 1 << 20,
            replace_weights: true,
            merge_weights: false,
            max_rounds: 16,
            skip: Vec::new(),
        }
    }
}

/// A pass.
#[derive(Debug)]
pub struct Pass {
    /// What it is called in options and logs.
    pub name: &'static str,
    /// The lowest level that it is part of.
    pub level: Level,
    /// What it does, and what it takes for granted.
    pub doc: &'static str,
    /// Does it.
    pub run: fn(&mut Model, &Options) -> Changed,
}

impl Pass {
    /// The pass of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<&'static Self, UnknownPass> {
        let found = PASSES.iter().find(|p| p.name == name);
        found.ok_or_else(|| UnknownPass(name.to_owned()))
    }
}

const fn simplify(
    name: &'static str,
    doc: &'static str,
    run: fn(&mut Model, &Options) -> Changed,
) -> Pass {
    let level = Level::Simplify;
    Pass { name, level, doc, run }
}

const fn fuse(
    name: &'static str,
    doc: &'static str,
    run: fn(&mut Model, &Options) -> Changed,
) -> Pass {
    let level = Level::Fuse;
    Pass { name, level, doc, run }
}

/// The passes of [`optimize`], in the order they run.
pub const PASSES: &[Pass] = &[
    simplify(
        "cleanup",
        "Removes nodes that do nothing and joins chains of reshapes, transposes and casts. \
         Types must be true: a size that a type states is the size at run time.",
        cleanup::run,
    ),
    simplify(
        "fold",
        "Replaces nodes whose inputs are constants, or whose result the types tell, by constants. Quantizing and \
         dequantizing, random numbers, and nodes that are not in the form of the canonical opset are left alone.",
        fold::run,
    ),
    simplify(
        "cse",
        "Merges nodes that compute the same from the same, and nameless constants of equal content. \
         Names of constants are kept: they may be given other contents later.",
        cse::run,
    ),
    simplify(
        "dead",
        "Erases nodes whose outputs nothing uses. No ONNX operator has side effects.",
        dead::run,
    ),
    fuse(
        "batch-norm",
        "Moves the factors of a BatchNormalization into the weights of the Conv, ConvTranspose, Gemm or MatMul in \
         front. All must be constants of float32 or float64, the weight used nowhere else.",
        |m, o| fuse::run(m, o, &fuse::BATCH_NORM),
    ),
    fuse(
        "pad",
        "Lets Conv, AveragePool and MaxPool pad themselves. The pads must be known, and what is padded with \
         must be what the operator pads with.",
        |m, o| fuse::run(m, o, &fuse::PAD),
    ),
    fuse(
        "gemm",
        "Makes Gemm of a MatMul of matrices and the Add behind it, with operands transposed as they come. \
         What is added must not broadcast the product.",
        |m, o| fuse::run(m, o, &fuse::GEMM),
    ),
    fuse(
        "clip",
        "Makes Clip of Min, Max and Relu with known bounds on both sides that do not cross.",
        |m, o| fuse::run(m, o, &fuse::CLIP),
    ),
    fuse(
        "gelu",
        "Makes Gelu of its formulas by Erf and by Tanh, from opset 20 on. Not of float64.",
        |m, o| fuse::run(m, o, &fuse::GELU),
    ),
    fuse(
        "hard-swish",
        "Makes HardSwish and HardSigmoid of their formulas. Not of float64.",
        |m, o| fuse::run(m, o, &fuse::HARD_SWISH),
    ),
    fuse(
        "layer-norm",
        "Makes LayerNormalization of its formula, over the last dimensions, in float32, also inside of a model of \
         halves. Scale and bias must have the sizes of what is normalised.",
        |m, o| fuse::run(m, o, &fuse::LAYER_NORM),
    ),
    fuse(
        "rms-norm",
        "Makes RMSNormalization of its formula, from opset 23 on; otherwise as layer-norm.",
        |m, o| fuse::run(m, o, &fuse::RMS_NORM),
    ),
    fuse(
        "instance-norm",
        "Makes InstanceNormalization of the batch of one, with as many channels as the whole batch has, that PyTorch takes it \
         apart to. The channels must be known.",
        |m, o| fuse::run(m, o, &fuse::INSTANCE_NORM),
    ),
    fuse(
        "multi-head",
        "For `--target ort`: makes com.microsoft.MultiHeadAttention of scaled dot-product attention whose heads are \
         transposed from and to `(batch, length, heads, size)`. Of float32, with no mask, a causal one, or a boolean one \
         that is the same for all heads.",
        |m, o| o.target == Target::Ort && fuse::run(m, o, &fuse::MULTI_HEAD),
    ),
    fuse(
        "attention",
        "Makes Attention of its formula, with scale, mask, causal mask, shared heads and a cache, from opset 23 on. Sizes must be \
         known to fit. A mask that may hide all keys of a query must do so by -inf, and the formula give zeros there.",
        |m, o| fuse::run(m, o, &fuse::ATTENTION) | fuse::cache(m, o),
    ),
    fuse(
        "rotary",
        "Makes RotaryEmbedding of its formula by halves, from opset 23 on. Cosines and sines must be the same for both \
         halves and all heads.",
        |m, o| fuse::run(m, o, &fuse::ROTARY),
    ),
];

/// Runs [`PASSES`] until none changes the model any more, or `max_rounds` times: on the main graph and on the bodies of
/// functions, each of any of the [`OPTIMISED_OPSETS`]; others are left alone.
///
/// Nodes that do not mean the same in the form of [`pt2onnx_ir::schema::CANONICAL_OPSET`] stay as they are, as do those of other
/// domains. Types must be true: of a model that others made, see [`infer_types`]. Graph outputs keep their names and
/// types, constants that have names keep them.
pub fn optimize(model: &mut Model, options: &Options) {
    aside::each_graph(model, |model| {
        // How often the model was changed: before anything, and when each pass last found nothing to do.
        let (mut changes, mut idle) = (0, [None; PASSES.len()]);
        for round in 0..options.max_rounds {
            let before = changes;
            for (pass, idle) in options.passes().zip(&mut idle) {
                if *idle == Some(changes) {
                    continue;
                }
                match run(pass, model, options, round) {
                    true => changes += 1,
                    false => *idle = Some(changes),
                }
            }
            if changes == before {
                break;
            }
        }
    });
}

/// [`optimize`] for a model that others made: what passes go by are the types that follow from its inputs
/// ([`infer_types`]), not those that it claims. Graph outputs have the claimed ones again in the end.
pub fn optimize_foreign(model: &mut Model, options: &Options) {
    let claims: Vec<_> = model.output_values().map(|v| model[v].ty.clone()).collect();
    aside::each_graph(model, |model| {
        let contents = types::infer(model);
        if options.passes().any(|p| p.name == "fold") {
            sizes::spell_out(model, &contents);
        }
    });
    optimize(model, options);
    for (value, claim) in model.output_values().collect::<Vec<_>>().into_iter().zip(claims) {
        model[value].ty = claim;
    }
}

fn run(pass: &Pass, model: &mut Model, options: &Options, round: usize) -> Changed {
    let valid = cfg!(debug_assertions) && pt2onnx_ir::verify(model).is_ok();
    let changed = (pass.run)(model, options);
    tracing::debug!(pass = pass.name, round, changed, "pass");
    if valid && changed {
        let errors = pt2onnx_ir::verify(model).err();
        debug_assert!(errors.is_none(), "{} broke the model: {errors:?}\n{model}", pass.name);
    }
    changed
}
