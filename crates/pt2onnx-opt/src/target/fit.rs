//! Fits a model to a runtime.

use super::{
    coreml, cubic, error::TargetError, explicit, iree, kernels, mnn, name::Target, padding,
    portable, reference, runtime::Runtime, slices, tensorrt, tflite, tract, unsigned, web,
};
use crate::{
    OPSETS,
    casts::merge_casts,
    types::{infer_types, keeping_outputs},
};
use pt2onnx_ir::{Model, NodeId};
use std::ops::RangeInclusive;

impl Target {
    fn runtime(self) -> Option<&'static Runtime> {
        match self {
            Self::TensorRt => Some(&tensorrt::TENSORRT),
            Self::Tract => Some(&tract::TRACT),
            Self::Portable => Some(&portable::PORTABLE),
            Self::OpenVino => Some(&portable::OPENVINO),
            Self::Rten => Some(&portable::RTEN),
            Self::Mnn => Some(&mnn::MNN),
            Self::OpenCv => Some(&portable::OPENCV),
            Self::Iree => Some(&iree::IREE),
            Self::TfLite => Some(&tflite::TFLITE),
            Self::Reference => Some(&reference::REFERENCE),
            Self::CoreMl => Some(&coreml::COREML),
            Self::Standard | Self::Ort | Self::OrtCpu | Self::OrtGenai | Self::Web => None,
        }
    }

    /// Whether its runtime has a part of ONNX's operators.
    pub fn is_subset(self) -> bool {
        self.runtime().is_some()
    }

    /// The opsets that the runtime reads and that can be written.
    pub fn opsets(self) -> RangeInclusive<u32> {
        let newest = self.runtime().map(|r| r.newest_opset);
        let (first, last) = (*OPSETS.start(), *OPSETS.end());
        first..=newest.unwrap_or(last).min(last)
    }

    /// Whether the runtime does not support the node, whatever its types are.
    pub(crate) fn lacks(self, model: &Model, id: NodeId) -> bool {
        let lacks = |r: &Runtime| r.lacks(model, id).is_some();
        self.runtime().is_some_and(lacks)
    }

    /// The most dimensions of a value.
    pub(crate) fn max_rank(self) -> usize {
        self.runtime().map_or(usize::MAX, |runtime| runtime.max_rank)
    }

    /// Checks whether the runtime reads an opset.
    ///
    /// # Errors
    /// It does not.
    pub fn reads(self, opset: u32) -> Result<(), TargetError> {
        if self.opsets().contains(&opset) {
            Ok(())
        } else {
            Err(TargetError::Opset { target: self, opset, reads: self.opsets() })
        }
    }
}

/// Changes a legal model so that the runtime can run it. Returns warnings.
///
/// # Errors
/// The runtime does not read the model's opset, or does not support some nodes.
pub fn fit(model: &mut Model, target: Target) -> Result<Vec<String>, TargetError> {
    target.reads(model.opset)?;
    explicit::write(model);
    if let Some(runtime) = target.runtime() {
        let failures = runtime.fit(model);
        merge_casts(model);
        return if failures.is_empty() {
            Ok(Vec::new())
        } else {
            Err(TargetError::Nodes { target, failures })
        };
    }
    if target == Target::Web {
        web::check(model)?;
    }
    padding::keep_zeros(model);
    cubic::keep_order(model);
    slices::name_sizes(model);
    if target == Target::Standard {
        kernels::bridge_clips(model);
        return Ok(kernels::warnings(model));
    }
    unsigned::run(model);
    let warning = kernels::bridge_all(model);
    merge_casts(model);
    Ok(warning.map_err(|failures| TargetError::Nodes { target, failures })?.into_iter().collect())
}

/// As [`fit`], for models of other producers: types follow from the inputs ([`infer_types`]), and
/// outputs keep the file's types. Models of opsets other than [`OPSETS`] are not changed, which is
/// a warning.
///
/// # Errors
/// Those of [`fit`].
pub fn fit_imported(model: &mut Model, target: Target) -> Result<Vec<String>, TargetError> {
    if !OPSETS.contains(&model.opset) {
        let (opset, first, last) = (model.opset, OPSETS.start(), OPSETS.end());
        return Ok(vec![format!(
            "the model is of opset {opset}, and only models of opsets {first} to {last} are fitted to the runtime `{target}`"
        )]);
    }
    keeping_outputs(model, |model| {
        infer_types(model);
        fit(model, target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_ir::schema;

    #[test]
    fn tables_have_operators_of_the_standard() {
        let runtimes = [
            (&tensorrt::TENSORRT, 153),
            (&tract::TRACT, 161),
            (&portable::PORTABLE, 113),
            (&portable::OPENVINO, 150),
            (&portable::RTEN, 127),
            (&mnn::MNN, 115),
            (&portable::OPENCV, 136),
            (&iree::IREE, 125),
            (&tflite::TFLITE, 111),
            (&reference::REFERENCE, 132),
            (&coreml::COREML, 60),
        ];
        for (runtime, count) in runtimes {
            assert_eq!(runtime.operators.len(), count);
            for (op, types) in &*runtime.operators {
                assert!(*types != 0 && schema::lookup(op, runtime.newest_opset).is_some(), "{op}");
            }
        }
    }
}
