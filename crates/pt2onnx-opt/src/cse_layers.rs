//! Common subexpressions among layers. Before, each of them may take a normalization or arithmetic
//! after it into its weights, which one for all cannot.

use crate::{
    cse,
    pass::{Pass, Phase, Run},
};

pub(crate) static CSE_LAYERS: Pass = Pass {
    name: "cse-layers",
    description: "Merges Conv, ConvTranspose, Gemm and MatMul that compute the same from the same \
                  inputs, when nothing more can be folded into them. In models of other producers, \
                  merges all nodes that compute the same with weights of equal content.",
    precondition: "As for cse.",
    phase: Phase::Late,
    run: Run::Graph(cse::layers),
    ..Pass::SIMPLIFICATION
};
