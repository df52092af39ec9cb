//! Programs as PyTorch prints them: `print(ep.graph)`, `node.format_node()`, `str(ep.graph_signature)`, `str(ep.range_constraints)`.
//!
//! The archive does not hold all that FX had. `getitem` and `get_attr` nodes are put back where `torch.export.load` puts them
//! (right after and before their node). Tuples in arguments come out as lists, and keyword arguments in the order of
//! the schema: that too is what `torch.export.load` restores, the program before saving may have had it otherwise.

use crate::graph::{
    ArgKind, Argument, ConstantValue, ExportedProgram, Graph, GraphSignature, InputSpec, Name,
    Node, OpName, OutputSpec, SymArg,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::{self, Display, Write};

/// Prints the nodes of one graph; holds the number of users of each value.
#[derive(Debug)]
pub struct Printer<'a> {
    graph: &'a Graph,
    inputs: Vec<Option<&'a Name>>,
    users: FxHashMap<&'a Name, usize>,
}

impl<'a> Printer<'a> {
    /// For the graph of a program.
    pub fn new(program: &'a ExportedProgram) -> Self {
        let mut printer = Self::of_body(&program.graph);
        printer.inputs = program
            .signature
            .inputs
            .iter()
            .map(InputSpec::name)
            .collect();
        printer
    }

    /// For a body of a higher-order op.
    pub fn of_body(graph: &'a Graph) -> Self {
        let mut users = FxHashMap::<&Name, usize>::default();
        let mut seen = FxHashSet::default();
        for node in &graph.nodes {
            seen.clear();
            node.args.iter().for_each(|arg| {
                arg.value.for_each_name(&mut |name| {
                    if seen.insert(name) {
                        *users.entry(name).or_default() += 1;
                    }
                });
            });
        }
        seen.clear();
        graph.outputs.iter().for_each(|output| {
            output.for_each_name(&mut |name| {
                if seen.insert(name) {
                    *users.entry(name).or_default() += 1;
                }
            });
        });
        let inputs = graph.inputs.iter().map(Argument::name).collect();
        Self {
            graph,
            inputs,
            users,
        }
    }

    fn users_of(&self, name: &Name) -> usize {
        self.users.get(name).copied().unwrap_or_default()
    }

    /// `%relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})`
    pub fn node(&self, node: &Node) -> String {
        let (keyword, positional): (Vec<_>, Vec<_>) =
            node.args.iter().partition(|a| a.kind == ArgKind::Keyword);
        let keyword = keyword
            .iter()
            .map(|a| format!("{}: {}", a.name, Arg(&a.value)));
        // A tuple of one has a comma.
        let comma = if positional.len() == 1 { "," } else { "" };
        let positional = Separated(positional.iter().map(|a| Arg(&a.value)).collect());
        let parts = parts(node);
        let users = match &parts {
            Some(parts) => parts.iter().filter(|p| self.is_used_part(p)).count(),
            None => node
                .outputs
                .first()
                .and_then(Argument::name)
                .map_or(0, |n| self.users_of(n)),
        };
        format!(
            "%{} : [num_users={users}] = call_function[target={}](args = ({positional}{comma}), kwargs = {{{}}})",
            node.name,
            target(&node.target),
            Separated(keyword.collect()),
        )
    }

    /// The `getitem` nodes that take apart a node's results: those results that have a use.
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
                // The list has a node of its own, whose name is lost.
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
            write!(
                f,
                "\n    %{name} : [num_users={users}] = placeholder[target={name}]"
            )?;
        }
        for node in &self.graph.nodes {
            for arg in &node.args {
                if let Argument::Graph { name, .. } = &arg.value {
                    write!(f, "\n    %{name} : [num_users=1] = get_attr[target={name}]")?;
                }
            }
            write!(f, "\n    {}", self.node(node))?;
            self.getitems(node)
                .iter()
                .try_for_each(|line| write!(f, "\n    {line}"))?;
        }
        let outputs: Vec<_> = self.graph.outputs.iter().map(Repr).collect();
        match outputs.as_slice() {
            [only] if self.graph.is_single_tensor_return => write!(f, "\n    return {only}"),
            [only] => write!(f, "\n    return ({only},)"),
            _ => write!(f, "\n    return ({})", Separated(outputs)),
        }
    }
}

/// One result of a node that returns several.
enum Part<'a> {
    One(&'a Name),
    List(&'a [Name]),
    Nothing,
}

/// The results, where FX takes them apart by `getitem`; `None` where the node is its result.
fn parts(node: &Node) -> Option<Vec<Part<'_>>> {
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

/// The exporter names results without a `getitem` so.
fn is_unused(name: &str) -> bool {
    name.rsplit_once("_unused_").is_some_and(|(_, index)| {
        !index.is_empty() && index.chars().all(|c| c.is_ascii_digit() || c == '_')
    })
}

fn target(op: &OpName) -> String {
    match &*op.namespace {
        "_operator" => format!("operator.{}", op.name),
        _ => op.qualified(),
    }
}

struct Separated<T>(Vec<T>);

impl<T: Display> Display for Separated<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

fn list<'a, T: 'a, D: Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    show: impl Fn(T) -> D,
) -> fmt::Result {
    write!(f, "[{}]", Separated(items.into_iter().map(show).collect()))
}

/// An argument as `torch.fx.node._format_arg` prints it.
struct Arg<'a>(&'a Argument);

impl Display for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |name: &Name| format!("%{name}");
        let optional = |name: &Option<Name>| match name {
            Some(name) => format!("%{name}"),
            None => "None".to_owned(),
        };
        match self.0 {
            Argument::None | Argument::OptionalTensor(None) => f.write_str("None"),
            Argument::Tensor(n)
            | Argument::OptionalTensor(Some(n))
            | Argument::Graph { name: n, .. } => write!(f, "%{n}"),
            Argument::CustomObj(o) => write!(f, "%{}", o.name),
            Argument::Tensors(ns) => list(f, ns, value),
            Argument::OptionalTensors(ns) => list(f, ns, optional),
            Argument::NestedTensors(nss) => list(f, nss, |ns| {
                format!("[{}]", Separated(ns.iter().map(value).collect()))
            }),
            Argument::Int(i) => i.fmt(f),
            Argument::Ints(is) => list(f, is, |i| *i),
            Argument::IntLists(iss) => {
                list(f, iss, |is| format!("[{}]", Separated(is.iter().collect())))
            }
            Argument::Float(x) => PyFloat(*x).fmt(f),
            Argument::Floats(xs) => list(f, xs, |x| PyFloat(*x)),
            Argument::FloatLists(xss) => list(f, xss, |xs| {
                format!("[{}]", Separated(xs.iter().map(|x| PyFloat(*x)).collect()))
            }),
            Argument::Bool(b) => PyBool(*b).fmt(f),
            Argument::Bools(bs) => list(f, bs, |b| PyBool(*b)),
            Argument::String(s) => f.write_str(s),
            Argument::Operator(s) => f.write_str(s.strip_prefix("torch.ops.").unwrap_or(s)),
            Argument::Strings(ss) => list(f, ss, Name::clone),
            Argument::SymInt(a) => f.write_str(&sym(a, |i| i.to_string())),
            Argument::SymInts(xs) => list(f, xs, |a| sym(a, |i| i.to_string())),
            Argument::SymFloat(a) => f.write_str(&sym(a, |x| PyFloat(*x).to_string())),
            Argument::SymFloats(xs) => list(f, xs, |a| sym(a, |x| PyFloat(*x).to_string())),
            Argument::SymBool(a) => f.write_str(&sym(a, |b| PyBool(*b).to_string())),
            Argument::SymBools(xs) => list(f, xs, |a| sym(a, |b| PyBool(*b).to_string())),
            Argument::Complex(re, im) => PyComplex(*re, *im).fmt(f),
            Argument::DType(d) => write!(f, "torch.{d}"),
            Argument::MemoryFormat(m) => m.fmt(f),
            Argument::Layout(l) => l.fmt(f),
            Argument::Device(d) => d.fmt(f),
            Argument::Dict(entries) => {
                let entries = entries.iter().map(|(k, v)| format!("{k}: {}", Arg(v)));
                write!(f, "{{{}}}", Separated(entries.collect()))
            }
        }
    }
}

fn sym<T>(arg: &SymArg<T>, show: impl Fn(&T) -> String) -> String {
    match arg {
        SymArg::Name(name) => format!("%{name}"),
        SymArg::Value(value) => show(value),
        SymArg::Expr(expr) => expr.to_string(),
    }
}

/// An output: Python's `repr`, values without `%`.
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
                InputSpec::Buffer {
                    target, persistent, ..
                } => write!(f, " target='{target}' persistent={}", PyBool(*persistent))?,
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
    format!("{{{}}}", Separated(ranges.collect()))
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

/// Python's `repr` of a bool.
struct PyBool(bool);

impl Display for PyBool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "True" } else { "False" })
    }
}

/// Python's `repr` of a float: the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
struct PyFloat(f64);

impl Display for PyFloat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let x = self.0;
        if x.is_nan() {
            return f.write_str("nan");
        }
        if x.is_infinite() {
            return f.write_str(if x > 0.0 { "inf" } else { "-inf" });
        }
        if x == 0.0 || (1e-4..1e16).contains(&x.abs()) {
            return write!(f, "{x:?}");
        }
        let text = format!("{x:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(rest) => ('-', rest),
            None => ('+', exponent),
        };
        write!(f, "{digits}e{sign}{exponent:0>2}")
    }
}

/// Python's `repr` of a complex number: `(1+2j)`, `2j`.
struct PyComplex(f64, f64);

impl Display for PyComplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |x: f64| {
            let text = PyFloat(x).to_string();
            text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
        };
        let (re, im) = (part(self.0), part(self.1));
        if self.0 == 0.0 && self.0.is_sign_positive() {
            return write!(f, "{im}j");
        }
        let plus = if im.starts_with('-') { "" } else { "+" };
        write!(f, "({re}{plus}{im}j)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_python_prints_them() {
        for (x, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (1e16, "1e+16"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (9999999999999998.0, "9999999999999998.0"),
            (-1e300, "-1e+300"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(PyFloat(x).to_string(), text);
        }
        for (re, im, text) in [
            (1.0, 2.0, "(1+2j)"),
            (0.0, 2.5, "2.5j"),
            (-1.0, -0.5, "(-1-0.5j)"),
        ] {
            assert_eq!(PyComplex(re, im).to_string(), text);
        }
    }
}
