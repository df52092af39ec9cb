//! Splits into parts whose number only the code has: `a, b, c = torch.chunk(x, n)`.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, overload::Bound, unsupported},
    schema::{Schema, Type},
    syntax::{Expr, ExprKind},
    types::of_data,
    value::Value,
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::{Expr as Sym, Func};

/// How many parts an assignment takes its value apart into, if the value is a call.
pub(crate) fn unpacked(target: &Expr, value: &Expr) -> Option<usize> {
    match (&target.kind, &value.kind) {
        (ExprKind::Tuple(targets), ExprKind::Call(_)) => Some(targets.len()),
        _ => None,
    }
}

/// The most parts of a tensor.
const MAX_PARTS: i64 = 10_000;

impl Evaluator<'_> {
    /// Refuses a split into very many parts before they are made: the arguments alone say how many
    /// there are.
    pub(crate) fn check_part_count(&self, schema: &Schema, bound: &Bound) -> Step<()> {
        let given = |names: &[&str]| {
            let at = schema.params.iter().position(|param| names.contains(&&*param.name))?;
            bound.get(at)?.as_ref()
        };
        let Some(Value::Tensor(name)) = given(&["self", "input"]) else {
            return Ok(());
        };
        let dim = match (schema.name.trim_start_matches("unsafe_"), given(&["dim"])) {
            (_, Some(dim)) => dim.as_int().unwrap_or(0),
            ("hsplit", _) => 1,
            ("dsplit", _) => 2,
            _ => 0,
        };
        let size = self.size_along(name, dim)?.and_then(|size| size.as_int());
        let asked = |names: &[&str]| match given(names)? {
            Value::List(list) => i64::try_from(self.items(*list).len()).ok(),
            number => number.as_int(),
        };
        let parts = match schema.name.trim_start_matches("unsafe_") {
            "unbind" => size,
            "chunk" => match (asked(&["chunks"]), size) {
                (Some(chunks), Some(size)) => Some(chunks.min(size)),
                (chunks, _) => chunks,
            },
            "split" => match (given(&["split_size", "split_size_or_sections"]), size) {
                (Some(Value::Int(step)), Some(size)) => {
                    step.as_int().filter(|step| *step > 0).map(|step| size / step)
                }
                _ => asked(&["split_size", "split_size_or_sections", "split_sizes"]),
            },
            "split_with_sizes" => asked(&["split_sizes"]),
            "tensor_split" | "hsplit" | "vsplit" | "dsplit" => {
                asked(&["sections", "indices", "tensor_indices_or_sections"])
            }
            _ => None,
        };
        match parts.filter(|parts| *parts > MAX_PARTS) {
            Some(parts) => {
                unsupported(format!("a split into {parts} parts, more than {MAX_PARTS},"))
            }
            None => Ok(()),
        }
    }

    /// The parts of a split as slices; `None` for other operators. The assignment says how many
    /// there are, and PyTorch raises if there are more or fewer; a chunk is taken to have as many
    /// as it asks for, with a warning.
    pub(crate) fn parts(&mut self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let unpacked = self.state.calls.expected_arity.take();
        let given = |name: &str| {
            let at = schema.params.iter().position(|param| param.name == name)?;
            bound.get(at)?.clone()
        };
        let Some(tensor @ Value::Tensor(name)) = &given("self") else {
            return Ok(None);
        };
        let dim = given("dim").and_then(|dim| dim.as_int()).unwrap_or(0);
        let Some(size) = self.size_along(name, dim)? else { return Ok(None) };
        let (step, count) = match (&*schema.name, given("chunks"), given("split_size"), unpacked) {
            ("chunk", Some(Value::Int(chunks)), _, Some(count)) => (size.ceil_div(&chunks), count),
            ("split", _, Some(Value::Int(step)), Some(count)) => (step, count),
            ("chunk", Some(Value::Int(chunks)), _, None) if chunks.as_int().is_none() => {
                return self.new_dyn_list(name, dim, Some(size.ceil_div(&chunks))).map(Some);
            }
            ("split", _, Some(Value::Int(step)), None) => {
                return self.new_dyn_list(name, dim, Some(step)).map(Some);
            }
            ("unbind", _, _, Some(count)) => {
                let mut parts = Vec::with_capacity(count);
                for at in 0..i64::try_from(count).unwrap_or(i64::MAX) {
                    let args = vec![tensor.clone(), Value::int(dim), Value::int(at)];
                    parts.push(self.operator("aten", "select", args, Vec::new())?);
                }
                return self.list(parts, Some(Type::Tensor)).map(Some);
            }
            ("unbind", _, _, None) => return self.new_dyn_list(name, dim, None).map(Some),
            ("chunk", Some(Value::Int(chunks)), _, None) => {
                let Some(count) = chunks.as_int().and_then(|c| usize::try_from(c).ok()) else {
                    return Ok(None);
                };
                self.note(format!("`{size}` is taken to give {count} parts"));
                self.steps(count)?;
                (size.ceil_div(&chunks), count)
            }
            _ => return Ok(None),
        };
        self.slices(tensor, dim, &size, &step, count).map(Some)
    }

    /// The parts of a chunk that are fewer than it asks for, as those of some dynamic sizes are.
    /// Cases decide which sizes these are, unless the assignment or data do.
    pub(crate) fn fewer_chunks(&mut self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let given = |name: &str| {
            let at = schema.params.iter().position(|param| param.name == name)?;
            bound.get(at)?.clone()
        };
        let asked = given("chunks").and_then(|chunks| chunks.as_int());
        let (Some(tensor @ Value::Tensor(name)), Some(asked)) = (&given("self"), asked) else {
            return Ok(None);
        };
        let dim = given("dim").and_then(|dim| dim.as_int()).unwrap_or(0);
        let Some(size) = self.size_along(name, dim)? else { return Ok(None) };
        let known = size.as_int().is_some() || !self.constraints().prove_ge(&size, &Sym::ONE);
        if self.state.calls.expected_arity.is_some() || asked < 1 || known || of_data(&size) {
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
            let condition = is(count);
            match self.decide(&condition) {
                Some(true) if count == asked => return Ok(None),
                Some(true) => {
                    let count = usize::try_from(count).unwrap_or(1);
                    return self.slices(tensor, dim, &size, &step, count).map(Some);
                }
                Some(false) => {}
                None if count == 1 => return self.slices(tensor, dim, &size, &step, 1).map(Some),
                None => {
                    return Err(Problem::chunk_count(condition));
                }
            }
        }
        Ok(None)
    }

    pub(crate) fn size_along(&self, name: &Name, dim: i64) -> Step<Option<Sym>> {
        let sizes = &self.meta(name)?.sizes;
        let rank = i64::try_from(sizes.len()).unwrap_or(0);
        let axis = usize::try_from(if dim < 0 { dim.saturating_add(rank) } else { dim });
        Ok(axis.ok().and_then(|axis| sizes.get(axis)).cloned())
    }

    /// Slices of `step`, and one of what is left.
    fn slices(
        &mut self,
        tensor: &Value,
        dim: i64,
        size: &Sym,
        step: &Sym,
        count: usize,
    ) -> Step<Value> {
        let mut parts = Vec::with_capacity(count);
        for at in 0..count {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            let last = usize::try_from(at + 1) == Ok(count);
            let end = if last { size.clone() } else { step * Sym::int(at + 1) };
            let start = step * Sym::int(at);
            let args = vec![
                tensor.clone(),
                Value::int(dim),
                Value::Int(start),
                Value::Int(end),
                Value::int(1),
            ];
            parts.push(self.operator("aten", "slice", args, Vec::new())?);
        }
        self.list(parts, Some(Type::Tensor))
    }
}
