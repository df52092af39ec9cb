//! The grammar: parses headers, graphs, functions and nodes, and emits nodes while it parses.

use super::tokens::Tokens;
use crate::{Builder, Function, Metadata, Model, NodeId, RegionId, Type, Value, conforms, schema};
use indexmap::IndexMap;
use pt2onnx_symbolic::text::{Parsed, Place, Reader};
use rustc_hash::FxHashMap;
use std::mem::replace;

pub(super) struct Grammar<'a, 'm> {
    pub(super) r: Reader<'a>,
    pub(super) cx: Builder<'m>,
    /// The values in scope: one scope for each open graph, innermost last.
    scopes: Vec<Scope>,
    /// Whether the bodies that come next are of an operator of another domain.
    foreign: bool,
    /// The function that is being parsed.
    pub(super) function: Option<Signature>,
    /// Opset of the graph or function that is being parsed.
    opset: u32,
}

#[derive(Default)]
struct Scope {
    values: FxHashMap<String, Value>,
    /// Types that are declared before their values are defined.
    types: FxHashMap<String, Type>,
    /// Whether its names may be those of values around it: it is the body of an operator of another
    /// domain.
    hides: bool,
}

/// The function around the nodes.
pub(super) struct Signature {
    pub(super) attributes: Vec<String>,
    imports: IndexMap<String, u32>,
    /// Whether nodes are checked against the schemas of their operators.
    strict: bool,
}

/// The header of a model or of a function.
#[derive(Default)]
struct Header {
    texts: FxHashMap<&'static str, String>,
    numbers: FxHashMap<&'static str, i64>,
    imports: Option<IndexMap<String, u32>>,
    metadata: Vec<(String, String)>,
}

const TEXTS: &[&str] = &["producer_name", "producer_version", "domain", "doc_string", "overload"];
const NUMBERS: &[&str] = &["ir_version", "model_version"];

impl<'a, 'm> Grammar<'a, 'm> {
    pub fn new(r: Reader<'a>, cx: Builder<'m>) -> Self {
        let opset = schema::CANONICAL_OPSET;
        Self { r, cx, scopes: Vec::new(), foreign: false, function: None, opset }
    }

    /// `<header> graph functions`.
    pub fn model(&mut self) -> Parsed<()> {
        let mut header = self.header()?;
        if let Some(imports) = &mut header.imports {
            self.opset = imports.shift_remove("").unwrap_or(0);
        }
        let opset = self.opset;
        let name = self.r.name("the graph's name")?;
        self.cx.edit(|model| {
            model.opset = opset;
            model.name = name;
            model.imports = header.imports.unwrap_or_default();
            let version = header.numbers.get("ir_version");
            let version = version.and_then(|v| u32::try_from(*v).ok());
            if version != Some(model.ir_version()) {
                model.ir_version = version;
            }
            model.model_version = header.numbers.get("model_version").copied();
            model.producer = header.texts.remove("producer_name");
            model.producer_version = header.texts.remove("producer_version");
            model.domain = header.texts.remove("domain");
            model.doc_string = header.texts.remove("doc_string");
            model.metadata = metadata(header.metadata);
        });
        self.graph(Model::MAIN)?;
        while !self.r.at_end() {
            self.a_function(false)?;
        }
        Ok(())
    }

    /// Functions without a graph.
    pub fn functions(&mut self) -> Parsed<()> {
        while !self.r.at_end() {
            self.a_function(true)?;
        }
        Ok(())
    }

    /// `<key: value, ...>`, or nothing.
    fn header(&mut self) -> Parsed<Header> {
        let mut header = Header::default();
        if !self.r.accept("<") {
            return Ok(header);
        }
        self.r.list(">", |r| {
            let place = r.place();
            let key = r.identifier("a key of the header")?;
            r.require(":")?;
            let known = |keys: &[&'static str]| keys.iter().copied().find(|k| *k == key);
            if let Some(key) = known(TEXTS) {
                let text = r.string()?;
                header.texts.insert(key, text);
            } else if let Some(key) = known(NUMBERS) {
                let number = r.number("an integer", |t| t.parse().ok())?;
                header.numbers.insert(key, number);
            } else if key == "opset_import" {
                r.require("[")?;
                let imports = r.list("]", |r| {
                    let domain = r.string()?;
                    r.require(":")?;
                    Ok((domain, r.number("a version", |t| t.parse().ok())?))
                })?;
                header.imports = Some(imports.into_iter().collect());
            } else if key == "metadata_props" {
                r.require("[")?;
                header.metadata = r.list("]", |r| {
                    let key = r.string()?;
                    r.require(":")?;
                    Ok((key, r.string()?))
                })?;
            } else {
                return Err(r.error_at(place, format!("a header has no key `{key}`")));
            }
            Ok(())
        })?;
        Ok(header)
    }

    /// `<header> name <attributes> (inputs) => (outputs) <types> { nodes }`.
    fn a_function(&mut self, strict: bool) -> Parsed<()> {
        let mut function = self.function_head(strict)?;
        self.function_attributes(&mut function)?;
        let defaults = function.defaults.iter().map(|(name, _)| name.to_string());
        self.function = Some(Signature {
            attributes: function.attributes.iter().cloned().chain(defaults).collect(),
            imports: function.imports.clone(),
            strict,
        });
        let outer = self.opset;
        match function.imports.get("") {
            Some(own) => self.opset = *own,
            None if strict => self.opset = 0,
            None => {}
        }
        let (region, _) = self.cx.open_region(&[]);
        let done = self.graph(region);
        self.opset = outer;
        self.function = None;
        done?;
        function.body = region;
        self.cx.edit(|model| model.functions.push(function));
        Ok(())
    }

    /// The header and the name of a function. The name of a PyTorch op gives domain, name and
    /// overload: `"mylib::foo.Tensor"`.
    fn function_head(&mut self, strict: bool) -> Parsed<Function> {
        let start = self.r.place();
        let mut header = self.header()?;
        let place = self.r.place();
        let name = self.r.name("the function's name")?;
        let domain = header.texts.remove("domain").unwrap_or_default();
        let mut function = Function::new(domain, name.as_str(), Model::MAIN);
        function.overload = header.texts.remove("overload").unwrap_or_default();
        if let Some((domain, rest)) = name.split_once("::").filter(|_| function.domain.is_empty()) {
            let (name, overload) = rest.split_once('.').unwrap_or((rest, ""));
            function = Function::new(domain, name, Model::MAIN);
            function.overload = overload.to_owned();
        }
        if strict && function.domain.is_empty() {
            return Err(self.r.error_at(place, "the function has no domain"));
        }
        function.doc_string = header.texts.remove("doc_string");
        function.metadata = metadata(header.metadata);
        function.imports = header.imports.unwrap_or_default();
        let twice = self.cx.model().functions.iter().any(|f| f.is_same_as(&function));
        if twice {
            let what = format!("the function {} is defined twice", function.name);
            return Err(self.r.error_at(start, what));
        }
        Ok(function)
    }

    /// `<name, name: type = default, ...>`, or nothing.
    fn function_attributes(&mut self, function: &mut Function) -> Parsed<()> {
        if !self.r.accept("<") {
            return Ok(());
        }
        self.list(">", |grammar| {
            let place = grammar.r.place();
            let attribute = grammar.r.name("an attribute")?;
            if grammar.r.sees(":") || grammar.r.sees("=") {
                let value = grammar.attribute_value(place)?;
                function.defaults.push((attribute.into(), value));
            } else {
                function.attributes.push(attribute)
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Items with commas between them, up to `close`.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while self.r.goes_on(close, items.is_empty())? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Parses `(inputs) => (outputs) <constants and types> { nodes }` into a region. Closes the
    /// region, if it is not the main graph.
    fn graph(&mut self, region: RegionId) -> Parsed<()> {
        self.r.enter()?;
        self.scopes.push(Scope { hides: self.foreign, ..Scope::default() });
        self.r.require("(")?;
        self.list(")", |grammar| {
            let (place, ty, name) = grammar.typed_name()?;
            let default = if grammar.r.accept("=") {
                Some(Box::new(grammar.elements(place, ty.as_ref())?))
            } else {
                None
            };
            let value = grammar.cx.edit(|model| {
                let value = model.add_input(region, ty);
                model[value].default = default;
                value
            });
            grammar.define(place, name, value)
        })?;
        self.r.require("=>")?;
        self.r.require("(")?;
        let outputs = self.list(")", Self::typed_name)?;
        if self.r.accept("<") {
            self.constants()?;
        }
        self.r.require("{")?;
        while !self.r.accept("}") {
            self.node()?;
        }
        let mut values = Vec::with_capacity(outputs.len());
        for (place, ty, name) in outputs {
            let value = self.value(place, &name)?;
            if let Some(ty) = ty {
                self.cx.set_type(value, ty);
            }
            values.push(value);
        }
        match region {
            Model::MAIN => self.cx.edit(|model| model.set_outputs_as_written(region, &values)),
            _ => {
                self.cx.end_region(|model, region, _| model.set_outputs_as_written(region, &values))
            }
        }
        self.scopes.pop();
        self.r.leave();
        Ok(())
    }

    /// Constants, and types of values that nodes define: `float[2] w = {1, 2}, float[N] y`.
    fn constants(&mut self) -> Parsed<()> {
        self.list(">", |grammar| {
            let (place, ty, name) = grammar.typed_name()?;
            if grammar.r.accept("=") {
                let tensor = grammar.elements(place, ty.as_ref())?;
                // Not interned: equal constants stay separate.
                let value = grammar.cx.edit(|model| model.add_constant(tensor));
                grammar.define(place, name, value)?;
            } else if let (Some(scope), Some(ty)) = (grammar.scopes.last_mut(), ty) {
                scope.types.insert(name, ty);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Names a value and adds it to the innermost scope.
    fn define(&mut self, place: Place, name: String, value: Value) -> Parsed<()> {
        let hiding = self.scopes.iter().rposition(|s| s.hides).unwrap_or(0);
        if self.scopes[hiding..].iter().any(|s| s.values.contains_key(&name)) {
            return Err(self.r.error_at(place, format!("`{name}` is defined twice")));
        }
        self.cx.edit(|model| model[value].name = Some(name.as_str().into()));
        if let Some(scope) = self.scopes.last_mut() {
            if let Some(ty) = scope.types.remove(&name) {
                self.cx.set_type(value, ty);
            }
            scope.values.insert(name, value);
        }
        Ok(())
    }

    /// The value of that name, in the innermost scope that has it.
    fn value(&self, place: Place, name: &str) -> Parsed<Value> {
        let mut found = self.scopes.iter().rev().filter_map(|s| s.values.get(name));
        let found = found.next().copied();
        found.ok_or_else(|| self.r.error_at(place, format!("`{name}` is not defined here")))
    }

    /// `name`, or `type name`.
    fn typed_name(&mut self) -> Parsed<(Place, Option<Type>, String)> {
        let place = self.r.place();
        let bare = self.r.attempt(|r| {
            let name = r.name("").ok()?;
            [",", ")", ">", "="].iter().any(|t| r.sees(t)).then_some(name)
        });
        if let Some(name) = bare {
            return Ok((place, None, name));
        }
        let ty = self.ty()?;
        let place = self.r.place();
        Ok((place, Some(ty), self.r.name("the name of a value")?))
    }

    /// `[name] outputs = domain.op:overload <attributes> (inputs)`.
    fn node(&mut self) -> Parsed<()> {
        let name = if self.r.accept("[") {
            let name = self.r.name("the node's name")?;
            self.r.require("]")?;
            Some(name)
        } else {
            None
        };
        let outputs = self.list("=", |grammar| {
            let place = grammar.r.place();
            Ok((place, grammar.r.name("the name of an output, or `}`")?))
        })?;
        let place = self.r.place();
        let full = self.r.name("an operator")?;
        let (domain, op) = full.rsplit_once('.').unwrap_or(("", &full));
        let overload = if self.r.accept(":") { self.r.name("an overload")? } else { String::new() };
        let outer = replace(&mut self.foreign, !domain.is_empty());
        let mut attributes = self.attributes()?;
        self.r.require("(")?;
        let inputs = self.list(")", |grammar| {
            let place = grammar.r.place();
            let input = grammar.r.name("an input")?;
            if input.is_empty() { Ok(None) } else { grammar.value(place, &input).map(Some) }
        })?;
        if attributes.is_empty() {
            attributes = self.attributes()?;
        }
        self.foreign = outer;
        let node = self.cx.emit_node(op.to_owned(), &inputs, attributes, outputs.len());
        self.cx.edit(|model| {
            model[node].domain = domain.to_owned().into();
            model[node].overload = overload.into();
            model[node].name = name.map(Into::into);
        });
        self.check(place, node, domain, op)?;
        // Inference needs the canonical form of the operator, and the values of attributes, which
        // functions do not have.
        let since = |opset| schema::lookup(op, opset).map(|s| s.since);
        let canonical = since(self.opset) == since(schema::CANONICAL_OPSET);
        if domain.is_empty() && self.function.is_none() && canonical {
            // Parsing does not report inputs that do not fit: the verifier does.
            if let Ok(types) = self.cx.inferred(node) {
                self.cx.edit(|model| {
                    for (value, ty) in model[node].outputs().to_vec().into_iter().zip(types) {
                        model[value].ty = ty;
                    }
                });
            }
        }
        let values = self.cx.model()[node].outputs().to_vec();
        for ((place, name), value) in outputs.into_iter().zip(values) {
            if name.is_empty() {
                self.cx.edit(|model| model[value].name = Some("".into()))
            } else {
                self.define(place, name, value)?
            }
        }
        Ok(())
    }

    /// Checks a node of a strict function against the opsets that the function imports.
    fn check(&self, place: Place, node: NodeId, domain: &str, op: &str) -> Parsed<()> {
        let Some(function) = self.function.as_ref().filter(|f| f.strict) else {
            return Ok(());
        };
        let error = |what: String| Err(self.r.error_at(place, what));
        if !function.imports.contains_key(domain) {
            return error(match domain {
                "" => "the function's opset_import has no version of ONNX's own operators (`\"\"`)"
                    .to_owned(),
                _ => format!("the function's opset_import has no version of `{domain}`"),
            });
        }
        if !domain.is_empty() {
            return Ok(());
        }
        let opset = self.opset;
        let Some(schema) = schema::lookup(op, opset).filter(|s| !s.deprecated) else {
            return error(format!("opset {opset} has no operator `{op}`"));
        };
        let model = self.cx.model();
        conforms(&model, &model[node], schema).or_else(error)
    }

    /// `name (inputs) => (outputs) { nodes }`, a graph in an attribute.
    pub(super) fn body(&mut self) -> Parsed<RegionId> {
        let name = self.r.name("the graph's name")?;
        let (region, _) = self.cx.open_region(&[]);
        self.graph(region)?;
        self.cx.edit(|model| model[region].name = Some(name.into()));
        Ok(region)
    }
}

fn metadata(entries: Vec<(String, String)>) -> Metadata {
    entries.into_iter().map(|(k, v)| (k.into(), v.into())).collect()
}
