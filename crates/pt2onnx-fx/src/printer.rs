//! Programs as PyTorch prints them: `print(ep.graph)`, `node.format_node()`,
//! `str(ep.graph_signature)`, `str(ep.range_constraints)`.
//!
//! The archive does not hold everything that FX had, and the output is that of a program that
//! `torch.export.load` has restored. `getitem` and `get_attr` nodes stand right after and before
//! their node, tuples in arguments are lists, and keyword arguments have the order of the schema.
//! [`text`](crate::text) prints programs in a form that can be read back.

use crate::graph::{
    ArgKind, Argument, ConstantValue, ExportedProgram, Graph, GraphSignature, InputSpec, Name,
    Node, OpName, OutputSpec, SymArg, ValueMap,
};
use crate::python::{PyBool, PyComplex, PyFloat};
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
                separated(positional.map(|a| Arg(&a.value))),
                separated(keyword.map(|a| from_fn(|f| write!(f, "{}: {}", a.name, Arg(&a.value))))),
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
        let outputs: Vec<_> = self.graph.outputs.iter().map(Repr).collect();
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
        _ if op.is_operator() || op.is_higher_order() => write!(f, "torch.ops.{op}"),
        _ => op.fmt(f),
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

/// `[a, b]`.
fn list<'a, T, D: Display>(items: &'a [T], show: impl Fn(&'a T) -> D + Clone) -> impl Display {
    from_fn(move |f| write!(f, "[{}]", separated(items.iter().map(show.clone()))))
}

/// `[[a], [b, c]]`.
fn lists<'a, T, D: Display>(items: &'a [Vec<T>], show: impl Fn(&'a T) -> D + Copy) -> impl Display {
    list(items, move |inner| list(inner, show))
}

/// `%name`.
struct Reference<'a>(&'a str);

impl Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('%')?;
        f.write_str(self.0)
    }
}

/// An argument as `torch.fx.node._format_arg` prints it.
struct Arg<'a>(&'a Argument);

impl Display for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn value(name: &Name) -> Reference<'_> {
            Reference(name)
        }
        fn optional(name: &Option<Name>) -> impl Display {
            from_fn(move |f| match name {
                Some(name) => Reference(name).fmt(f),
                None => f.write_str("None"),
            })
        }
        match self.0 {
            Argument::None | Argument::OptionalTensor(None) => f.write_str("None"),
            Argument::Tensor(n)
            | Argument::OptionalTensor(Some(n))
            | Argument::Graph { name: n, .. } => value(n).fmt(f),
            Argument::CustomObj(o) => value(&o.name).fmt(f),
            Argument::Tensors(ns) => list(ns, value).fmt(f),
            Argument::OptionalTensors(ns) => list(ns, optional).fmt(f),
            Argument::NestedTensors(nss) => lists(nss, value).fmt(f),
            Argument::Int(i) => i.fmt(f),
            Argument::Ints(is) => list(is, |i| *i).fmt(f),
            Argument::IntLists(iss) => lists(iss, |i| *i).fmt(f),
            Argument::Float(x) => PyFloat(*x).fmt(f),
            Argument::Floats(xs) => list(xs, |x| PyFloat(*x)).fmt(f),
            Argument::FloatLists(xss) => lists(xss, |x| PyFloat(*x)).fmt(f),
            Argument::Bool(b) => PyBool(*b).fmt(f),
            Argument::Bools(bs) => list(bs, |b| PyBool(*b)).fmt(f),
            Argument::String(s) => f.write_str(s),
            Argument::Operator(s) => f.write_str(s.strip_prefix("torch.ops.").unwrap_or(s)),
            Argument::Strings(ss) => list(ss, Name::clone).fmt(f),
            Argument::SymInt(a) => sym(a, |i| *i).fmt(f),
            Argument::SymInts(xs) => list(xs, |a| sym(a, |i| *i)).fmt(f),
            Argument::SymFloat(a) => sym(a, |x| PyFloat(*x)).fmt(f),
            Argument::SymFloats(xs) => list(xs, |a| sym(a, |x| PyFloat(*x))).fmt(f),
            Argument::SymBool(a) => sym(a, |b| PyBool(*b)).fmt(f),
            Argument::SymBools(xs) => list(xs, |a| sym(a, |b| PyBool(*b))).fmt(f),
            Argument::Complex(re, im) => PyComplex(*re, *im).fmt(f),
            Argument::DType(d) => write!(f, "torch.{d}"),
            Argument::MemoryFormat(m) => m.fmt(f),
            Argument::Layout(l) => l.fmt(f),
            Argument::Device(d) => d.fmt(f),
            Argument::Dict(entries) => {
                let entry = |(k, v)| from_fn(move |f| write!(f, "{k}: {}", Arg(v)));
                write!(f, "{{{}}}", separated(entries.iter().map(entry)))
            }
        }
    }
}

fn sym<'a, T, D: Display>(arg: &'a SymArg<T>, show: impl Fn(&'a T) -> D) -> impl Display {
    from_fn(move |f| match arg {
        SymArg::Name(name) => Reference(name).fmt(f),
        SymArg::Value(value) => show(value).fmt(f),
        SymArg::Expr(expr) => expr.fmt(f),
    })
}

/// An argument as Python's `repr` prints it: strings in quotes, values by their names.
pub fn repr(arg: &Argument) -> impl Display {
    Repr(arg)
}

/// Python's `repr` of an argument, values without `%`.
struct Repr<'a>(&'a Argument);

impl Display for Repr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.0.name()) {
            (_, Some(name)) => f.write_str(name),
            (Argument::String(s), _) => write!(f, "'{s}'"),
            (other, _) => Arg(other).fmt(f),
        }
    }
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
            match spec {
                InputSpec::Parameter { target, .. }
                | InputSpec::TensorConstant { target, .. }
                | InputSpec::CustomObj { target, .. } => {
                    write!(f, " target='{target}'")?;
                }
                InputSpec::Buffer { target, persistent, .. } => {
                    write!(f, " target='{target}' persistent={}", PyBool(*persistent))?
                }
                InputSpec::UserInput(_) | InputSpec::Constant { .. } | InputSpec::Token(_) => {}
            }
        }
        f.write_str("\n\n# outputs\n")?;
        for (i, spec) in self.outputs.iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            let name = spec.name().map_or("", |n| &**n);
            write!(f, "{name}: {}", spec.kind())?;
            match spec {
                OutputSpec::BufferMutation { target, .. }
                | OutputSpec::ParameterMutation { target, .. }
                | OutputSpec::UserInputMutation { target, .. }
                | OutputSpec::GradientToParameter { target, .. }
                | OutputSpec::GradientToUserInput { target, .. } => {
                    write!(f, " target='{target}'")?;
                }
                OutputSpec::UserOutput(_) | OutputSpec::Loss(_) | OutputSpec::Token(_) => {}
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
            InputSpec::Buffer { persistent, .. } if *persistent => "True",
            InputSpec::Buffer { .. } => "False",
            _ => "None",
        }
    }
}

impl OutputSpec {
    /// Name of its `torch.export.graph_signature.OutputKind`.
    pub fn kind(&self) -> &'static str {
        match self {
            OutputSpec::UserOutput(_) => "USER_OUTPUT",
            OutputSpec::Loss(_) => "LOSS_OUTPUT",
            OutputSpec::BufferMutation { .. } => "BUFFER_MUTATION",
            OutputSpec::ParameterMutation { .. } => "PARAMETER_MUTATION",
            OutputSpec::GradientToParameter { .. } => "GRADIENT_TO_PARAMETER",
            OutputSpec::GradientToUserInput { .. } => "GRADIENT_TO_USER_INPUT",
            OutputSpec::UserInputMutation { .. } => "USER_INPUT_MUTATION",
            OutputSpec::Token(_) => "TOKEN",
        }
    }
}

/// `str(ep.range_constraints)`: `{s0: VR[2, int_oo], 2*s0: VR[4, 2048]}`.
pub fn range_constraints(program: &ExportedProgram) -> String {
    let bound = |value: Option<i64>, infinite: &str| match value {
        Some(v) => v.to_string(),
        None => infinite.to_owned(),
    };
    let ranges = program.range_constraints.iter().map(|(expr, range)| {
        let (min, max) = (bound(range.min, "-int_oo"), bound(range.max, "int_oo"));
        format!("{expr}: VR[{min}, {max}]")
    });
    format!("{{{}}}", separated(ranges))
}

impl Display for ConstantValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstantValue::None => f.write_str("None"),
            ConstantValue::Int(i) => i.fmt(f),
            ConstantValue::Float(x) => PyFloat(*x).fmt(f),
            ConstantValue::String(s) => f.write_str(s),
            ConstantValue::Bool(b) => PyBool(*b).fmt(f),
        }
    }
}
