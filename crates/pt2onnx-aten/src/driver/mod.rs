//! The driver: walks a program's nodes, binds arguments, calls lowerings, and holds what they give against what PyTorch
//! recorded.

mod control;
mod foreign;
mod functions;
mod metadata;
mod signature;
mod state;
mod usage;

pub use foreign::Operators;
pub use metadata::{Detail, Options};
pub use state::State;
pub use usage::{Emitted, OpUse, emitted, ops_used};

use metadata::Annotator;

use crate::{
    Complex, Cx, Error, LowerError, Lowered, NodeError, Registry, Schema,
    args::Args,
    complex::Mode,
    cx::{Outputs, Recorded},
    registry::{AtenOp, Complexity, Custom, LowerFn},
};
use pt2onnx_fx::{
    graph::{Argument, ExportedProgram, Graph, Name, Node, Site, TensorMeta, ValueMeta},
    passes::is_opaque,
};
use pt2onnx_ir::{Builder, InsertPoint, Model, Shape, Type, Value, schema::CANONICAL_OPSET};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A lowered program.
pub struct Lowering {
    /// The model, in the newest operator forms.
    pub model: Model,
    /// What the user should know: outputs left out, and the like.
    pub warnings: Vec<String>,
}

/// Translates a functional program; of the options, a [`State`] may stand alone.
///
/// # Errors
/// All nodes, inputs and outputs that have no translation, at once.
pub fn lower<'a>(
    program: &'a ExportedProgram,
    registry: &'a Registry,
    options: impl Into<Options<'a>>,
) -> Result<Lowering, Error> {
    let options = options.into();
    let state = options.state;
    let mut model = Model::new(CANONICAL_OPSET);
    model.reserve(program.graph.nodes.len());
    let builder =
        Builder::new(&mut model, InsertPoint::End(Model::MAIN), program.constraints.clone());
    let cx = Cx::new(builder, &program.graph);
    cx.keep(program.mutations.iter().map(|mutation| &mutation.value));
    let mut driver = Driver {
        cx,
        registry,
        operators: options.operators,
        schemas: FxHashMap::default(),
        errors: Error::default(),
        partial: false,
        abandoned: false,
        annotator: Annotator::new(options),
    };
    driver.cx.edit(|model| driver.annotator.graph(program, model));
    driver.inputs(program, state);
    driver.nodes(&program.graph);
    let warnings = driver.outputs(program, state);
    let errors = std::mem::take(&mut driver.errors);
    let abandoned = driver.abandoned;
    drop(driver);
    if errors.is_empty() {
        if abandoned {
            for node in model.all_nodes().into_iter().rev() {
                if model.contains(node) {
                    model.erase(node);
                }
            }
        }
        return Ok(Lowering { model, warnings });
    }
    let emitted = emitted(&model);
    Err(Error { emitted, ..errors })
}

struct Driver<'a> {
    cx: Cx<'a>,
    registry: &'a Registry,
    operators: Operators,
    schemas: FxHashMap<&'static str, Option<Arc<Schema>>>,
    errors: Error,
    /// Whether nodes were not translated.
    partial: bool,
    /// Whether a translation was given up half-way: what it emitted leads nowhere.
    abandoned: bool,
    annotator: Annotator<'a>,
}

impl<'a> Driver<'a> {
    fn nodes(&mut self, graph: &'a Graph) {
        let outer = self.annotator.enter(graph);
        for node in &graph.nodes {
            self.node(node);
        }
        self.annotator.leave(outer);
    }

    fn node(&mut self, node: &'a Node) {
        let origin = self.annotator.origin(node);
        let origin = self.cx.edit(|model| model.add_origin(origin));
        self.cx.set_origin(Some(origin));
        if is_opaque(node) {
            self.stand_ins(node);
        } else if let Err(reason) = self.lower_node(node) {
            let site = Site::of(node);
            self.errors.nodes.push(NodeError { site, reason });
            self.stand_ins(node);
        }
        self.cx.set_origin(None);
    }

    fn lower_node(&mut self, node: &'a Node) -> Lowered<()> {
        let name = node.target.schema_name();
        if node.target.is_higher_order() {
            let outputs = self.higher_order(node)?;
            return self.define(node, &self.results(node), outputs);
        }
        let recorded = self.results(node);
        self.cx.set_outputs(&recorded);
        if let Some(custom) = self.registry.custom(&name, || self.involves_complex(node)) {
            let outputs = self.custom(custom, node)?;
            return match self.define(node, &recorded, outputs) {
                Err(LowerError::WrongType { output, emitted, recorded }) => {
                    Err(LowerError::unsupported(format!(
                        "its translation gives output {output} as {emitted}, PyTorch recorded {recorded}"
                    )))
                }
                result => result,
            };
        }
        let admitted = self.operators.admit(&node.target);
        let op = self.registry.get(&name);
        let Some(op) = op.filter(|_| !(admitted && self.operators == Operators::Aten)) else {
            if usage::is_symbolic(node) {
                return Ok(());
            }
            if admitted {
                let outputs = self.foreign(node)?;
                return self.define(node, &recorded, outputs);
            }
            let nearest = self.registry.nearest(&name).map(str::to_owned);
            return Err(LowerError::UnknownOp { op: node.target.to_string(), nearest });
        };
        match self.translate(op, node, &recorded) {
            Err(_) if admitted => {
                self.abandoned = true;
                self.cx.take_faults();
                let outputs = self.foreign(node)?;
                self.define(node, &recorded, outputs)
            }
            Ok(outputs) => self.define(node, &recorded, outputs),
            Err(error) => Err(error),
        }
    }

    fn translate(
        &mut self,
        op: &'static AtenOp,
        node: &Node,
        recorded: &[Recorded],
    ) -> Lowered<Outputs> {
        let outputs = match self.empty(recorded) {
            Some(empty) => empty,
            None => self.call(op, node)?,
        };
        self.without_faults(outputs)
    }

    /// A translation that came at run time.
    fn custom(&self, custom: &Custom, node: &'a Node) -> Lowered<Outputs> {
        let outputs = match custom {
            Custom::Closure { schema, lower, complex } => {
                let mode = if *complex { Mode::Complex } else { Mode::Real };
                self.run(schema, lower, node, mode)?
            }
            Custom::Function(library, i) => {
                let function = self.registry.function(*library, *i);
                let (library, function) = function.ok_or_else(|| {
                    LowerError::unsupported("its function is not in the registry")
                })?;
                self.call_function(library, function, node)?
            }
        };
        self.without_faults(outputs)
    }

    fn without_faults(&self, outputs: Outputs) -> Lowered<Outputs> {
        match self.cx.take_faults().into_iter().next() {
            Some(fault) => Err(fault.into()),
            None => Ok(outputs),
        }
    }

    /// Calls a lowering with the node's arguments.
    fn run(
        &self,
        schema: &Schema,
        lower: &dyn Fn(&Cx, &mut Args) -> Lowered<Outputs>,
        node: &Node,
        mode: Mode,
    ) -> Lowered<Outputs> {
        self.cx.set_mode(mode);
        let outputs =
            Args::bind(schema, &node.args).and_then(|mut args| lower(&self.cx, &mut args));
        self.cx.set_mode(Mode::Real);
        outputs
    }

    /// Constants, where all of a node's outputs are tensors known to be empty: there is nothing to compute, and runtimes
    /// have their troubles with it.
    fn empty(&self, results: &[Recorded]) -> Option<Outputs> {
        let nothing = |(name, meta): &Recorded| {
            if !name.is_some_and(|n| self.cx.reads(n)) {
                return Some(None);
            }
            let ty = onnx_type((*meta)?);
            let tensor = ty.as_tensor()?;
            let dims = tensor.shape.as_ref()?;
            let empty = dims.contains(&Expr::int(0)) && dims.iter().all(Expr::is_static);
            empty.then(|| Some(self.cx.full(dims, 0, tensor.dtype)))
        };
        let used = results.iter().any(|(name, _)| name.is_some_and(|n| self.cx.reads(n)));
        let outputs = used.then(|| results.iter().map(nothing).collect::<Option<_>>());
        outputs.flatten().map(Outputs)
    }

    fn call(&mut self, op: &'static AtenOp, node: &Node) -> Lowered<Outputs> {
        let schema = self
            .schemas
            .entry(op.schema)
            .or_insert_with(|| Schema::parse(op.schema).map(Arc::new))
            .clone();
        let schema = schema
            .ok_or_else(|| LowerError::unsupported(format!("`{}` is no schema", op.schema)))?;
        let run = |lower: LowerFn, mode| self.run(&schema, &lower, node, mode);
        match op.complex {
            _ if !self.involves_complex(node) => run(op.lower, Mode::Real),
            Complexity::Refused => {
                Err(LowerError::unsupported("complex tensors are not supported by this op"))
            }
            Complexity::Own(lower) => run(lower, Mode::Complex),
            // Of the complex operands only the sizes count: `expand_as` of a real tensor.
            Complexity::ByParts if !self.gives_complex(node) => run(op.lower, Mode::Part(0)),
            Complexity::ByParts => {
                let (re, im) = (run(op.lower, Mode::Part(0))?, run(op.lower, Mode::Part(1))?);
                let pair = |(re, im)| Some(self.cx.pairs(Complex { re: re?, im: im? }));
                Ok(Outputs(re.0.into_iter().zip(im.0).map(pair).collect()))
            }
        }
    }

    /// Whether complex tensors or numbers go into a node or come out of it.
    fn involves_complex(&self, node: &Node) -> bool {
        let mut found = node.args.iter().any(|a| matches!(a.value, Argument::Complex(..)));
        let values = node.args.iter().map(|a| &a.value).chain(&node.outputs);
        values.for_each(|a| a.for_each_name(&mut |name| found |= self.cx.is_complex(name)));
        found
    }

    fn gives_complex(&self, node: &Node) -> bool {
        let mut found = false;
        let outputs = node.outputs.iter();
        outputs.for_each(|a| a.for_each_name(&mut |name| found |= self.cx.is_complex(name)));
        found
    }

    /// Names and recorded types of a node's results, lists spread out; no name where nobody uses the result.
    fn results(&self, node: &'a Node) -> Vec<Recorded<'a>> {
        let mut results = Vec::with_capacity(node.outputs.len());
        let mut push = |name: Option<&'a Name>| {
            let meta = name.and_then(|n| match self.cx.meta(n)? {
                ValueMeta::Tensor(meta) => Some(&**meta),
                _ => None,
            });
            results.push((name, meta));
        };
        for output in &node.outputs {
            match output {
                Argument::Tensors(names) => names.iter().for_each(|n| push(Some(n))),
                Argument::OptionalTensors(names) => names.iter().for_each(|n| push(n.as_ref())),
                other => push(other.name()),
            }
        }
        results
    }

    fn define(
        &mut self,
        node: &'a Node,
        results: &[Recorded<'a>],
        outputs: Outputs,
    ) -> Lowered<()> {
        for (i, (name, meta)) in results.iter().enumerate() {
            let Some(name) = name else { continue };
            let Some(value) = outputs.0.get(i).copied().flatten() else {
                if self.cx.reads(name) && !matches!(node.outputs.get(i), Some(Argument::None)) {
                    return Err(LowerError::unsupported(format!(
                        "its output {i} has no translation"
                    )));
                }
                continue;
            };
            match meta {
                Some(meta) => self.tensor(i, name, value, meta)?,
                None => self.number(name, value),
            }
        }
        Ok(())
    }

    /// Checks a result against the recorded type, which says more of its sizes, and names it.
    fn tensor(&mut self, i: usize, name: &'a Name, value: Value, meta: &TensorMeta) -> Lowered<()> {
        let recorded = onnx_type(meta);
        let emitted = self.cx.type_of(value);
        if !emitted.as_ref().is_none_or(|emitted| self.agree(emitted, &recorded)) {
            return Err(LowerError::WrongType {
                output: i,
                emitted: emitted.map(|t| t.to_string()).unwrap_or_default(),
                recorded: recorded.to_string(),
            });
        }
        let from_node = self.cx.model().producer(value).is_some();
        if from_node {
            self.cx.set_type(value, recorded);
            self.cx.edit(|model| model[value].name.get_or_insert_with(|| name.clone()).clone());
        }
        // Sizes that only the data tell: they can be read from here on.
        let known = |d: &Expr| d.symbols().iter().all(|s| self.cx.is_bound(s));
        if !meta.sizes.iter().all(known) {
            self.cx.bind_dims(value);
        }
        self.cx.define(name, value);
        Ok(())
    }

    /// Element types equal, ranks equal, and no size provably another.
    fn agree(&self, emitted: &Type, recorded: &Type) -> bool {
        let (Type::Tensor(e), Type::Tensor(r)) = (emitted, recorded) else {
            return emitted == recorded;
        };
        let (Some(emitted), Some(sizes)) = (&e.shape, &r.shape) else {
            return e.dtype == r.dtype;
        };
        let constraints = self.cx.constraints();
        let pairs = emitted.iter().zip(sizes);
        e.dtype == r.dtype && emitted.len() == sizes.len() && { pairs }
            .all(|(a, b)| a == b || constraints.prove_eq(a, b) != Some(false))
    }

    /// A result that is a Python number: whoever needs it finds it by its expression.
    fn number(&mut self, name: &'a Name, value: Value) {
        let expr = match self.cx.meta(name) {
            Some(ValueMeta::SymInt { expr, .. } | ValueMeta::SymFloat { expr, .. }) => expr.clone(),
            _ => return self.cx.define(name, value),
        };
        self.cx.bind_scalar(expr, value);
    }

    /// Gives the results of a node that failed values of the recorded types, so that the nodes behind it can be tried.
    fn stand_ins(&mut self, node: &'a Node) {
        self.partial = true;
        self.cx.take_faults();
        for (name, meta) in self.results(node) {
            if let (Some(name), Some(meta)) = (name, meta) {
                let value = self.cx.edit(|m| {
                    let nowhere = m.add_region();
                    m.add_input(nowhere, Some(onnx_type(meta)))
                });
                self.cx.bind_dims(value);
                self.cx.define(name, value);
            }
        }
    }
}

/// A number as the tensor that PyTorch makes of it: int64, float32 (the default dtype) or bool.
pub(super) fn python_number(cx: &Cx, scalar: Scalar) -> Value {
    let dtype = match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) | Scalar::Complex(..) => DType::F32,
    };
    cx.scalar(scalar, dtype)
}

/// The ONNX type of a recorded tensor: complex ones are pairs of real numbers in a last dimension of 2.
pub(super) fn onnx_type(meta: &TensorMeta) -> Type {
    let mut sizes: Shape = meta.sizes.clone();
    if meta.dtype.is_complex() {
        sizes.push(Expr::int(2));
    }
    Type::tensor(meta.dtype.to_real(), sizes)
}
