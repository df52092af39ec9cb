//! Splits into parts whose number only the code has: `a, b, c = torch.chunk(x, n)`.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, overload::Bound, unsupported},
    schema::{Schema, Type},
    types::of_data,
    value::{DynList, Layout, Value, args},
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::{Expr as Sym, Func, axis};
use pt2onnx_torchscript_archive::syntax::{Expr, ExprKind};

/// How many parts an assignment takes its value apart into, if the value is a call.
pub(crate) fn unpacked(target: &Expr, value: &Expr) -> Option<usize> {
    match (&target.kind, &value.kind) {
        (ExprKind::Tuple(targets), ExprKind::Call(_) | ExprKind::Operator(_)) => {
            Some(targets.len())
        }
        _ => None,
    }
}

/// The most parts of a tensor.
const MAX_PARTS: i64 = 10_000;

/// The operators that `unbind` is like.
const SPLITS: [&str; 7] =
    ["chunk", "dsplit", "hsplit", "split", "split_with_sizes", "tensor_split", "vsplit"];

/// The argument that one of these parameters has.
fn given<'b>(schema: &Schema, bound: &'b Bound, names: &[&str]) -> Option<&'b Value> {
    let at = schema.params.iter().position(|param| names.contains(&&*param.name))?;
    bound.get(at)?.as_ref()
}

/// The tensor that a call splits, and the dimension.
struct Split<'b> {
    tensor: &'b Name,
    dim: i64,
    size: Sym,
}

impl Evaluator<'_> {
    /// Refuses a split into very many parts before they are made: the arguments alone say how many
    /// there are.
    pub(crate) fn check_part_count(&self, schema: &Schema, bound: &Bound) -> Step<()> {
        let given = |names: &[&str]| given(schema, bound, names);
        let Some(Value::Tensor(name)) = given(&["self", "input"]) else {
            return Ok(());
        };
        let op = schema.name.trim_start_matches("unsafe_");
        let dim = match (op, given(&["dim"])) {
            (_, Some(dim)) => dim.as_int().unwrap_or(0),
            ("hsplit", _) => 1,
            ("dsplit", _) => 2,
            _ => 0,
        };
        let size = self.size_along(name, dim)?.and_then(|size| size.as_int());
        let asked = given(&[
            "chunks",
            "indices",
            "sections",
            "split_size",
            "split_size_or_sections",
            "split_sizes",
            "tensor_indices_or_sections",
        ]);
        let parts = match (op, asked, size) {
            ("unbind", ..) => size,
            (_, Some(Value::List(list)), _) if SPLITS.contains(&op) => {
                i64::try_from(self.items(*list).len()).ok()
            }
            ("split", Some(step), _) => {
                step.as_int().filter(|step| *step > 0).zip(size).map(|(step, size)| size / step)
            }
            ("chunk", Some(chunks), Some(size)) => chunks.as_int().map(|chunks| chunks.min(size)),
            (_, Some(parts), _) if SPLITS.contains(&op) => parts.as_int(),
            _ => None,
        };
        match parts.filter(|parts| *parts > MAX_PARTS) {
            Some(parts) => {
                unsupported(format!("a split into {parts} parts, more than {MAX_PARTS},"))
            }
            None => Ok(()),
        }
    }

    fn split_of<'b>(&self, schema: &Schema, bound: &'b Bound) -> Step<Option<Split<'b>>> {
        let Some(Value::Tensor(tensor)) = given(schema, bound, &["self"]) else {
            return Ok(None);
        };
        let dim = given(schema, bound, &["dim"]).and_then(Value::as_int).unwrap_or(0);
        let size = self.size_along(tensor, dim)?;
        Ok(size.map(|size| Split { tensor, dim, size }))
    }

    /// The parts of a split as slices; `None` for other operators. The assignment says how many
    /// there are, and PyTorch raises if there are more or fewer; a chunk is taken to have as many
    /// as it asks for, with a warning.
    pub(crate) fn parts(&mut self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let unpacked = self.state.calls.expected_arity.take();
        let Some(split) = self.split_of(schema, bound)? else { return Ok(None) };
        let number = |name| match given(schema, bound, &[name]) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        };
        let step = match (&*schema.name, number("chunks"), number("split_size")) {
            ("chunk", Some(chunks), _) => Some(split.size.ceil_div(chunks)),
            ("split", _, Some(step)) => Some(step.clone()),
            ("unbind", ..) => None,
            _ => return Ok(None),
        };
        let asked = number("chunks").and_then(Sym::as_int);
        let (step, count) = match (step, unpacked, asked) {
            (Some(step), Some(count), _) => (step, count),
            (None, Some(count), _) => {
                let mut parts = Vec::with_capacity(count);
                for at in 0..count {
                    parts.push(self.aten("select", args![split.tensor, split.dim, at])?);
                }
                return self.list(parts, Some(Type::Tensor)).map(Some);
            }
            (Some(step), None, Some(count)) => {
                let Ok(count) = usize::try_from(count) else { return Ok(None) };
                self.note(format!("`{}` is taken to give {count} parts", split.size));
                self.steps(count)?;
                (step, count)
            }
            (size, None, _) => {
                let rows = DynList::rows(split.tensor.clone(), Type::Tensor);
                let layout = size.map_or(Layout::Slices, Layout::Parts);
                return self.new_dyn_list(DynList { dim: split.dim, layout, ..rows }).map(Some);
            }
        };
        self.slices(&split, &step, count).map(Some)
    }

    /// The parts of a chunk that are fewer than it asks for, as those of some dynamic sizes are.
    /// Cases decide which sizes these are, unless the assignment or data do.
    pub(crate) fn fewer_chunks(&mut self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let asked = given(schema, bound, &["chunks"]).and_then(Value::as_int);
        let (Some(asked), Some(split)) = (asked, self.split_of(schema, bound)?) else {
            return Ok(None);
        };
        let size = &split.size;
        let known = size.as_int().is_some() || !self.constraints().prove_ge(size, &Sym::ONE);
        if self.state.calls.expected_arity.is_some() || asked < 1 || known || of_data(size) {
            return Ok(None);
        }
        let step = size.ceil_div(&Sym::int(asked));
        let many = size.ceil_div(&step);
        let is = |count| Sym::call(Func::Eq, vec![many.clone(), Sym::int(count)]);
        if self.policy.assume_exact_chunks {
            if self.decide(&is(asked)).is_none() {
                self.note(format!("`{size}` is taken to give {asked} parts"));
            }
            return Ok(None);
        }
        for count in (1..=asked).rev() {
            match self.decide(&is(count)) {
                Some(true) if count == asked => return Ok(None),
                Some(false) => {}
                None if count > 1 => return Err(Problem::chunk_count(is(count))),
                _ => {
                    let count = usize::try_from(count).unwrap_or(1);
                    return self.slices(&split, &step, count).map(Some);
                }
            }
        }
        Ok(None)
    }

    pub(crate) fn size_along(&self, name: &Name, dim: i64) -> Step<Option<Sym>> {
        let sizes = &self.meta(name)?.sizes;
        Ok(axis(dim, sizes.len()).and_then(|axis| sizes.get(axis)).cloned())
    }

    /// Slices of `step`, and one of what is left.
    fn slices(&mut self, split: &Split<'_>, step: &Sym, count: usize) -> Step<Value> {
        let mut parts = Vec::with_capacity(count);
        for at in 1..=count {
            let number = i64::try_from(at).unwrap_or(i64::MAX);
            let start = step * Sym::int(number - 1);
            let end = if at == count { split.size.clone() } else { step * Sym::int(number) };
            parts.push(self.aten("slice", args![split.tensor, split.dim, start, end, 1])?);
        }
        self.list(parts, Some(Type::Tensor))
    }
}
