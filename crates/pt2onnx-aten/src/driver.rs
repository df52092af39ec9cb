//! The driver: walks a program's nodes, binds arguments, calls lowerings, and holds what they give against what PyTorch
//! recorded.

use crate::{
    Complex, Cx, Error, LowerError, Lowered, NodeError, Registry, Schema,
    args::Args,
    complex::Mode,
    cx::Outputs,
    registry::{AtenOp, Complexity, LowerFn},
};
use pt2onnx_fx::graph::{
    Argument, ConstantValue, ExportedProgram, Graph, InputSpec, Name, Node, OutputSpec, SymArg,
    TensorMeta, ValueMeta,
};
use pt2onnx_ir::{
    Builder, InsertPoint, Model, Origin, Shape, Type, Value, schema::CANONICAL_OPSET,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A lowered program.
pub struct Lowering {
    /// The model, in the newest operator forms.
    pub model: Model,
    /// What the user should know: outputs left out, and the like.
    pub warnings: Vec<String>,
}

/// How often a program uses an op, and whether it can be lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpUse {
    /// `aten::add.Tensor`.
    pub op: String,
    /// Nodes, in subgraphs too.
    pub count: usize,
    /// Whether a lowering is registered (or none is needed).
    pub supported: bool,
}

/// The ops that a program uses, by name.
pub fn ops_used(graph: &Graph, registry: &Registry) -> Vec<OpUse> {
    let mut counts: std::collections::BTreeMap<String, (usize, bool)> = Default::default();
    visit(graph, &mut |node| {
        let name = node.target.schema_name();
        let supported = is_symbolic(node) || registry.get(&name).is_some();
        counts.entry(name).or_insert((0, supported)).0 += 1;
    });
    counts
        .into_iter()
        .map(|(op, (count, supported))| OpUse {
            op,
            count,
            supported,
        })
        .collect()
}

fn visit(graph: &Graph, f: &mut impl FnMut(&Node)) {
    for node in &graph.nodes {
        f(node);
        for arg in &node.args {
            if let Argument::Graph { graph, .. } = &arg.value {
                visit(graph, f);
            }
        }
    }
}

/// Whether a node only computes sizes: its results are expressions that the program spells out, so that there is nothing
/// to lower. They are computed where they are needed.
fn is_symbolic(node: &Node) -> bool {
    let symbol = |a: &Argument| {
        matches!(
            a,
            Argument::SymInt(_) | Argument::SymFloat(_) | Argument::SymBool(_)
        )
    };
    let sizes = matches!(
        &*node.target.namespace,
        "_operator" | "math" | "torch" | "builtins"
    ) || node.target.name.starts_with("sym_");
    sizes && !node.outputs.is_empty() && node.outputs.iter().all(symbol)
}

/// Translates a program that is functional and without higher-order ops.
///
/// # Errors
/// All nodes that have no translation, at once; inputs and outputs that ONNX has nothing for.
pub fn lower(program: &ExportedProgram, registry: &Registry) -> Result<Lowering, Error> {
    let mut model = Model::new(CANONICAL_OPSET);
    let builder = Builder::new(
        &mut model,
        InsertPoint::End(Model::MAIN),
        program.constraints.clone(),
    );
    let cx = Cx::new(builder, &program.graph);
    let mut driver = Driver {
        cx,
        registry,
        schemas: FxHashMap::default(),
        errors: Vec::new(),
        bound: FxHashSet::default(),
    };
    driver.inputs(program)?;
    for node in &program.graph.nodes {
        driver.node(node);
    }
    if !driver.errors.is_empty() {
        return Err(Error::Nodes(driver.errors));
    }
    let warnings = driver.outputs(program)?;
    drop(driver);
    Ok(Lowering { model, warnings })
}

struct Driver<'a> {
    cx: Cx<'a>,
    registry: &'a Registry,
    schemas: FxHashMap<&'static str, Option<Arc<Schema>>>,
    errors: Vec<NodeError>,
    /// Symbols that can be read from some value.
    bound: FxHashSet<Arc<str>>,
}

impl<'a> Driver<'a> {
    fn inputs(&mut self, program: &'a ExportedProgram) -> Result<(), Error> {
        // By address of the storage, the views of it that are values already.
        let mut weights: FxHashMap<usize, Vec<(&Tensor, Value)>> = FxHashMap::default();
        for spec in &program.signature.inputs {
            match spec {
                InputSpec::Parameter { name, target }
                | InputSpec::Buffer { name, target, .. }
                | InputSpec::TensorConstant { name, target } => {
                    let tensor = program.tensor_of(spec).ok_or_else(|| Error::Signature {
                        what: "weight",
                        name: target.to_string(),
                        reason: "the archive holds no tensor of this name".to_owned(),
                    })?;
                    // Tied weights are one constant, named by the first of their names.
                    let address = tensor.storage().map_or(0, |s| s.bytes().as_ptr().addr());
                    let views = weights.entry(address).or_default();
                    let known = views
                        .iter()
                        .find(|(t, _)| t.numel() > 0 && t.same(tensor))
                        .map(|(_, v)| *v);
                    let value = known.unwrap_or_else(|| {
                        let value = weight(&self.cx, tensor, target);
                        views.push((tensor, value));
                        value
                    });
                    self.cx.define(name, value);
                }
                InputSpec::UserInput(arg) => self.user_input(arg)?,
                InputSpec::Constant { name, value } => self.constant_input(name, value),
                InputSpec::CustomObj { .. } | InputSpec::Token(_) => {}
            }
        }
        Ok(())
    }

    fn user_input(&mut self, arg: &Argument) -> Result<(), Error> {
        let unsupported = |name: &str, reason: &str| Error::Signature {
            what: "input",
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let Some(name) = arg.name() else {
            return Ok(());
        };
        let (ty, number) = match self.cx.meta(name) {
            Some(ValueMeta::Tensor(meta)) => (onnx_type(meta), None),
            Some(ValueMeta::SymInt { expr, .. }) => {
                (Type::tensor(DType::I64, []), Some(expr.clone()))
            }
            Some(ValueMeta::SymFloat { expr, .. }) => {
                (Type::tensor(DType::F64, []), Some(expr.clone()))
            }
            Some(ValueMeta::SymBool { .. }) => (Type::tensor(DType::Bool, []), None),
            Some(ValueMeta::CustomObj { .. }) => {
                return Err(unsupported(
                    name,
                    "objects cannot be inputs of an ONNX model",
                ));
            }
            None => return Err(unsupported(name, "the archive does not tell its type")),
        };
        let value = self.cx.edit(|model| {
            let value = model.add_input(Model::MAIN, Some(ty));
            model[value].name = Some(name.clone());
            value
        });
        match number {
            Some(expr) => {
                self.bound.extend(expr.symbols());
                self.cx.bind_scalar(expr, value);
            }
            None => {
                self.bind_dims(value);
                self.cx.define(name, value);
            }
        }
        Ok(())
    }

    /// A Python value that was fixed at export: no input of the model.
    fn constant_input(&self, name: &Name, value: &ConstantValue) {
        let scalar = match value {
            ConstantValue::Int(i) => Scalar::Int(*i),
            ConstantValue::Float(f) => Scalar::Float(*f),
            ConstantValue::Bool(b) => Scalar::Bool(*b),
            ConstantValue::None | ConstantValue::String(_) => return,
        };
        self.cx.define(name, python_number(&self.cx, scalar));
    }

    fn bind_dims(&mut self, value: Value) {
        self.bound.extend(
            self.cx
                .known_shape(value)
                .unwrap_or_default()
                .iter()
                .flat_map(Expr::symbols),
        );
        self.cx.bind_dims(value);
    }

    fn node(&mut self, node: &'a Node) {
        let origin = Origin {
            node: node.name.clone(),
            op: node.target.to_string().into(),
            location: node.meta.source_line().map(|l| l.to_string().into()),
            metadata: Vec::new(),
        };
        let origin = self.cx.edit(|model| model.add_origin(origin));
        self.cx.set_origin(Some(origin));
        if let Err(reason) = self.lower_node(node) {
            self.errors.push(NodeError {
                node: node.name.to_string(),
                op: node.target.to_string(),
                location: node.meta.source_line().map(|l| l.to_string()),
                module: node.meta.nn_module_stack.last().map(|f| f.path.to_string()),
                reason,
            });
            self.stand_ins(node);
        }
        self.cx.set_origin(None);
    }

    fn lower_node(&mut self, node: &'a Node) -> Lowered<()> {
        let name = node.target.schema_name();
        let Some(op) = self.registry.get(&name) else {
            if is_symbolic(node) {
                return Ok(());
            }
            let nearest = self.registry.nearest(&name).map(str::to_owned);
            return Err(LowerError::UnknownOp {
                op: node.target.to_string(),
                nearest,
            });
        };
        let recorded = self.results(node);
        self.cx
            .set_outputs(recorded.iter().map(|(_, meta)| *meta).collect());
        let outputs = self.call(op, node)?;
        if let Some(fault) = self.cx.take_faults().into_iter().next() {
            return Err(fault.into());
        }
        self.define(node, &recorded, outputs)
    }

    fn call(&mut self, op: &'static AtenOp, node: &Node) -> Lowered<Outputs> {
        let schema = self
            .schemas
            .entry(op.schema)
            .or_insert_with(|| Schema::parse(op.schema).map(Arc::new))
            .clone();
        let schema = schema
            .ok_or_else(|| LowerError::unsupported(format!("`{}` is no schema", op.schema)))?;
        let run = |lower: LowerFn, mode| {
            self.cx.set_mode(mode);
            let outputs =
                Args::bind(&schema, &node.args).and_then(|mut args| lower(&self.cx, &mut args));
            self.cx.set_mode(Mode::Real);
            outputs
        };
        match op.complex {
            _ if !self.involves_complex(node) => run(op.lower, Mode::Real),
            Complexity::Refused => Err(LowerError::unsupported(
                "complex tensors are not supported by this op",
            )),
            Complexity::Own(lower) => run(lower, Mode::Complex),
            Complexity::ByParts => {
                let (re, im) = (run(op.lower, Mode::Part(0))?, run(op.lower, Mode::Part(1))?);
                let pair = |(re, im)| Some(self.cx.pairs(Complex { re: re?, im: im? }));
                Ok(Outputs(re.0.into_iter().zip(im.0).map(pair).collect()))
            }
        }
    }

    /// Whether complex tensors or numbers go into a node or come out of it.
    fn involves_complex(&self, node: &Node) -> bool {
        let mut found = node
            .args
            .iter()
            .any(|a| matches!(a.value, Argument::Complex(..)));
        let values = node.args.iter().map(|a| &a.value).chain(&node.outputs);
        values.for_each(|a| a.for_each_name(&mut |name| found |= self.cx.is_complex(name)));
        found
    }

    /// Names and recorded types of a node's results, lists spread out; no name where nobody uses the result.
    fn results(&self, node: &'a Node) -> Vec<(Option<&'a Name>, Option<&'a TensorMeta>)> {
        let mut results = Vec::with_capacity(node.outputs.len());
        let mut push = |name: Option<&'a Name>| {
            let meta = name.and_then(|n| match self.cx.meta(n)? {
                ValueMeta::Tensor(meta) => Some(meta),
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
        results: &[(Option<&'a Name>, Option<&'a TensorMeta>)],
        outputs: Outputs,
    ) -> Lowered<()> {
        for (i, (name, meta)) in results.iter().enumerate() {
            let Some(name) = name else { continue };
            let Some(value) = outputs.0.get(i).copied().flatten() else {
                let used = !name.contains("_unused_");
                if used && !matches!(node.outputs.get(i), Some(Argument::None)) {
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
    fn tensor(&mut self, i: usize, name: &Name, value: Value, meta: &TensorMeta) -> Lowered<()> {
        let recorded = onnx_type(meta);
        let emitted = self.cx.type_of(value);
        if !emitted
            .as_ref()
            .is_none_or(|emitted| self.agree(emitted, &recorded))
        {
            return Err(LowerError::WrongType {
                output: i,
                emitted: emitted.map(|t| t.to_string()).unwrap_or_default(),
                recorded: recorded.to_string(),
            });
        }
        let from_node = self.cx.model().producer(value).is_some();
        if from_node {
            self.cx.set_type(value, recorded);
            self.cx.edit(|model| {
                model[value]
                    .name
                    .get_or_insert_with(|| name.clone())
                    .clone()
            });
        }
        if meta
            .sizes
            .iter()
            .any(|d| d.symbols().iter().any(|s| !self.bound.contains(s)))
        {
            self.bind_dims(value);
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
    fn number(&mut self, name: &Name, value: Value) {
        let expr = match self.cx.meta(name) {
            Some(ValueMeta::SymInt { expr, .. } | ValueMeta::SymFloat { expr, .. }) => expr.clone(),
            _ => return self.cx.define(name, value),
        };
        self.bound.extend(expr.symbols());
        self.cx.bind_scalar(expr, value);
    }

    /// Gives the results of a node that failed values of the recorded types, so that the nodes behind it can be tried.
    fn stand_ins(&mut self, node: &'a Node) {
        self.cx.take_faults();
        for (name, meta) in self.results(node) {
            if let (Some(name), Some(meta)) = (name, meta) {
                let value = self.cx.edit(|m| {
                    let nowhere = m.add_region();
                    m.add_input(nowhere, Some(onnx_type(meta)))
                });
                self.bind_dims(value);
                self.cx.define(name, value);
            }
        }
    }

    fn outputs(&self, program: &ExportedProgram) -> Result<Vec<String>, Error> {
        let (mut outputs, mut warnings) = (Vec::new(), Vec::new());
        for (i, spec) in program.signature.outputs.iter().enumerate() {
            match spec {
                OutputSpec::UserOutput(arg) => match self.output(arg)? {
                    Some(value) => outputs.push(self.own_output(arg, value, &outputs)),
                    None => warnings.push(format!(
                        "output {i} is None in the program and left out of the model"
                    )),
                },
                OutputSpec::Token(_) => {}
                other => {
                    return Err(Error::Signature {
                        what: "output",
                        name: other.name().map(ToString::to_string).unwrap_or_default(),
                        reason:
                            "outputs of this kind (losses, gradients, mutations) are not supported"
                                .to_owned(),
                    });
                }
            }
        }
        if let Some(fault) = self.cx.take_faults().into_iter().next() {
            return Err(Error::Signature {
                what: "output",
                name: "sizes".to_owned(),
                reason: fault.to_string(),
            });
        }
        self.cx
            .edit(|model| model.set_outputs(Model::MAIN, &outputs));
        Ok(warnings)
    }

    fn output(&self, arg: &Argument) -> Result<Option<Value>, Error> {
        let known = |s: Scalar| Ok(Some(python_number(&self.cx, s)));
        match arg {
            Argument::None | Argument::OptionalTensor(None) => Ok(None),
            Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => known(Scalar::Int(*i)),
            Argument::Float(f) | Argument::SymFloat(SymArg::Value(f)) => known(Scalar::Float(*f)),
            Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => known(Scalar::Bool(*b)),
            _ => {
                let unsupported = |reason: &str| Error::Signature {
                    what: "output",
                    name: arg
                        .name()
                        .map_or_else(|| format!("{arg:?}"), ToString::to_string),
                    reason: reason.to_owned(),
                };
                let name = arg
                    .name()
                    .ok_or_else(|| unsupported("it is neither tensor nor number"))?;
                if let Some(value) = self.cx.value(name) {
                    return Ok(Some(value));
                }
                match self.cx.meta(name) {
                    Some(ValueMeta::SymInt { expr, .. }) => Ok(Some(self.cx.size(expr))),
                    Some(ValueMeta::SymFloat { expr, .. }) => {
                        Ok(Some(self.cx.cast(self.cx.number(expr), DType::F32)))
                    }
                    _ => Err(unsupported("nothing in the program computes it")),
                }
            }
        }
    }

    /// ONNX wants each output to be a value of its own that a node makes, and users want it by its name.
    fn own_output(&self, arg: &Argument, value: Value, before: &[Value]) -> Value {
        let name = arg.name().cloned();
        let from_node = self.cx.model().producer(value).is_some() && !before.contains(&value);
        let value = if from_node {
            value
        } else {
            self.cx.identity(value)
        };
        if let Some(name) = name {
            self.cx.edit(|model| model[value].name = Some(name));
        }
        value
    }
}

/// A parameter, buffer or constant under its own name.
fn weight(cx: &Cx, tensor: &Tensor, target: &Name) -> Value {
    cx.edit(|model| {
        let value = model.add_constant(tensor.view_as_real());
        model[value].name = Some(target.clone());
        value
    })
}

/// A number as the tensor that PyTorch makes of it: int64, float32 (the default dtype) or bool.
fn python_number(cx: &Cx, scalar: Scalar) -> Value {
    let dtype = match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) | Scalar::Complex(..) => DType::F32,
    };
    cx.scalar(scalar, dtype)
}

/// The ONNX type of a recorded tensor: complex ones are pairs of real numbers in a last dimension of 2.
fn onnx_type(meta: &TensorMeta) -> Type {
    let mut sizes: Shape = meta.sizes.clone();
    if meta.dtype.is_complex() {
        sizes.push(Expr::int(2));
    }
    Type::tensor(meta.dtype.to_real(), sizes)
}
