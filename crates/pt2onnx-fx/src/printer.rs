//! Programs as PyTorch prints them: `print(ep.graph)`, `node.format_node()`,
//! `str(ep.graph_signature)`, `str(ep.range_constraints)`.
//!
//! The archive does not hold everything that FX had, and the output is that of a program that
//! `torch.export.load` has restored. `getitem` and `get_attr` nodes stand right after and before
//! their node, tuples in arguments are lists, and keyword arguments have the order of the schema.
//! [`text`](crate::text) prints programs in a form that can be read back.

use crate::graph::{
    ArgKind, Argument, ConstantValue, ExportedProgram, Graph, GraphSignature, InputSpec, Name,
    Node, OpName, SymArg, ValueMap,
};
use crate::python::{PyComplex, PyFloat, py_bool};
use std::fmt::{self, Display, Write, from_fn};

pub use crate::python::PyStr;

/// Prints a graph and its nodes. It counts the users of each value once, when it is made.
#[derive(Debug)]
pub struct Printer<'a> {
    graph: &'a Graph,
    inputs: Vec<Option<&'a Name>>,
    users: ValueMap<'a, Users>,
}

/// The users of a value. A node that reads it twice counts once.
#[derive(Debug)]
struct Users {
    count: usize,
    /// Position of the last user.
    last: usize,
}

impl<'a> Printer<'a> {
    /// A printer of the graph of a program.
    pub fn new(program: &'a ExportedProgram) -> Self {
        let mut printer = Self::of_body(&program.graph);
        printer.inputs = program.signature.inputs.iter().map(InputSpec::name).collect();
        printer
    }

    /// A printer of a body of a higher-order op.
    pub fn of_body(graph: &'a Graph) -> Self {
        let mut users = ValueMap::new(graph);
        let mut note = |user: usize, argument: &Argument| {
            argument.for_each_name(&mut |name| match users.get(name) {
                Some(Users { last, .. }) if *last == user => {}
                known => {
                    let count = known.map_or(1, |u| u.count + 1);
                    users.insert(name, Users { count, last: user });
                }
            });
        };
        for (user, node) in graph.nodes.iter().enumerate() {
            node.args.iter().for_each(|arg| note(user, &arg.value));
        }
        let output = graph.nodes.len();
        graph.outputs.iter().for_each(|value| note(output, value));
        let inputs = graph.inputs.iter().map(Argument::name).collect();
        Self { graph, inputs, users }
    }

    fn users_of(&self, name: &Name) -> usize {
        self.users.get(name).map_or(0, |users| users.count)
    }

    /// `%relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,),
    /// kwargs = {})`
    pub fn node(&self, node: &Node) -> impl Display {
        from_fn(move |f| {
            let keyword = node.args.iter().filter(|a| a.kind == ArgKind::Keyword);
            let positional = node.args.iter().filter(|a| a.kind != ArgKind::Keyword);
            // A tuple of one has a comma.
            let comma = if positional.clone().count() == 1 { "," } else { "" };
            let parts = parts(node);
            let users = match &parts {
                Some(parts) => parts.iter().filter(|p| self.is_used_part(p)).count(),
                None => {
                    let name = node.outputs.first().and_then(Argument::name);
                    name.map_or(0, |name| self.users_of(name))
                }
            };
            write!(
                f,
                "%{} : [num_users={users}] = call_function[target={}](args = ({}{comma}), kwargs = {{{}}})",
                node.name,
                target(&node.target),
                separated(positional.map(|a| arg(&a.value))),
                separated(keyword.map(|a| from_fn(|f| write!(f, "{}: {}", a.name, arg(&a.value))))),
            )
        })
    }

    /// The `getitem` nodes of a node's results, without those of unused results.
    pub fn getitems(&self, node: &Node) -> Vec<String> {
        let mut lines = Vec::new();
        let line = |name: &Name, users, of: &str, index| {
            format!(
                "%{name} : [num_users={users}] = call_function[target=operator.getitem](args = (%{of}, {index}), kwargs = {{}})"
            )
        };
        for (index, part) in parts(node).into_iter().flatten().enumerate() {
            match part {
                Part::One(name) if self.is_used_part(&part) => {
                    lines.push(line(name, self.users_of(name), &node.name, index));
                }
                // The list is a node, whose name is lost.
                Part::List(names) if self.is_used_part(&part) => {
                    let list: Name = format!("{}_{index}", node.name).into();
                    let used = |n: &&Name| !is_unused(n);
                    let users = names.iter().filter(used).count();
                    lines.push(line(&list, users, &node.name, index));
                    for (i, name) in names.iter().enumerate() {
                        if used(&name) {
                            lines.push(line(name, self.users_of(name), &list, i));
                        }
                    }
                }
                _ => {}
            }
        }
        lines
    }

    fn is_used_part(&self, part: &Part) -> bool {
        match part {
            Part::One(name) => !is_unused(name),
            Part::List(names) => names.iter().any(|n| !is_unused(n)),
            Part::Nothing => false,
        }
    }
}

/// `str(ep.graph)`.
impl Display for Printer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("graph():")?;
        for (index, input) in self.inputs.iter().enumerate() {
            let made_up: Name = format!("arg{index}").into();
            let name = input.unwrap_or(&made_up);
            let users = self.users_of(name);
            write!(f, "\n    %{name} : [num_users={users}] = placeholder[target={name}]")?;
        }
        for node in &self.graph.nodes {
            for arg in &node.args {
                if let Argument::Graph { name, .. } = &arg.value {
                    write!(f, "\n    %{name} : [num_users=1] = get_attr[target={name}]")?;
                }
            }
            write!(f, "\n    {}", self.node(node))?;
            self.getitems(node).iter().try_for_each(|line| write!(f, "\n    {line}"))?;
        }
        let outputs: Vec<_> = self.graph.outputs.iter().map(repr).collect();
        match outputs.as_slice() {
            [only] if self.graph.is_single_tensor_return => write!(f, "\n    return {only}"),
            [only] => write!(f, "\n    return ({only},)"),
            _ => write!(f, "\n    return ({})", separated(outputs.iter())),
        }
    }
}

/// One result of a node that returns several.
pub(crate) enum Part<'a> {
    One(&'a Name),
    List(&'a [Name]),
    Nothing,
}

/// The results that FX takes by `getitem`; `None` if the node itself is the result.
pub(crate) fn parts(node: &Node) -> Option<Vec<Part<'_>>> {
    fn part(output: &Argument) -> Part<'_> {
        match output {
            Argument::Tensors(names) => Part::List(names),
            _ => output.name().map_or(Part::Nothing, Part::One),
        }
    }
    match node.outputs.as_slice() {
        [Argument::Tensors(names)] => Some(names.iter().map(Part::One).collect()),
        [_] if node.single_return != Some(false) => None,
        outputs => Some(outputs.iter().map(part).collect()),
    }
}

/// Whether a result has no `getitem` node: the exporter gives it such a name.
pub(crate) fn is_unused(name: &str) -> bool {
    name.rsplit_once("_unused_").is_some_and(|(_, index)| {
        !index.is_empty() && index.chars().all(|c| c.is_ascii_digit() || c == '_')
    })
}

fn target(op: &OpName) -> impl Display {
    from_fn(move |f| match &*op.namespace {
        "_operator" => write!(f, "operator.{}", op.name),
        _ => f.write_str(&op.qualified()),
    })
}

/// `str(node.target)`: `aten.relu.default`, `cond`, `<built-in function add>`.
pub fn target_str(op: &OpName) -> impl Display {
    from_fn(move |f| match &*op.namespace {
        "_operator" | "math" => write!(f, "<built-in function {}>", op.name),
        _ if op.is_higher_order() => f.write_str(&op.name),
        _ => op.fmt(f),
    })
}

/// `a, b`.
pub(crate) fn separated<D: Display>(items: impl Iterator<Item = D> + Clone) -> impl Display {
    from_fn(move |f| {
        for (i, item) in items.clone().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            item.fmt(f)?;
        }
        Ok(())
    })
}

/// Writes an argument. `own` writes names of values, and kinds of arguments that have another form
/// there.
pub(crate) fn write_argument(
    f: &mut fmt::Formatter<'_>,
    argument: &Argument,
    own: &dyn Fn(&mut fmt::Formatter<'_>, &Argument) -> Option<fmt::Result>,
) -> fmt::Result {
    if let Some(written) = own(f, argument) {
        return written;
    }
    match argument {
        Argument::None | Argument::OptionalTensor(None) => f.write_str("None"),
        Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => i.fmt(f),
        Argument::Float(x) | Argument::SymFloat(SymArg::Value(x)) => PyFloat(*x).fmt(f),
        Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => f.write_str(py_bool(*b)),
        Argument::SymInt(SymArg::Expr(e))
        | Argument::SymFloat(SymArg::Expr(e))
        | Argument::SymBool(SymArg::Expr(e)) => e.fmt(f),
        Argument::String(s) => f.write_str(s),
        Argument::Operator(s) => f.write_str(s.strip_prefix("torch.ops.").unwrap_or(s)),
        Argument::Complex(re, im) => PyComplex(*re, *im).fmt(f),
        Argument::DType(d) => write!(f, "torch.{d}"),
        Argument::MemoryFormat(m) => m.fmt(f),
        Argument::Layout(l) => l.fmt(f),
        Argument::Device(d) => d.fmt(f),
        Argument::Dict(entries) => {
            let value = |v| from_fn(move |f| write_argument(f, v, own));
            let entry = |(k, v)| from_fn(move |f| write!(f, "{k}: {}", value(v)));
            write!(f, "{{{}}}", separated(entries.iter().map(entry)))
        }
        list => {
            let items = list.elements().unwrap_or_default();
            let item = |item| from_fn(move |f| write_argument(f, item, own));
            write!(f, "[{}]", separated(items.iter().map(item)))
        }
    }
}

/// An argument as `torch.fx.node._format_arg` prints it.
fn arg(argument: &Argument) -> impl Display {
    from_fn(move |f| {
        write_argument(f, argument, &|f, argument| match argument {
            Argument::Graph { name, .. } => Some(write!(f, "%{name}")),
            _ => argument.name().map(|name| write!(f, "%{name}")),
        })
    })
}

/// An argument as Python's `repr` prints it: strings in quotes, values by their names.
pub fn repr(argument: &Argument) -> impl Display {
    from_fn(move |f| match (argument, argument.name()) {
        (_, Some(name)) => f.write_str(name),
        (Argument::String(s), _) => write!(f, "'{s}'"),
        (other, _) => arg(other).fmt(f),
    })
}

/// A text for messages: its first 160 characters, with `...` for the others.
pub fn brief(text: impl Display) -> String {
    const LONGEST: usize = 160;
    let mut text = text.to_string();
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// `str(ep.graph_signature)`.
impl Display for GraphSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\n# inputs\n")?;
        for (i, spec) in self.inputs.iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            let name = spec.name().map_or("", |n| &**n);
            write!(f, "{name}: {}", spec.kind())?;
            if let Some(target) = spec.target() {
                write!(f, " target='{target}'")?;
            }
            if matches!(spec, InputSpec::Buffer { .. }) {
                write!(f, " persistent={}", spec.persistent())?;
            }
        }
        f.write_str("\n\n# outputs\n")?;
        for (i, spec) in self.outputs.iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            let name = spec.name().map_or("", |n| &**n);
            write!(f, "{name}: {}", spec.kind.name())?;
            if !spec.target.is_empty() {
                write!(f, " target='{}'", spec.target)?;
            }
        }
        f.write_char('\n')
    }
}

impl InputSpec {
    /// Name of its `torch.export.graph_signature.InputKind`.
    pub fn kind(&self) -> &'static str {
        match self {
            InputSpec::UserInput(_) | InputSpec::Constant { .. } => "USER_INPUT",
            InputSpec::Parameter { .. } => "PARAMETER",
            InputSpec::Buffer { .. } => "BUFFER",
            InputSpec::TensorConstant { .. } => "CONSTANT_TENSOR",
            InputSpec::CustomObj { .. } => "CUSTOM_OBJ",
            InputSpec::Token(_) => "TOKEN",
        }
    }

    /// The field `persistent` of its `InputSpec`, as Python prints it: `True` or `False` for a
    /// buffer, `None` for other inputs.
    pub fn persistent(&self) -> &'static str {
        match self {
            InputSpec::Buffer { persistent, .. } => py_bool(*persistent),
            _ => "None",
        }
    }
}

/// `str(ep.range_constraints)`: `{s0: VR[2, int_oo], 2*s0: VR[4, 2048]}`.
pub fn range_constraints(program: &ExportedProgram) -> String {
    let ranges = program.range_constraints.iter().map(|(expr, range)| format!("{expr}: {range}"));
    format!("{{{}}}", separated(ranges))
}

impl Display for ConstantValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstantValue::None => f.write_str("None"),
            ConstantValue::Int(i) => i.fmt(f),
            ConstantValue::Float(x) => PyFloat(*x).fmt(f),
            ConstantValue::String(s) => f.write_str(s),
            ConstantValue::Bool(b) => f.write_str(py_bool(*b)),
        }
    }
}
