//! Registers translations at run time: lowerings and ONNX functions.

use super::{
    Registry,
    translation::{Custom, RegisterError, Untyped},
};
use crate::{Cx, Function, GivenArg, Lowered, Outputs, Parameters, Schema, args::Claims};
use pt2onnx_ir::{Model, ParseError};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl Registry {
    /// Registers a lowering of an op for real tensors. It replaces other translations of the op.
    ///
    /// Write the schema as PyTorch prints it (`torch.ops.mylib.foo.default._schema`). The lowering
    /// is a [`Function`]: it takes the schema's parameters in order, without those that mean
    /// nothing to ONNX (`device`, `pin_memory`, ...). It can leave out the last ones if they have
    /// defaults; a node with other values of these is then an error. It emits operators of opset
    /// [`opset_version`](Self::opset_version).
    ///
    /// # Errors
    /// Returns an error if `schema` or one of its defaults cannot be parsed, or if a parameter of
    /// the function does not fit it.
    pub fn register<P: Parameters>(
        &mut self,
        schema: &str,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.add(schema, false, function)
    }

    /// Registers a lowering as [`register`](Self::register) does, for nodes that take or give
    /// complex tensors. Parameters of type [`Complex`](crate::Complex) have both parts of a tensor.
    ///
    /// # Errors
    /// Returns an error if `schema` or one of its defaults cannot be parsed, or if a parameter of
    /// the function does not fit it.
    pub fn register_complex<P: Parameters>(
        &mut self,
        schema: &str,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.add(schema, true, function)
    }

    /// Registers a lowering of an op for real tensors that gets the arguments which the node has,
    /// so defaults are its own matter. `op` is the op's name, or its schema as PyTorch prints it,
    /// which archives of TorchScript lack: without it, their results cannot be lists. It replaces
    /// other translations of the op.
    pub fn register_untyped(
        &mut self,
        op: impl Into<String>,
        lowering: impl Fn(&Cx, Vec<GivenArg>) -> Lowered<Outputs> + Send + Sync + 'static,
    ) {
        self.add_untyped(op.into(), false, Arc::new(lowering));
    }

    /// Registers a lowering as [`register_untyped`](Self::register_untyped) does, for nodes that
    /// take or give complex tensors, which it has as real/imaginary pairs in a last dimension.
    pub fn register_untyped_complex(
        &mut self,
        op: impl Into<String>,
        lowering: impl Fn(&Cx, Vec<GivenArg>) -> Lowered<Outputs> + Send + Sync + 'static,
    ) {
        self.add_untyped(op.into(), true, Arc::new(lowering));
    }

    fn add_untyped(&mut self, op: String, complex: bool, lower: Untyped) {
        let name = op.split('(').next().unwrap_or_default().trim().to_owned();
        let text = Schema::parse(&op).is_ok().then_some(op);
        let custom = self.custom.entry(name).or_default();
        custom.push(Custom::Untyped { text, lower, complex });
    }

    /// The schemas of an op's overloads, from its name without one (`mylib::foo`): those of tables
    /// and those that were registered, as they were given. A lowering that was registered without a
    /// schema has only the name (`mylib::foo.Tensor`).
    pub fn schemas(&self, op: &str) -> Vec<String> {
        let of_op = |name: &str| name.split('.').next() == Some(op);
        let rows = self.ops.0.iter().filter(|(name, _)| of_op(name));
        let mut found: BTreeMap<&str, &str> =
            rows.map(|(name, row)| (*name, row.op.schema)).collect();
        for (name, custom) in self.custom.iter().filter(|(name, _)| of_op(name)) {
            match custom.last() {
                Some(Custom::Closure { text, .. } | Custom::Untyped { text: Some(text), .. }) => {
                    found.insert(name, text);
                }
                Some(Custom::Untyped { text: None, .. }) => {
                    found.entry(name).or_insert(name);
                }
                Some(Custom::Function(..)) | None => {}
            }
        }
        found.into_values().map(str::to_owned).collect()
    }

    fn add<P: Parameters>(
        &mut self,
        schema: &str,
        complex: bool,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        let text = schema.to_owned();
        let schema = Schema::parse(schema)?;
        let fits = Claims::new(&schema, &[], false).and_then(P::check);
        fits.map_err(RegisterError::Parameters)?;
        let custom = self.custom.entry(schema.name.clone()).or_default();
        custom.push(Custom::Closure {
            schema: Arc::new(schema),
            text,
            lower: Arc::new(move |cx, args| function.call(cx, args)),
            complex,
        });
        Ok(())
    }

    /// Registers ONNX functions, written in ONNX's textual syntax, as translations of ops. The op's
    /// nodes become calls.
    ///
    /// A function of domain `mylib`, name `foo` and overload `Tensor` translates the op
    /// `mylib::foo.Tensor`; it can also have the name `"mylib::foo.Tensor"`. Its inputs have the
    /// names of the op's tensor parameters (`xs_0`, `xs_1` for a list `xs`), its attributes those
    /// of the other parameters.
    ///
    /// # Errors
    /// Returns an error if the text cannot be parsed, or if its opset does not allow a function.
    pub fn add_functions(&mut self, text: &str) -> Result<(), ParseError> {
        self.add_function_library(Model::parse_functions(text)?);
        Ok(())
    }

    /// Registers the functions of a model as [`add_functions`](Self::add_functions) does. A model
    /// with FunctionProtos comes from `pt2onnx_writer::from_bytes`.
    pub fn add_function_library(&mut self, model: Model) {
        for (i, function) in model.functions.iter().enumerate() {
            let mut op = format!("{}::{}", function.domain, function.name);
            if !matches!(function.overload.as_str(), "" | "default") {
                op = format!("{op}.{}", function.overload);
            }
            let custom = self.custom.entry(op).or_default();
            custom.push(Custom::Function(self.functions.len(), i));
        }
        self.functions.push(model);
    }

    /// Copies into a model the registered functions that its nodes call.
    pub fn copy_functions(&self, model: &mut Model) {
        let indices = self.functions.iter().map(Model::function_index);
        let libraries: Vec<_> = self.functions.iter().zip(indices).collect();
        let mut copied = BTreeSet::new();
        for node in model.graph_nodes() {
            let call = &model[node];
            let called =
                libraries.iter().enumerate().rev().find_map(|(place, (library, index))| {
                    Some((place, *library, index.called(library, call)?))
                });
            if let Some((place, library, function)) = called
                && copied.insert((place, function.body))
            {
                model.copy_function(library, function);
            }
        }
    }
}
