//! Replaces computed sizes by known ones: numbers become constants, sizes that an operand has are
//! not computed.

use super::{Computed, size_origins::Sources};
use crate::{Changed, GraphMut, eval};
use pt2onnx_ir::{Model, NodeId, RegionId, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

/// The elements of a vector or scalar of int64, and how many dimensions it has.
type Sizes = (usize, Vec<Expr>);

struct Walk<'a> {
    computed: &'a Computed,
    sources: Sources,
    /// The first value in scope that has these elements, vector or scalar.
    firsts: FxHashMap<Sizes, Value>,
    order: Vec<Sizes>,
    /// The opset that the model is written for.
    opset: u32,
    changed: Changed,
}

/// Replaces computed sizes by known ones. In the shape of a `Reshape`, sizes of the operand become
/// 0, and one other unknown size becomes -1; in that of an `Expand`, they become 1; the end of a
/// `Slice` becomes the largest number. Other vectors of sizes are read from the first tensor that
/// has them, and once.
pub(crate) fn materialize(graph: &mut GraphMut<'_>, computed: &Computed, opset: u32) -> Changed {
    let mut walk = Walk {
        computed,
        sources: Sources::default(),
        firsts: FxHashMap::default(),
        order: Vec::new(),
        opset,
        changed: false,
    };
    walk.region(graph.model, graph.region);
    walk.changed
}

impl Walk<'_> {
    fn region(&mut self, model: &mut Model, region: RegionId) {
        let (outer, before) = (self.sources.len(), self.order.len());
        for input in model[region].inputs().to_vec() {
            self.sources.add(model, input);
        }
        let nodes: Vec<NodeId> = model.nodes(region).collect();
        for id in nodes {
            let bodies: Vec<RegionId> = model[id].regions().collect();
            bodies.into_iter().for_each(|body| self.region(model, body));
            self.changed |= self.node(model, id);
            for output in model[id].outputs().to_vec() {
                self.sources.add(model, output);
            }
        }
        self.sources.truncate(outer);
        for sizes in self.order.drain(before..) {
            self.firsts.remove(&sizes);
        }
    }

    fn node(&mut self, model: &mut Model, id: NodeId) -> Changed {
        if !model[id].domain.is_empty() {
            return false;
        }
        let done = match model[id].op() {
            "Reshape" => self.reshape(model, id),
            "Expand" => self.expand(model, id),
            "Slice" => self.slice(model, id),
            _ => None,
        };
        let outputs = model[id].outputs().to_vec();
        let replaced = outputs.into_iter().filter(|&v| self.output(model, id, v).is_some()).count();
        replaced > 0 || done.is_some()
    }

    fn output(&mut self, model: &mut Model, id: NodeId, output: Value) -> Option<()> {
        let unneeded = model[output].uses().len() == 0 || model[id].op() == "Identity";
        let computed = self.computed;
        let elements = computed.get(&output).filter(|_| !unneeded)?;
        let numbers: Option<Vec<i64>> = elements.iter().map(Expr::as_int).collect();
        match numbers {
            Some(numbers) => constant(model, output, &numbers),
            None => self.sizes(model, id, output, elements),
        }
    }

    /// Takes the first value that has these elements, or reads it from where the sizes are.
    fn sizes(
        &mut self,
        model: &mut Model,
        id: NodeId,
        output: Value,
        elements: &[Expr],
    ) -> Option<()> {
        let (dtype, shape) = model.tensor_type(output)?;
        let key = (shape.len(), elements.to_vec());
        if dtype != DType::I64 {
            return None;
        }
        if let Some(&first) = self.firsts.get(&key) {
            model.replace_all_uses(output, first);
            return Some(());
        }
        let firsts = &self.firsts;
        let is_read = |sizes: &[Expr]| firsts.contains_key(&(1, sizes.to_vec()));
        let new = self.sources.read(model, id, output, elements, self.opset, is_read);
        self.firsts.insert(key.clone(), new.unwrap_or(output));
        self.order.push(key);
        new.map(|_| ())
    }

    /// The elements of a vector that nodes compute.
    fn elements(&self, model: &Model, value: Value) -> Option<Vec<Expr>> {
        match model[value].constant() {
            Some(t) => Some(t.to_ints()?.into_iter().map(Expr::int).collect()),
            None => self.computed.get(&value).cloned(),
        }
    }

    fn reshape(&self, model: &mut Model, id: NodeId) -> Option<()> {
        let node = &model[id];
        let (x, given) = (node.input(0)?, self.computed.get(&node.input(1)?)?);
        let from = model.shape(x);
        let copied = |i: usize, dim: &Expr| from.is_some_and(|from| from.get(i) == Some(dim));
        // -1 may stand for a size that is known, and is then free for another one.
        let result = model.shape(*node.outputs().first()?).filter(|r| r.len() == given.len());
        let known = |i: usize| result?.get(i).filter(|d| d.as_int().is_some_and(|d| d > 0));
        let target: Vec<&Expr> = { given.iter().enumerate() }
            .map(|(i, dim)| known(i).filter(|_| dim.as_int() == Some(-1)).unwrap_or(dim))
            .collect();
        let sizes = target.iter().enumerate().map(|(i, dim)| match dim.as_int() {
            Some(number) => number,
            None if copied(i, dim) => 0,
            None => -1,
        });
        let sizes: Vec<i64> = sizes.collect();
        let count = |wanted: i64| sizes.iter().filter(|&&s| s == wanted).count();
        let written = |wanted: i64| target.iter().any(|d| d.as_int() == Some(wanted));
        // A tensor without elements does not determine -1 if another size may be 0.
        let told = count(-1) == 0 || written(-1) || count(0) == 0;
        if count(-1) > 1 || written(0) || !told {
            return None;
        }
        if count(0) > 0 {
            model[id].remove_attribute("allowzero");
        }
        let sizes = model.add_constant(Tensor::vector(&sizes));
        model.replace_input(id, 1, Some(sizes));
        Some(())
    }

    /// A size that the operand has anyway may be 1.
    fn expand(&self, model: &mut Model, id: NodeId) -> Option<()> {
        let (x, target) = (model[id].input(0)?, self.computed.get(&model[id].input(1)?)?);
        let from = model.shape(x)?;
        let mut sizes = Vec::with_capacity(target.len());
        for (from_end, dim) in target.iter().rev().enumerate() {
            let own = from.len().checked_sub(from_end + 1).and_then(|i| from.get(i));
            sizes.push(match dim.as_int() {
                Some(number) => number,
                None if own == Some(dim) => 1,
                None => return None,
            });
        }
        sizes.reverse();
        let sizes = model.add_constant(Tensor::vector(&sizes));
        model.replace_input(id, 1, Some(sizes));
        Some(())
    }

    /// Ends that are the size of the dimension.
    fn slice(&self, model: &mut Model, id: NodeId) -> Option<()> {
        let node = &model[id];
        let (x, ends) = (node.input(0)?, node.input(2)?);
        let computed = self.computed.get(&ends)?;
        let from = model.shape(x)?;
        let axes: Vec<i64> = match node.input(3) {
            Some(axes) => model[axes].constant().and_then(Tensor::to_ints)?,
            None => (0..computed.len() as i64).collect(),
        };
        if let Some(steps) = node.input(4) {
            model[steps]
                .constant()
                .and_then(Tensor::to_ints)
                .filter(|s| s.iter().all(|&s| s > 0))?;
        }
        let end = |(axis, end): (&i64, &Expr)| {
            let size = from.get(eval::axis(*axis, from.len())?)?;
            let whole = (size == end).then_some(i64::MAX);
            end.as_int().or(whole)
        };
        let ends: Vec<i64> = axes.iter().zip(computed).map(end).collect::<Option<_>>()?;
        let starts = node.input(1)?;
        if axes.len() != computed.len() || self.elements(model, starts).is_none() {
            return None;
        }
        // Starts and ends have one type.
        let ends = match model.dtype(starts)? {
            DType::I32 => {
                let held = |&end: &i64| end.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
                Tensor::vector(&ends.iter().map(held).collect::<Vec<i32>>())
            }
            _ => Tensor::vector(&ends),
        };
        let ends = model.add_constant(ends);
        model.replace_input(id, 2, Some(ends));
        Some(())
    }
}

fn constant(model: &mut Model, value: Value, numbers: &[i64]) -> Option<()> {
    let Some(Type::Tensor(ty)) = &model[value].ty else { return None };
    let sizes = match ty.shape.as_ref().map(Vec::len) {
        Some(0) => Vec::new(),
        _ => vec![numbers.len()],
    };
    let tensor = match ty.dtype {
        DType::I64 => Tensor::from_slice(sizes, numbers).ok()?,
        DType::I32 => {
            let narrow = numbers.iter().map(|&n| i32::try_from(n).ok());
            Tensor::from_slice(sizes, &narrow.collect::<Option<Vec<i32>>>()?).ok()?
        }
        DType::Bool => {
            let bools: Vec<bool> = numbers.iter().map(|&n| n != 0).collect();
            Tensor::from_slice(sizes, &bools).ok()?
        }
        _ => return None,
    };
    let constant = model.add_constant(tensor);
    model.replace_all_uses(value, constant);
    Some(())
}
