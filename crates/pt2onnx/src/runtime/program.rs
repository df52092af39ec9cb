//! Running an [`OnnxProgram`]: its outputs and its intermediate values.

use super::{RunError, Session, SessionOptions};
use crate::{Error, OnnxProgram, naming::find};
use ort::ep::ExecutionProviderDispatch;
use pt2onnx_ir::{Def, Model, Value};
use pt2onnx_tensor::Tensor;

/// Running (feature `ort`). ONNX Runtime is loaded on first use, from `ORT_DYLIB_PATH` or where the system finds it.
impl OnnxProgram {
    /// Loads the model into ONNX Runtime for [`OnnxProgram::run`], and replaces the session that was there. Execution
    /// providers are tried in order, the CPU last.
    ///
    /// # Errors
    /// [`Error::Run`]; [`Error::Write`] if weights have no values; [`Error::Verify`] if the model was changed and is
    /// not valid.
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

    /// Runs the model. Inputs and outputs are in the order of the model. Unless [`OnnxProgram::session`] was called
    /// before, it runs on the CPU.
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

    /// Computes values by name, for these inputs. A value can be an input, a weight, an output, or the result of any
    /// node outside of bodies.
    ///
    /// # Errors
    /// [`RunError::NoValue`], and the errors of [`OnnxProgram::run`].
    pub fn compute_values<N: AsRef<str>>(
        &self,
        names: &[N],
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, Error> {
        self.verified()?;
        let mut model = self.model().clone();
        let values = names.iter().map(|name| {
            let name = name.as_ref();
            let value = find(&model, name).filter(|v| outside_of_bodies(&model, *v));
            value.ok_or_else(|| RunError::NoValue(name.to_owned()))
        });
        let values = values.collect::<Result<Vec<Value>, _>>()?;
        let mut computed: Vec<Value> = Vec::new();
        for &value in &values {
            if matches!(model[value].def(), Def::Node(..)) && !computed.contains(&value) {
                computed.push(value);
            }
        }
        let ends: Vec<Value> = model.inputs().to_vec();
        if ends.len() != inputs.len() {
            let name = |v: &Value| model[*v].name.as_deref().unwrap_or_default().to_owned();
            let (given, names) = (inputs.len(), ends.iter().map(name).collect());
            return Err(RunError::Inputs { given, names }.into());
        }
        let mut results = Vec::new();
        if !computed.is_empty() {
            model.set_outputs(Model::MAIN, &computed);
            let mut session = Session::new(&model, &SessionOptions::default(), &[])?;
            results = session.run(inputs)?;
        }
        let known = ends.into_iter().zip(inputs.iter().cloned());
        let known: Vec<(Value, Tensor)> = known.chain(computed.into_iter().zip(results)).collect();
        let tensors = values.iter().map(|value| match model[*value].constant() {
            Some(weight) => Some(weight.clone()),
            None => known.iter().find(|(v, _)| v == value).map(|(_, t)| t.clone()),
        });
        // Every value is one of the three.
        Ok(tensors.flatten().collect())
    }
}

fn outside_of_bodies(model: &Model, value: Value) -> bool {
    match model[value].def() {
        Def::Node(node, _) => model[*node].region() == Model::MAIN,
        Def::Input(region, _) => *region == Model::MAIN,
        Def::Constant(_) => true,
    }
}
