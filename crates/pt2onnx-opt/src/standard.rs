//! Lists the standard passes, and gives their options defaults.

use crate::{
    cleanup, cse, dead, fold, fold_control_flow,
    fuse::{
        attention_fusions, batch_norm_fusions, cache, channel_fusions, clip_fusions,
        factor_fusions, gelu_fusions, gemm_fusions, grid_fusions, hard_swish_fusions,
        instance_norm_fusions, join, layer_norm_fusions, move_fusions, multi_head_fusions,
        pad_fusions, projections, quotient_fusions, rms_norm_fusions, rotary_fusions,
        scalar_fusions, split, square_fusions,
    },
    fusion::{Fusion, fuse},
    pass::{Level, Options, Pass, Passes, Phase},
    pattern::PatternError,
    target::Target,
};
use pt2onnx_ir::schema::CANONICAL_OPSET;
use std::sync::LazyLock;

impl Passes {
    /// The standard passes, in the order they run. Threads share them: the patterns of a pass are
    /// read when it first runs.
    pub fn standard() -> Self {
        static STANDARD: LazyLock<Passes> = LazyLock::new(|| {
            [simplifying(), merging(), replacing(), late()].into_iter().flatten().collect()
        });
        STANDARD.clone()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: Level::default(),
            passes: Passes::standard(),
            opset: CANONICAL_OPSET,
            target: Target::Standard,
            max_folded_bytes: 8 << 10,
            max_generated_bytes: 0,
            max_read_bytes: 1 << 20,
            max_neutral_bytes: 1 << 10,
            replace_weights: true,
            dedup_weights: false,
            share_weights: false,
            join_weights: false,
            max_rounds: 16,
            journal: None,
        }
    }
}

/// The defaults of a level.
impl From<Level> for Options {
    fn from(level: Level) -> Self {
        Self { level, ..Self::default() }
    }
}

/// Passes of the level `simplify`: fewer nodes, the same operators.
fn simplifying() -> Vec<Pass> {
    let passes = [
        Pass::new("cleanup", cleanup::run)
            .description(
                "Removes nodes that do nothing: a zero that is added may have made 0.0 of -0.0. Merges chains of reshapes, \
                 transposes, slices and casts, packs of all parts of a tensor, operands that are broadcast anyway, dimensions \
                 that are taken away and added again, initial states of zeros, parts without elements, and guards that change nothing. \
                 Takes items of sequences from where they were put in.",
            )
            .precondition("A size given in a type is the size at run time."),
        Pass::new(fold::NAME, fold::run)
            .description(
                "Replaces nodes by constants if their inputs are constants or their result follows from the types. Several \
                 nodes may become a larger constant than one. Weights that are filled with one number become constants. In models of \
                 other producers, constants may have 128 times as many bytes, but quantized weights stay.",
            )
            .precondition(
                "The operator is not for random numbers, and the node has the form of the newest opset. DequantizeLinear of a \
                 constant stays, unless the result is quantized again.",
            ),
        Pass::new(fold_control_flow::NAME, fold_control_flow::run)
            .description(
                "Replaces If by the branch that it takes, and Loop that runs never or once by its body. Takes states that \
                 a body does not change from before the Loop or Scan. Moves nodes that both branches have, and nodes that are the \
                 same in each iteration, before the If or Loop. A Loop that appends a row to a state gives back the rows instead.",
            )
            .precondition(
                "The condition or the number of iterations is a constant. Nodes of loops are moved only if they cannot fail.",
            ),
        Pass::new("cse", cse::run)
            .description(
                "Merges nodes that compute the same from the same inputs, and unnamed constants of equal content.",
            )
            .precondition(
                "Named constants are kept, because they may get other values later, unless weights are to be merged.",
            ),
        Pass::new("layers", cse::layers)
            .turn(Phase::Late)
            .description(
                "Merges Conv, ConvTranspose, Gemm and MatMul that compute the same from the same inputs, when nothing more can be \
                 folded into them. In models of other producers, merges all nodes that compute the same with weights of equal content.",
            )
            .precondition("As for cse."),
        Pass::new("dead", dead::run)
            .description("Erases nodes whose outputs are not used.")
            .precondition("Operators have no side effects; those of ONNX have none."),
    ];
    passes.into_iter().map(|p| p.level(Level::Simplify)).collect()
}

/// Fusions that merge a node into the weights, the attributes or the constant of its neighbour.
fn merging() -> Vec<Pass> {
    vec![
        fusions("batch-norm", batch_norm_fusions, 7)
            .description(
                "Folds BatchNormalization into the weights of the Conv, ConvTranspose, Gemm or MatMul before it.",
            )
            .precondition(
                "All parameters are float32 or float64 constants, and nothing else uses the weight.",
            ),
        fusions("scalars", scalar_fusions, 7)
            .description("Merges two sums, products, Max or Min with constants.")
            .precondition(
                "Integers, or floats that change in the last digits only: the constants of sums have one sign, those of products \
                 are both above or both below 1, or the value is known to be small. Sums and products that are then rounded, compared or \
                 made integers stay. No constant of Max or Min is NaN.",
            ),
        fusions("floor-division", quotient_fusions, 7)
            .description("Replaces the formula of a floor division by Div.")
            .precondition("The divisor is positive, and the operators before show that the dividend is not negative."),
        fusions("channels", channel_fusions, 7)
            .description(
                "Folds Add, Sub, Mul and Div with constants into the weight and bias of the Conv, ConvTranspose, Gemm, MatMul or \
                 BatchNormalization before them.",
            )
            .precondition(
                "float32 or float64, one number for all or one for each channel. For Mul and Div, nothing else uses the weight.",
            ),
        fusions("pad", pad_fusions, 7)
            .description("Merges Pad into the Conv, AveragePool or MaxPool after it.")
            .precondition(
                "The pads are constants, and the value is the one that the operator itself pads with.",
            ),
        fusions("moves", move_fusions, 7)
            .description(
                "Merges Reshape and Transpose: of two reshapes around a transpose, two transposes around a reshape, or two reshapes to computed \
                 sizes, one is left.",
            )
            .precondition("A reshape between others only splits dimensions, or only merges some, and no sizes have to be computed."),
        fusions("gemm", gemm_fusions, 7)
            .description(
                "Replaces MatMul and Add by Gemm. Merges Transpose of an operand into Gemm.",
            )
            .precondition(
                "The operands are matrices, and the added value does not broadcast the product.",
            ),
        fusions("clip", clip_fusions, 7)
            .description("Replaces two of Min, Max, Relu and Clip by one.")
            .precondition(
                "The bounds are constants, and no lower one is above an upper one. Before opset 12, the type is float32.",
            ),
    ]
}

/// Fusions that replace a formula by the operator that computes it.
fn replacing() -> Vec<Pass> {
    vec![
        fusions("gelu", gelu_fusions, 20)
            .description("Replaces the formulas of GELU, with Erf or Tanh, by Gelu (opset 20).")
            .precondition("The type is not float64."),
        fusions("hard-swish", hard_swish_fusions, 7)
            .description("Replaces the formulas of hard swish and hard sigmoid by HardSwish and HardSigmoid. Before opset 14, HardSwish is a \
                 product with HardSigmoid.")
            .precondition("The type is not float64."),
        fusions("layer-norm", layer_norm_fusions, 17)
            .description(
                "Replaces the formula of layer normalization by LayerNormalization (opset 17). Scale and bias behind one go into it.",
            )
            .precondition(
                "It is computed in float32 over the last dimensions, also between casts from and to float16 or bfloat16. \
                 Scale and bias have the sizes of these dimensions.",
            ),
        fusions("rms-norm", rms_norm_fusions, 23)
            .description("Replaces the formula of RMS normalization by RMSNormalization (opset 23).")
            .precondition("As for layer-norm."),
        fusions("instance-norm", instance_norm_fusions, 7)
            .description(
                "Removes the reshapes around InstanceNormalization with which PyTorch moves the batch into the channels.",
            )
            .precondition("The number of channels is known."),
        fusions("grid", grid_fusions, 11)
            .description(
                "Replaces GatherND at all points of a grid by a Gather for each dimension, and Gather of all elements in their order by Reshape.",
            )
            .precondition("All but two of the dimensions are taken as they are; the places are those of all rows and columns."),
        fusions("squares", square_fusions, 13)
            .description("Replaces the square of ReduceL2 by ReduceSumSquare.")
            .precondition("The norm is of float32, or computed in the type of the square."),
        multi_head(),
        attention(),
        fusions("rotary", rotary_fusions, 23)
            .description("Replaces the formula of rotary position embeddings by RotaryEmbedding (opset 23).")
            .precondition(
                "The formula rotates the two halves of the last dimension. Both halves and all heads have the same cosines \
                 and sines.",
            ),
    ]
}

/// Passes that run when the others change nothing any more, the last one at the very end.
fn late() -> Vec<Pass> {
    vec![
        fusions("factors", factor_fusions, 7)
            .turn(Phase::Late)
            .description(
                "Folds Mul and Div of the input of a Conv, ConvTranspose, Gemm or MatMul with a number into the weight.",
            )
            .precondition(
                "float32 or float64, a number between 1e-9 and 1e9. Nothing else uses the weight or the product. The half of a GELU \
                 stays in front of Gemm and MatMul.",
            ),
        Pass::new("projections", projections)
            .turn(Phase::Late)
            .description(
                "Replaces MatMul and Add of more than two dimensions whose results are only reshaped by Gemm, after one Reshape of the tensor that \
                 they share.",
            )
            .precondition(
                "The tensor is the result of a Transpose or Reshape, as feature maps are before attention. The nodes become fewer.",
            ),
        Pass::new("join", join)
            .turn(Phase::Late)
            .description(
                "Replaces several MatMul or Gemm of one tensor by one with the columns of all, and Split. Only in models of other producers.",
            )
            .precondition(
                "The weights are constants that nothing else uses, or are computed from such, column by column, as those that are \
                 restored from integers. The nodes become fewer. Queries, keys and values of a masked \
                 attention stay apart if they have biases: ONNX Runtime replaces the whole attention.",
            ),
        Pass::new("split", split)
            .turn(Phase::Last)
            .description("Replaces slices of one tensor along one dimension by Split.")
            .precondition("The size of the dimension is known, and the slices do not overlap."),
    ]
}

fn multi_head() -> Pass {
    let fusions = LazyLock::new(|| read(multi_head_fusions));
    Pass::new("multi-head", move |graph, options| {
        options.target == Target::Ort && fuse(graph, options, &fusions)
    })
        .description(
            "Replaces the formula of attention by com.microsoft.MultiHeadAttention, for the target `ort` only.",
        )
        .precondition(
            "Queries, keys and values are float32 and transposed from `(batch, length, heads, size)`. There is no mask, a \
             causal mask, or a boolean mask that is the same for all heads.",
        )
}

fn attention() -> Pass {
    let fusions = LazyLock::new(|| read(attention_fusions));
    Pass::new("attention", move |graph, options| {
        options.opset.min(graph.opset) >= 23
            && fuse(graph, options, &fusions) | cache(graph)
    })
        .description(
            "Replaces the formula of attention by Attention (opset 23), with scale, mask, causal mask, shared heads and a \
             cache of keys and values.",
        )
        .precondition(
            "Sizes are known to match. A mask that may hide all keys of a query hides them by -inf, and the formula gives \
             zeros for that query.",
        )
}

type Fusions = fn() -> Result<Vec<Fusion>, PatternError>;

/// A pass that runs fusions from `opset` on.
fn fusions(name: &'static str, fusions: Fusions, opset: u32) -> Pass {
    let fusions = LazyLock::new(move || read(fusions));
    Pass::new(name, move |graph, options| {
        options.opset.min(graph.opset) >= opset && fuse(graph, options, &fusions)
    })
}

/// Patterns of the standard fusions are constants. A test reads them all.
fn read(fusions: Fusions) -> Vec<Fusion> {
    fusions().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_are_read() {
        for fusions in [
            attention_fusions,
            batch_norm_fusions,
            channel_fusions,
            factor_fusions,
            clip_fusions,
            gelu_fusions,
            gemm_fusions,
            move_fusions,
            grid_fusions,
            hard_swish_fusions,
            instance_norm_fusions,
            layer_norm_fusions,
            multi_head_fusions,
            pad_fusions,
            quotient_fusions,
            rms_norm_fusions,
            rotary_fusions,
            scalar_fusions,
            square_fusions,
        ] {
            assert!(!fusions().unwrap().is_empty());
        }
    }

    #[test]
    fn all_passes_say_what_they_do_and_need() {
        for pass in &Passes::standard() {
            for text in [pass.description, pass.precondition] {
                assert!(text.ends_with('.'), "{}: {text}", pass.name);
            }
        }
    }
}
