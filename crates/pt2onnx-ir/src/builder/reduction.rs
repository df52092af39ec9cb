//! Names the reductions of ONNX.

/// A reduction operator of ONNX, without the prefix `Reduce`: `Sum` is `ReduceSum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are ONNX's")]
pub enum Reduction {
    L1,
    L2,
    LogSum,
    LogSumExp,
    Max,
    Mean,
    Min,
    Prod,
    Sum,
    SumSquare,
}

impl Reduction {
    /// All reductions.
    pub const ALL: [Self; 10] = {
        use Reduction::*;
        [L1, L2, LogSum, LogSumExp, Max, Mean, Min, Prod, Sum, SumSquare]
    };

    /// The operator type.
    pub fn op(self) -> &'static str {
        use Reduction::*;
        match self {
            L1 => "ReduceL1",
            L2 => "ReduceL2",
            LogSum => "ReduceLogSum",
            LogSumExp => "ReduceLogSumExp",
            Max => "ReduceMax",
            Mean => "ReduceMean",
            Min => "ReduceMin",
            Prod => "ReduceProd",
            Sum => "ReduceSum",
            SumSquare => "ReduceSumSquare",
        }
    }

    /// The reduction with that operator type; `None` for other operators.
    pub fn of(op: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.op() == op)
    }
}
