//! Writes for which the name of a functional variant is not enough: `out=`, `resize_`, `set_`,
//! `fill_diagonal_`, custom operators.

use super::{
    emit::Emitter,
    memory::{Id, Memory, Writer},
    pass::Pass,
};
use crate::{
    error::{PassProblem, Result},
    graph::{ArgKind, Argument, Graph, Name, NamedArg, Node, NodeMeta, OpName, TensorMeta},
    passes::problem::problem,
    strides,
    views::{Alias, View},
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use std::sync::Arc;

/// Takes the `out=` arguments from a node: the last ones, as many as it has results.
pub(super) fn take_outs(node: &mut Node) -> Result<Vec<Name>> {
    let count = node.output_names().len();
    let kept = node.args.len().checked_sub(count);
    let outs = kept.map(|kept| node.args.split_off(kept));
    let outs: Option<Vec<Name>> = outs.and_then(|outs| {
        let name = |arg: &NamedArg| arg.value.name().cloned();
        outs.iter().map(name).collect()
    });
    match outs {
        Some(outs) if !outs.is_empty() => Ok(outs),
        _ => Err(problem(node, PassProblem::NoVariant)),
    }
}

/// Operators that create a tensor and take its `dtype`. Sorted.
const CREATING: &[&str] = &[
    "arange", "empty", "eye", "full", "linspace", "logspace", "ones", "rand", "randint", "randn",
    "randperm", "range", "zeros",
];

/// Gives an operator that creates a tensor the `dtype` that its `out` had.
fn creates(node: &mut Node, graph: &Graph) {
    let result = node.outputs.first().and_then(Argument::name);
    let meta = result.and_then(|name| graph.tensor(name));
    if let Some(meta) = meta.filter(|_| CREATING.contains(&&*node.target.name)) {
        node.args.push(NamedArg {
            name: "dtype".into(),
            kind: ArgKind::Keyword,
            value: Argument::DType(meta.dtype),
        });
    }
}

/// Makes `as_strided` a view of the root of its storage: it takes elements of the storage, whatever
/// its argument shows of it.
pub(super) fn of_storage(
    node: &mut Node,
    alias: &mut Alias,
    base: Id,
    memory: &mut Memory,
    emit: &mut Emitter<'_>,
) -> Result<()> {
    let root = memory.root(base);
    let first = memory.first(root);
    let meta = emit.meta(&first).map_err(|p| problem(node, p))?;
    if strides::is_contiguous(&meta, emit.known) != Some(true) {
        alias.view = View::Unknown;
        return Ok(());
    }
    if let View::AsStrided { offset, .. } = &mut alias.view {
        *offset = &*offset - &meta.storage_offset;
        if root != base {
            let value = memory.value(root, emit)?;
            alias.base = value.clone();
            if let Some(arg) = node.args.first_mut() {
                arg.value = Argument::Tensor(value);
            }
            node.args.retain(|arg| &*arg.name != "storage_offset");
            node.args.push(positional("storage_offset", Argument::size(offset)));
        }
    }
    Ok(())
}

impl Pass<'_> {
    /// Replaces `torch.add(x, y, out=z)`. An `out` of other sizes is resized: it becomes the
    /// result.
    pub(super) fn outs(&mut self, mut node: Node, variant: OpName, outs: &[Name]) -> Result<()> {
        let by = Writer::by(&node);
        node.target = variant;
        let results = node.output_names();
        let mut writes = Vec::with_capacity(outs.len());
        for (out, result) in outs.iter().zip(&results) {
            let id = self.memory.tensor(out);
            let first = self.memory.first(id);
            let before = self.emit.meta(&first).map_err(|p| problem(&node, p))?;
            let after = self.emit.meta(result).map_err(|p| problem(&node, p))?;
            let fits = strides::same(&before.sizes, &after.sizes, self.emit.known);
            if !fits && (self.memory.is_shared(id) || self.inputs.contains(&id)) {
                return Err(problem(&node, PassProblem::Grows));
            }
            writes.push((out, result, fits.then_some(id)));
        }
        creates(&mut node, self.emit.graph);
        self.push(node)?;
        for (out, result, id) in writes {
            match id {
                Some(id) => self.memory.write(id, result, by.clone(), &mut self.emit),
                None => {
                    let id = self.memory.tensor(result);
                    self.memory.rename(out, id, by.clone());
                }
            }
        }
        Ok(())
    }

    /// Replaces `resize_` to as many elements or fewer.
    pub(super) fn resize(&mut self, mut node: Node, first: Option<Name>) -> Result<()> {
        let fail = |node: &Node, p| Err(problem(node, p));
        let x = node.args.first().and_then(|a| a.value.name()).cloned();
        let (Some(first), Some(x)) = (first, x) else {
            return fail(&node, PassProblem::NoVariant);
        };
        let by = Writer::by(&node);
        let id = self.memory.tensor(&x);
        let meta = |name: &Name| self.emit.meta(name).map_err(|p| problem(&node, p));
        let before = meta(&self.memory.first(id))?;
        let Some(result) = node.outputs.first().and_then(Argument::name).cloned() else {
            return fail(&node, PassProblem::NoVariant);
        };
        let after = meta(&result)?;
        let known = self.emit.known;
        let is = |op: &str, overload: &str, node: &mut Node, x: &Name| {
            node.target = OpName::new("aten", op, overload);
            node.args.truncate(1);
            if let Some(arg) = node.args.first_mut() {
                arg.name = "self".into();
                arg.value = Argument::Tensor(x.clone());
            }
        };
        if strides::same(&before.sizes, &after.sizes, known) {
            is("alias", "default", &mut node, &x);
            self.memory.bind(&result, id);
            self.emit.nodes.push(node);
            return Ok(());
        }
        let had = Expr::product(before.sizes.iter().cloned());
        let has = Expr::product(after.sizes.iter().cloned());
        if strides::is_contiguous(&before, known) != Some(true) {
            return fail(&node, PassProblem::NoVariant);
        }
        let mut x = x;
        if known.prove_eq(&had, &has) != Some(true) {
            if !known.prove_ge(&had, &has) {
                return fail(&node, PassProblem::Grows);
            }
            x = self.first_elements(&x, &before, (&had, &has), &node.meta);
        }
        is("reshape", "default", &mut node, &x);
        node.args.push(positional("shape", Argument::sizes(&after.sizes)));
        let alias = Alias { result, base: x, view: View::Shape };
        let id = self.memory.share(alias);
        self.memory.rename(&first, id, by);
        self.emit.nodes.push(node);
        Ok(())
    }

    /// A view of the first `has` of `had` elements of the contiguous tensor `x`, whose type is
    /// `meta`.
    fn first_elements(
        &mut self,
        x: &Name,
        meta: &TensorMeta,
        (had, has): (&Expr, &Expr),
        from: &Arc<NodeMeta>,
    ) -> Name {
        let flat = |length: &Expr| TensorMeta {
            sizes: vec![length.clone()],
            strides: vec![Expr::ONE],
            ..meta.clone()
        };
        let mut share = |result: &Name, base: &Name, view| {
            self.memory.share(Alias { result: result.clone(), base: base.clone(), view })
        };
        let args = [
            ("self", Argument::Tensor(x.clone())),
            ("shape", Argument::sizes(std::slice::from_ref(had))),
        ];
        let all = self.emit.op(("reshape", "default"), args, flat(had), from);
        share(&all, x, View::Shape);
        let (dim, start, step) = (0, Argument::Int(0), Argument::Int(1));
        let args = [
            ("self", Argument::Tensor(all.clone())),
            ("dim", Argument::Int(dim)),
            ("start", start.clone()),
            ("end", Argument::size(has)),
        ];
        let first = self.emit.op(("slice", "Tensor"), args, flat(has), from);
        share(&first, &all, View::Slice { dim, start, end: Argument::size(has), step });
        first
    }

    /// Replaces `x.set_(y)`: `x` stands for `y` from now on.
    pub(super) fn replace(&mut self, mut node: Node, first: Option<Name>) -> Result<()> {
        let by = Writer::by(&node);
        let source = node.args.get(1).and_then(|a| a.value.name()).cloned();
        let (Some(first), Some(source)) = (first, source) else {
            return Err(problem(&node, PassProblem::NoVariant));
        };
        let id = self.memory.tensor(&source);
        self.memory.rename(&first, id, by);
        if let Some(result) = node.outputs.first().and_then(Argument::name) {
            self.memory.bind(result, id);
            node.target = OpName::new("aten", "alias", "default");
            node.args = vec![positional("self", Argument::Tensor(source))];
            self.emit.nodes.push(node);
        }
        Ok(())
    }

    /// Replaces `fill_diagonal_`, which has no functional variant: the diagonal is filled and put
    /// back.
    pub(super) fn fill_diagonal(&mut self, mut node: Node) -> Result<()> {
        let x = node.args.first().and_then(|a| a.value.name()).cloned();
        let (Some(x), Some(value)) = (x, node.arg("fill_value").cloned()) else {
            return Err(problem(&node, PassProblem::NoVariant));
        };
        let meta = self.emit.meta(&x).map_err(|p| problem(&node, p))?;
        let wraps = node.arg("wrap") == Some(&Argument::Bool(true));
        let known = self.emit.known;
        let by = Writer::by(&node);
        let new = self.result(&mut node, &x)?;
        match meta.sizes.as_slice() {
            [rows, columns] if !wraps || known.prove_ge(columns, rows) => {
                self.fill_one_diagonal(&mut node, &x, value, line(&meta, rows.min(columns)));
            }
            _ => self.fill_every_step(&mut node, &x, value, &meta),
        }
        let id = self.memory.tensor(&x);
        self.emit.nodes.push(node);
        self.memory.write(id, &new, by, &mut self.emit);
        Ok(())
    }

    /// The diagonal of a matrix, filled and put back. `line` is its type.
    fn fill_one_diagonal(&mut self, node: &mut Node, x: &Name, value: Argument, line: TensorMeta) {
        let from = node.meta.clone();
        let args = [("self", Argument::Tensor(x.clone()))];
        let diagonal = self.emit.op(("diagonal", "default"), args, line.clone(), &from);
        let args = [("self", Argument::Tensor(diagonal)), ("value", value)];
        let filled = self.emit.op(("fill", "Scalar"), args, line, &from);
        node.target = OpName::new("aten", "diagonal_scatter", "default");
        node.args = vec![
            positional("self", Argument::Tensor(x.clone())),
            positional("src", Argument::Tensor(filled)),
        ];
    }

    /// In a row of all elements, those of the diagonal are equally far apart: they are filled
    /// there. `meta` is the type of `x`.
    fn fill_every_step(&mut self, node: &mut Node, x: &Name, value: Argument, meta: &TensorMeta) {
        let from = node.meta.clone();
        let sizes = meta.sizes.as_slice();
        let total = Expr::product(sizes.iter().cloned());
        let behind = |i| Expr::product(sizes.iter().skip(i).cloned());
        let step = Expr::sum((1..=sizes.len()).map(behind));
        let length = match sizes {
            [length, _, _, ..] => length.clone(),
            _ => total.ceil_div(&step),
        };
        let flat = line(meta, total.clone());
        let places = TensorMeta { dtype: DType::I64, ..line(meta, length) };
        let args = [("self", Argument::Tensor(x.clone())), ("shape", Argument::Ints(vec![-1]))];
        let all = self.emit.op(("reshape", "default"), args, flat.clone(), &from);
        let args = [
            ("start", Argument::Int(0)),
            ("end", Argument::size(&total)),
            ("step", Argument::size(&step)),
        ];
        let index = self.emit.op(("arange", "start_step"), args, places, &from);
        let args = [
            ("self", Argument::Tensor(all)),
            ("dim", Argument::Int(0)),
            ("index", Argument::Tensor(index)),
            ("value", value),
        ];
        let filled = self.emit.op(("index_fill", "int_Scalar"), args, flat, &from);
        node.target = OpName::new("aten", "reshape", "default");
        node.args = vec![
            positional("self", Argument::Tensor(filled)),
            positional("shape", Argument::sizes(sizes)),
        ];
    }

    /// Gives an operator of another library that returns nothing a result.
    pub(super) fn custom(&mut self, mut node: Node) -> Result<()> {
        let tensors: Vec<Name> = node.args.iter().fold(Vec::new(), |mut all, arg| {
            if let Argument::Tensor(name) = &arg.value {
                all.push(name.clone());
            } else if let Argument::Tensors(names) = &arg.value {
                all.extend(names.iter().cloned());
            }
            all
        });
        let mut own = tensors.iter().filter(|name| {
            let id = self.memory.tensor(name);
            !self.inputs.contains(&self.memory.root(id))
        });
        let written = match (tensors.as_slice(), own.next(), own.next()) {
            ([only], ..) | (_, Some(only), None) => only.clone(),
            _ => return Err(problem(&node, PassProblem::NothingReturned)),
        };
        node.outputs.clear();
        self.new_value(node, &written)
    }

    /// Replaces an operator of another library that writes into the argument of this number.
    pub(super) fn argument(&mut self, node: Node, written: usize) -> Result<()> {
        match node.args.get(written).and_then(|a| a.value.name()).cloned() {
            Some(written) => self.new_value(node, &written),
            None => Err(problem(&node, PassProblem::NoVariant)),
        }
    }

    /// Adds a node whose result is the new value of `written`.
    fn new_value(&mut self, mut node: Node, written: &Name) -> Result<()> {
        let by = Writer::by(&node);
        let new = self.result(&mut node, written)?;
        let id = self.memory.tensor(written);
        self.emit.nodes.push(node);
        self.memory.write(id, &new, by, &mut self.emit);
        Ok(())
    }
}

/// A positional argument.
fn positional(name: &str, value: Argument) -> NamedArg {
    NamedArg { name: name.into(), kind: ArgKind::Positional, value }
}

/// The type of a contiguous vector of this length, with elements as in `like`.
fn line(like: &TensorMeta, length: Expr) -> TensorMeta {
    TensorMeta {
        sizes: vec![length],
        strides: vec![Expr::ONE],
        storage_offset: Expr::ZERO,
        ..like.clone()
    }
}
