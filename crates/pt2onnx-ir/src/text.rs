//! Prints models in ONNX's textual syntax, which `onnx.parser` reads. Elements of large constants
//! are printed as `{...}`.

use crate::{Attribute, Function, Model, NodeId, RegionId, Value, types::onnx_name, value::Def};
use pt2onnx_tensor::{DType, Element, Narrow, Tensor};
use std::{
    collections::BTreeSet,
    fmt::{self, Display, Formatter, Write},
};

/// The elements of larger constants are not printed.
const MAX_PRINTED: usize = 64;

impl Display for Model {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.text(TextOptions::default()).fmt(f)
    }
}

/// The parts of a model's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextOptions {
    /// Whether elements of constants are printed, if there are at most 64; true by default.
    /// Otherwise `{...}` stands for them.
    pub values: bool,
    /// Whether the types of a node's outputs follow it, as a comment; false by default.
    pub types: bool,
    /// Whether a comment follows a weight that has no values, as opposed to one that has more than
    /// are printed; false by default.
    pub absent: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { values: true, types: false, absent: false }
    }
}

/// Prints a model.
struct Printer<'a> {
    model: &'a Model,
    options: TextOptions,
}

impl Model {
    /// The model as text, with more or less than [`Display`] prints.
    pub fn text(&self, options: TextOptions) -> impl Display {
        fmt::from_fn(move |f| {
            if self.has_finished_outputs() {
                return Printer { model: self, options }.print(f);
            }
            let mut finished = self.clone();
            finished.finish_all_outputs();
            Printer { model: &finished, options }.print(f)
        })
    }
}

impl Printer<'_> {
    fn print(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let model = self.model;
        let (version, opset) = (model.ir_version(), model.opset);
        write!(f, "<\n  ir_version: {version},\n  opset_import: [\"\" : {opset}")?;
        for (domain, version) in &model.imports {
            write!(f, ", {} : {version}", quoted(domain))?;
        }
        f.write_str("]\n>\n")?;
        self.graph(f, Model::MAIN, &identifier(&model.name), 0)?;
        for function in &model.functions {
            self.function(f, function)?;
        }
        Ok(())
    }

    /// Prints a function. The grammar has no constants in functions, so they are printed as
    /// `Constant` nodes first.
    fn function(&self, f: &mut Formatter<'_>, function: &Function) -> fmt::Result {
        write!(f, "\n<domain: {}", quoted(&function.domain))?;
        if !function.overload.is_empty() {
            write!(f, ", overload: {}", quoted(&function.overload))?;
        }
        let imports = if function.imports.is_empty() {
            format!("\"\" : {}", self.model.opset)
        } else {
            list(function.imports.iter().map(|(d, version)| format!("{} : {version}", quoted(d))))
        };
        write!(f, ", opset_import: [{imports}]>\n{}", identifier(&function.name))?;
        if !function.attributes.is_empty() || !function.defaults.is_empty() {
            f.write_str(" <")?;
            f.write_str(&list(function.attributes.iter().map(|a| identifier(a))))?;
            for (i, (name, value)) in function.defaults.iter().enumerate() {
                f.write_str(if i + function.attributes.len() == 0 { "" } else { ", " })?;
                self.attribute(f, name, value, 0)?;
            }
            f.write_str(">")?;
        }
        let body = &self.model[function.body];
        let inputs = list(body.inputs().iter().map(|v| self.name_of(*v)));
        let outputs = list(body.output_values().map(|v| self.name_of(v)));
        writeln!(f, " ({inputs}) => ({outputs})\n{{")?;
        for (value, constant) in self.constants_of(function.body) {
            let (name, value) = (self.name_of(value), self.tensor(constant));
            writeln!(f, "{}{name} = Constant <value: tensor = {value}> ()", indent(1))?;
        }
        self.body(f, function.body, 1)?;
        f.write_str("}\n")
    }

    /// The constants that a region and its bodies use, in the order of their numbers.
    fn constants_of(&self, root: RegionId) -> Vec<(Value, &Tensor)> {
        let (mut todo, mut used) = (vec![root], BTreeSet::<Value>::new());
        while let Some(region) = todo.pop() {
            used.extend(self.model[region].output_values());
            for node in self.model.nodes(region) {
                used.extend(self.model[node].inputs().iter().flatten());
                todo.extend(self.model[node].regions());
            }
        }
        let constants = used.into_iter().filter_map(|v| Some((v, self.model[v].constant()?)));
        constants.collect()
    }

    fn graph(
        &self,
        f: &mut Formatter<'_>,
        region: RegionId,
        name: &str,
        depth: usize,
    ) -> fmt::Result {
        let typed = |v: &Value| match &self.model[*v].ty {
            Some(ty) => format!("{ty} {}", self.name_of(*v)),
            None => self.name_of(*v),
        };
        let input = |v: &Value| match &self.model[*v].default {
            Some(default) => format!("{} = {}", typed(v), self.elements(default)),
            None => typed(v),
        };
        let (inputs, outputs) = (
            list(self.model[region].inputs().iter().map(input)),
            list(self.model[region].output_values().map(|v| typed(&v))),
        );
        writeln!(f, "{name} ({inputs}) => ({outputs})")?;
        if region == Model::MAIN {
            let constants = self.constants_of(region);
            let mut comma = "<\n  ".to_owned();
            for (value, tensor) in &constants {
                write!(f, "{comma}{} = {}", typed(value), self.elements(tensor))?;
                let absent = self.options.absent && !tensor.has_data() && tensor.numel() > 0;
                let comment = if absent { "  # no values in this file" } else { "" };
                comma = format!(",{comment}\n  ");
            }
            if !constants.is_empty() {
                writeln!(f, "{}\n>", comma.trim_start_matches(',').trim_end())?;
            }
        }
        writeln!(f, "{}{{", indent(depth))?;
        self.body(f, region, depth + 1)?;
        write!(f, "{}}}", indent(depth))?;
        if depth == 0 { f.write_char('\n') } else { Ok(()) }
    }

    fn body(&self, f: &mut Formatter<'_>, region: RegionId, depth: usize) -> fmt::Result {
        for node in self.model.nodes(region) {
            self.node(f, node, depth)?;
        }
        Ok(())
    }

    fn node(&self, f: &mut Formatter<'_>, id: NodeId, depth: usize) -> fmt::Result {
        let node = &self.model[id];
        let outputs = list(node.outputs().iter().map(|v| self.name_of(*v)));
        let inputs = list(
            node.inputs().iter().map(|v| v.map_or_else(|| "\"\"".to_owned(), |v| self.name_of(v))),
        );
        write!(f, "{}{outputs} = ", indent(depth))?;
        let dot = if node.domain.is_empty() { "" } else { "." };
        f.write_str(&identifier(&format!("{}{dot}{}", node.domain, node.op)))?;
        if !node.overload.is_empty() {
            write!(f, ":{}", identifier(&node.overload))?;
        }
        if !node.attributes.is_empty() {
            f.write_str(" <")?;
            for (i, (name, value)) in node.attributes.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                self.attribute(f, name, value, depth)?;
            }
            f.write_str(">")?;
        }
        write!(f, " ({inputs})")?;
        let types = node.outputs().iter().map(|v| match &self.model[*v].ty {
            _ if self.model[*v].is_left_out() => "-".to_owned(),
            Some(ty) => ty.to_string(),
            None => "?".to_owned(),
        });
        if self.options.types { writeln!(f, "  # {}", list(types)) } else { f.write_char('\n') }
    }

    fn attribute(
        &self,
        f: &mut Formatter<'_>,
        name: &str,
        value: &Attribute,
        depth: usize,
    ) -> fmt::Result {
        write!(f, "{name}: {} = ", value.kind())?;
        let own = |region: RegionId| self.model[region].name.as_deref().map(identifier);
        match value {
            Attribute::Float(v) => write!(f, "{v:?}"),
            Attribute::Int(v) => v.fmt(f),
            Attribute::String(v) => f.write_str(&quoted(v)),
            Attribute::Bytes(v) => f.write_str(&lossy(v)),
            Attribute::Tensor(t) => f.write_str(&self.tensor(t)),
            Attribute::Type(t) => t.fmt(f),
            Attribute::Floats(v) => write!(f, "[{}]", list(v.iter().map(|x| format!("{x:?}")))),
            Attribute::Ints(v) => write!(f, "[{}]", list(v)),
            Attribute::Strings(v) => write!(f, "[{}]", list(v.iter().map(|s| quoted(s)))),
            Attribute::BytesList(v) => write!(f, "[{}]", list(v.iter().map(|s| lossy(s)))),
            Attribute::Tensors(v) => write!(f, "[{}]", list(v.iter().map(|t| self.tensor(t)))),
            Attribute::Types(v) => write!(f, "[{}]", list(v)),
            Attribute::Reference { name, .. } => write!(f, "@{name}"),
            Attribute::Region(r) => {
                self.graph(f, *r, &own(*r).unwrap_or_else(|| identifier(name)), depth)
            }
            Attribute::Regions(rs) => {
                f.write_str("[")?;
                for (i, r) in rs.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    self.graph(f, *r, &own(*r).unwrap_or_else(|| format!("{name}_{i}")), depth)?;
                }
                f.write_str("]")
            }
        }
    }

    fn name_of(&self, value: Value) -> String {
        match (&self.model[value].name, self.model[value].def()) {
            (Some(name), _) => identifier(name),
            (None, Def::Constant(_)) => format!("const_{}", value.index()),
            (None, _) => format!("_{}", value.index()),
        }
    }
}

fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    items.into_iter().map(|i| i.to_string()).collect::<Vec<_>>().join(", ")
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

/// A text in quotes. ONNX's parser reads `\n` as `n`.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\u{a}"))
}

/// Bytes as a quoted text; what is not UTF-8 is replaced by U+FFFD.
fn lossy(bytes: &[u8]) -> String {
    quoted(&String::from_utf8_lossy(bytes))
}

/// A name; in quotes if it is not an identifier of the grammar.
fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    if plain { name.to_owned() } else { quoted(name) }
}

impl Printer<'_> {
    fn tensor(&self, t: &Tensor) -> String {
        let dims = match t.shape() {
            [] => String::new(),
            dims => format!("[{}]", list(dims)),
        };
        format!("{}{dims} {}", onnx_name(t.dtype()), self.elements(t))
    }

    /// The elements in braces, with dots for those that are left out.
    fn elements(&self, t: &Tensor) -> String {
        let printed = self.options.values && (t.has_data() || t.numel() == 0);
        if printed { elements(t) } else { "{...}".to_owned() }
    }
}

fn elements(t: &Tensor) -> String {
    if t.numel() > MAX_PRINTED {
        return "{...}".to_owned();
    }
    fn all<T: Element>(t: &Tensor, show: impl Fn(&T) -> String) -> String {
        list(t.to_vec().unwrap_or_default().iter().map(show))
    }
    fn debug<T: Element + fmt::Debug>(t: &Tensor) -> String {
        all(t, |v: &T| format!("{v:?}"))
    }
    let printed = match t.dtype() {
        DType::F64 => debug::<f64>(t),
        DType::F32 => debug::<f32>(t),
        DType::F16 => all(t, |v: &half::f16| format!("{:?}", v.to_f32())),
        DType::BF16 => all(t, |v: &half::bf16| format!("{:?}", v.to_f32())),
        DType::I64 => debug::<i64>(t),
        DType::I32 => debug::<i32>(t),
        DType::I16 => debug::<i16>(t),
        DType::I8 => debug::<i8>(t),
        DType::U64 => debug::<u64>(t),
        DType::U32 => debug::<u32>(t),
        DType::U16 => debug::<u16>(t),
        DType::U8 => debug::<u8>(t),
        DType::Bool => all(t, |&b: &bool| u8::from(b).to_string()),
        DType::String => list(t.as_strings().unwrap_or_default().iter().map(|s| lossy(s))),
        dtype => match (Narrow::of(dtype), t.codes()) {
            (Some(narrow), Some(codes)) => list(codes.iter().map(|&code| {
                let number = narrow.number(code);
                if dtype.is_int() { number.to_string() } else { format!("{number:?}") }
            })),
            _ => "...".to_owned(),
        },
    };
    format!("{{{printed}}}")
}
