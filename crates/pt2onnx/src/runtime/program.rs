//! Running an [`OnnxProgram`]: its outputs and its intermediate values.

use super::{
    RunError, Session, SessionOptions,
    bodies::{Collected, Owners, collect, in_main, owners, region, together},
};
use crate::{Error, OnnxProgram, naming::find};
use ort::ep::ExecutionProviderDispatch;
use pt2onnx_ir::{Def, Model, Value};
use pt2onnx_tensor::Tensor;

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
        let mut model = self.model().clone();
        let owners = owners(&model);
        let values = names.iter().map(|name| wanted(&model, &owners, name.as_ref()));
        let values = values.collect::<Result<Vec<Value>, _>>()?;
        let ends: Vec<Value> = model.inputs().to_vec();
        if ends.len() != inputs.len() {
            let name = |v: &Value| model[*v].name.as_deref().unwrap_or_default().to_owned();
            let (given, names) = (inputs.len(), ends.iter().map(name).collect());
            return Err(RunError::Inputs { given, names }.into());
        }
        if values.iter().any(|v| model[*v].ty.is_none()) {
            pt2onnx_opt::infer_types(&mut model);
        }
        // The outputs from which each value is put together.
        let mut sources: Vec<(Value, Vec<Value>)> = Vec::new();
        for (&value, name) in values.iter().zip(names) {
            if sources.iter().any(|(known, _)| *known == value) {
                continue;
            }
            let outputs = outputs_of(&mut model, &owners, value)
                .map_err(|reason| RunError::Output { name: name.as_ref().to_owned(), reason })?;
            sources.extend(outputs.map(|outputs| (value, outputs)));
        }
        let computed: Vec<Value> =
            sources.iter().flat_map(|(_, outputs)| outputs).copied().collect();
        let mut results = Vec::new();
        if !computed.is_empty() {
            model.set_outputs(Model::MAIN, &computed);
            model.assign_names();
            let mut session = Session::new(&model, &SessionOptions::default(), &[])?;
            results = session.run(inputs)?;
        }
        let known = ends.into_iter().zip(inputs.iter().cloned());
        let mut known: Vec<(Value, Tensor)> = known.collect();
        // One result for a value of the main graph, two for one of a body.
        let mut results = results.into_iter();
        for (value, outputs) in sources {
            let name = model[value].name.as_deref().unwrap_or_default();
            match (outputs.len(), results.next(), results.as_slice().first()) {
                (2, Some(elements), Some(sizes)) => {
                    let ty = model[value].ty.as_ref();
                    known.push((value, together(name, &elements, sizes, ty)?));
                    results.next();
                }
                (_, Some(result), _) => known.push((value, result)),
                _ => {}
            }
        }
        let tensors = values.iter().map(|value| match model[*value].constant() {
            Some(weight) => Some(weight.clone()),
            None => known.iter().find(|(v, _)| v == value).map(|(_, t)| t.clone()),
        });
        // Every value is one of the three.
        Ok(tensors.flatten().collect())
    }
}

/// The value of that name that can be computed: those of functions cannot.
fn wanted(model: &Model, owners: &Owners, name: &str) -> Result<Value, RunError> {
    let computable = |v: &Value| region(model, *v).is_none_or(|r| in_main(model, owners, r));
    find(model, name).filter(computable).ok_or_else(|| RunError::NoValue(name.to_owned()))
}

/// The outputs that tell a value: itself, or two for a value in a body, its elements and their
/// sizes. `None` if it need not be computed.
fn outputs_of(
    model: &mut Model,
    owners: &Owners,
    value: Value,
) -> Result<Option<Vec<Value>>, String> {
    match (region(model, value), model[value].def()) {
        (None, _) | (Some(Model::MAIN), Def::Input(..)) => Ok(None),
        (Some(Model::MAIN), _) => Ok(Some(vec![value])),
        (Some(body), _) => {
            let Collected { elements, sizes } = collect(model, owners, value, body)?;
            Ok(Some(vec![elements, sizes]))
        }
    }
}
