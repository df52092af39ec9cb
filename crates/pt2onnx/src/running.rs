//! Running an [`OnnxProgram`] in ONNX Runtime (feature `ort`), and arrays in files.

use crate::{
    error::Error,
    naming::find,
    options::Options,
    program::OnnxProgram,
    weights::{WeightsError, read_weights},
};
use indexmap::IndexMap;
use pt2onnx_compress::{Calibrated, Calibration};
use pt2onnx_ir::{Model, Value};
use pt2onnx_ort::{
    ArrayError, RunError, Session, SessionOptions, Verification,
    ort::ep::ExecutionProviderDispatch, read_npz,
};
use pt2onnx_tensor::Tensor;
use std::path::{Path, PathBuf};

/// The reason why arrays cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArraysError {
    /// A `.npz` or `.npy` file cannot be read.
    #[error(transparent)]
    Numpy(#[from] ArrayError),
    /// Safetensors, or what `torch.save` wrote, cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Write(error) => Self::Write(error),
            RunError::Compress(error) => Self::Compress(error),
            error => Self::Run(error),
        }
    }
}

/// Reads arrays by name: a `.npz` file (compressed or not), a `.npy` file with the one array
/// `arr_0`, and the files of [`read_weights`]. The first bytes decide on the format. Nothing is
/// executed: arrays of objects are errors.
///
/// # Errors
/// See [`ArraysError`].
pub fn read_arrays(path: impl AsRef<Path>) -> Result<IndexMap<String, Tensor>, ArraysError> {
    match read_npz(&path)? {
        Some(arrays) => Ok(arrays),
        None => Ok(read_weights(path)?),
    }
}

/// The numbers of activations on the samples that options name.
pub(crate) fn calibrated(
    model: &Model,
    compression: &pt2onnx_compress::Options,
    options: &Options,
) -> Result<Calibrated, Error> {
    Ok(pt2onnx_ort::calibrate(
        model,
        compression,
        options.calibration_method,
        &options.calibration_data,
        |file| read_arrays(file),
    )?)
}

/// Running (feature `ort`). ONNX Runtime is loaded on first use, from `ORT_DYLIB_PATH` or where the
/// system finds it.
impl OnnxProgram {
    /// Loads the model into ONNX Runtime for [`OnnxProgram::run`], and replaces the session that
    /// was there. Execution providers are tried in order, the CPU last.
    ///
    /// # Errors
    /// [`Error::Run`]; [`Error::Write`] if weights have no values; [`Error::Edited`] if the model
    /// was changed and is not valid.
    pub fn session(
        &mut self,
        options: &SessionOptions,
        providers: &[ExecutionProviderDispatch],
    ) -> Result<&mut Session, Error> {
        self.verified()?;
        self.session = None;
        let session = Session::new(self.model(), options, providers)?;
        Ok(self.session.insert(session))
    }

    /// Runs the model. Inputs and outputs are in the order of the model. Unless
    /// [`OnnxProgram::session`] was called before, it runs on the CPU.
    ///
    /// # Errors
    /// The errors of [`OnnxProgram::session`] and [`Session::run`].
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        if self.session.is_none() {
            self.session(&SessionOptions::default(), &[])?;
        }
        match &mut self.session {
            Some(session) => Ok(session.run(inputs)?),
            None => Ok(Vec::new()),
        }
    }

    /// Drops the session, if there is one.
    pub fn release(&mut self) {
        self.session = None;
    }

    /// Computes values by name, for these inputs. A value can be an input, a weight, an output, or
    /// the result of any node. A value in the body of an `If`, `Loop` or `Scan` gets one more
    /// dimension in front: an entry for each time that it is computed, in order.
    ///
    /// # Errors
    /// [`RunError::NoValue`], also for values in functions; [`RunError::Output`] if the sizes of a
    /// value in a body change from time to time; and the errors of [`OnnxProgram::run`].
    pub fn compute_values<N: AsRef<str>>(
        &self,
        names: &[N],
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, Error> {
        self.verified()?;
        let values = names.iter().map(|name| {
            let name = name.as_ref();
            let value = find(self.model(), name).ok_or_else(|| RunError::NoValue(name.to_owned()));
            value.map(|value| (value, name))
        });
        let values = values.collect::<Result<Vec<(Value, &str)>, _>>()?;
        Ok(pt2onnx_ort::compute_values(self.model(), &values, inputs)?)
    }

    /// Runs the model and compares its outputs with the expected ones, within the tolerance of each
    /// type. Inputs and outputs are in the order of the model.
    ///
    /// # Errors
    /// The errors of [`OnnxProgram::run`]; [`RunError::Outputs`] if the number of expected tensors
    /// is not the number of outputs. It is not an error if outputs differ: see
    /// [`Verification::passed`].
    pub fn verify(
        &mut self,
        inputs: &[Tensor],
        expected: &[Tensor],
    ) -> Result<Verification, Error> {
        let names: Vec<String> = self.output_names().map(str::to_owned).collect();
        if names.len() != expected.len() {
            let given = expected.len();
            return Err(RunError::Outputs { given, names }.into());
        }
        let got = self.run(inputs)?;
        Ok(Verification::new(names.iter().map(String::as_str), &got, expected, None))
    }

    /// Runs the model on the samples of files, and looks at the activations that
    /// [`compress`](Self::compress) quantises, or whose products it does, for
    /// [`calibrated`](pt2onnx_compress::Options::calibrated). [`read_arrays`] reads the files;
    /// [`pt2onnx_ort::calibrate`] documents their names and shapes.
    ///
    /// # Errors
    /// [`RunError::Samples`], and those of [`Session::run`].
    pub fn calibrate(
        &self,
        compression: &pt2onnx_compress::Options,
        method: Calibration,
        files: &[PathBuf],
    ) -> Result<Calibrated, Error> {
        self.verified()?;
        let read = |file: &Path| read_arrays(file);
        Ok(pt2onnx_ort::calibrate(self.model(), compression, method, files, read)?)
    }
}
