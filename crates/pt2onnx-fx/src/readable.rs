//! Programs as `print(ep)` shows them in PyTorch: the code of `print_readable`, the signature, the
//! ranges of symbols.
//!
//! As in [`printer`](crate::printer), the program is the one that `torch.export.load` restores.

use crate::graph::{
    ArgKind, Argument, ExportedProgram, Graph, Name, Node, NodeMeta, OpName, SourceLine, ValueMeta,
};
use crate::printer::{self, Part, is_unused, parts, separated, write_argument};
use crate::python::{PyFloat, PyStr};
use crate::text::short_name;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::{self, Display, Write, from_fn};

/// Functions of Python's `operator`, each before the operator that it is printed as.
const OPERATORS: &str = "add + sub - mul * floordiv // truediv / div / mod % pow ** lshift << \
    rshift >> and_ & or_ | xor ^ matmul @ eq == ne != lt < gt > le <= ge >=";

/// Those of one operand.
const PREFIXES: &str = "pos + neg - invert ~";

/// An empty line, as PyTorch writes it.
const EMPTY: &str = "    \n";

/// `print(ep)`: everything that PyTorch shows of a program.
///
/// ```
/// let program = pt2onnx_fx::text::parse_program(
///     "graph(x: f32[2]) { relu: f32[2] = aten.relu.default(x) return (relu,) }",
/// )?;
/// let text = pt2onnx_fx::readable(&program).to_string();
/// assert!(text.contains("relu: \"f32[2]\" = torch.ops.aten.relu.default(x);  x = None\n"));
/// # Ok::<(), pt2onnx_fx::text::ParseError>(())
/// ```
pub fn readable(program: &ExportedProgram) -> impl Display {
    from_fn(move |f| {
        let mut inputs = Vec::new();
        for (i, spec) in program.signature.inputs.iter().enumerate() {
            let name = spec.name().cloned();
            inputs.push(name.unwrap_or_else(|| format!("arg{i}").into()));
        }
        let mut code = String::from("ExportedProgram:\n");
        Module { graph: &program.graph, indent: 4 }.print(&mut code, "GraphModule", &inputs)?;
        f.write_str(&code)?;
        let signature = program.signature.to_string().replace('\n', "\n    ");
        writeln!(f, "Graph signature:{signature}")?;
        writeln!(f, "Range constraints: {}", printer::range_constraints(program))
    })
}

/// The module of a graph: that of a program, or of a body.
struct Module<'a> {
    graph: &'a Graph,
    /// Blanks before each line.
    indent: usize,
}

/// A node of FX: the archive has no `getitem` and `get_attr` nodes, which stand around that of an
/// operator.
struct Line<'a> {
    name: Name,
    typed: bool,
    code: String,
    /// The values that it reads, each once.
    reads: Vec<Name>,
    meta: &'a NodeMeta,
}

impl Module<'_> {
    fn print(&self, out: &mut String, name: &str, inputs: &[Name]) -> fmt::Result {
        let Self { graph, indent } = *self;
        let lines: Vec<Line<'_>> = graph.nodes.iter().flat_map(|node| lines(node)).collect();
        let mut returned = Vec::new();
        graph.outputs.iter().for_each(|a| a.for_each_name(&mut |n| returned.push(n.clone())));
        let freed = freed(&lines, &returned);
        writeln!(out, "{:indent$}class {name}(torch.nn.Module):", "")?;
        let parameters = inputs.iter().map(|name| format!(", {name}{}", annotation(graph, name)));
        let parameters: String = parameters.collect();
        writeln!(out, "{:indent$}    def forward(self{parameters}):", "")?;
        let mut last = String::new();
        for (i, (line, freed)) in lines.iter().zip(freed).enumerate() {
            let summary = summary(line.meta);
            if summary != last {
                if i > 0 {
                    out.push_str(EMPTY);
                }
                writeln!(out, "{:indent$}        # {summary}", "")?;
                last = summary;
            }
            let ty = if line.typed { annotation(graph, &line.name) } else { String::new() };
            write!(out, "{:indent$}        {}{ty} = {}", "", line.name, line.code)?;
            match freed.as_slice() {
                [] => out.push('\n'),
                names => writeln!(out, ";  {} = None", names.join(" = "))?,
            }
        }
        let result = match graph.outputs.as_slice() {
            [only] if graph.is_single_tensor_return => value(only).to_string(),
            [only] => format!("({},)", value(only)),
            all => format!("({})", separated(all.iter().map(value))),
        };
        writeln!(out, "{:indent$}        return {result}\n{EMPTY}", "")?;
        // One line break too many.
        out.pop();
        self.bodies(out)
    }

    /// The modules of bodies, each once.
    fn bodies(&self, out: &mut String) -> fmt::Result {
        let mut seen = FxHashSet::default();
        for node in &self.graph.nodes {
            for arg in &node.args {
                if let Argument::Graph { name, graph } = &arg.value
                    && seen.insert(name)
                {
                    let inputs: Vec<Name> =
                        graph.inputs.iter().filter_map(Argument::name).cloned().collect();
                    let inner = Module { graph, indent: self.indent + 4 };
                    inner.print(out, name, &inputs)?;
                }
            }
        }
        Ok(())
    }
}

/// The nodes of FX for a node of the archive.
fn lines(node: &Node) -> Vec<Line<'_>> {
    let meta = &*node.meta;
    let mut lines = Vec::new();
    let mut reads = Vec::new();
    let mut read = |name: &Name| {
        if !reads.contains(name) {
            reads.push(name.clone());
        }
    };
    let (keyword, positional): (Vec<_>, Vec<_>) =
        node.args.iter().partition(|a| a.kind == ArgKind::Keyword);
    for arg in positional.iter().chain(&keyword) {
        if let Argument::Graph { name, .. } = &arg.value {
            let code = format!("self.{name}");
            let reads = Vec::new();
            lines.push(Line { name: name.clone(), typed: false, code, reads, meta });
            read(name);
        }
        arg.value.for_each_name(&mut read);
    }
    let args = positional.iter().map(|a| value(&a.value).to_string());
    let args: Vec<String> = args.collect();
    let keyword = keyword.iter().map(|a| format!("{} = {}", a.name, value(&a.value)));
    let code = call(&node.target, args, keyword.collect());
    let parts = parts(node);
    let typed = parts.is_none();
    lines.push(Line { name: node.name.clone(), typed, code, reads, meta });
    let item = |name: &Name, of: &Name, i: usize| Line {
        name: name.clone(),
        typed: true,
        code: format!("{of}[{i}]"),
        reads: vec![of.clone()],
        meta,
    };
    for (i, part) in parts.into_iter().flatten().enumerate() {
        match part {
            Part::One(name) if !is_unused(name) => lines.push(item(name, &node.name, i)),
            Part::List(names) if names.iter().any(|n| !is_unused(n)) => {
                let list: Name = format!("{}_{i}", node.name).into();
                lines.push(Line { typed: false, ..item(&list, &node.name, i) });
                let used = names.iter().enumerate().filter(|(_, n)| !is_unused(n));
                lines.extend(used.map(|(j, name)| item(name, &list, j)));
            }
            _ => {}
        }
    }
    lines
}

fn call(target: &OpName, args: Vec<String>, keyword: Vec<String>) -> String {
    let of_python = &*target.namespace == "_operator";
    let find = |table: &'static str| {
        let mut words = table.split(' ');
        words.find(|word| of_python && *word == &*target.name)?;
        words.next()
    };
    match args.as_slice() {
        [a, b] if let Some(symbol) = find(OPERATORS) => return format!("{a} {symbol} {b}"),
        [a, b] if of_python && &*target.name == "getitem" => return format!("{a}[{b}]"),
        [a] if let Some(symbol) = find(PREFIXES) => return format!("{symbol}{a}"),
        _ => {}
    }
    let all: Vec<String> = args.into_iter().chain(keyword).collect();
    format!("{}({})", target.qualified(), all.join(", "))
}

/// The values that are read for the last time by each line, and a result that nothing reads.
fn freed(lines: &[Line<'_>], returned: &[Name]) -> Vec<Vec<String>> {
    let mut freed = vec![Vec::new(); lines.len()];
    let mut used: FxHashSet<&Name> = returned.iter().collect();
    for (line, freed) in lines.iter().zip(&mut freed).rev() {
        for name in &line.reads {
            if used.insert(name) {
                freed.push(name.to_string());
            }
        }
    }
    let mut readers: FxHashMap<&Name, usize> = FxHashMap::default();
    for name in lines.iter().flat_map(|line| &line.reads).chain(returned) {
        *readers.entry(name).or_default() += 1;
    }
    for (line, freed) in lines.iter().zip(&mut freed) {
        if !readers.contains_key(&line.name) {
            freed.push(line.name.to_string());
        }
    }
    freed
}

/// The line of the innermost frame, as PyTorch shows it.
fn summary(meta: &NodeMeta) -> String {
    let line = meta.stack_trace.as_deref().and_then(SourceLine::innermost);
    let Some(SourceLine { file, line, function, code, .. }) = line else {
        return "No stacktrace found for following nodes".to_owned();
    };
    match code {
        "" => format!("File: {file}:{line} in {function}"),
        code => format!("File: {file}:{line} in {function}, code: {code}"),
    }
}

/// `: "f32[s0, 8]"`; nothing for other values than tensors and numbers.
fn annotation(graph: &Graph, name: &Name) -> String {
    match graph.values.get(name) {
        Some(ValueMeta::Tensor(meta)) => {
            let sizes = separated(meta.sizes.iter());
            format!(": \"{}[{sizes}]\"", short_name(meta.dtype))
        }
        // Python's own numbers have no annotation.
        other => match other.and_then(ValueMeta::expr).filter(|expr| !expr.is_static()) {
            Some(expr) => format!(": \"Sym({expr})\""),
            None => String::new(),
        },
    }
}

/// A value as Python's `repr` prints it, values of the program by their names.
fn value(arg: &Argument) -> impl Display {
    from_fn(move |f| write_argument(f, arg, &own_form))
}

fn own_form(f: &mut fmt::Formatter<'_>, arg: &Argument) -> Option<fmt::Result> {
    Some(match arg {
        Argument::String(s) => PyStr(s).fmt(f),
        Argument::Complex(re, im) if [re, im].iter().any(|x| **x == 0.0 || !x.is_finite()) => {
            write!(f, "complex({}, {})", PyFloat(*re), PyFloat(*im))
        }
        Argument::Device(device) => match device.index {
            Some(index) => write!(f, "device(type='{}', index={index})", device.kind),
            None => write!(f, "device(type='{}')", device.kind),
        },
        Argument::Operator(name) if !name.starts_with("torch.") => write!(f, "torch.ops.{name}"),
        Argument::Operator(name) | Argument::Graph { name, .. } => f.write_str(name),
        Argument::Dict(entries) => {
            let entries = entries.iter().map(|(k, v)| format!("{}: {}", PyStr(k), value(v)));
            write!(f, "{{{}}}", separated(entries))
        }
        _ => f.write_str(arg.name()?),
    })
}
