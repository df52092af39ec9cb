//! The outputs of a lowering, and what PyTorch recorded for them.

use pt2onnx_fx::graph::{Name, TensorMeta};
use pt2onnx_ir::Value;
use smallvec::{SmallVec, smallvec};

/// Name and recorded type of an output. The name is `None` if nothing uses the output, the type if
/// it is not a tensor.
pub type Recorded<'a> = (Option<&'a Name>, Option<&'a TensorMeta>);

/// The outputs of a lowering, in the order of the schema's results. `None` stands for an output
/// that nothing uses.
#[derive(Debug, Clone)]
pub struct Outputs(pub SmallVec<[Option<Value>; 2]>);

impl From<Value> for Outputs {
    fn from(v: Value) -> Self {
        Outputs(smallvec![Some(v)])
    }
}
impl From<()> for Outputs {
    fn from((): ()) -> Self {
        Outputs(SmallVec::new())
    }
}
impl From<Vec<Value>> for Outputs {
    fn from(v: Vec<Value>) -> Self {
        Outputs(v.into_iter().map(Some).collect())
    }
}
impl<const N: usize> From<[Option<Value>; N]> for Outputs {
    fn from(v: [Option<Value>; N]) -> Self {
        Outputs(v.into_iter().collect())
    }
}
impl<const N: usize> From<[Value; N]> for Outputs {
    fn from(v: [Value; N]) -> Self {
        Outputs(v.into_iter().map(Some).collect())
    }
}
