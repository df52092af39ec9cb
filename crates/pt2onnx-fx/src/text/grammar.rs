//! The grammar: reads a text from left to right into a program.

use super::{
    lists::list,
    tokens::{Number, Tokens, Word},
    words::{self, RESERVED},
};
use crate::{
    graph::{
        Argument, Constant, ConstantValue, CustomObj, ExportedProgram, Graph, GraphSignature,
        InputSpec, Name, Node, NodeMeta, OutputKind, OutputSpec, SymArg, ValueMeta, Values,
    },
    schema::MAJOR,
};
use indexmap::IndexMap;
use pt2onnx_symbolic::{
    Constraints, Expr, Range,
    text::{Parsed, Place, Reader},
};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashSet;
use std::{
    mem::{replace, take},
    sync::Arc,
};

/// The values and nodes that the graph has defined so far.
#[derive(Default)]
pub(super) struct Scope {
    values: Values,
    /// Values whose types are not known.
    tokens: FxHashSet<Name>,
    nodes: FxHashSet<Name>,
}

/// A definition of a value: its place, its name, and its type if it has one.
pub(super) type Definition = (Place, Name, Option<ValueMeta>);

pub(super) struct Grammar<'a> {
    pub(super) r: Reader<'a>,
    pub(super) scope: Scope,
    /// The inputs that the arguments of a call have declared. `None` if arguments must not declare
    /// inputs.
    pub(super) declared: Option<Vec<Argument>>,
    state: IndexMap<String, Tensor>,
    constants: IndexMap<String, Constant>,
}

impl<'a> Grammar<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            r: Reader::new(text),
            scope: Scope::default(),
            declared: None,
            state: IndexMap::new(),
            constants: IndexMap::new(),
        }
    }

    /// `{ranges} graph(inputs) { nodes return (outputs) }`.
    pub(super) fn program(mut self) -> Parsed<ExportedProgram> {
        let ranges = self.ranges()?;
        self.keyword("graph")?;
        self.r.require("(")?;
        let (inputs, specs) = self.list(")", Self::input)?.into_iter().unzip();
        self.r.require("{")?;
        let nodes = self.nodes()?;
        self.r.require("(")?;
        let results = self.list(")", Self::output)?;
        self.r.require("}")?;
        let outputs = results.iter().map(|output| output.value.clone()).collect();
        let graph = self.graph(nodes, inputs, outputs);
        self.finish(graph, GraphSignature { inputs: specs, outputs: results }, ranges)
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

    /// A list of one kind of items, after its bracket at `place`.
    pub(super) fn list_of(
        &mut self,
        place: Place,
        item: impl FnMut(&mut Self) -> Parsed<Argument>,
    ) -> Parsed<Argument> {
        let items = self.list("]", item)?;
        let mixed = "the elements of a list must be of one kind";
        list(&items).ok_or_else(|| self.r.error_at(place, mixed))
    }

    /// The graph of the values in scope, which it takes.
    fn graph(
        &mut self,
        nodes: Vec<Arc<Node>>,
        inputs: Vec<Argument>,
        outputs: Vec<Argument>,
    ) -> Graph {
        let values = Arc::new(take(&mut self.scope.values));
        Graph { nodes, inputs, outputs, values, is_single_tensor_return: false }
    }

    /// `{ranges} target(arguments) -> results`.
    pub(super) fn call(mut self) -> Parsed<ExportedProgram> {
        let ranges = self.ranges()?;
        let target = words::target(self.r.path("the name of an operator")?);
        self.r.require("(")?;
        self.declared = Some(Vec::new());
        let args = self.args()?;
        let inputs = self.declared.take().unwrap_or_default();
        self.r.require("->")?;
        let name = self.free(&target.name);
        let single = !self.r.accept("(");
        let mut count = 0;
        let outputs = if single {
            let named = !self.r.sees("[");
            vec![self.call_result(&name, (!named).then_some(&mut count))?]
        } else {
            self.list(")", |grammar| grammar.call_result(&name, Some(&mut count)))?
        };
        let single_return = target.is_higher_order().then_some(single);
        let mut results = Vec::new();
        for output in &outputs {
            output.for_each_name(&mut |n| results.extend(self.scope.get(n)));
        }
        let meta = Arc::new(NodeMeta::default());
        let node = Node { name, target, args, outputs, single_return, meta };
        let graph = self.graph(vec![node.into()], inputs, results);
        let signature = GraphSignature {
            inputs: graph.inputs.iter().cloned().map(InputSpec::UserInput).collect(),
            outputs: graph.outputs.iter().cloned().map(OutputSpec::user).collect(),
        };
        self.finish(graph, signature, ranges)
    }

    fn finish(
        mut self,
        graph: Graph,
        signature: GraphSignature,
        range_constraints: Vec<(Expr, Range)>,
    ) -> Parsed<ExportedProgram> {
        if !self.r.at_end() {
            return Err(self.r.expected("the end of the text"));
        }
        let mut constraints = Constraints::new();
        for (expr, range) in &range_constraints {
            constraints.constrain(expr, *range);
        }
        let inputs = graph.inputs.iter().filter_map(|i| graph.tensor(i.name()?));
        for size in inputs.flat_map(|meta| &meta.sizes) {
            constraints.constrain(size, Range::at_least(0));
        }
        let ranges = range_constraints.into_iter();
        Ok(ExportedProgram {
            graph,
            signature,
            constraints,
            range_constraints: ranges.map(|(expr, range)| (expr.to_string(), range)).collect(),
            state: self.state,
            constants: self.constants,
            schema_version: (MAJOR, 0),
            ..ExportedProgram::default()
        })
    }

    fn keyword(&mut self, keyword: &str) -> Parsed<()> {
        if self.r.accept_keyword(keyword) {
            Ok(())
        } else {
            Err(self.r.expected(&format!("`{keyword}`")))
        }
    }

    /// `{s0: VR[2, int_oo]}`, or nothing.
    fn ranges(&mut self) -> Parsed<Vec<(Expr, Range)>> {
        if !self.r.accept("{") {
            return Ok(Vec::new());
        }
        self.r.list("}", |r| {
            let expr = r.expression("a symbol")?;
            r.require(":")?;
            r.require("VR")?;
            r.require("[")?;
            let min = if r.accept("-int_oo") { None } else { Some(int(r)?) };
            r.require(",")?;
            let max = if r.accept("int_oo") { None } else { Some(int(r)?) };
            r.require("]")?;
            Ok((expr, Range { min, max }))
        })
    }

    /// `name: type`, `name: type as KIND('target')`, `name = constant`, or a constant.
    fn input(&mut self) -> Parsed<(Argument, InputSpec)> {
        let start = self.r.place();
        let Some(name) = self.defined_name() else {
            let value = self.value()?;
            return Ok((value.clone(), InputSpec::UserInput(value)));
        };
        if self.r.accept("=") {
            let place = self.r.place();
            let argument = self.value()?;
            let value = match &argument {
                Argument::None => ConstantValue::None,
                Argument::Int(v) => ConstantValue::Int(*v),
                Argument::Float(v) => ConstantValue::Float(*v),
                Argument::Bool(v) => ConstantValue::Bool(*v),
                Argument::String(v) => ConstantValue::String(v.clone()),
                _ => return Err(self.r.error_at(place, "a constant input is a plain value")),
            };
            return Ok((argument, InputSpec::Constant { name, value }));
        }
        self.r.require(":")?;
        let meta = self.ty()?;
        let input = self.define((start, name.clone(), meta))?;
        if !self.r.accept_keyword("as") {
            return Ok((input.clone(), InputSpec::UserInput(input)));
        }
        let place = self.r.place();
        let kind = self.r.word("what the input is")?;
        self.r.require("(")?;
        let target = if self.r.sees(")") { Name::default() } else { self.r.string()?.into() };
        let mut persistent = true;
        if kind == "BUFFER" && self.r.accept(",") {
            self.keyword("persistent")?;
            self.r.require("=")?;
            persistent = self.r.accept_keyword("True");
            if !persistent {
                self.keyword("False")?;
            }
        }
        self.r.require(")")?;
        let spec = match (kind, &input) {
            ("PARAMETER", _) => InputSpec::Parameter { name, target },
            ("BUFFER", _) => InputSpec::Buffer { name, target, persistent },
            ("CONSTANT_TENSOR", _) => InputSpec::TensorConstant { name, target },
            ("CUSTOM_OBJ", Argument::CustomObj(object)) => {
                InputSpec::CustomObj { object: object.clone(), target }
            }
            ("TOKEN", _) => InputSpec::Token(name),
            _ => return Err(self.r.error_at(place, format!("an input is no `{kind}`"))),
        };
        self.absent(place, &spec)?;
        Ok((input, spec))
    }

    /// Gives a parameter, buffer or constant a tensor without data.
    fn absent(&mut self, place: Place, spec: &InputSpec) -> Parsed<()> {
        let (name, target, in_state) = match spec {
            InputSpec::Parameter { name, target } => (name, target, true),
            InputSpec::Buffer { name, target, persistent } => (name, target, *persistent),
            InputSpec::TensorConstant { name, target } => (name, target, false),
            _ => return Ok(()),
        };
        let Some(ValueMeta::Tensor(meta)) = self.scope.values.get(name) else {
            let what = "only a tensor can be a parameter, buffer or constant";
            return Err(self.r.error_at(place, what));
        };
        let size = |size: &Expr| size.as_int().and_then(|i| usize::try_from(i).ok());
        let sizes: Option<Vec<usize>> = meta.sizes.iter().map(size).collect();
        let tensor = sizes.and_then(|sizes| Tensor::absent(meta.dtype, sizes).ok());
        let Some(tensor) = tensor else {
            return Err(self.r.error_at(place, "its sizes must be known integers"));
        };
        if in_state {
            drop(self.state.insert(target.to_string(), tensor))
        } else {
            drop(self.constants.insert(target.to_string(), Constant::Tensor(tensor)))
        }
        Ok(())
    }

    /// `name`, `name as KIND('target')`, or a constant.
    fn output(&mut self) -> Parsed<OutputSpec> {
        let value = self.value()?;
        if !self.r.accept_keyword("as") {
            return Ok(OutputSpec::user(value));
        }
        let place = self.r.place();
        let kind = self.r.word("what the output is")?;
        self.r.require("(")?;
        let target = if self.r.sees(")") { Name::default() } else { self.r.string()?.into() };
        self.r.require(")")?;
        if value.name().is_none() {
            return Err(self.r.error_at(place, format!("a constant is no `{kind}`")));
        }
        match OutputKind::of_name(kind) {
            Some(kind) => Ok(OutputSpec { kind, value, target }),
            None => Err(self.r.error_at(place, format!("an output is no `{kind}`"))),
        }
    }

    /// A body of a higher-order op, after the word `graph`: `NAME(inputs) { nodes return outputs
    /// }`.
    pub(super) fn body(&mut self) -> Parsed<Argument> {
        let name = self.r.word("the name of a body")?.into();
        let (outer, declared) = (take(&mut self.scope), self.declared.take());
        self.r.require("(")?;
        let inputs = self.list(")", |grammar| {
            let place = grammar.r.place();
            let Some(name) = grammar.defined_name() else { return grammar.value() };
            grammar.r.require(":")?;
            let meta = grammar.ty()?;
            grammar.define((place, name, meta))
        })?;
        self.r.require("{")?;
        let nodes = self.nodes()?;
        // A complex number in parentheses would be a single result.
        let is_single_tensor_return = !self.r.sees("(");
        let outputs = if is_single_tensor_return {
            vec![self.value()?]
        } else {
            self.r.require("(")?;
            self.list(")", Self::value)?
        };
        self.r.require("}")?;
        let values = Arc::new(replace(&mut self.scope, outer).values);
        self.declared = declared;
        let graph = Box::new(Graph { nodes, inputs, outputs, values, is_single_tensor_return });
        Ok(Argument::Graph { name, graph })
    }

    /// Nodes up to `return`, which is read, too.
    fn nodes(&mut self) -> Parsed<Vec<Arc<Node>>> {
        let mut nodes = Vec::new();
        while !self.r.accept_keyword("return") {
            nodes.push(self.node()?.into());
        }
        Ok(nodes)
    }

    /// `name: results = target(arguments)`.
    fn node(&mut self) -> Parsed<Node> {
        let start = self.r.place();
        let name = Name::new(self.r.word("a node or `return`")?);
        if !self.scope.nodes.insert(name.clone()) {
            return Err(self.r.error_at(start, format!("node `{name}` is defined twice")));
        }
        self.r.require(":")?;
        let mut defined = Vec::new();
        let (outputs, tuple) = self.results(start, &name, &mut defined)?;
        self.r.require("=")?;
        let target = words::target(self.r.path("the name of an operator")?);
        self.r.require("(")?;
        let args = self.args()?;
        for definition in defined {
            self.define(definition)?;
        }
        let says = target.is_higher_order() || (tuple && outputs.len() == 1);
        let single_return = says.then_some(!tuple);
        Ok(Node { name, target, args, outputs, single_return, meta: Arc::default() })
    }

    /// The results of a node, and whether they are a tuple.
    fn results(
        &mut self,
        start: Place,
        name: &Name,
        defined: &mut Vec<Definition>,
    ) -> Parsed<(Vec<Argument>, bool)> {
        if self.r.sees("[") {
            return Ok((vec![self.result(defined)?], false));
        }
        if !self.r.accept("(") {
            let meta = self.ty()?;
            let output = argument(name, meta.as_ref());
            defined.push((start, name.clone(), meta));
            return Ok((vec![output], false));
        }
        let (mut outputs, mut comma) = (Vec::new(), false);
        while !self.r.accept(")") {
            if !outputs.is_empty() {
                if !self.r.accept(",") {
                    return Err(self.r.expected("`,` or `)`"));
                }
                comma = true;
                if self.r.accept(")") {
                    break;
                }
            }
            outputs.push(self.result(defined)?);
        }
        let tuple = comma || outputs.len() != 1;
        Ok((outputs, tuple))
    }

    /// `name: type`, `[name: type, ...]`, or a constant.
    fn result(&mut self, defined: &mut Vec<Definition>) -> Parsed<Argument> {
        let place = self.r.place();
        if let Some(name) = self.defined_name() {
            self.r.require(":")?;
            let meta = self.ty()?;
            let output = argument(&name, meta.as_ref());
            defined.push((place, name, meta));
            return Ok(output);
        }
        if !self.r.accept("[") {
            return self.value();
        }
        self.list_of(place, |grammar| grammar.result(defined))
    }

    /// A type after `->`, `None`, or a list of these. The result is named `base`; if there are
    /// several, a number follows the name.
    fn call_result(&mut self, base: &Name, mut count: Option<&mut usize>) -> Parsed<Argument> {
        let place = self.r.place();
        if self.r.accept_keyword("None") {
            return Ok(Argument::None);
        }
        if self.r.accept("[") {
            return self.list_of(place, |g| g.call_result(base, count.as_deref_mut()));
        }
        let name = match count {
            None => base.clone(),
            Some(count) => {
                *count += 1;
                self.free(&format!("{base}_{}", *count - 1))
            }
        };
        let meta = self.ty()?;
        self.define((place, name, meta))
    }

    /// A name that no value has yet.
    fn free(&self, name: &str) -> Name {
        let mut names =
            std::iter::once(Name::new(name)).chain((1u32..).map(|i| format!("{name}_{i}").into()));
        names.find(|n| self.scope.get(n).is_none()).unwrap_or_default()
    }

    /// A word that can be the name of a value.
    pub(super) fn defined_name(&mut self) -> Option<Name> {
        let usable = |word: &Word| match word {
            Word::Plain(text) => !RESERVED.contains(text),
            Word::Quoted(_) => true,
        };
        self.r.attempt(|r| r.accept_word().filter(usable)).map(|w| w.text().into())
    }

    pub(super) fn define(&mut self, (place, name, meta): Definition) -> Parsed<Argument> {
        if self.scope.get(&name).is_some() {
            return Err(self.r.error_at(place, format!("value `{name}` is defined twice")));
        }
        let value = argument(&name, meta.as_ref());
        match meta {
            Some(meta) => drop(self.scope.values.insert(name, meta)),
            None => drop(self.scope.tokens.insert(name)),
        }
        Ok(value)
    }
}

impl Scope {
    /// The value of this name as an argument.
    pub(super) fn get(&self, name: &Name) -> Option<Argument> {
        let token = || self.tokens.contains(name).then(|| argument(name, None));
        self.values.get(name).map(|meta| argument(name, Some(meta))).or_else(token)
    }
}

fn argument(name: &Name, meta: Option<&ValueMeta>) -> Argument {
    let name = name.clone();
    match meta {
        None | Some(ValueMeta::Tensor(_)) => Argument::Tensor(name),
        Some(ValueMeta::SymInt { .. }) => Argument::SymInt(SymArg::Name(name)),
        Some(ValueMeta::SymFloat { .. }) => Argument::SymFloat(SymArg::Name(name)),
        Some(ValueMeta::SymBool { .. }) => Argument::SymBool(SymArg::Name(name)),
        Some(ValueMeta::CustomObj { class }) => {
            Argument::CustomObj(CustomObj { name, class: class.clone() })
        }
    }
}

fn int(r: &mut Reader) -> Parsed<i64> {
    let place = r.place();
    match r.number("an integer")? {
        Number::Int(int) => Ok(int),
        _ => Err(r.error_at(place, "expected an integer")),
    }
}
