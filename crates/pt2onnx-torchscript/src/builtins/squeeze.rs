//! `squeeze` in a branch in which sizes are 1: `if x.size(0) == 1: return x.squeeze(0)`.

use crate::{
    eval::{Evaluator, Step, call::Kwargs},
    value::Value,
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::{Expr, Func};

impl Evaluator<'_> {
    /// Takes out dimensions whose size is 1 only where a condition on it holds: the first element
    /// along each. `None` if there are none.
    pub(crate) fn squeeze_ones(&mut self, name: &Name, args: &[Value]) -> Step<Option<Value>> {
        let sizes = self.meta(name)?.sizes.clone();
        let rank = i64::try_from(sizes.len()).unwrap_or(0);
        let mut dims = match args.get(1) {
            None => (0..rank).collect(),
            Some(Value::List(list)) => self.items(*list).iter().filter_map(Value::as_int).collect(),
            Some(dim) => dim.as_int().into_iter().collect::<Vec<_>>(),
        };
        dims.iter_mut().filter(|dim| **dim < 0).for_each(|dim| *dim = dim.saturating_add(rank));
        dims.sort_unstable();
        dims.dedup();
        let size = |dim: i64| usize::try_from(dim).ok().and_then(|at| sizes.get(at));
        let is_one = |dim: i64| size(dim).is_some_and(|size| self.is_one(size) == Some(true));
        let (ones, others): (Vec<i64>, Vec<i64>) = dims.into_iter().partition(|dim| is_one(*dim));
        if ones.iter().all(|dim| size(*dim).is_none_or(|size| size.as_int().is_some())) {
            return Ok(None);
        }
        let mut value = Value::Tensor(name.clone());
        for dim in ones.iter().rev() {
            let args = vec![value, Value::int(*dim), Value::int(0)];
            value = self.operator("aten", "select", args, Kwargs::new())?;
        }
        for dim in others.iter().rev() {
            let before = ones.partition_point(|one| one < dim);
            let dim = dim.saturating_sub(i64::try_from(before).unwrap_or(0));
            value =
                self.operator("aten", "squeeze", vec![value, Value::int(dim)], Kwargs::new())?;
        }
        Ok(Some(value))
    }

    /// Whether a size is 1 in the branch that runs; `None` if it is not known.
    pub(crate) fn is_one(&self, size: &Expr) -> Option<bool> {
        match size.as_int() {
            Some(size) => Some(size == 1),
            None => self.decide(&Expr::call(Func::Eq, vec![size.clone(), Expr::ONE])),
        }
    }
}
