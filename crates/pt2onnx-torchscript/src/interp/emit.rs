//! Calls of operators become nodes, and their results values.

use super::{Interp, MAX_NODES, Step, expected, fits::Bound, unsupported};
use crate::{
    error::Problem,
    schema::{Schema, Type},
    types::{Contents, Outcome, Typed},
    value::Value,
};
use pt2onnx_fx::{
    ArgKind, Argument, Device, Layout, MemoryFormat, Name, NamedArg, Node, OpName, SymArg,
    TensorMeta, ValueMeta, archive::dtype_of_c10, views,
};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;
use std::sync::Arc;

impl Interp<'_> {
    /// Calls an operator by its overload, and adds its node.
    pub(super) fn emit(&mut self, schema: &Schema, bound: Bound) -> Step<Value> {
        if let Some(chosen) = self.by_flag(schema, &bound)? {
            return Ok(chosen);
        }
        let mut args = Vec::with_capacity(bound.len());
        for (value, param) in bound.iter().zip(&schema.params) {
            if let Some(value) = value {
                args.push(NamedArg {
                    name: param.name.clone(),
                    kind: if param.keyword { ArgKind::Keyword } else { ArgKind::Positional },
                    value: self.argument(value, &param.ty)?,
                });
            }
        }
        let overload = if schema.overload.is_empty() { "default" } else { &schema.overload };
        let target = OpName::new(&schema.namespace, &schema.name, overload);
        let mut node = self.node(target, args)?;
        self.written(schema, &bound)?;
        self.few_parts(schema, &bound)?;
        if let Some(chunks) = self.fewer_chunks(schema, &bound)? {
            return Ok(chunks);
        }
        let outcomes = self.types.results(&node, &mut self.facts);
        let outcomes = match outcomes {
            Ok(outcomes) => outcomes,
            Err(why) => match self.parts(schema, &bound)? {
                Some(parts) => return Ok(parts),
                None => return Err(Problem::Type { op: node.target.to_string(), why }),
            },
        };
        self.note_squeezed(&node)?;
        let single = outcomes.len() == 1;
        let mut results = Vec::with_capacity(outcomes.len());
        for (at, outcome) in outcomes.into_iter().enumerate() {
            let alias = schema.returns.get(at).and_then(|r| r.alias);
            let root = alias.and_then(|alias| self.alias_of(schema, &bound, alias));
            let value = match outcome {
                Outcome::None => {
                    node.outputs.push(Argument::None);
                    Value::None
                }
                Outcome::One(typed) => {
                    let wish =
                        if single { node.name.to_string() } else { format!("{}_{at}", node.name) };
                    let name = if single { node.name.clone() } else { self.fresh(&wish) };
                    let whole = alias.and_then(|a| self.written_of(schema, &bound, a));
                    let same = match (whole, &typed.meta) {
                        (Some(whole), ValueMeta::Tensor(meta))
                            if self.meta(&whole)?.sizes == meta.sizes =>
                        {
                            Some(whole)
                        }
                        _ => None,
                    };
                    if let Some(whole) = same {
                        self.wholes.insert(name.clone(), whole);
                    }
                    let (output, value) = self.result(name, typed, root.as_ref(), &node)?;
                    node.outputs.push(output);
                    value
                }
                Outcome::List(items) => {
                    let mut names = Vec::with_capacity(items.len());
                    let mut values = Vec::with_capacity(items.len());
                    self.steps(items.len())?;
                    let items = self.with_contents(&node, items);
                    for (i, typed) in items.into_iter().enumerate() {
                        let name = self.fresh(&format!("{}_{i}", node.name));
                        let (_, value) = self.result(name.clone(), typed, root.as_ref(), &node)?;
                        names.push(name);
                        values.push(value);
                    }
                    node.outputs.push(Argument::Tensors(names));
                    self.list(values, Some(Type::Tensor))?
                }
            };
            results.push(value);
        }
        let shared = views::shared(&node, &self.facts.values, self.constraints());
        self.lay_out(&node, &shared);
        if let Some(itself) = self.return_itself(&shared, &results)? {
            return Ok(itself);
        }
        let is_view = |name: &Name| self.roots.get(name).is_some_and(|root| root != name);
        let views: Vec<Name> = node.output_names().into_iter().filter(is_view).collect();
        if !views.is_empty() {
            let made = Arc::new(node.clone());
            self.views.extend(views.into_iter().map(|name| (name, made.clone())));
        }
        self.push(node)?;
        match (results.len(), results.pop()) {
            (0, _) | (_, None) => Ok(Value::None),
            (1, Some(only)) => Ok(only),
            (_, Some(last)) => {
                results.push(last);
                self.tuple(results, None)
            }
        }
    }

    /// Tells of sizes that `squeeze` keeps although they may be 1: types with fewer dimensions would be for that size only.
    fn note_squeezed(&mut self, node: &Node) -> Step<()> {
        let (true, Some(Argument::Tensor(tensor))) =
            (matches!(&*node.target.name, "squeeze" | "squeeze_"), node.arg("self"))
        else {
            return Ok(());
        };
        let dims = match node.arg("dim") {
            Some(Argument::Int(dim)) => vec![*dim],
            Some(Argument::Ints(dims)) => dims.clone(),
            _ => (0..self.meta(tensor)?.sizes.len() as i64).collect(),
        };
        let mut kept = Vec::new();
        for dim in dims {
            if let Some(size) = self.size_along(tensor, dim)?
                && self.constraints().prove_eq(&size, &Expr::ONE).is_none()
            {
                kept.push(format!("`{size}`"));
            }
        }
        kept.sort();
        kept.dedup();
        if !kept.is_empty() {
            self.note(format!("`squeeze` keeps {}, taken not to be 1", kept.join(", ")));
        }
        Ok(())
    }

    /// The result of an op of ours: a sequence or an optional tensor, of which nothing but the program's results may be made.
    pub(super) fn one_value(
        &mut self,
        op: &str,
        args: impl IntoIterator<Item = (&'static str, Argument)>,
    ) -> Step<Argument> {
        let given = |(name, value): (&str, _)| NamedArg {
            name: name.into(),
            kind: ArgKind::Positional,
            value,
        };
        let args = args.into_iter().map(given).collect();
        let mut node = self.node(OpName::new("pt2onnx", op, "default"), args)?;
        let output = Argument::Tensor(node.name.clone());
        node.outputs.push(output.clone());
        self.push(node)?;
        Ok(output)
    }

    /// A node without results, with a name of its own.
    pub(super) fn node(&mut self, target: OpName, args: Vec<NamedArg>) -> Step<Node> {
        let name = self.fresh(&target.name.clone());
        let meta = self.node_meta();
        Ok(Node { name, target, args, outputs: Vec::new(), single_return: None, meta })
    }

    pub(super) fn push(&mut self, node: Node) -> Step<()> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Problem::Memory(MAX_NODES));
        }
        self.nodes.push(node);
        Ok(())
    }

    /// Names a result, and remembers its type, contents and memory.
    fn result(
        &mut self,
        name: Name,
        typed: Typed,
        root: Option<&Name>,
        node: &Node,
    ) -> Step<(Argument, Value)> {
        let found = match &typed.meta {
            ValueMeta::Tensor(_) => {
                let contents = typed.contents.or_else(|| self.sizes_of(node, &typed.meta));
                if let Some(contents) = contents {
                    self.facts.contents.insert(name.clone(), contents);
                }
                let root = root.cloned().unwrap_or_else(|| name.clone());
                self.roots.insert(name.clone(), root);
                (Argument::Tensor(name.clone()), Value::Tensor(name.clone()))
            }
            ValueMeta::SymInt { expr, .. } => {
                (Argument::SymInt(SymArg::Name(name.clone())), Value::Int(expr.clone()))
            }
            ValueMeta::SymFloat { expr, .. } => {
                (Argument::SymFloat(SymArg::Name(name.clone())), Value::Float(expr.clone()))
            }
            ValueMeta::SymBool { expr, .. } => {
                (Argument::SymBool(SymArg::Name(name.clone())), Value::Bool(expr.clone()))
            }
            ValueMeta::CustomObj { .. } => {
                return unsupported("an operator that returns an object");
            }
        };
        self.facts.values.insert(name, typed.meta);
        Ok(found)
    }

    /// The memory that a result may share: that of the argument with the same alias.
    fn alias_of(&self, schema: &Schema, bound: &Bound, alias: char) -> Option<Name> {
        let mut params = bound.iter().zip(&schema.params).filter(|(_, p)| p.alias == Some(alias));
        match params.next()? {
            (Some(Value::Tensor(name)), _) => self.roots.get(&self.current(name)).cloned(),
            _ => None,
        }
    }

    /// The tensor that this one is as a whole, if it is the result of a write into it.
    pub(super) fn whole_of(&self, name: &Name) -> Name {
        self.wholes.get(name).unwrap_or(name).clone()
    }

    /// The tensor that an operator writes into and returns.
    fn written_of(&self, schema: &Schema, bound: &Bound, alias: char) -> Option<Name> {
        let mut params = bound.iter().zip(&schema.params);
        match params.find(|(_, param)| param.alias == Some(alias) && param.written)? {
            (Some(Value::Tensor(name)), _) => Some(self.whole_of(&self.current(name))),
            _ => None,
        }
    }

    /// Forgets the contents of all that shares memory with what an operator writes into.
    fn written(&mut self, schema: &Schema, bound: &Bound) -> Step<()> {
        for (value, param) in bound.iter().zip(&schema.params) {
            let names: Vec<Name> = match value {
                Some(Value::Tensor(name)) if param.written => vec![name.clone()],
                Some(Value::List(list)) if param.written => {
                    let tensors = self.items(*list).iter().filter_map(|item| match item {
                        Value::Tensor(name) => Some(name.clone()),
                        _ => None,
                    });
                    tensors.collect()
                }
                _ => continue,
            };
            for name in names {
                let name = self.current(&name);
                let root = self.roots.get(&name).cloned().unwrap_or(name);
                self.forget(&root);
                self.outdate(&root)?;
                self.changed.insert(root.clone());
                self.writes.insert(root);
            }
        }
        Ok(())
    }

    /// Forgets the contents of all that shares this memory.
    pub(super) fn forget(&mut self, root: &Name) {
        let roots = &self.roots;
        self.facts.contents.retain(|name, _| roots.get(name).unwrap_or(name) != root);
    }

    /// The name by which a tensor is read here.
    pub(super) fn readable(&mut self, name: &Name) -> Step<Name> {
        let name = self.current(name);
        self.fresh_tensor(&name)?;
        match self.hidden.contains(&name) {
            true => self.deeper(|interp| interp.viewed_again(&name)),
            false => Ok(name),
        }
    }

    /// A view of memory for which a copy stands here, made again of the copy.
    pub(super) fn viewed_again(&mut self, view: &Name) -> Step<Name> {
        let whole = self.whole_of(view);
        if whole != *view {
            let again = self.readable(&whole)?;
            self.hidden.remove(view);
            self.replaced.insert(view.clone(), again.clone());
            return Ok(again);
        }
        let found = self.views.get(view).map(|node| (**node).clone());
        let Some((mut node, base)) = found.and_then(|node| {
            let base = node.args.first()?.value.name()?.clone();
            Some((node, base))
        }) else {
            let text = "it reads a view, made before it, of a tensor that it writes into";
            return Err(Problem::Loop(text.to_owned()));
        };
        let base = self.readable(&base)?;
        let root = self.roots.get(&base).unwrap_or(&base).clone();
        node.name = self.fresh(&node.name.clone());
        if let Some(first) = node.args.first_mut() {
            first.value = Argument::Tensor(base);
        }
        for output in &mut node.outputs {
            let names = match output {
                Argument::Tensor(name) => std::slice::from_mut(name),
                Argument::Tensors(names) => names.as_mut_slice(),
                _ => continue,
            };
            for name in names {
                let again = self.fresh(&name.clone());
                let old = std::mem::replace(name, again.clone());
                if let Some(meta) = self.facts.values.get(&old).cloned() {
                    self.facts.values.insert(again.clone(), meta);
                }
                self.roots.insert(again.clone(), root.clone());
                self.hidden.remove(&old);
                self.replaced.insert(old, again);
            }
        }
        let node = Arc::new(node);
        for name in node.output_names() {
            self.views.insert(name, node.clone());
        }
        self.push((*node).clone())?;
        Ok(self.current(view))
    }

    /// A value as an argument for a parameter of this type.
    pub(super) fn argument(&mut self, value: &Value, ty: &Type) -> Step<Argument> {
        let optional = matches!(ty, Type::Optional(_));
        Ok(match (ty.given(), value) {
            (_, Value::None) => Argument::None,
            (_, Value::Tensor(name)) if optional => {
                Argument::OptionalTensor(Some(self.readable(name)?))
            }
            (_, Value::Tensor(name)) => Argument::Tensor(self.readable(name)?),
            (Type::DType, Value::Int(_)) => Argument::DType(dtype_of(value)?),
            (Type::Layout, Value::Int(_)) => match value.as_int() {
                Some(0) => Argument::Layout(Layout::Strided),
                _ => return unsupported("a sparse layout"),
            },
            (Type::MemoryFormat, Value::Int(_)) => Argument::MemoryFormat(match value.as_int() {
                Some(0) => MemoryFormat::Contiguous,
                Some(1) => MemoryFormat::Preserve,
                Some(2) => MemoryFormat::ChannelsLast,
                Some(3) => MemoryFormat::ChannelsLast3d,
                _ => return unsupported("this memory format"),
            }),
            (Type::Device, Value::Str(_)) | (_, Value::Device(_)) => {
                Argument::Device(Device { kind: "cpu".into(), index: None })
            }
            (_, Value::Int(e)) => match self.int_argument(e)? {
                SymArg::Value(i) => Argument::Int(i),
                other => Argument::SymInt(other),
            },
            (_, Value::Float(e)) => match crate::value::known(e) {
                Some(f) => Argument::Float(f),
                None => Argument::SymFloat(SymArg::Name(self.float_node(e)?)),
            },
            (_, Value::Bool(e)) => match e.as_int() {
                Some(b) => Argument::Bool(b != 0),
                None => return unsupported("a truth value that is not known, as an argument,"),
            },
            (_, Value::Complex(re, im)) => Argument::Complex(*re, *im),
            (_, Value::Str(text)) => Argument::String((**text).into()),
            (Type::List(inner), Value::List(_) | Value::Tuple(_)) => {
                let Some(mut items) = self.sequence(value) else {
                    return unsupported("this operator on a list whose length depends on data");
                };
                self.steps(items.len())?;
                for item in &mut items {
                    if let Value::Tensor(name) = item {
                        *name = self.readable(name)?;
                    }
                }
                return self.list_argument(&items, inner);
            }
            _ => return expected("an argument of an operator", value),
        })
    }

    fn list_argument(&mut self, items: &[Value], element: &Type) -> Step<Argument> {
        fn all<T>(items: &[Value], of: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
            items.iter().map(of).collect()
        }
        let name = |value: &Value| match value {
            Value::Tensor(name) => Some(name.clone()),
            _ => None,
        };
        let optional = |value: &Value| match value {
            Value::None => Some(None),
            other => name(other).map(Some),
        };
        let found = match element.given() {
            Type::Tensor => match element {
                Type::Optional(_) => all(items, optional).map(Argument::OptionalTensors),
                _ => all(items, name).map(Argument::Tensors),
            },
            Type::Float => all(items, Value::as_f64).map(Argument::Floats),
            Type::Bool => all(items, Value::as_bool).map(Argument::Bools),
            Type::Str => all(items, |v| v.as_str().map(Name::from)).map(Argument::Strings),
            _ => match all(items, Value::as_int) {
                Some(ints) => Some(Argument::Ints(ints)),
                None => self
                    .sym_ints(items)?
                    .or_else(|| all(items, Value::as_f64).map(Argument::Floats)),
            },
        };
        found.ok_or_else(|| Problem::Unsupported(format!("a list of {element} with other values")))
    }

    fn sym_ints(&mut self, items: &[Value]) -> Step<Option<Argument>> {
        let mut args = Vec::with_capacity(items.len());
        for item in items {
            let Value::Int(e) = item else {
                return Ok(None);
            };
            args.push(self.int_argument(e)?);
        }
        Ok(Some(Argument::SymInts(args)))
    }

    /// An integer as an argument. What depends on data must be the result of a node.
    fn int_argument(&mut self, e: &Expr) -> Step<SymArg<i64>> {
        if let Some(i) = e.as_int() {
            return Ok(SymArg::Value(i));
        }
        if let Some(Argument::SymInt(named)) = e.as_symbol().and_then(|s| self.sources.get(s)) {
            return Ok(named.clone());
        }
        let sources = self.sources_of(e);
        if sources.is_empty() {
            return Ok(SymArg::Expr(e.clone()));
        }
        let meta = ValueMeta::SymInt { expr: e.clone(), hint: None };
        Ok(SymArg::Name(self.number_node("sym_int", sources, meta)?))
    }

    /// The results of nodes that an expression depends on.
    fn sources_of(&self, e: &Expr) -> Vec<Argument> {
        e.symbols().iter().filter_map(|s| self.sources.get(&**s).cloned()).collect()
    }

    /// A node whose result is a float of this expression.
    pub(super) fn float_node(&mut self, e: &Expr) -> Step<Name> {
        if let Some(Argument::SymFloat(SymArg::Name(name))) =
            e.as_symbol().and_then(|s| self.sources.get(s))
        {
            return Ok(name.clone());
        }
        let sources = self.sources_of(e);
        let meta = ValueMeta::SymFloat { expr: e.clone(), hint: None };
        self.number_node("sym_float", sources, meta)
    }

    /// A node whose result is an expression over numbers; it stands for the arithmetic that the expression says.
    fn number_node(&mut self, op: &str, sources: Vec<Argument>, meta: ValueMeta) -> Step<Name> {
        let args = sources.into_iter().map(|value| NamedArg {
            name: "".into(),
            kind: ArgKind::Positional,
            value,
        });
        let mut node = self.node(OpName::new("torch", op, ""), args.collect())?;
        let name = node.name.clone();
        let named = SymArg::Name(name.clone());
        node.outputs.push(match meta {
            ValueMeta::SymFloat { .. } => Argument::SymFloat(SymArg::Name(name.clone())),
            _ => Argument::SymInt(named),
        });
        self.facts.values.insert(name.clone(), meta);
        self.push(node)?;
        Ok(name)
    }

    /// The type of a tensor.
    pub(super) fn meta(&self, name: &Name) -> Step<&TensorMeta> {
        match self.facts.values.get(name) {
            Some(ValueMeta::Tensor(meta)) => Ok(meta),
            _ => Err(Problem::Unbound(name.to_string())),
        }
    }

    /// The elements of a small tensor, in order, if they are known.
    pub(super) fn elements_of(&self, name: &Name) -> Option<Vec<Expr>> {
        match self.facts.contents.get(name)? {
            Contents::Exprs(elements) => Some(elements.clone()),
            Contents::Exact(tensor) => super::contents::elements(tensor),
        }
    }

    /// What is proved of sizes.
    pub(super) fn constraints(&self) -> &Constraints {
        &self.facts.constraints
    }
}

/// The element type of PyTorch's number.
pub(super) fn dtype_of(value: &Value) -> Step<DType> {
    let number = value.as_int();
    let found = number.and_then(dtype_of_c10);
    match (found, number) {
        (Some(dtype), _) => Ok(dtype),
        (None, Some(12..=14 | 16 | 17)) => unsupported("a quantised element type"),
        _ => unsupported("this element type"),
    }
}
