//! Translations that are registered at run time: functions of Rust and of ONNX.

use super::{
    Registry,
    translation::{Custom, RegisterError},
};
use crate::{Function, Schema, op};
use pt2onnx_ir::{Model, ParseError};
use std::sync::Arc;

impl Registry {
    /// Registers a translation of the op with that schema, for real tensors. It takes the place of others of the op.
    ///
    /// The schema is as PyTorch prints it (`torch.ops.mylib.foo.default._schema`). Arguments that a program does not give are
    /// at the schema's defaults. The function is what [`Function`] says: its parameters are the schema's, in order, without
    /// those that mean nothing to ONNX (`device`, `pin_memory`, ...); trailing ones that it does not take must be at their
    /// defaults. It emits operators of opset [`opset_version`](Self::opset_version).
    ///
    /// # Errors
    /// Returns an error if `schema` cannot be parsed, or if a parameter of the function does not fit it.
    pub fn register<P>(
        &mut self,
        schema: &str,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.add(schema, false, function)
    }

    /// As [`register`](Self::register), for nodes that take or give complex tensors: parameters of type
    /// [`Complex`](crate::Complex) come as two tensors.
    ///
    /// # Errors
    /// Returns an error if `schema` cannot be parsed, or if a parameter of the function does not fit it.
    pub fn register_complex<P>(
        &mut self,
        schema: &str,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.add(schema, true, function)
    }

    fn add<P>(
        &mut self,
        schema: &str,
        complex: bool,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        let parsed = Schema::parse(schema).filter(|s| s.name.contains("::"));
        let schema = parsed.ok_or_else(|| RegisterError::Schema(schema.to_owned()))?;
        op::check(&function, &schema, &[]).map_err(RegisterError::Parameters)?;
        let custom = self.custom.entry(schema.name.clone()).or_default();
        custom.push(Custom::Closure {
            schema: Arc::new(schema),
            lower: Box::new(move |cx, args| function.call(cx, args)),
            complex,
        });
        Ok(())
    }

    /// Registers functions in ONNX's textual syntax as translations of the ops that they are called after: domain `mylib`, name
    /// `foo` and overload `Tensor` are those of `mylib::foo.Tensor`, for which the name may also be `"mylib::foo.Tensor"`.
    /// The op's nodes become calls. Inputs of the function are called as the tensors among the op's parameters (`xs_0`, `xs_1` for
    /// a list `xs`), its attributes as the others.
    ///
    /// # Errors
    /// Returns an error if the text cannot be parsed, or if its opset does not allow a function.
    pub fn add_functions(&mut self, text: &str) -> Result<(), ParseError> {
        let model = Model::parse_functions(text)?;
        for (i, function) in model.functions.iter().enumerate() {
            let mut op = format!("{}::{}", function.domain, function.name);
            if !matches!(function.overload.as_str(), "" | "default") {
                op = format!("{op}.{}", function.overload);
            }
            let custom = self.custom.entry(op).or_default();
            custom.push(Custom::Function(self.functions.len(), i));
        }
        self.functions.push(model);
        Ok(())
    }

    /// Copies the functions that a model's nodes call, of those that were registered, into the model.
    pub fn copy_functions(&self, model: &mut Model) {
        for node in model.graph_nodes() {
            let find =
                |library: &&Model| library.functions.iter().any(|f| f.is_called_by(&model[node]));
            let Some(library) = self.functions.iter().rev().find(find) else {
                continue;
            };
            let called = library.functions.iter().find(|f| f.is_called_by(&model[node]));
            if let Some(function) = called {
                model.copy_function(library, function);
            }
        }
    }
}
