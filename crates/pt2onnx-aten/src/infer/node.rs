//! The results of a node: by its meta function, or else by its lowering.

use super::{
    Contents, Facts, NewSymbol, Outcome, Typed,
    scratch::{self, Types},
};
use crate::{
    AtenOp, LowerError, Lowered, Registry, Schema,
    args::Args,
    cx::{Call, Mode},
    meta::is_fresh,
    registry::Custom,
    table::{Complexity, Lower, Row},
};
use pt2onnx_fx::graph::{Argument, Node, OpName, TensorMeta, ValueMeta, Values};
use pt2onnx_ir::{Model, Type, is_unknown_symbol};
use pt2onnx_symbolic::{Expr, Symbol};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::{collections::BTreeSet, sync::Arc};

impl Registry {
    /// The results of a node, in the order of its schema's returns. `node` has its arguments by the
    /// names of the schema, and no outputs.
    ///
    /// # Errors
    /// The types are not known. A guess is never an answer.
    pub fn infer(
        &self,
        node: &Node,
        facts: &Facts,
        symbol: &mut NewSymbol,
    ) -> Lowered<Vec<Outcome>> {
        let name = node.target.schema_name();
        if let Some(target) = self.reshaping(&node.target) {
            return self.infer(&Node { target, ..node.clone() }, facts, symbol);
        }
        if let Some(written) = written(node) {
            if node.arg("out").is_some() && is_empty(node.arg("out"), facts) {
                return Err(LowerError::unsupported("its output becomes larger"));
            }
            return same_as(written, facts);
        }
        if name == "aten::item" || name == "aten::_local_scalar_dense" {
            return item(node, facts, symbol);
        }
        if let Some((op, schema)) = self.get(name).and_then(|op| Some((op, self.schema(op)?))) {
            return match op.meta {
                Some(meta) => self.by_meta(meta, &schema, node, facts, symbol),
                None => self.by_lowering(op, &schema, node, facts),
            };
        }
        let complex = || node.input_names().iter().any(|n| is_complex(facts, n));
        match self.custom(name, complex) {
            Some(custom) => self.by_custom(custom, node, facts, symbol),
            None => Err(LowerError::UnknownOp {
                op: node.target.to_string(),
                nearest: self.nearest(name).map(str::to_owned),
            }),
        }
    }

    /// The functional variant of an in-place op that changes the sizes of its operand: a view
    /// (`squeeze_`), `resize_` or `resize_as_`.
    fn reshaping(&self, op: &OpName) -> Option<OpName> {
        let base = op.name.strip_suffix('_').filter(|_| &*op.namespace == "aten")?;
        // `transpose_` has no overload, but `transpose.int`.
        let variants = [&*op.overload, "int"].map(|overload| OpName::new("aten", base, overload));
        let mut rows = variants.into_iter().map(|op| (self.get(op.schema_name()), op));
        let (row, variant) = rows.find_map(|(row, op)| Some((row?, op)))?;
        let schema = pt2onnx_schemas::Schema::parse(row.schema).ok()?;
        let is_view = schema.returns.first().is_some_and(|r| r.alias.is_some());
        (is_view || base.starts_with("resize")).then_some(variant)
    }

    /// A model whose outputs are the tensors of a node's results, in order, which have the given
    /// types. Operands of known elements are constants, all others inputs.
    ///
    /// # Errors
    /// Those of the lowering.
    pub fn computation(&self, node: &Node, facts: &Facts, results: &[Outcome]) -> Lowered<Model> {
        let (mut outputs, mut known) = (Vec::new(), Vec::new());
        for result in results {
            let from = known.len();
            known.extend(result.typed().iter().map(|typed| match &typed.meta {
                ValueMeta::Tensor(meta) => Some(TensorMeta::clone(meta)),
                _ => None,
            }));
            outputs.push(match result {
                Outcome::One(_) => Argument::Tensor(scratch::result(from)),
                Outcome::List(_) => {
                    Argument::Tensors((from..known.len()).map(scratch::result).collect())
                }
                Outcome::None => Argument::None,
            });
        }
        let graph = scratch::graph(node, outputs, facts, &known);
        let mut model = Model::new(pt2onnx_ir::schema::CANONICAL_OPSET);
        let mut driver = scratch::driver(&mut model, &graph, self, facts, Types::Onnx);
        driver.lower_node(&graph.nodes[0])?;
        if let Some(problem) = driver.builder.take_diagnostics().into_iter().next() {
            return Err(problem.into());
        }
        let values = (0..known.len()).map(|i| driver.scope.value(&scratch::result(i)));
        let values = values.collect::<Option<Vec<_>>>().ok_or_else(unknown)?;
        drop(driver);
        model.set_outputs(Model::MAIN, &values);
        Ok(model)
    }

    /// Runs a meta function.
    fn by_meta(
        &self,
        meta: &Row<dyn Lower>,
        schema: &Schema,
        node: &Node,
        facts: &Facts,
        symbol: &mut NewSymbol,
    ) -> Lowered<Vec<Outcome>> {
        let graph = scratch::graph(node, Vec::new(), facts, &[]);
        let operands = scratch::symbols(&graph, facts);
        let mut model = Model::new(pt2onnx_ir::schema::CANONICAL_OPSET);
        let driver = scratch::driver(&mut model, &graph, self, facts, Types::Torch);
        let cx = driver.cx(Call { mode: Mode::Complex, ..Call::default() });
        let outputs = meta.call(&cx, &mut Args::bind(schema, &node.args)?.partial())?;
        if let Some(problem) = driver.builder.take_diagnostics().into_iter().next() {
            return Err(problem.into());
        }
        let told = outputs.0.first().copied().flatten().and_then(|v| cx.contents(v));
        let told = told.filter(|_| outputs.0.len() == 1);
        let mut named = Named::new(facts, operands, symbol);
        let mut one = |value| named.meta(cx.type_of(value));
        let metas = outputs.0.into_iter().map(|value| value.map(&mut one).transpose());
        Ok(outcomes(Some(schema), metas.collect::<Lowered<_>>()?, told))
    }

    /// Runs a translation that was registered.
    fn by_custom(
        &self,
        custom: &Custom,
        node: &Node,
        facts: &Facts,
        symbol: &mut NewSymbol,
    ) -> Lowered<Vec<Outcome>> {
        let schema = custom.schema();
        if schema.as_ref().is_some_and(|s| s.params.iter().any(|p| p.mutated)) {
            return Err(LowerError::unsupported("it writes into an argument"));
        }
        let graph = scratch::graph(node, Vec::new(), facts, &[]);
        let operands = scratch::symbols(&graph, facts);
        let mut model = Model::new(pt2onnx_ir::schema::CANONICAL_OPSET);
        let driver = scratch::driver(&mut model, &graph, self, facts, Types::Onnx);
        let outputs = driver.custom(custom, &graph.nodes[0], &[])?;
        let mut named = Named::new(facts, operands, symbol);
        named.takes_unknown = true;
        let mut one = |value| named.meta(driver.builder.type_of(value));
        let metas = outputs.0.into_iter().map(|value| value.map(&mut one).transpose());
        Ok(outcomes(schema.as_deref(), metas.collect::<Lowered<_>>()?, None))
    }

    /// Runs the lowering without records.
    fn by_lowering(
        &self,
        op: &'static AtenOp,
        schema: &Schema,
        node: &Node,
        facts: &Facts,
    ) -> Lowered<Vec<Outcome>> {
        if schema.returns.iter().any(|r| r.base != "Tensor" || r.list) {
            return Err(unknown());
        }
        let results = (0..schema.returns.len()).map(|i| Argument::Tensor(scratch::result(i)));
        let graph = scratch::graph(node, results.collect(), facts, &[]);
        let mut model = Model::new(pt2onnx_ir::schema::CANONICAL_OPSET);
        let operands = scratch::symbols(&graph, facts);
        let complex = node.input_names().iter().any(|n| is_complex(facts, n));
        if complex && matches!(op.complexity, Complexity::ByParts) {
            return self.by_parts(op, schema, node, facts);
        }
        let mut driver = scratch::driver(&mut model, &graph, self, facts, Types::Onnx);
        driver.lower_node(&graph.nodes[0])?;
        if driver.scope.was_asked() {
            return Err(unknown());
        }
        let mut metas = Vec::new();
        let mut contents = None;
        for i in 0..schema.returns.len() {
            let value = driver.scope.value(&scratch::result(i)).ok_or_else(unknown)?;
            let (mut dtype, mut sizes) = tensor_type(driver.builder.type_of(value))?;
            // Pairs of parts, or real numbers whose last size is 2.
            if complex
                && dtype.is_float()
                && driver.parts.of(value).is_none()
                && sizes.last().and_then(Expr::as_int) == Some(2)
            {
                return Err(unknown());
            }
            if driver.parts.of(value).is_some() {
                dtype = to_complex(dtype).ok_or_else(unknown)?;
                sizes.pop();
            }
            if sizes.iter().flat_map(|s| s.symbols()).any(|s| !operands.contains(&s)) {
                return Err(LowerError::unsupported("its sizes are not known"));
            }
            contents =
                driver.builder.contents(value).filter(|_| sizes.len() <= 1 && !dtype.is_float());
            metas.push(Some(meta(dtype, sizes)));
        }
        Ok(outcomes(Some(schema), metas, contents.filter(|_| schema.returns.len() == 1)))
    }

    /// Runs the lowering for real tensors; the results are complex.
    fn by_parts(
        &self,
        op: &'static AtenOp,
        schema: &Schema,
        node: &Node,
        facts: &Facts,
    ) -> Lowered<Vec<Outcome>> {
        let mut values = Values::default();
        for name in node.input_names() {
            let meta = facts.values.get(&name).map(|meta| match meta {
                ValueMeta::Tensor(t) => self::meta(t.dtype.to_real(), t.sizes.clone()).into(),
                other => other.clone(),
            });
            values.extend(meta.map(|meta| (name, meta)));
        }
        let mut outcomes =
            self.by_lowering(op, schema, node, &Facts { values: &values, ..*facts })?;
        for outcome in &mut outcomes {
            if let Outcome::One(Typed { meta: ValueMeta::Tensor(meta), .. }) = outcome {
                let meta = Arc::make_mut(meta);
                meta.dtype = to_complex(meta.dtype).ok_or_else(unknown)?;
            }
        }
        Ok(outcomes)
    }
}

fn unknown() -> LowerError {
    LowerError::unsupported("the types of its results are not known without PyTorch's records")
}

/// The tensor that a node writes into and returns.
fn written(node: &Node) -> Option<&Argument> {
    let name = &*node.target.name;
    if let Some(out) = node.arg("out") {
        return Some(out);
    }
    let in_place = name.ends_with('_') && !name.ends_with("__")
        || name.starts_with("__i") && name.ends_with("__") && IN_PLACE.contains(&name);
    let this = || node.arg("self").or_else(|| node.args.first().map(|a| &a.value));
    in_place.then(this)?
}

/// The type of the value that is written into.
fn same_as(written: &Argument, facts: &Facts) -> Lowered<Vec<Outcome>> {
    match written.name().and_then(|name| facts.values.get(name)) {
        Some(ValueMeta::Tensor(t)) => {
            let meta = ValueMeta::from(meta(t.dtype, t.sizes.clone()));
            Ok(vec![Outcome::One(meta.into())])
        }
        _ => Err(unknown()),
    }
}

/// Python's operators that write into their first operand.
const IN_PLACE: &[&str] = &["__iand__", "__ilshift__", "__ior__", "__irshift__", "__ixor__"];

/// The number that a tensor of one element holds.
fn item(node: &Node, facts: &Facts, symbol: &mut NewSymbol) -> Lowered<Vec<Outcome>> {
    let name = node.args.first().and_then(|a| a.value.name()).ok_or_else(unknown)?;
    let Some(ValueMeta::Tensor(meta)) = facts.values.get(name) else {
        return Err(unknown());
    };
    let known = match facts.contents.get(name) {
        Some(Contents::Exprs(e)) => e.first().cloned(),
        Some(Contents::Exact(t)) if !meta.dtype.is_float() => {
            t.to_vec::<i64>().and_then(|e| e.first().copied().map(Expr::int))
        }
        _ => None,
    };
    let mut value = |float| known.clone().unwrap_or_else(|| symbol(float));
    let meta = match meta.dtype {
        d if d.is_complex() => return Err(unknown()),
        DType::Bool => ValueMeta::SymBool {
            expr: Expr::call(pt2onnx_symbolic::Func::Eq, vec![value(false), Expr::int(1)]),
            hint: None,
        },
        d if d.is_float() => ValueMeta::SymFloat { expr: value(true), hint: None },
        _ => ValueMeta::SymInt { expr: value(false), hint: None },
    };
    Ok(vec![Outcome::One(meta.into())])
}

/// Whether a tensor may have no elements.
fn is_empty(arg: Option<&Argument>, facts: &Facts) -> bool {
    let meta = arg.and_then(Argument::name).and_then(|name| facts.values.get(name));
    let positive = |d: &Expr| facts.constraints.prove_gt(d, &Expr::ZERO);
    !matches!(meta, Some(ValueMeta::Tensor(t)) if t.sizes.iter().all(positive))
}

fn is_complex(facts: &Facts, name: &str) -> bool {
    matches!(facts.values.get(name), Some(ValueMeta::Tensor(m)) if m.dtype.is_complex())
}

/// The complex type with parts of this type.
fn to_complex(real: DType) -> Option<DType> {
    [DType::C64, DType::C128, DType::C32].into_iter().find(|c| c.to_real() == real)
}

fn tensor_type(ty: Option<Type>) -> Lowered<(DType, Vec<Expr>)> {
    match ty {
        Some(Type::Tensor(t)) => Ok((t.dtype, t.shape.ok_or_else(unknown)?.into_iter().collect())),
        _ => Err(unknown()),
    }
}

/// A tensor with this element type and these sizes.
fn meta(dtype: DType, sizes: Vec<Expr>) -> TensorMeta {
    TensorMeta::strided(dtype, sizes, Vec::new())
}

/// Types of results, in which sizes that come from the data have symbols of the program.
struct Named<'a, 'b> {
    facts: &'a Facts<'a>,
    /// The symbols in the sizes of the operands.
    operands: BTreeSet<Symbol>,
    symbol: &'a mut NewSymbol<'b>,
    /// The program's symbol of each one that the translation made.
    new: FxHashMap<Symbol, Expr>,
    /// Whether unknown dimensions count as sizes that depend on data.
    takes_unknown: bool,
}

impl<'a, 'b> Named<'a, 'b> {
    fn new(
        facts: &'a Facts<'a>,
        operands: BTreeSet<Symbol>,
        symbol: &'a mut NewSymbol<'b>,
    ) -> Self {
        Self { facts, operands, symbol, new: FxHashMap::default(), takes_unknown: false }
    }

    fn meta(&mut self, ty: Option<Type>) -> Lowered<TensorMeta> {
        let constraints = self.facts.constraints;
        let (dtype, sizes) = tensor_type(ty)?;
        for s in sizes.iter().flat_map(Expr::symbols).filter(|s| !self.operands.contains(s)) {
            // Facts about sizes may bring in other symbols of the program.
            if constraints.ranges().any(|(known, _)| *known == s) {
                continue;
            }
            // Too large expressions are read from the result, like sizes that depend on data.
            let unknown = self.takes_unknown && is_unknown_symbol(&s);
            if !unknown && !is_fresh(&s) && !Expr::is_opaque(&s) {
                return Err(LowerError::unsupported("its sizes are not known"));
            }
            self.new.entry(s).or_insert_with(|| (self.symbol)(false));
        }
        let named =
            |size: &Expr| constraints.simplify(&size.substitute(&|s| self.new.get(s).cloned()));
        Ok(meta(dtype, sizes.iter().map(named).collect()))
    }
}

/// The results by the schema's returns; without a schema, each by itself.
fn outcomes(
    schema: Option<&Schema>,
    metas: Vec<Option<TensorMeta>>,
    contents: Option<Vec<Expr>>,
) -> Vec<Outcome> {
    let contents = contents.map(Contents::Exprs);
    let typed = |meta: TensorMeta| Typed { meta: meta.into(), contents: contents.clone() };
    if schema.is_some_and(|s| matches!(&*s.returns, [ty] if ty.list)) {
        return vec![Outcome::List(metas.into_iter().flatten().map(typed).collect())];
    }
    let one =
        |meta: Option<TensorMeta>| meta.map_or(Outcome::None, |meta| Outcome::One(typed(meta)));
    let count = schema.map_or(metas.len(), |s| s.returns.len());
    metas.into_iter().map(one).take(count).collect()
}
