//! Writes programs as text.

use super::words::{self, RESERVED, short_name};
use crate::{
    graph::{
        ArgKind, Argument, ConstantValue, ExportedProgram, Graph, InputSpec, Name, NamedArg, Node,
        OpName, OutputKind, SymArg, TensorMeta, ValueMeta,
    },
    printer::{range_constraints, separated, write_argument},
    python::PyStr,
    strides::contiguous,
};
use pt2onnx_symbolic::Expr;
use std::fmt::{self, Display, from_fn};

/// A program as text.
pub(super) fn program(program: &ExportedProgram) -> impl Display {
    from_fn(|f| {
        let full = f.alternate();
        if !program.range_constraints.is_empty() {
            writeln!(f, "{}", range_constraints(program))?;
        }
        f.write_str("graph(")?;
        let graph = Body { graph: &program.graph, level: 0, full };
        let inputs = program.graph.inputs.iter().zip(&program.signature.inputs);
        for (i, (input, spec)) in inputs.enumerate() {
            comma(f, i)?;
            match spec {
                InputSpec::Constant { name, value } => {
                    write!(f, "{} = {}", Word(name), Constant(value))?;
                }
                _ => graph.typed(input).fmt(f)?,
            }
            let kind = spec.kind();
            match (spec, spec.target()) {
                (InputSpec::Token(_), _) => write!(f, " as {kind}()")?,
                (InputSpec::Buffer { target, persistent: false, .. }, _) => {
                    write!(f, " as {kind}({}, persistent = False)", PyStr(target))?;
                }
                (_, Some(target)) => write!(f, " as {kind}({})", PyStr(target))?,
                (_, None) => {}
            }
        }
        f.write_str(") {\n")?;
        graph.nodes(f)?;
        f.write_str("    return (")?;
        let outputs = program.graph.outputs.iter().zip(&program.signature.outputs);
        for (i, (output, spec)) in outputs.enumerate() {
            comma(f, i)?;
            graph.arg(output).fmt(f)?;
            let kind = spec.kind.name();
            match spec.kind {
                OutputKind::UserOutput => {}
                OutputKind::Loss | OutputKind::Token => write!(f, " as {kind}()")?,
                _ => write!(f, " as {kind}({})", PyStr(&spec.target))?,
            }
        }
        let only = program.graph.outputs.len() == 1;
        f.write_str(if only { ",)\n}" } else { ")\n}" })
    })
}

struct Constant<'a>(&'a ConstantValue);

impl Display for Constant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ConstantValue::String(text) => PyStr(text).fmt(f),
            other => other.fmt(f),
        }
    }
}

/// The name of a target, without `torch.ops.` if it can be parsed without.
fn target(op: &OpName) -> impl Display {
    from_fn(move |f| {
        let short = op.to_string();
        if words::target(&short) == *op {
            f.write_str(&short)
        } else {
            f.write_str(&op.qualified())
        }
    })
}

/// The comma before an item of a list, if it is not the first.
fn comma(f: &mut fmt::Formatter<'_>, i: usize) -> fmt::Result {
    f.write_str(if i > 0 { ", " } else { "" })
}

/// A name; in backquotes if it is not an identifier.
struct Word<'a>(&'a str);

impl Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let starts = self.0.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let plain = starts && self.0.chars().all(|c| c.is_alphanumeric() || c == '_');
        if plain && !RESERVED.contains(&self.0) {
            f.write_str(self.0)
        } else {
            write!(f, "`{}`", self.0)
        }
    }
}

/// `f32[s0, 8]`.
struct Type<'a>(&'a TensorMeta);

impl Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TensorMeta { dtype, sizes, strides, storage_offset, device, .. } = self.0;
        write!(f, "{}[{}]", short_name(*dtype), separated(sizes.iter()))?;
        if *strides != contiguous(sizes) {
            write!(f, "[{}]", separated(strides.iter()))?;
        }
        if *storage_offset != Expr::ZERO {
            write!(f, "@({storage_offset})")?;
        }
        let device = device.to_string();
        if device != "cpu" {
            write!(f, " {}", PyStr(&device))?;
        }
        Ok(())
    }
}

/// A graph, and how deep it is nested.
#[derive(Clone, Copy)]
struct Body<'a> {
    graph: &'a Graph,
    level: usize,
    /// Whether positional arguments have their names.
    full: bool,
}

impl<'a> Body<'a> {
    fn nodes(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = " ".repeat(4 * (self.level + 1));
        for node in &self.graph.nodes {
            let (name, results) = (Word(&node.name), self.results(node));
            writeln!(
                f,
                "{indent}{name}: {results} = {}({})",
                target(&node.target),
                self.args(node)
            )?;
        }
        Ok(())
    }

    fn args(self, node: &'a Node) -> impl Display {
        from_fn(move |f| {
            let keyword = |arg: &&NamedArg| arg.kind == ArgKind::Keyword;
            let named = |arg: &NamedArg| self.full && !arg.name.is_empty();
            let mut count = 0;
            for arg in node.args.iter().filter(|a| !keyword(a)) {
                comma(f, count)?;
                if named(arg) {
                    write!(f, "{} = ", Word(&arg.name))?;
                }
                self.write_arg(f, &arg.value)?;
                count += 1;
            }
            if node.args.iter().any(|a| !keyword(&a) && named(a)) {
                f.write_str(", *")?;
            }
            for arg in node.args.iter().filter(keyword) {
                comma(f, count)?;
                write!(f, "{} = ", Word(&arg.name))?;
                self.write_arg(f, &arg.value)?;
                count += 1;
            }
            Ok(())
        })
    }

    fn results(self, node: &'a Node) -> impl Display {
        from_fn(move |f| match node.outputs.as_slice() {
            [only] if node.single_return != Some(false) && only.name() == Some(&node.name) => {
                self.ty(&node.name).fmt(f)
            }
            [Argument::Tensors(_) | Argument::OptionalTensors(_)]
                if node.single_return != Some(false) =>
            {
                separated(node.outputs.iter().map(|o| self.typed(o))).fmt(f)
            }
            outputs => {
                let tuple = outputs.len() == 1 && node.single_return == Some(false);
                let comma = if tuple { "," } else { "" };
                write!(f, "({}{comma})", separated(outputs.iter().map(|o| self.typed(o))))
            }
        })
    }

    /// `name: type`; a list of those; a constant.
    fn typed(self, value: &'a Argument) -> impl Display {
        let one =
            move |name: &'a Name| from_fn(move |f| write!(f, "{}: {}", Word(name), self.ty(name)));
        from_fn(move |f| match (value, value.name()) {
            (_, Some(name)) => one(name).fmt(f),
            (Argument::Tensors(names), _) => write!(f, "[{}]", separated(names.iter().map(one))),
            (Argument::OptionalTensors(names), _) => {
                let item = |name: &'a Option<Name>| {
                    from_fn(move |f| match name {
                        Some(name) => one(name).fmt(f),
                        None => f.write_str("None"),
                    })
                };
                write!(f, "[{}]", separated(names.iter().map(item)))
            }
            _ => self.write_arg(f, value),
        })
    }

    fn ty(self, name: &'a str) -> impl Display {
        from_fn(move |f| match self.graph.values.get(name) {
            Some(ValueMeta::Tensor(meta)) => Type(meta).fmt(f),
            Some(ValueMeta::SymInt { expr, .. }) => write!(f, "Sym({expr})"),
            Some(ValueMeta::SymFloat { expr, .. }) => write!(f, "SymFloat({expr})"),
            Some(ValueMeta::SymBool { expr, .. }) => write!(f, "SymBool({expr})"),
            Some(ValueMeta::CustomObj { class }) => write!(f, "Object({})", PyStr(class)),
            None => f.write_str("Token()"),
        })
    }

    fn arg(self, arg: &'a Argument) -> impl Display {
        from_fn(move |f| self.write_arg(f, arg))
    }

    fn write_arg(self, f: &mut fmt::Formatter<'_>, arg: &'a Argument) -> fmt::Result {
        write_argument(f, arg, &|f, arg| self.own_form(f, arg))
    }

    fn own_form(self, f: &mut fmt::Formatter<'_>, arg: &Argument) -> Option<fmt::Result> {
        Some(match arg {
            Argument::String(v) => PyStr(v).fmt(f),
            Argument::SymInt(SymArg::Expr(expr)) => write!(f, "Sym({expr})"),
            Argument::Device(device) => write!(f, "torch.device({})", PyStr(&device.to_string())),
            Argument::Operator(name) => {
                let bare = name.strip_prefix("torch.ops.").unwrap_or(name);
                write!(f, "torch.ops.{bare}")
            }
            Argument::Dict(entries) => {
                let entries = entries
                    .iter()
                    .map(|(k, v)| from_fn(move |f| write!(f, "{}: {}", PyStr(k), self.arg(v))));
                write!(f, "{{{}}}", separated(entries))
            }
            Argument::Graph { name, graph } => self.body(f, name, graph),
            _ => Word(arg.name()?).fmt(f),
        })
    }

    fn body(self, f: &mut fmt::Formatter<'_>, name: &Name, graph: &Graph) -> fmt::Result {
        let body = Body { graph, level: self.level + 1, full: self.full };
        let inputs = separated(graph.inputs.iter().map(|i| body.typed(i)));
        writeln!(f, "graph {}({inputs}) {{", Word(name))?;
        body.nodes(f)?;
        let indent = " ".repeat(4 * (self.level + 1));
        write!(f, "{indent}    return ")?;
        match graph.outputs.as_slice() {
            [only] if graph.is_single_tensor_return => body.write_arg(f, only)?,
            [only] => write!(f, "({},)", body.arg(only))?,
            outputs => write!(f, "({})", separated(outputs.iter().map(|o| body.arg(o))))?,
        }
        write!(f, "\n{indent}}}")
    }
}
