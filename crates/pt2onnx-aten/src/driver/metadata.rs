//! Metadata: where nodes, the graph and its values come from. Keys and texts are those of
//! `torch.onnx.export`.

use super::options::{Options, Provenance};
use pt2onnx_fx::{
    graph::{
        Argument, ExportedProgram, Graph, GraphSignature, InputSpec, ModuleFrame, MutationKind,
        Name, Node, NodeMeta, OpName, OutputKind, OutputSpec,
    },
    printer::{self, Printer, PyStr},
};
use pt2onnx_ir::{Metadata, Model, ORIGINAL_NAME, Origin, SharedText, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    borrow::Cow,
    cell::OnceCell,
    fmt::{self, Write},
    sync::Arc,
};

const NAMESPACE: &str = "namespace";
const CLASS_HIERARCHY: &str = "pkg.torch.onnx.class_hierarchy";
const FX_NODE: &str = "pkg.torch.onnx.fx_node";
const NAME_SCOPES: &str = "pkg.torch.onnx.name_scopes";
const STACK_TRACE: &str = "pkg.torch.onnx.stack_trace";
const GRAPH_SIGNATURE: &str = "pkg.torch.export.ExportedProgram.graph_signature";
const RANGE_CONSTRAINTS: &str = "pkg.torch.export.ExportedProgram.range_constraints";
const GUARDS: &str = "pkg.torch.export.ExportedProgram.guards_code";
const INPUT_KIND: &str = "pkg.torch.export.graph_signature.InputSpec.kind";
const PERSISTENT: &str = "pkg.torch.export.graph_signature.InputSpec.persistent";
const OUTPUT_KIND: &str = "pkg.torch.export.graph_signature.OutputSpec.kind";

/// The role of a value in the program.
pub(super) enum Role<'a> {
    /// An input or weight, with its name in the model.
    Input(&'a InputSpec, &'a Name),
    /// An output of this kind.
    Output(&'static str),
}

/// An output of the model.
pub(super) struct Output {
    pub name: Option<Name>,
    pub value: Value,
    /// PyTorch's name for the kind of output.
    pub kind: &'static str,
}

/// Makes the metadata of a program. Texts that nodes share are made once.
pub(super) struct Annotator<'a> {
    options: Options<'a>,
    /// Prints nodes of the graph that is being translated.
    printer: Option<Printing<'a>>,
    /// How many graphs the node is in.
    depth: usize,
    /// The modules around the node before.
    stack: Stack,
    /// Parsed stack traces, by the trace's address.
    traces: FxHashMap<usize, Trace>,
    ops: FxHashMap<&'a OpName, Op>,
    scratch: String,
}

/// A graph and the printer of its nodes, which is made when the first one is printed.
pub(super) type Printing<'a> = (&'a Graph, OnceCell<Printer<'a>>);

/// A parsed stack trace.
#[derive(Clone, Default)]
struct Trace {
    /// The user's line.
    location: Option<Arc<str>>,
    /// The trace as metadata has it.
    text: Arc<str>,
}

/// The names of an op.
#[derive(Clone)]
struct Op {
    /// The op as FX prints it.
    printed: Arc<str>,
    /// The op as `str(node.target)` gives it.
    target: Arc<str>,
    /// The same as the last item of a list.
    last: Arc<str>,
}

/// The modules around a node, outermost first.
struct Stack {
    /// The address of their frames.
    frames: usize,
    /// Before the outermost module.
    outside: Texts,
    inside: Vec<(ModuleFrame, Texts)>,
}

/// The common start of the metadata of a module's nodes.
#[derive(Clone)]
struct Texts {
    namespace: Arc<SharedText>,
    classes: Arc<SharedText>,
    scopes: Arc<SharedText>,
}

impl<'a> Annotator<'a> {
    pub(super) fn new(options: Options<'a>) -> Self {
        Self {
            options,
            printer: None,
            depth: 0,
            stack: Stack::new(),
            traces: FxHashMap::default(),
            ops: FxHashMap::default(),
            scratch: String::new(),
        }
    }

    /// One for the nodes of the program's graph.
    pub(super) fn of_program(options: Options<'a>, graph: &'a Graph) -> Self {
        let mut annotator = Self::new(options);
        annotator.enter(graph);
        annotator
    }

    /// Starts with the nodes of a graph. Returns the printer of the graph around it, for
    /// [`leave`](Self::leave).
    pub(super) fn enter(&mut self, graph: &'a Graph) -> Option<Printing<'a>> {
        self.depth += 1;
        match self.options.metadata {
            Provenance::Full => self.printer.replace((graph, OnceCell::new())),
            Provenance::Basic | Provenance::None => None,
        }
    }

    /// Goes back to the graph around.
    pub(super) fn leave(&mut self, outer: Option<Printing<'a>>) {
        self.depth -= 1;
        self.printer = outer;
    }

    /// The origin of what a node becomes.
    pub(super) fn origin(&mut self, node: &'a Node) -> Origin {
        Origin {
            node: node.name.clone(),
            op: self.op(&node.target).printed,
            location: self.trace(&node.meta).location.or_else(|| node.meta.place().map(Into::into)),
            doc_string: None,
            metadata: self.metadata(node),
            module: None,
        }
    }

    /// The metadata of a node that stands for a call of a module, given with the calls around it.
    pub(super) fn of_module(&mut self, frames: &[ModuleFrame]) -> Metadata<SharedText> {
        let Some((ModuleFrame { path, ty, .. }, around)) = frames.split_last() else {
            return Metadata::default();
        };
        let texts = self.stack.texts(around);
        let entry = |key: &'static str, start: &Arc<SharedText>, end: String| {
            (key.into(), SharedText::after(start, end))
        };
        let namespace = entry(NAMESPACE, &texts.namespace, format!("{path}: {ty}"));
        match self.options.metadata {
            Provenance::None => Metadata::default(),
            Provenance::Basic => vec![namespace],
            Provenance::Full => vec![
                namespace,
                entry(CLASS_HIERARCHY, &texts.classes, last_item(ty)),
                entry(NAME_SCOPES, &texts.scopes, last_item(path)),
            ],
        }
    }

    fn metadata(&mut self, node: &'a Node) -> Metadata<SharedText> {
        if self.options.metadata == Provenance::None {
            return Metadata::default();
        }
        let originals = self.options.originals.filter(|_| self.depth == 1);
        let was = originals.and_then(|originals| originals.get(&node.name));
        let (target, meta) = was.map_or((&node.target, &node.meta), |was| (&was.target, &was.meta));
        let Op { target, last, .. } = self.op(target);
        let texts = self.stack.texts(&meta.nn_module_stack);
        let scratch = &mut self.scratch;
        let mut written = |text: fmt::Arguments| -> Arc<str> {
            scratch.clear();
            // Writing to a string cannot fail.
            let _ = scratch.write_fmt(text);
            scratch.as_str().into()
        };
        let entry = |key: &'static str, start: &Arc<SharedText>, end: Arc<str>| {
            (Cow::Borrowed(key), SharedText::after(start, end))
        };
        let name = &node.name;
        let place = written(format_args!("{name}: {target}"));
        let namespace = entry(NAMESPACE, &texts.namespace, place);
        if self.options.metadata == Provenance::Basic {
            return vec![namespace];
        }
        let classes = entry(CLASS_HIERARCHY, &texts.classes, last);
        let scopes = entry(NAME_SCOPES, &texts.scopes, last_item(name).into());
        let text = match (was, &self.printer) {
            (Some(was), _) => Arc::clone(&was.text),
            (None, Some((graph, printer))) => {
                let printer = printer.get_or_init(|| Printer::of_body(graph));
                written(format_args!("{}", printer.node(node)))
            }
            (None, None) => Arc::default(),
        };
        let text = (FX_NODE.into(), text.into());
        let trace = (STACK_TRACE.into(), self.trace(meta).text.into());
        vec![namespace, classes, text, scopes, trace]
    }

    fn op(&mut self, op: &'a OpName) -> Op {
        let known = self.ops.entry(op);
        let texts = || {
            let target = printer::target_str(op).to_string();
            let (printed, last) = (op.to_string().into(), last_item(&target).into());
            Op { printed, target: target.into(), last }
        };
        known.or_insert_with(texts).clone()
    }

    fn trace(&mut self, meta: &NodeMeta) -> Trace {
        let Some(trace) = &meta.stack_trace else {
            return Trace::default();
        };
        let told = || Trace {
            location: meta.source_line().map(|line| line.to_string().into()),
            text: match self.options.strip_paths {
                true => with_short_lines(&without_folders(trace)),
                false if trace.lines().any(is_long) => with_short_lines(trace),
                false => trace.clone(),
            },
        };
        self.traces.entry(trace.as_ptr().addr()).or_insert_with(told).clone()
    }

    /// Adds the metadata of a program's graph.
    pub(super) fn graph(&self, program: &ExportedProgram, model: &mut Model) {
        let mut push = |key: &'static str, text: String| {
            model.graph_metadata.push((key.into(), text.into()));
        };
        match self.options.metadata {
            Provenance::None => return,
            Provenance::Basic => {}
            Provenance::Full => push(GRAPH_SIGNATURE, functional_signature(program).to_string()),
        }
        push(RANGE_CONSTRAINTS, printer::range_constraints(program));
        if self.options.metadata == Provenance::Full && !program.guards.is_empty() {
            let mut seen = FxHashSet::default();
            let guards = program.guards.iter().filter(|guard| seen.insert(*guard));
            push(GUARDS, guards.map(String::as_str).collect::<Vec<_>>().join("\n"));
        }
    }

    /// Adds the metadata of an input, weight or output.
    pub(super) fn value(&self, model: &mut Model, value: Value, role: Role) {
        if self.options.metadata != Provenance::Full {
            return;
        }
        let metadata = &mut model[value].metadata;
        let mut push = |key: &'static str, text: Arc<str>| {
            // A tied weight, or an input that is an output, keeps what was added first.
            if metadata.iter().all(|(k, _)| k != key) {
                metadata.push((key.into(), text));
            }
        };
        match role {
            Role::Input(spec, name) => {
                push(INPUT_KIND, spec.kind().into());
                push(PERSISTENT, spec.persistent().into());
                if let Some(original) = spec.name().filter(|original| **original != *name) {
                    push(ORIGINAL_NAME, original.as_str().into());
                }
            }
            Role::Output(kind) => push(OUTPUT_KIND, kind.into()),
        }
    }
}

impl Stack {
    fn new() -> Self {
        let list = Arc::new(SharedText::from("["));
        let namespace = Arc::new(SharedText::from(""));
        let outside = Texts { namespace, classes: Arc::clone(&list), scopes: list };
        Self { frames: 0, outside, inside: Vec::new() }
    }

    /// The texts within these modules. Those that are also around the node before have theirs
    /// already.
    fn texts(&mut self, frames: &[ModuleFrame]) -> &Texts {
        let address = frames.as_ptr().addr();
        if self.frames != address || self.inside.len() != frames.len() {
            self.frames = address;
            let known = self.inside.iter().zip(frames);
            let known = known.take_while(|((known, _), frame)| known == *frame).count();
            self.inside.truncate(known);
            for frame in frames.iter().skip(known) {
                let texts = self.innermost().within(frame);
                self.inside.push((frame.clone(), texts));
            }
        }
        self.innermost()
    }

    fn innermost(&self) -> &Texts {
        self.inside.last().map_or(&self.outside, |(_, texts)| texts)
    }
}

impl Texts {
    fn within(&self, ModuleFrame { path, ty, .. }: &ModuleFrame) -> Self {
        let after = |start, end: String| Arc::new(SharedText::after(start, end));
        Self {
            namespace: after(&self.namespace, format!("{path}: {ty}/")),
            classes: after(&self.classes, format!("{}, ", PyStr(ty))),
            scopes: after(&self.scopes, format!("{}, ", PyStr(path))),
        }
    }
}

/// The last item of a Python list of texts.
fn last_item(text: &str) -> String {
    format!("{}]", PyStr(text))
}

/// `File "/home/me/model.py", line 3` becomes `File "model.py", line 3`.
fn without_folders(trace: &str) -> Arc<str> {
    let mut out = String::with_capacity(trace.len());
    for line in trace.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let (space, text) = line.split_at(indent);
        out.push_str(space);
        match text.strip_prefix("File \"").and_then(|t| t.split_once("\", line ")) {
            Some((path, rest)) => {
                let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
                out.push_str(&format!("File \"{file}\", line {rest}"));
            }
            None => out.push_str(text),
        }
    }
    out.into()
}

/// The most characters of a source line in a stack trace. A call that is written over many lines is
/// one line there.
const SOURCE_LINE: usize = 160;

fn is_long(line: &str) -> bool {
    line.len() > SOURCE_LINE && !line.trim_start().starts_with("File \"")
}

/// Cuts long source lines. File and line number still say where the rest is.
fn with_short_lines(trace: &str) -> Arc<str> {
    let mut out = String::with_capacity(trace.len());
    for line in trace.split_inclusive('\n') {
        let text = line.trim_end_matches('\n');
        match text.char_indices().nth(SOURCE_LINE) {
            Some((end, _)) if is_long(text) => {
                out.extend([&text[..end], "...", &line[text.len()..]])
            }
            _ => out.push_str(line),
        }
    }
    out.into()
}

/// The signature with the outputs that PyTorch adds for writes when it makes a program functional.
fn functional_signature(program: &ExportedProgram) -> Cow<'_, GraphSignature> {
    let outputs = &program.signature.outputs;
    if program.mutations.is_empty() || outputs.iter().any(|output| output.kind.is_mutation()) {
        return Cow::Borrowed(&program.signature);
    }
    let writes = program.mutations.iter().filter_map(|m| {
        let kind = match m.kind {
            MutationKind::Parameter => OutputKind::ParameterMutation,
            MutationKind::Buffer => OutputKind::BufferMutation,
            MutationKind::UserInput => OutputKind::UserInputMutation,
            // PyTorch has no such output.
            MutationKind::Constant => return None,
        };
        let (value, target) = (Argument::Tensor(m.value.clone()), m.target.clone());
        Some(OutputSpec { kind, value, target })
    });
    let mut signature = program.signature.clone();
    signature.outputs = writes.chain(outputs.iter().cloned()).collect();
    Cow::Owned(signature)
}
