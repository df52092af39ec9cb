//! A linear layer whose result is halved becomes two.

use super::{Measure, Pass, Phase, Run, merge_linears};
use crate::{Changed, GraphMut, Options};

pub(crate) static SPLIT_LINEARS: Pass = Pass {
    name: "split-linears",
    description: "Replaces a MatMul or Gemm whose result Split halves, as those of gates, by two, \
                  for the targets `ort` and `ort-genai` only. ONNX Runtime takes longer to copy \
                  the halves than for a second product.",
    precondition: "The weight is a constant that nothing else uses, and nothing else uses the \
                   result.",
    lowers: Measure::Operators(&["Split"]),
    targets: merge_linears::SLOW_HALVES,
    phase: Phase::Late,
    run: Run::Graph(run),
    ..Pass::FUSION
};

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    graph.change_each(merge_linears::halve)
}
