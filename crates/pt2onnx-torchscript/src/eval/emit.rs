//! Calls of operators become nodes, and their results values.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, overload::Bound, to_fx::positional, unbound, unsupported},
    schema::{Schema, Type},
    types::{Contents, Outcome, Typed},
    value::Value,
};
use pt2onnx_fx::{ArgKind, Argument, Name, NamedArg, Node, OpName, TensorMeta, ValueMeta, views};
use pt2onnx_symbolic::{Constraints, Expr};
use std::{collections::BTreeSet, sync::Arc};

impl Evaluator<'_> {
    /// Calls an operator by its overload, and adds its node.
    pub(crate) fn emit(&mut self, schema: &Schema, bound: Bound) -> Step<Value> {
        if let Some(chosen) = self.guarded_call(schema, &bound)? {
            return Ok(chosen);
        }
        let mut node = self.node_of_call(schema, &bound)?;
        self.written(schema, &bound)?;
        self.check_part_count(schema, &bound)?;
        if let Some(chunks) = self.fewer_chunks(schema, &bound)? {
            return Ok(chunks);
        }
        let outcomes = match self.cx.types.results(&node, &mut self.state.facts) {
            Ok(outcomes) => outcomes,
            Err(why) => match self.parts(schema, &bound)? {
                Some(parts) => return Ok(parts),
                None => return Err(Problem::Type { op: node.target.to_string(), why }),
            },
        };
        self.note_squeezed(&node)?;
        let mut results = self.results(&mut node, schema, &bound, outcomes)?;
        let shared = views::aliases(&node, &self.state.facts.values, self.constraints());
        self.note_conditional(&node, &shared);
        self.lay_out(&node, &shared);
        if let Some(itself) = self.identity_result(&shared, &results)? {
            return Ok(itself);
        }
        self.note_views(&node);
        self.push(node)?;
        match results.len() {
            0 => Ok(Value::None),
            1 => Ok(results.remove(0)),
            _ => self.tuple(results, None),
        }
    }

    fn node_of_call(&mut self, schema: &Schema, bound: &Bound) -> Step<Node> {
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
        self.node(OpName::new(&schema.namespace, &schema.name, overload), args)
    }

    fn results(
        &mut self,
        node: &mut Node,
        schema: &Schema,
        bound: &Bound,
        outcomes: Vec<Outcome>,
    ) -> Step<Vec<Value>> {
        let single = outcomes.len() == 1;
        let mut values = Vec::with_capacity(outcomes.len());
        for (at, outcome) in outcomes.into_iter().enumerate() {
            let alias = schema.returns.get(at).and_then(|r| r.alias);
            let of = alias.and_then(|alias| Self::aliased(schema, bound, alias));
            let root = of.map(|(name, _)| self.memory.class_of(&self.current(name)).clone());
            let (output, value) = match outcome {
                Outcome::None => (Argument::None, Value::None),
                Outcome::One(typed) => {
                    let name = if single {
                        node.name.clone()
                    } else {
                        self.fresh(&format!("{}_{at}", node.name))
                    };
                    if let Some((whole, true)) = of
                        && let whole = self.write_base_of(whole)
                        && let ValueMeta::Tensor(meta) = &typed.meta
                        && self.meta(&whole)?.sizes == meta.sizes
                    {
                        self.memory.write_base.insert(name.clone(), whole);
                    }
                    self.result(name, typed, root.as_ref(), node)?
                }
                Outcome::List(items) => {
                    self.steps(items.len())?;
                    let (mut names, mut values) = (Vec::new(), Vec::new());
                    for (i, typed) in self.with_contents(node, items).into_iter().enumerate() {
                        let name = self.fresh(&format!("{}_{i}", node.name));
                        values.push(self.result(name.clone(), typed, root.as_ref(), node)?.1);
                        names.push(name);
                    }
                    (Argument::Tensors(names), self.list(values, Some(Type::Tensor))?)
                }
            };
            node.outputs.push(output);
            values.push(value);
        }
        Ok(values)
    }

    /// Keeps a node that makes views, so that they can be made again.
    fn note_views(&mut self, node: &Node) {
        let is_view = |name: &Name| self.memory.is_view(name);
        let views: Vec<Name> = node.output_names().into_iter().filter(is_view).collect();
        if !views.is_empty() {
            let made = Arc::new(node.clone());
            self.memory.views.extend(views.into_iter().map(|name| (name, made.clone())));
        }
    }

    /// Warns of sizes that `squeeze` keeps although they may be 1: types with fewer dimensions
    /// would be for that size only. So does `cov` with the number of variables.
    fn note_squeezed(&mut self, node: &Node) -> Step<()> {
        let op = &*node.target.name;
        let squeezes = matches!(op, "corrcoef" | "cov" | "squeeze" | "squeeze_");
        let (true, Some(Argument::Tensor(tensor))) = (squeezes, node.arg("self")) else {
            return Ok(());
        };
        let rank = self.meta(tensor)?.sizes.len() as i64;
        let dims = match node.arg("dim") {
            _ if !op.starts_with("squeeze") => (0..rank - 1).collect(),
            Some(Argument::Int(dim)) => vec![*dim],
            Some(Argument::Ints(dims)) => dims.clone(),
            _ => (0..rank).collect(),
        };
        let mut kept = BTreeSet::new();
        for dim in dims {
            let size = self.size_along(tensor, dim)?.filter(|size| self.is_one(size).is_none());
            kept.extend(size.map(|size| format!("`{size}`")));
        }
        if !kept.is_empty() {
            let kept: Vec<String> = kept.into_iter().collect();
            self.note(format!("`{op}` keeps {}, taken not to be 1", kept.join(", ")));
        }
        Ok(())
    }

    /// The result of an internal op, a sequence or an optional tensor: it may only be returned.
    pub(crate) fn one_value(
        &mut self,
        op: &str,
        args: impl IntoIterator<Item = (&'static str, Argument)>,
    ) -> Step<Argument> {
        let args = args.into_iter().map(|(name, value)| positional(name, value)).collect();
        let mut node = self.node(OpName::new("pt2onnx", op, "default"), args)?;
        let output = Argument::Tensor(node.name.clone());
        node.outputs.push(output.clone());
        self.push(node)?;
        Ok(output)
    }

    /// A node without results, with a new name.
    pub(crate) fn node(&mut self, target: OpName, args: Vec<NamedArg>) -> Step<Node> {
        let name = self.fresh(&target.name.clone());
        let meta = self.node_meta();
        Ok(Node { name, target, args, outputs: Vec::new(), single_return: None, meta })
    }

    pub(crate) fn push(&mut self, node: Node) -> Step<()> {
        let most = self.policy.limits.nodes;
        if self.state.nodes.len() >= most {
            return Err(Problem::Memory(most));
        }
        self.state.nodes.push(node);
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
        let value = match &typed.meta {
            ValueMeta::Tensor(_) => {
                let contents = typed.contents.or_else(|| self.sizes_of(node, &typed.meta));
                let root = root.cloned().unwrap_or_else(|| name.clone());
                self.memory.share(name.clone(), root);
                if let Some(contents) = contents {
                    self.set_contents(name.clone(), contents);
                }
                Value::Tensor(name.clone())
            }
            ValueMeta::SymInt { expr, .. } => Value::Int(expr.clone()),
            ValueMeta::SymFloat { expr, .. } => Value::Float(expr.clone()),
            ValueMeta::SymBool { expr, .. } => Value::Bool(expr.clone()),
            ValueMeta::CustomObj { .. } => {
                return unsupported("an operator that returns an object");
            }
        };
        self.state.facts.values.insert(name.clone(), typed.meta);
        Ok((self.value_argument(&name), value))
    }

    pub(crate) fn meta(&self, name: &Name) -> Step<&TensorMeta> {
        match self.state.facts.values.get(name) {
            Some(ValueMeta::Tensor(meta)) => Ok(meta),
            _ => unbound(name),
        }
    }

    pub(crate) fn set_contents(&mut self, name: Name, contents: Contents) {
        self.memory.set_known(&name);
        self.state.facts.contents.insert(name, contents);
    }

    /// The elements of a small tensor, in order, if they are known.
    pub(crate) fn elements_of(&self, name: &Name) -> Option<Vec<Expr>> {
        match self.state.facts.contents.get(name)? {
            Contents::Exprs(elements) => Some(elements.clone()),
            Contents::Exact(tensor) => crate::eval::const_eval::elements(tensor),
        }
    }

    pub(crate) fn constraints(&self) -> &Constraints {
        &self.state.facts.constraints
    }
}
