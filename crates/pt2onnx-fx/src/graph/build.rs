//! From the JSON's records to the model: names interned, each distinct expression, target and module stack parsed once.

use super::*;
use crate::{
    error::{Error, Invalid, Place, Result},
    schema::{self as s, upgrade},
};
use indexmap::{IndexMap, IndexSet};
use pt2onnx_symbolic::{Constraints, Range};
use pt2onnx_tensor::DType;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::borrow::Cow;

/// A program without its tensors.
pub(crate) struct Parsed {
    pub(crate) program: ExportedProgram,
    /// Constants that the JSON held: a name and what `torch.save` wrote, in base 64.
    pub(crate) constants: Vec<(String, String)>,
}

/// Reads a program's JSON, without the tensors.
pub(crate) fn program(json: &[u8], place: &Place) -> Result<Parsed> {
    // A program of a newer schema is read in one go.
    match serde_json::from_slice::<s::ExportedProgram>(json) {
        Ok(program) if is_current(program.schema_version) => build(&program, Vec::new(), place),
        _ => upgraded(json, place),
    }
}

/// Reads a program of any older schema, or tells what is wrong with one of the newest.
fn upgraded(json: &[u8], place: &Place) -> Result<Parsed> {
    let in_json = |source| Error::Json { place: place.clone(), source };
    let json = match serde_json::from_slice::<s::Header>(json) {
        Ok(header) if header.schema_version >= BARE_FLOATS_UNTIL => Cow::Borrowed(json),
        _ => upgrade::quote_floats(json),
    };
    let header: s::Header = serde_json::from_slice(&json).map_err(in_json)?;
    let version = header.schema_version;
    if version.major > s::MAJOR {
        return Err(Error::SchemaVersion {
            place: place.clone(),
            found: (version.major, version.minor),
            torch_version: header.torch_version.to_string(),
        });
    }
    let upgraded = upgrade::upgrade(json, version.major).map_err(in_json)?;
    let mut program: s::ExportedProgram =
        serde_json::from_slice(&upgraded.json).map_err(in_json)?;
    program.schema_version = version;
    build(&program, upgraded.constants, place)
}

fn build(
    program: &s::ExportedProgram,
    constants: Vec<(String, String)>,
    place: &Place,
) -> Result<Parsed> {
    let program = Builder::default()
        .program(program)
        .map_err(|invalid| Error::Invalid { place: place.clone(), invalid: Box::new(invalid) })?;
    Ok(Parsed { program, constants })
}

/// Torch 2.7 writes 8.7 and was the first to write floats as JSON has them.
const BARE_FLOATS_UNTIL: s::SchemaVersion = s::SchemaVersion { major: 8, minor: 7 };

fn is_current(version: s::SchemaVersion) -> bool {
    version >= BARE_FLOATS_UNTIL && version.major == s::MAJOR
}

type Built<T> = Result<T, Invalid>;

/// What was met already. Texts are long, and the tables of those that may be many hold the hashes too: they grow without
/// another look at the texts.
#[derive(Default)]
struct Builder<'a> {
    /// Those too long to lie in place.
    names: IndexSet<Name, FxBuildHasher>,
    texts: IndexMap<&'a str, Arc<str>, FxBuildHasher>,
    exprs: FxHashMap<&'a str, Expr>,
    targets: FxHashMap<&'a str, OpName>,
    stacks: IndexMap<&'a str, Arc<[ModuleFrame]>, FxBuildHasher>,
}

impl<'a> Builder<'a> {
    fn name(&mut self, text: &str) -> Name {
        let known = || self.names.get(text).cloned();
        match (text.len() > Name::INLINE_CAP).then(known) {
            None => Name::new(text),
            Some(Some(name)) => name,
            Some(None) => {
                let name = Name::new(text);
                self.names.insert(name.clone());
                name
            }
        }
    }

    /// A text that nodes may share.
    fn text(&mut self, text: &'a str) -> Arc<str> {
        let known = self.texts.entry(text);
        known.or_insert_with(|| text.into()).clone()
    }

    fn program(&mut self, p: &'a s::ExportedProgram<'a>) -> Built<ExportedProgram> {
        let module = &p.graph_module;
        let graph = self.graph(&module.graph)?;
        let signature = GraphSignature {
            inputs: self.all(&module.signature.input_specs, Self::input_spec)?,
            outputs: self.all(&module.signature.output_specs, Self::output_spec)?,
        };
        for (what, specs, of_graph) in [
            ("input", signature.inputs.len(), graph.inputs.len()),
            ("output", signature.outputs.len(), graph.outputs.len()),
        ] {
            if specs != of_graph {
                return Err(Invalid::Arity { what, specs, graph: of_graph });
            }
        }
        let ranges = p.range_constraints.0.iter().map(|(expr, r)| {
            let range = Range { min: r.min_val, max: r.max_val };
            (expr.to_string(), range)
        });
        let range_constraints: Vec<_> = ranges.collect();
        let owner = || "range_constraints".to_owned();
        let mut constraints = Constraints::new();
        for ((text, _), (_, range)) in p.range_constraints.0.iter().zip(&range_constraints) {
            constraints.constrain(&self.expr(text, owner)?, *range);
        }
        let strings = |texts: &[s::Text]| texts.iter().map(|t| t.to_string()).collect();
        Ok(ExportedProgram {
            graph,
            signature,
            constraints,
            range_constraints,
            guards: strings(&p.guards_code),
            module_call_graph: self.all(&module.module_call_graph, Self::module_call)?,
            state: Default::default(),
            constants: Default::default(),
            mutations: Vec::new(),
            torch_version: p.torch_version.to_string(),
            schema_version: (p.schema_version.major, p.schema_version.minor),
            verifiers: strings(&p.verifiers),
            opset_version: p.opset_version.0.iter().map(|(k, v)| (k.to_string(), *v)).collect(),
        })
    }

    fn all<S, T>(
        &mut self,
        from: &'a [S],
        build: impl Fn(&mut Self, &'a S) -> Built<T>,
    ) -> Built<Vec<T>> {
        // Results do not tell how many they are: `collect` would take more room than that.
        let mut all = Vec::with_capacity(from.len());
        for item in from {
            all.push(build(self, item)?);
        }
        Ok(all)
    }

    fn graph(&mut self, g: &'a s::Graph<'a>) -> Built<Graph> {
        let mut values = Values::default();
        let named = g.tensor_values.0.len() + g.sym_int_values.0.len();
        values.reserve(named);
        for (name, meta) in &g.tensor_values.0 {
            let meta = self.tensor_meta(name, meta)?;
            values.insert(self.name(name), meta.into());
        }
        for (name, value) in &g.sym_int_values.0 {
            let (expr, hint) = match value {
                s::SymInt::Int(i) => (Expr::int(*i), None),
                s::SymInt::Expr(e) => (self.expr(&e.expr_str, || owner(name))?, hint(e)),
            };
            values.insert(self.name(name), ValueMeta::SymInt { expr, hint });
        }
        for (name, value) in &g.sym_float_values.0 {
            let (expr, hint) = match value {
                s::SymFloat::Float(f) => (Expr::float(f.0), None),
                s::SymFloat::Expr(e) => (self.expr(&e.expr_str, || owner(name))?, hint(e)),
            };
            values.insert(self.name(name), ValueMeta::SymFloat { expr, hint });
        }
        for (name, value) in &g.sym_bool_values.0 {
            let (expr, hint) = match value {
                s::SymBool::Bool(b) => (Expr::bool(*b), None),
                s::SymBool::Expr(e) => (self.expr(&e.expr_str, || owner(name))?, hint(e)),
            };
            values.insert(self.name(name), ValueMeta::SymBool { expr, hint });
        }
        for (name, object) in &g.custom_obj_values.0 {
            let class = self.name(&object.class_fqn);
            values.insert(self.name(name), ValueMeta::CustomObj { class });
        }
        let graph = Graph {
            inputs: self.all(&g.inputs, Self::argument)?,
            nodes: self.all(&g.nodes, Self::node)?,
            outputs: self.all(&g.outputs, Self::argument)?,
            values: Arc::new(values),
            is_single_tensor_return: g.is_single_tensor_return,
        };
        defined_before_use(&graph)?;
        Ok(graph)
    }

    fn expr(&mut self, text: &'a str, owner: impl Fn() -> String) -> Built<Expr> {
        if let Some(expr) = self.exprs.get(text) {
            return Ok(expr.clone());
        }
        let expr = Expr::parse(text).map_err(|source| Invalid::Expression {
            owner: owner(),
            text: text.to_owned(),
            source,
        })?;
        self.exprs.insert(text, expr.clone());
        Ok(expr)
    }

    fn size(&mut self, name: &str, size: &'a s::SymInt<'a>) -> Built<Expr> {
        match size {
            s::SymInt::Int(i) => Ok(Expr::int(*i)),
            s::SymInt::Expr(e) => self.expr(&e.expr_str, || owner(name)),
        }
    }

    fn tensor_meta(&mut self, name: &str, m: &'a s::TensorMeta<'a>) -> Built<TensorMeta> {
        let mut exprs = |sizes: &'a [s::SymInt<'a>]| -> Built<Vec<Expr>> {
            self.all(sizes, |cx, size| cx.size(name, size))
        };
        let (sizes, strides) = (exprs(&m.sizes)?, exprs(&m.strides)?);
        Ok(TensorMeta {
            dtype: dtype(m.dtype, || owner(name))?,
            sizes,
            strides,
            storage_offset: self.size(name, &m.storage_offset)?,
            requires_grad: m.requires_grad,
            device: self.device(&m.device),
            layout: layout(m.layout, || owner(name))?,
        })
    }

    fn device(&mut self, d: &s::Device) -> Device {
        Device { kind: self.name(&d.kind), index: d.index }
    }

    fn node(&mut self, n: &'a s::Node<'a>) -> Built<Node> {
        let target = match self.targets.get(&*n.target) {
            Some(target) => target.clone(),
            None => {
                let target = OpName::parse(&n.target);
                self.targets.insert(&n.target, target.clone());
                target
            }
        };
        let mut outputs = self.all(&n.outputs, Self::argument)?;
        let mut single_return = n.is_hop_single_tensor_return;
        // Before 2.7 a higher-order op had one result, a list, where it has one result each since.
        if target.is_higher_order()
            && single_return.is_none()
            && let [Argument::Tensors(names)] = outputs.as_mut_slice()
        {
            outputs = names.drain(..).map(Argument::Tensor).collect();
            single_return = Some(false);
        }
        let name = match (&n.name, outputs.as_slice()) {
            (Some(name), _) => self.name(name),
            // torch 2.9 and 2.10 write no name: it is that of a single result, and for more FX made one up.
            (None, [only]) if only.name().is_some() => {
                only.name().cloned().unwrap_or_else(|| target.name.clone())
            }
            (None, _) => target.name.clone(),
        };
        let args = self.all(&n.inputs, |cx, a| {
            Ok(NamedArg {
                name: cx.name(&a.name),
                kind: match a.kind {
                    Some(1) => ArgKind::Positional,
                    Some(2) => ArgKind::Keyword,
                    _ => ArgKind::Unknown,
                },
                value: cx.argument(&a.arg)?,
            })
        })?;
        Ok(Node { name, target, args, outputs, single_return, meta: self.meta(n).into() })
    }

    fn meta(&mut self, n: &'a s::Node<'a>) -> NodeMeta {
        let mut meta = NodeMeta::default();
        for (key, text) in &n.metadata.0 {
            match &**key {
                "stack_trace" => meta.stack_trace = Some(self.text(text)),
                "from_node" => meta.from_node = Some((&**text).into()),
                "custom" => meta.custom = Some(self.text(text)),
                "torch_fn" => {
                    meta.torch_fn = text.split_once(';').map(|(a, b)| (self.name(a), self.name(b)));
                }
                "source_fn_stack" => {
                    let pairs = text.split(';').filter_map(|pair| pair.split_once(','));
                    meta.source_fn_stack =
                        pairs.map(|(a, b)| (self.name(a), self.name(b))).collect();
                }
                "nn_module_stack" => {
                    meta.nn_module_stack = match self.stacks.get(&**text) {
                        Some(stack) => stack.clone(),
                        None => {
                            let stack: Arc<[_]> =
                                text.split(';').filter_map(|f| self.frame(f)).collect();
                            self.stacks.insert(text, stack.clone());
                            stack
                        }
                    }
                }
                _ => {}
            }
        }
        meta
    }

    /// `key,path,type`; commas in brackets do not count.
    fn frame(&mut self, text: &str) -> Option<ModuleFrame> {
        let mut depth = 0;
        let mut parts = text.splitn(3, |c| {
            depth += i32::from(matches!(c, '[' | '(')) - i32::from(matches!(c, ']' | ')'));
            c == ',' && depth == 0
        });
        Some(ModuleFrame {
            key: self.name(parts.next()?),
            path: self.name(parts.next()?),
            ty: self.name(parts.next()?),
        })
    }

    fn tensor(&mut self, t: &s::TensorArgument) -> Name {
        self.name(&t.name)
    }

    fn optional(&mut self, t: &s::OptionalTensorArgument) -> Option<Name> {
        match t {
            s::OptionalTensorArgument::Tensor(t) => Some(self.tensor(t)),
            s::OptionalTensorArgument::None(_) => None,
        }
    }

    fn sym_int(&mut self, a: &s::SymIntArgument) -> SymArg<i64> {
        match a {
            s::SymIntArgument::Name(n) => SymArg::Name(self.name(n)),
            s::SymIntArgument::Int(v) => SymArg::Value(*v),
        }
    }

    fn sym_float(&mut self, a: &s::SymFloatArgument) -> SymArg<f64> {
        match a {
            s::SymFloatArgument::Name(n) => SymArg::Name(self.name(n)),
            s::SymFloatArgument::Float(v) => SymArg::Value(v.0),
        }
    }

    fn sym_bool(&mut self, a: &s::SymBoolArgument) -> SymArg<bool> {
        match a {
            s::SymBoolArgument::Name(n) => SymArg::Name(self.name(n)),
            s::SymBoolArgument::Bool(v) => SymArg::Value(*v),
        }
    }

    fn custom_obj(&mut self, o: &s::CustomObjArgument) -> CustomObj {
        CustomObj { name: self.name(&o.name), class: self.name(&o.class_fqn) }
    }

    fn argument(&mut self, a: &'a s::Argument<'a>) -> Built<Argument> {
        let floats = |fs: &[s::Float]| fs.iter().map(|f| f.0).collect::<Vec<f64>>();
        let of = || "an argument".to_owned();
        Ok(match a {
            s::Argument::None(_) => Argument::None,
            s::Argument::Tensor(t) => Argument::Tensor(self.tensor(t)),
            s::Argument::Tensors(ts) => {
                Argument::Tensors(ts.iter().map(|t| self.tensor(t)).collect())
            }
            s::Argument::OptionalTensor(t) => Argument::OptionalTensor(self.optional(t)),
            s::Argument::OptionalTensors(ts) => {
                Argument::OptionalTensors(ts.iter().map(|t| self.optional(t)).collect())
            }
            s::Argument::NestedTensors(tss) => {
                let mut list =
                    |ts: &[s::TensorArgument]| ts.iter().map(|t| self.tensor(t)).collect();
                Argument::NestedTensors(tss.iter().map(|ts| list(ts)).collect())
            }
            s::Argument::Int(i) => Argument::Int(*i),
            s::Argument::Ints(is) => Argument::Ints(is.clone()),
            s::Argument::IntLists(iss) => Argument::IntLists(iss.clone()),
            s::Argument::Float(f) => Argument::Float(f.0),
            s::Argument::Floats(fs) => Argument::Floats(floats(fs)),
            s::Argument::FloatLists(fss) => {
                Argument::FloatLists(fss.iter().map(|fs| floats(fs)).collect())
            }
            s::Argument::Bool(b) => Argument::Bool(*b),
            s::Argument::Bools(bs) => Argument::Bools(bs.clone()),
            s::Argument::String(t) => Argument::String(self.name(t)),
            s::Argument::Strings(ts) => {
                Argument::Strings(ts.iter().map(|t| self.name(t)).collect())
            }
            s::Argument::SymInt(a) => Argument::SymInt(self.sym_int(a)),
            s::Argument::SymInts(xs) => {
                Argument::SymInts(xs.iter().map(|a| self.sym_int(a)).collect())
            }
            s::Argument::SymFloat(a) => Argument::SymFloat(self.sym_float(a)),
            s::Argument::SymFloats(xs) => {
                Argument::SymFloats(xs.iter().map(|a| self.sym_float(a)).collect())
            }
            s::Argument::SymBool(a) => Argument::SymBool(self.sym_bool(a)),
            s::Argument::SymBools(xs) => {
                Argument::SymBools(xs.iter().map(|a| self.sym_bool(a)).collect())
            }
            s::Argument::Complex(c) => Argument::Complex(c.real.0, c.imag.0),
            s::Argument::ScalarType(i) => Argument::DType(dtype(*i, of)?),
            s::Argument::MemoryFormat(i) => Argument::MemoryFormat(match i {
                1 => MemoryFormat::Contiguous,
                2 => MemoryFormat::ChannelsLast,
                3 => MemoryFormat::ChannelsLast3d,
                4 => MemoryFormat::Preserve,
                _ => return Err(unknown(of(), "MemoryFormat", *i)),
            }),
            s::Argument::Layout(i) => Argument::Layout(layout(*i, of)?),
            s::Argument::Device(d) => Argument::Device(self.device(d)),
            s::Argument::Graph(g) => {
                Argument::Graph { name: self.name(&g.name), graph: Box::new(self.graph(&g.graph)?) }
            }
            s::Argument::CustomObj(o) => Argument::CustomObj(self.custom_obj(o)),
            s::Argument::Operator(t) => Argument::Operator(self.name(t)),
            s::Argument::Dict(entries) => {
                let entries = entries.0.iter();
                let built = entries.map(|(k, v)| Ok((self.name(k), self.argument(v)?)));
                Argument::Dict(Box::new(built.collect::<Built<_>>()?))
            }
        })
    }

    fn input_spec(&mut self, spec: &'a s::InputSpec<'a>) -> Built<InputSpec> {
        Ok(match spec {
            s::InputSpec::UserInput(u) => InputSpec::UserInput(self.argument(&u.arg)?),
            s::InputSpec::Parameter(p) => InputSpec::Parameter {
                name: self.tensor(&p.arg),
                target: self.name(&p.parameter_name),
            },
            s::InputSpec::Buffer(b) => InputSpec::Buffer {
                name: self.tensor(&b.arg),
                target: self.name(&b.buffer_name),
                persistent: b.persistent,
            },
            s::InputSpec::TensorConstant(c) => InputSpec::TensorConstant {
                name: self.tensor(&c.arg),
                target: self.name(&c.tensor_constant_name),
            },
            s::InputSpec::CustomObj(c) => InputSpec::CustomObj {
                object: self.custom_obj(&c.arg),
                target: self.name(&c.custom_obj_name),
            },
            s::InputSpec::Token(t) => InputSpec::Token(self.tensor(&t.arg)),
            s::InputSpec::Constant(c) => InputSpec::Constant {
                name: self.name(&c.name),
                value: match &c.value {
                    s::ConstantValue::None(_) => ConstantValue::None,
                    s::ConstantValue::Int(i) => ConstantValue::Int(*i),
                    s::ConstantValue::Float(f) => ConstantValue::Float(f.0),
                    s::ConstantValue::String(t) => ConstantValue::String(self.name(t)),
                    s::ConstantValue::Bool(b) => ConstantValue::Bool(*b),
                },
            },
        })
    }

    fn output_spec(&mut self, spec: &'a s::OutputSpec<'a>) -> Built<OutputSpec> {
        Ok(match spec {
            s::OutputSpec::UserOutput(u) => OutputSpec::UserOutput(self.argument(&u.arg)?),
            s::OutputSpec::Loss(l) => OutputSpec::Loss(self.tensor(&l.arg)),
            s::OutputSpec::Token(t) => OutputSpec::Token(self.tensor(&t.arg)),
            s::OutputSpec::BufferMutation(m) => OutputSpec::BufferMutation {
                name: self.tensor(&m.arg),
                target: self.name(&m.buffer_name),
            },
            s::OutputSpec::ParameterMutation(m) => OutputSpec::ParameterMutation {
                name: self.tensor(&m.arg),
                target: self.name(&m.parameter_name),
            },
            s::OutputSpec::UserInputMutation(m) => OutputSpec::UserInputMutation {
                name: self.tensor(&m.arg),
                target: self.name(&m.user_input_name),
            },
            s::OutputSpec::GradientToParameter(m) => OutputSpec::GradientToParameter {
                name: self.tensor(&m.arg),
                target: self.name(&m.parameter_name),
            },
            s::OutputSpec::GradientToUserInput(m) => OutputSpec::GradientToUserInput {
                name: self.tensor(&m.arg),
                target: self.name(&m.user_input_name),
            },
        })
    }

    fn module_call(&mut self, entry: &'a s::ModuleCallEntry<'a>) -> Built<ModuleCallEntry> {
        let strings = |texts: &Vec<s::Text>| texts.iter().map(|t| t.to_string()).collect();
        let signature = match &entry.signature {
            None => None,
            Some(sig) => Some(ModuleCallSignature {
                inputs: self.all(&sig.inputs, Self::argument)?,
                outputs: self.all(&sig.outputs, Self::argument)?,
                in_spec: sig.in_spec.to_string(),
                out_spec: sig.out_spec.to_string(),
                forward_arg_names: sig.forward_arg_names.as_ref().map(strings),
            }),
        };
        Ok(ModuleCallEntry { fqn: entry.fqn.to_string(), signature })
    }
}

/// Notes what an argument defines.
fn define(argument: &Argument, defined: &mut ValueMap<()>) -> Built<()> {
    let mut twice = None;
    argument.for_each_name(&mut |name| {
        if defined.insert(name, ()).is_some() {
            twice = Some(Invalid::DefinedTwice(name.clone()));
        }
    });
    twice.map_or(Ok(()), Err)
}

/// That each value is defined once, and before anything reads it.
fn defined_before_use(graph: &Graph) -> Built<()> {
    let mut defined = ValueMap::new(graph);
    let mut wrong = None;
    for input in &graph.inputs {
        define(input, &mut defined)?;
    }
    for node in &graph.nodes {
        for arg in &node.args {
            arg.value.for_each_name(&mut |name| {
                if defined.get(name).is_none() {
                    wrong = Some(name.clone());
                }
            });
        }
        if let Some(name) = wrong {
            let node = node.name.clone();
            return Err(Invalid::Undefined { node, name });
        }
        for output in &node.outputs {
            define(output, &mut defined)?;
        }
    }
    Ok(())
}

fn owner(name: &str) -> String {
    format!("value {name}")
}

fn hint(e: &s::SymExpr) -> Option<Hint> {
    e.hint.map(|h| match h {
        s::SymExprHint::Int(i) => Hint::Int(i),
        s::SymExprHint::Bool(b) => Hint::Bool(b),
        s::SymExprHint::Float(f) => Hint::Float(f.0),
    })
}

fn unknown(owner: String, of: &'static str, value: i64) -> Invalid {
    Invalid::Enum { owner, of, value }
}

/// schema.py's `ScalarType`.
pub(crate) fn dtype(value: i64, owner: impl Fn() -> String) -> Built<DType> {
    Ok(match value {
        1 => DType::U8,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::F16,
        7 => DType::F32,
        8 => DType::F64,
        9 => DType::C32,
        10 => DType::C64,
        11 => DType::C128,
        12 => DType::Bool,
        13 => DType::BF16,
        28 => DType::U16,
        29 => DType::F8E4M3FN,
        30 => DType::F8E5M2,
        31 => DType::F8E4M3FNUZ,
        32 => DType::F8E5M2FNUZ,
        33 => DType::F8E8M0,
        34 => DType::U32,
        35 => DType::U64,
        _ => return Err(unknown(owner(), "ScalarType", value)),
    })
}

/// schema.py's `Layout`.
fn layout(value: i64, owner: impl Fn() -> String) -> Built<Layout> {
    Ok(match value {
        1 => Layout::SparseCoo,
        2 => Layout::SparseCsr,
        3 => Layout::SparseCsc,
        4 => Layout::SparseBsr,
        5 => Layout::SparseBsc,
        6 => Layout::Mkldnn,
        7 => Layout::Strided,
        _ => return Err(unknown(owner(), "Layout", value)),
    })
}
