//! Names the reductions of ONNX.

pt2onnx_symbolic::named_enum! {
    /// A reduction operator of ONNX, without the prefix `Reduce`: `Sum` is `ReduceSum`.
    #[non_exhaustive]
    pub enum Reduction {
        L1 = "ReduceL1",
        L2 = "ReduceL2",
        LogSum = "ReduceLogSum",
        LogSumExp = "ReduceLogSumExp",
        Max = "ReduceMax",
        Mean = "ReduceMean",
        Min = "ReduceMin",
        Prod = "ReduceProd",
        Sum = "ReduceSum",
        SumSquare = "ReduceSumSquare",
    }
}
