//! Lowers the nodes of a graph in order, and compares each result with its recorded type.

use super::{
    kinds::is_symbolic,
    metadata::Annotator,
    modules::Modules,
    node_facts::{NodeFacts, is_complex, recorded},
    options::{Options, UnsupportedOps},
    prefetch::Prefetched,
    types::onnx_type,
};
use crate::{
    AtenOp, Complex, Cx, Error, GivenArg, LowerError, Lowered, NodeError, Registry, Schema,
    args::Args,
    cx::{Call, Mode, Numbers, Outputs, Parts, Recorded, Scope},
    registry::Custom,
    table::{Complexity, Lower, Row},
};
use pt2onnx_fx::{
    graph::{
        Argument, ExportedProgram, Graph, ModuleFrame, Name, Node, Site, TensorMeta, ValueMeta,
    },
    passes::is_opaque,
};
use pt2onnx_ir::{Builder, Origin, Type, Value, is_possible};
use pt2onnx_symbolic::{Expr, Func, View};
use pt2onnx_tensor::DType;

/// The state of the translation of a program.
pub(crate) struct Driver<'a> {
    pub builder: Builder<'a>,
    /// The current graph: the program's, or the body of a higher-order op.
    pub scope: Scope<'a>,
    /// The parts of real/imaginary pairs.
    pub parts: Parts,
    pub registry: &'a Registry,
    /// Ops that are kept.
    pub operators: UnsupportedOps,
    /// Whether ATen ops that are kept become nodes `ATen`.
    pub aten_nodes: bool,
    numbers: Numbers,
    pub errors: Error,
    /// Whether some nodes were not translated.
    pub partial: bool,
    /// Whether a lowering failed after it had emitted nodes, which are unused.
    pub abandoned: bool,
    pub(super) annotator: Annotator<'a>,
    /// Calls of modules, if they become functions.
    pub(super) modules: Option<Modules>,
}

impl<'a> Driver<'a> {
    /// The state before the first node.
    pub fn new(
        builder: Builder<'a>,
        graph: &'a Graph,
        registry: &'a Registry,
        options: Options<'a>,
    ) -> Self {
        Self {
            builder,
            scope: Scope::of(graph),
            parts: Parts::default(),
            registry,
            operators: options.operators,
            aten_nodes: options.aten_nodes,
            numbers: Numbers {
                assume_finite: options.assume_finite,
                default_dtype: options.default_dtype,
                training_nodes: options.training_nodes,
            },
            errors: Error::default(),
            partial: false,
            abandoned: false,
            annotator: Annotator::new(options),
            modules: None,
        }
    }

    /// Writes the graph's metadata.
    pub fn describe(&mut self, program: &'a ExportedProgram) {
        self.builder.edit(|model| self.annotator.graph(program, model));
    }

    /// A context outside of a lowering: complex tensors are errors, and there are no outputs.
    pub fn context(&self) -> Cx<'_, 'a> {
        self.cx(Call::default())
    }

    /// The context of a lowering.
    pub fn cx<'c>(&'c self, call: Call<'c, 'a>) -> Cx<'c, 'a> {
        Cx::new(&self.builder, &self.scope, &self.parts, self.numbers, call)
    }

    /// Translates the nodes of the program's graph, whose origins and facts are prefetched.
    pub fn program<'m: 'a>(
        &mut self,
        graph: &'a Graph,
        made: impl Iterator<Item = Prefetched<'m>>,
    ) {
        let outer = self.annotator.enter(graph);
        for (node, (origin, known)) in graph.nodes.iter().zip(made) {
            self.node(node, origin, &known);
        }
        self.annotator.leave(outer);
    }

    /// Translates the nodes of a body.
    pub fn nodes(&mut self, graph: &'a Graph) {
        let (outer, has_complex) = (self.annotator.enter(graph), graph.has_complex());
        for node in &graph.nodes {
            let origin = self.annotator.origin(node);
            self.node(node, origin, &NodeFacts::of(graph, has_complex, node));
        }
        self.annotator.leave(outer);
    }

    fn node(&mut self, node: &'a Node, mut origin: Origin, known: &NodeFacts<'a>) {
        pt2onnx_cancel::check();
        let origin = self.builder.edit(|model| {
            let describe = |frames: &[ModuleFrame]| self.annotator.of_module(frames);
            let calls = self.modules.as_mut();
            origin.module = calls.and_then(|calls| calls.call(model, &node.meta, describe));
            model.add_origin(origin)
        });
        self.builder.set_origin(Some(origin));
        if is_opaque(node) {
            self.placeholders(node);
        } else if let Err(reason) = self.lower_known(node, known) {
            let site = Site::of(node);
            self.errors.nodes.push(NodeError { site, reason });
            self.placeholders(node);
        }
        self.builder.set_origin(None);
    }

    /// Translates a node.
    pub fn lower_node(&mut self, node: &'a Node) -> Lowered<()> {
        let known = NodeFacts::of(self.scope.graph(), self.scope.has_complex(), node);
        self.lower_known(node, &known)
    }

    fn lower_known(&mut self, node: &'a Node, known: &NodeFacts<'a>) -> Lowered<()> {
        let name = node.target.schema_name();
        let recorded = &known.recorded;
        if node.target.is_higher_order() {
            let outputs = self.higher_order(node)?;
            return self.define(node, recorded, outputs);
        }
        if let Some(custom) = self.registry.custom(name, || known.involves_complex) {
            let outputs = self.custom(custom, node, recorded)?;
            return match self.define(node, recorded, outputs) {
                Err(LowerError::WrongType { output, emitted, recorded }) => {
                    Err(LowerError::unsupported(format!(
                        "its translation gives output {output} the type {emitted}, but PyTorch recorded {recorded}"
                    )))
                }
                result => result,
            };
        }
        let admitted = self.operators.admit(&node.target);
        let op = self.registry.get(name);
        let Some(op) = op.filter(|_| !(admitted && self.operators == UnsupportedOps::Aten)) else {
            if is_symbolic(node) {
                return Ok(());
            }
            if admitted {
                let outputs = self.opaque_node(node)?;
                return self.define(node, recorded, outputs);
            }
            let nearest = self.registry.nearest(name).map(str::to_owned);
            return Err(LowerError::UnknownOp { op: node.target.to_string(), nearest });
        };
        match self.translate(op, node, known) {
            Err(_) if admitted => {
                self.abandoned = true;
                let _ = self.builder.take_diagnostics();
                let outputs = self.opaque_node(node)?;
                self.define(node, recorded, outputs)
            }
            Ok(outputs) => self.define(node, recorded, outputs),
            Err(error) => Err(error),
        }
    }

    /// Runs the lowering of a row, unless the results are known to be empty.
    fn translate(
        &self,
        op: &'static AtenOp,
        node: &Node,
        known: &NodeFacts<'a>,
    ) -> Lowered<Outputs> {
        let outputs = match self.empty(&known.recorded) {
            Some(empty) => empty,
            None => self.call(op, node, known)?,
        };
        self.without_diagnostics(outputs)
    }

    /// Runs a translation that was registered at run time.
    pub fn custom(
        &self,
        custom: &Custom,
        node: &'a Node,
        recorded: &[Recorded<'a>],
    ) -> Lowered<Outputs> {
        let outputs = match custom {
            Custom::Closure { schema, lower, complex, .. } => {
                let mode = if *complex { Mode::Complex } else { Mode::Real };
                self.run(
                    schema,
                    &**lower,
                    node,
                    Call { outputs: recorded, mode, ..Call::default() },
                )?
            }
            Custom::Untyped { lower, complex, .. } => {
                let mode = if *complex { Mode::Complex } else { Mode::Real };
                let cx = self.cx(Call { outputs: recorded, mode, ..Call::default() });
                lower(&cx, GivenArg::all(&cx, &node.args)?)?
            }
            Custom::Function(library, i) => {
                let function = self.registry.function(*library, *i);
                let (library, function) = function.ok_or_else(|| {
                    LowerError::unsupported("its function is not in the registry")
                })?;
                self.call_function(library, function, node)?
            }
        };
        self.without_diagnostics(outputs)
    }

    /// The outputs, or the first of the builder's diagnostics as an error.
    fn without_diagnostics(&self, outputs: Outputs) -> Lowered<Outputs> {
        match self.builder.take_diagnostics().into_iter().next() {
            Some(diagnostic) => Err(diagnostic.into()),
            None => Ok(outputs),
        }
    }

    /// Calls a lowering with the node's arguments.
    fn run(
        &self,
        schema: &Schema,
        lower: &dyn Fn(&Cx, &mut Args) -> Lowered<Outputs>,
        node: &Node,
        call: Call<'_, 'a>,
    ) -> Lowered<Outputs> {
        lower(&self.cx(call), &mut Args::bind(schema, &node.args)?)
    }

    /// Empty tensors, if all outputs of a node are known to be empty: runtimes have bugs with them,
    /// and there is nothing to compute.
    fn empty(&self, results: &[Recorded]) -> Option<Outputs> {
        let mut metas = results.iter().filter_map(|(_, meta)| *meta);
        if !metas.any(|meta| meta.sizes.contains(&Expr::int(0))) {
            return None;
        }
        let nothing = |(name, meta): &Recorded| {
            if !name.is_some_and(|n| self.scope.reads(n)) {
                return Some(None);
            }
            let ty = onnx_type((*meta)?);
            let tensor = ty.as_tensor()?;
            let dims = tensor.shape.as_ref()?;
            let known = |d: &Expr| d.all_symbols(|s| self.builder.is_bound(s));
            let empty = dims.contains(&Expr::int(0)) && dims.iter().all(known);
            empty.then(|| Some(self.builder.full(dims, 0, tensor.dtype)))
        };
        let used = results.iter().any(|(name, _)| name.is_some_and(|n| self.scope.reads(n)));
        let outputs = used.then(|| results.iter().map(nothing).collect::<Option<_>>());
        outputs.flatten().map(Outputs)
    }

    /// Calls an op's lowering in the way that it takes complex tensors.
    fn call(&self, op: &'static AtenOp, node: &Node, known: &NodeFacts<'a>) -> Lowered<Outputs> {
        let outputs = &known.recorded;
        let schema = self.registry.schema(op);
        let schema = schema
            .ok_or_else(|| LowerError::unsupported(format!("`{}` is not a schema", op.schema)))?;
        let run = |lowering: &Row<dyn Lower>, mode| {
            let call = Call { outputs, mode, origin: Some(&node.meta) };
            self.run(&schema, &|cx, args| lowering.call(cx, args), node, call)
        };
        match op.complexity {
            _ if !known.involves_complex => run(op.lowering, Mode::Real),
            Complexity::Same if op.lowering.takes_complex => run(op.lowering, Mode::Complex),
            Complexity::Same => {
                Err(LowerError::unsupported("complex tensors are not supported by this op"))
            }
            Complexity::Own(lowering) => run(lowering, Mode::Complex),
            // Only the sizes of the complex operands matter, as in `expand_as` of a real tensor.
            Complexity::ByParts if !self.gives_complex(node) => run(op.lowering, Mode::Part(0)),
            Complexity::ByParts => {
                let (re, im) = (run(op.lowering, Mode::Part(0))?, run(op.lowering, Mode::Part(1))?);
                // A list may hold real tensors, too.
                let real = |(_, meta): &Recorded| meta.is_some_and(|m| !m.dtype.is_complex());
                let one = |((re, im), recorded)| {
                    if real(recorded) {
                        re
                    } else {
                        Some(self.context().pairs(Complex::new(re?, im?)))
                    }
                };
                Ok(Outputs(re.0.into_iter().zip(im.0).zip(outputs).map(one).collect()))
            }
        }
    }

    /// Whether a node gives complex tensors.
    fn gives_complex(&self, node: &Node) -> bool {
        node.outputs.iter().any(|output| is_complex(self.scope.graph(), output))
    }

    /// Names and recorded types of a node's results.
    pub fn results(&self, node: &'a Node) -> Vec<Recorded<'a>> {
        recorded(self.scope.graph(), node)
    }

    /// Binds the results of a node to their values.
    fn define(
        &mut self,
        node: &'a Node,
        results: &[Recorded<'a>],
        outputs: Outputs,
    ) -> Lowered<()> {
        for (i, (name, meta)) in results.iter().enumerate() {
            let Some(name) = name else { continue };
            let Some(value) = outputs.0.get(i).copied().flatten() else {
                if self.scope.reads(name) && !matches!(node.outputs.get(i), Some(Argument::None)) {
                    return Err(LowerError::unsupported(format!(
                        "its lowering returned no output {i}, but the program uses it"
                    )));
                }
                continue;
            };
            match meta {
                Some(meta) => self.tensor((node, i), name, value, meta)?,
                None => self.number(name, value),
            }
        }
        Ok(())
    }

    /// Compares a result with the recorded type, and sets that type, whose sizes can be more exact,
    /// and its name.
    fn tensor(
        &mut self,
        (node, i): (&Node, usize),
        name: &'a Name,
        value: Value,
        meta: &TensorMeta,
    ) -> Lowered<()> {
        if !is_possible(&meta.sizes) {
            return Err(LowerError::unsupported(format!(
                "output {i} would have more elements than a tensor can have"
            )));
        }
        let mut recorded = onnx_type(meta);
        if !self.agrees(value, &recorded) {
            let emitted = self.builder.type_of(value);
            match (&emitted, &recorded) {
                (Some(Type::Tensor(e)), Type::Tensor(r))
                    if recorded_type_mismatch(node, i) && e.dtype == r.dtype =>
                {
                    recorded = Type::Tensor(e.clone());
                }
                _ => {
                    return Err(LowerError::WrongType {
                        output: i,
                        emitted: emitted.map(|t| t.to_string()).unwrap_or_default(),
                        recorded: recorded.to_string(),
                    });
                }
            }
        }
        let from_node = self.builder.model().producer(value).is_some();
        if from_node {
            self.builder.set_type(value, recorded);
            self.builder.edit(|model| _ = model[value].name.get_or_insert_with(|| name.clone()));
        }
        // Data-dependent sizes can be read from this result.
        let known = |d: &Expr| d.all_symbols(|s| self.builder.is_bound(s));
        if !meta.sizes.iter().all(known) {
            self.builder.bind_dims(value);
        }
        self.scope.define(name, value);
        Ok(())
    }

    /// Whether element types and ranks are equal and no size is known to differ; true if the
    /// value's type is unknown.
    fn agrees(&self, value: Value, recorded: &Type) -> bool {
        let model = self.builder.model();
        let Some(emitted) = &model[value].ty else {
            return true;
        };
        let (Type::Tensor(e), Type::Tensor(r)) = (emitted, recorded) else {
            return emitted == recorded;
        };
        let (Some(emitted), Some(sizes)) = (&e.shape, &r.shape) else {
            return e.dtype == r.dtype;
        };
        let constraints = self.builder.constraints();
        let pairs = emitted.iter().zip(sizes);
        e.dtype == r.dtype && emitted.len() == sizes.len() && { pairs }
            .all(|(a, b)| a == b || constraints.prove_eq(a, b) != Some(false))
    }

    /// Binds a result that is a Python number to its expression.
    fn number(&mut self, name: &'a Name, value: Value) {
        let expr = match self.scope.meta(name) {
            Some(ValueMeta::SymInt { expr, .. } | ValueMeta::SymFloat { expr, .. }) => expr.clone(),
            Some(ValueMeta::SymBool { expr, .. }) => {
                // A bool read from a tensor is recorded as `u0 == 1`; programs may use `u0` too.
                if let View::Call(Func::Eq, [number, one]) = expr.view()
                    && number.as_symbol().is_some()
                    && one.as_int() == Some(1)
                {
                    let as_int = self.builder.cast(value, DType::I64);
                    self.builder.bind_scalar(number.clone(), as_int);
                }
                return self.scope.define(name, value);
            }
            _ => return self.scope.define(name, value),
        };
        self.builder.bind_scalar(expr, value);
    }

    /// Binds the results of a failed node to values of the recorded types, for the nodes after it.
    fn placeholders(&mut self, node: &'a Node) {
        self.partial = true;
        let _ = self.builder.take_diagnostics();
        for (name, meta) in self.results(node) {
            if let (Some(name), Some(meta)) = (name, meta) {
                let value = self.builder.edit(|m| {
                    let nowhere = m.add_region();
                    m.add_input(nowhere, Some(onnx_type(meta)))
                });
                self.builder.bind_dims(value);
                self.scope.define(name, value);
            }
        }
    }
}

/// Whether PyTorch records a wrong shape for the output: some versions split the states of
/// recurrent layers with static sizes, and record `[1, 1, 2, 4]` for `[1, 2, 4]`. The inferred type
/// is used then.
fn recorded_type_mismatch(node: &Node, output: usize) -> bool {
    let op = node.target.to_string();
    output > 0 && ["aten.lstm.", "aten.gru.", "aten.rnn_"].iter().any(|name| op.starts_with(name))
}
