//! Metadata: where nodes, the graph and its values come from. Keys and texts are those of `torch.onnx.export`.

use super::options::{Detail, Options};
use pt2onnx_fx::{
    graph::{
        ExportedProgram, Graph, GraphSignature, InputSpec, ModuleFrame, MutationKind, Name, Node,
        OpName, OutputSpec,
    },
    printer::{self, Printer, PyStr},
};
use pt2onnx_ir::{Metadata, Model, ORIGINAL_NAME, Origin, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    borrow::Cow,
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

/// What a value is to the program.
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
    printer: Option<Printer<'a>>,
    archived: Archived<'a>,
    /// Prints nodes of the archive's graph. Made when it is first needed.
    archived_printer: Option<Printer<'a>>,
    /// The texts of module stacks, by the stack's address.
    stacks: FxHashMap<usize, Stack>,
    /// What is made of stack traces, by the trace's address.
    traces: FxHashMap<usize, Trace>,
    ops: FxHashMap<&'a OpName, Op>,
    scratch: String,
}

/// What a stack trace tells.
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
}

/// Finds nodes of the archive's graph by name.
struct Archived<'a> {
    nodes: &'a [Node],
    /// The place after the node that was found last. Passes mostly keep the order, so the search starts here.
    next: usize,
    /// The places of all nodes. Made when a search from `next` fails.
    places: Option<FxHashMap<&'a Name, usize>>,
}

impl<'a> Archived<'a> {
    /// How many nodes are searched before `places` is used.
    const SOON: usize = 8;

    fn new(graph: Option<&'a Graph>) -> Self {
        Self { nodes: graph.map_or(&[], |g| &g.nodes), next: 0, places: None }
    }

    fn node(&mut self, name: &Name) -> Option<&'a Node> {
        let soon = self.nodes.iter().skip(self.next).take(Self::SOON);
        let place = match { soon }.position(|n| n.name == *name) {
            Some(ahead) => self.next + ahead,
            None => {
                let nodes = self.nodes.iter().enumerate();
                let places = || nodes.map(|(i, n)| (&n.name, i)).collect();
                *self.places.get_or_insert_with(places).get(name)?
            }
        };
        self.next = place + 1;
        self.nodes.get(place)
    }
}

/// The modules around a node, as texts of metadata.
struct Stack {
    namespace: String,
    classes: String,
    scopes: String,
}

impl<'a> Annotator<'a> {
    pub(super) fn new(options: Options<'a>) -> Self {
        Self {
            options,
            printer: None,
            archived: Archived::new(options.archived),
            archived_printer: None,
            stacks: FxHashMap::default(),
            traces: FxHashMap::default(),
            ops: FxHashMap::default(),
            scratch: String::new(),
        }
    }

    /// Starts with the nodes of a graph. Returns the printer of the graph around it, for [`leave`](Self::leave).
    pub(super) fn enter(&mut self, graph: &'a Graph) -> Option<Printer<'a>> {
        match self.options.metadata {
            Detail::Full => self.printer.replace(Printer::of_body(graph)),
            Detail::Basic | Detail::None => None,
        }
    }

    /// Goes back to the graph around.
    pub(super) fn leave(&mut self, outer: Option<Printer<'a>>) {
        self.printer = outer;
    }

    /// The origin of what a node becomes.
    pub(super) fn origin(&mut self, node: &'a Node) -> Origin {
        Origin {
            node: node.name.clone(),
            op: self.op(&node.target).printed,
            location: self.trace(node).location.or_else(|| node.meta.place().map(Into::into)),
            doc_string: None,
            metadata: self.metadata(node),
            module: None,
        }
    }

    /// The metadata of a node that stands for a call of a module, given with the calls around it.
    pub(super) fn of_module(&self, frames: &[ModuleFrame]) -> Metadata {
        let Stack { namespace, classes, scopes } = Stack::new(frames);
        let list = |texts: &str| format!("[{}]", texts.trim_end_matches(", ")).into();
        let namespace = (NAMESPACE.into(), namespace.trim_end_matches('/').into());
        match self.options.metadata {
            Detail::None => Metadata::new(),
            Detail::Basic => vec![namespace],
            Detail::Full => vec![
                namespace,
                (CLASS_HIERARCHY.into(), list(&classes)),
                (NAME_SCOPES.into(), list(&scopes)),
            ],
        }
    }

    fn metadata(&mut self, node: &'a Node) -> Metadata {
        if self.options.metadata == Detail::None {
            return Metadata::new();
        }
        let rewritten = self.archived.node(&node.name);
        let rewritten = rewritten.filter(|was| was.target != node.target);
        let node = rewritten.unwrap_or(node);
        let target = self.op(&node.target).target;
        let frames = &node.meta.nn_module_stack;
        let stack = self.stacks.entry(frames.as_ptr().addr()).or_insert_with(|| Stack::new(frames));
        let scratch = &mut self.scratch;
        let mut entry = |key: &'static str, text: fmt::Arguments| {
            scratch.clear();
            // Writing to a string cannot fail.
            let _ = scratch.write_fmt(text);
            (Cow::Borrowed(key), Arc::from(scratch.as_str()))
        };
        let namespace =
            entry(NAMESPACE, format_args!("{}{}: {target}", stack.namespace, node.name));
        if self.options.metadata == Detail::Basic {
            return vec![namespace];
        }
        let printer = match (rewritten, self.options.archived) {
            (Some(_), Some(graph)) => {
                Some(&*self.archived_printer.get_or_insert_with(|| Printer::of_body(graph)))
            }
            _ => self.printer.as_ref(),
        };
        let classes = format_args!("[{}{}]", stack.classes, PyStr(&target));
        let classes = entry(CLASS_HIERARCHY, classes);
        let scopes = format_args!("[{}{}]", stack.scopes, PyStr(&node.name));
        let scopes = entry(NAME_SCOPES, scopes);
        let text = match printer {
            Some(printer) => entry(FX_NODE, format_args!("{}", printer.node(node))),
            None => entry(FX_NODE, format_args!("")),
        };
        let trace = (STACK_TRACE.into(), self.trace(node).text);
        vec![namespace, classes, text, scopes, trace]
    }

    fn op(&mut self, op: &'a OpName) -> Op {
        let known = self.ops.entry(op);
        let texts = || Op {
            printed: op.to_string().into(),
            target: printer::target_str(op).to_string().into(),
        };
        known.or_insert_with(texts).clone()
    }

    fn trace(&mut self, node: &Node) -> Trace {
        let Some(trace) = &node.meta.stack_trace else {
            return Trace::default();
        };
        let told = || Trace {
            location: node.meta.source_line().map(|line| line.to_string().into()),
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
            Detail::None => return,
            Detail::Basic => {}
            Detail::Full => push(GRAPH_SIGNATURE, functional_signature(program).to_string()),
        }
        push(RANGE_CONSTRAINTS, printer::range_constraints(program));
        if self.options.metadata == Detail::Full && !program.guards.is_empty() {
            let mut seen = FxHashSet::default();
            let guards = program.guards.iter().filter(|guard| seen.insert(*guard));
            push(GUARDS, guards.map(String::as_str).collect::<Vec<_>>().join("\n"));
        }
    }

    /// Adds the metadata of an input, weight or output.
    pub(super) fn value(&self, model: &mut Model, value: Value, role: Role) {
        if self.options.metadata != Detail::Full {
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
    fn new(frames: &[ModuleFrame]) -> Self {
        let mut stack =
            Self { namespace: String::new(), classes: String::new(), scopes: String::new() };
        for ModuleFrame { path, ty, .. } in frames {
            stack.namespace.push_str(&format!("{path}: {ty}/"));
            stack.classes.push_str(&format!("{}, ", PyStr(ty)));
            stack.scopes.push_str(&format!("{}, ", PyStr(path)));
        }
        stack
    }
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

/// The most characters of a source line in a stack trace. A call that is written over many lines is one line there.
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
    let is_write = |o: &OutputSpec| {
        matches!(
            o,
            OutputSpec::BufferMutation { .. }
                | OutputSpec::ParameterMutation { .. }
                | OutputSpec::UserInputMutation { .. }
        )
    };
    if program.mutations.is_empty() || program.signature.outputs.iter().any(is_write) {
        return Cow::Borrowed(&program.signature);
    }
    let writes = program.mutations.iter().filter_map(|m| {
        let (name, target) = (m.value.clone(), m.target.clone());
        Some(match m.kind {
            MutationKind::Parameter => OutputSpec::ParameterMutation { name, target },
            MutationKind::Buffer => OutputSpec::BufferMutation { name, target },
            MutationKind::UserInput => OutputSpec::UserInputMutation { name, target },
            // PyTorch has no such output.
            MutationKind::Constant => return None,
        })
    });
    let mut signature = program.signature.clone();
    signature.outputs = writes.chain(program.signature.outputs.iter().cloned()).collect();
    Cow::Owned(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_without_folders() {
        for (trace, stripped) in [
            (
                "File \"/a/b c/m.py\", line 3, in f\n    x = open(\"/etc/x\")\n  File \"C:\\d\\n.py\", line 4, in g\n    y",
                "File \"m.py\", line 3, in f\n    x = open(\"/etc/x\")\n  File \"n.py\", line 4, in g\n    y",
            ),
            ("File \"m.py\", line 3, in f\n", "File \"m.py\", line 3, in f\n"),
            ("File \"/a/m.py", "File \"/a/m.py"),
            ("", ""),
        ] {
            assert_eq!(&*without_folders(trace), stripped);
        }
    }

    #[test]
    fn long_source_lines_are_cut() {
        let file = format!("File \"/{}.py\", line 3, in f", "d".repeat(200));
        let trace =
            format!("{file}\n    {}\n  File \"m.py\", line 4, in g\n    y", "ä".repeat(160));
        let cut =
            format!("{file}\n    {}...\n  File \"m.py\", line 4, in g\n    y", "ä".repeat(156));
        assert_eq!(&*with_short_lines(&trace), cut);
        assert_eq!(&*with_short_lines(&cut[..file.len()]), file);
    }
}
