//! A part of a model: the nodes that compute some values from others.

use crate::{Def, Model, Value};

/// Why a part of a model cannot be a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum ExtractError {
    #[error("the main graph has no value `{0}`")]
    NoValue(String),
    #[error("the type of `{0}` is not known")]
    NoType(String),
    #[error("`{0}` is a constant, which cannot be an input")]
    Constant(String),
    #[error("`{0}` is given twice")]
    Twice(String),
    #[error("the outputs also depend on `{}`", .0.join("`, `"))]
    Missing(Vec<String>),
}

impl Model {
    /// Keeps only the nodes of the main graph that compute `outputs` from `inputs`, which are names
    /// of values. Inputs with a default that are needed too follow.
    ///
    /// ```
    /// use pt2onnx_ir::Model;
    ///
    /// let text = "g (float[2] x) => (float[2] y) <float[2] a, float[2] b>
    ///     { a = Relu (x) b = Exp (a) y = Neg (b) }";
    /// let mut model: Model = text.parse()?;
    /// model.extract(&["a".into()], &["b".into()])?;
    /// assert_eq!(model.nodes(Model::MAIN).count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such value or it is given twice, its type is not known, or other inputs of the
    /// model are needed too. The model is then of no use.
    pub fn extract(&mut self, inputs: &[String], outputs: &[String]) -> Result<(), ExtractError> {
        self.finish_all_outputs();
        for names in [inputs, outputs] {
            let twice = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
            if let Some((_, name)) = twice {
                return Err(ExtractError::Twice(name.clone()));
            }
        }
        let given = self.named(inputs)?;
        let wanted = self.named(outputs)?;
        for (name, &value) in inputs.iter().zip(&given) {
            if self[value].constant().is_some() {
                return Err(ExtractError::Constant(name.clone()));
            }
        }
        for (name, &value) in inputs.iter().chain(outputs).zip(given.iter().chain(&wanted)) {
            if self[value].ty.is_none() {
                return Err(ExtractError::NoType(name.clone()));
            }
        }
        let mut inputs: Vec<Value> = given.iter().map(|v| self.as_input(*v)).collect();
        // Inputs and constants can be outputs: ONNX has such models, and names stay.
        let place = |value: &Value| given.iter().position(|v| v == value);
        let wanted = wanted.into_iter().map(|v| place(&v).map_or(v, |i| inputs[i]));
        self.set_outputs_as_written(Self::MAIN, &wanted.collect::<Vec<_>>());
        for node in self.nodes(Self::MAIN).collect::<Vec<_>>().into_iter().rev() {
            if self.is_unused(node) {
                self.erase(node);
            }
        }
        let others = self.inputs().to_vec().into_iter().filter(|v| !inputs.contains(v));
        let (needed, unused): (Vec<Value>, Vec<Value>) =
            others.partition(|v| self[*v].uses().len() > 0);
        let (with_default, needed): (Vec<Value>, Vec<Value>) =
            needed.into_iter().partition(|v| self[*v].default.is_some());
        inputs.extend(with_default);
        if !needed.is_empty() {
            let name = |v: &Value| self[*v].name.as_ref().map(ToString::to_string);
            return Err(ExtractError::Missing(needed.iter().filter_map(name).collect()));
        }
        self.order_inputs(&inputs, &unused);
        Ok(())
    }

    /// The values of the main graph with these names.
    fn named(&self, names: &[String]) -> Result<Vec<Value>, ExtractError> {
        let nodes = self.nodes(Self::MAIN);
        let near = nodes.flat_map(|n| {
            let constants =
                self[n].inputs().iter().flatten().filter(|v| self[**v].constant().is_some());
            self[n].outputs().iter().chain(constants)
        });
        let all: Vec<Value> = self.inputs().iter().chain(near).copied().collect();
        let find = |name: &String| {
            let mut found = all.iter().filter(|v| self[**v].name.as_deref() == Some(name.as_str()));
            found.next().copied().ok_or_else(|| ExtractError::NoValue(name.clone()))
        };
        names.iter().map(find).collect()
    }

    /// An input of the main graph that takes the place of a value.
    fn as_input(&mut self, value: Value) -> Value {
        if matches!(self[value].def(), Def::Input(..)) {
            return value;
        }
        let input = self.add_input(Self::MAIN, self[value].ty.clone());
        let name = self[value].name.take();
        self.replace_all_uses(value, input);
        self[input].name = name;
        input
    }
}
