//! Finding what the pattern of a rule describes.

use super::rule::Rule;
use crate::analysis::{number_of, rounded};
use pt2onnx_ir::{
    Attribute, Def, Model, Node, NodeId, Traits, Use, Value,
    schema::{self, CANONICAL_OPSET},
};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The value that each value of the pattern stands for.
    pub values: FxHashMap<Value, Value>,
    /// The attributes that the pattern names.
    pub attributes: Vec<(String, Attribute)>,
    /// The nodes, the last one first.
    pub nodes: Vec<NodeId>,
    /// The output of the last node.
    pub output: Value,
}

/// Finds the pattern of a rule, if `last` computes its output.
pub(super) fn find(model: &Model, rule: &Rule, last: NodeId) -> Option<Found> {
    let library = &*rule.library;
    let end = library[rule.pattern.body].output_values().next()?;
    let Def::Node(wanted, place) = *library[end].def() else {
        return None;
    };
    let output = *model[last].outputs().get(place as usize)?;
    if (library[wanted].op(), &library[wanted].domain) != (model[last].op(), &model[last].domain) {
        return None;
    }
    let found =
        Found { values: FxHashMap::default(), attributes: Vec::new(), nodes: vec![], output };
    Search { model, library, last }.solve(&[(end, output)], found)
}

struct Search<'a> {
    model: &'a Model,
    library: &'a Model,
    last: NodeId,
}

impl Search<'_> {
    /// Finds all goals, pairs of a value of the pattern and one of the model, in addition to what
    /// is found.
    fn solve(&self, goals: &[(Value, Value)], mut found: Found) -> Option<Found> {
        let Some((&(wanted, value), rest)) = goals.split_first() else {
            return self.is_complete(&found).then_some(found);
        };
        if let Some(known) = found.values.get(&wanted) {
            return (*known == value).then(|| self.solve(rest, found)).flatten();
        }
        found.values.insert(wanted, value);
        match *self.library[wanted].def() {
            Def::Input(..) => self.solve(rest, found),
            Def::Constant(ref tensor) => {
                is_constant(self.model, value, tensor).then(|| self.solve(rest, found))?
            }
            Def::Node(node, place) => {
                let node = &self.library[node];
                if node.is("Constant") {
                    return self
                        .constant(node, value, &mut found)
                        .then(|| self.solve(rest, found))?;
                }
                self.node(node, place, value, rest, found)
            }
        }
    }

    fn node(
        &self,
        wanted: &Node,
        place: u32,
        value: Value,
        rest: &[(Value, Value)],
        mut found: Found,
    ) -> Option<Found> {
        let id = self.model.producer(value)?;
        let node = &self.model[id];
        let same = (node.op(), &node.domain, &node.overload)
            == (wanted.op(), &wanted.domain, &wanted.overload);
        let at = node.outputs().iter().position(|v| *v == value)?;
        let arity = node.outputs().len() == wanted.outputs().len();
        if !same || at != place as usize || !arity || !attributes(node, wanted, &mut found) {
            return None;
        }
        // The other outputs are what the pattern calls them.
        for (other, own) in wanted.outputs().iter().zip(node.outputs()) {
            if found.values.insert(*other, *own).is_some_and(|known| known != *own) {
                return None;
            }
        }
        if !found.nodes.contains(&id) {
            found.nodes.push(id);
        }
        let swaps = node.traits().contains(Traits::COMMUTATIVE) && node.inputs().len() == 2;
        let orders: &[[usize; 2]] = if swaps { &[[0, 1], [1, 0]] } else { &[[0, 1]] };
        let count = node.inputs().len().max(wanted.inputs().len());
        orders.iter().find_map(|order| {
            let place = |i: usize| order.get(i).copied().unwrap_or(i);
            let mut goals = Vec::new();
            for i in 0..count {
                match (wanted.input(i), node.input(place(i))) {
                    (Some(wanted), Some(own)) => goals.push((wanted, own)),
                    (None, None) => {}
                    _ => return None,
                }
            }
            goals.extend_from_slice(rest);
            self.solve(&goals, found.clone())
        })
    }

    /// Whether a value is what a `Constant` of the pattern says. `@name` stands for any number or
    /// tensor.
    fn constant(&self, wanted: &Node, value: Value, found: &mut Found) -> bool {
        let [(_, given)] = wanted.attributes.as_slice() else {
            return false;
        };
        let Def::Constant(own) = self.model[value].def() else {
            return false;
        };
        match given {
            Attribute::Tensor(tensor) => is_constant(self.model, value, tensor),
            Attribute::Float(x) => is_constant(self.model, value, &Tensor::scalar(*x)),
            Attribute::Int(x) => is_constant(self.model, value, &Tensor::scalar(*x)),
            Attribute::Floats(xs) => is_constant(self.model, value, &Tensor::vector(xs)),
            Attribute::Ints(xs) => is_constant(self.model, value, &Tensor::vector(xs)),
            Attribute::Reference { name, kind } => {
                let ints = || own.to_vec::<i64>();
                // What is no float32 would be rounded.
                let number = || {
                    let (_, x) = number_of(self.model, value)?;
                    Some(x as f32).filter(|&held| f64::from(held) == x || x.is_nan())
                };
                let bound = match kind.name() {
                    "float" => number().map(Attribute::Float),
                    "int" => ints().filter(|v| v.len() == 1).map(|v| Attribute::Int(v[0])),
                    "ints" => ints().filter(|_| own.shape().len() == 1).map(Attribute::Ints),
                    "floats" => own.to_vec::<f32>().map(Attribute::Floats),
                    "tensor" => own.has_data().then(|| Attribute::Tensor(own.clone())),
                    _ => None,
                };
                bound.is_some_and(|bound| bind(name, bound, found))
            }
            _ => false,
        }
    }

    /// Whether nothing but the pattern uses what disappears with it, and all nodes are in one
    /// region.
    fn is_complete(&self, found: &Found) -> bool {
        let inside = |u: Use| matches!(u, Use::Input(node, _) if found.nodes.contains(&node));
        found.nodes.first() == Some(&self.last)
            && found.nodes.iter().all(|&node| {
                let outputs = self.model[node].outputs();
                self.model[node].region() == self.model[self.last].region()
                    && outputs
                        .iter()
                        .all(|&v| v == found.output || self.model[v].uses().all(inside))
            })
    }
}

/// Whether the attributes of a node are those of the pattern; what the pattern does not give must
/// have its default.
fn attributes(node: &Node, wanted: &Node, found: &mut Found) -> bool {
    let formal = schema::lookup(node.op(), CANONICAL_OPSET).filter(|_| node.domain.is_empty());
    let default = |name: &str| {
        let known = formal.and_then(|f| f.attributes.iter().find(|a| a.name == name));
        known.and_then(|a| a.default.as_ref()).map(Attribute::from)
    };
    let mut names: Vec<&str> = node.attributes.iter().map(|(name, _)| &**name).collect();
    names.extend(wanted.attributes.iter().map(|(name, _)| &**name));
    names.sort_unstable();
    names.dedup();
    names.into_iter().all(|name| {
        let given = |node: &Node| node.attribute(name).cloned().or_else(|| default(name));
        match (given(wanted), given(node)) {
            (Some(Attribute::Reference { name, .. }), Some(own)) => bind(&name, own, found),
            (Some(wanted), Some(own)) => wanted.equals(&own, equal),
            (wanted, own) => wanted.is_none() && own.is_none(),
        }
    })
}

fn bind(name: &str, value: Attribute, found: &mut Found) -> bool {
    match found.attributes.iter().find(|(known, _)| known == name) {
        Some((_, known)) => known.equals(&value, equal),
        None => {
            found.attributes.push((name.to_owned(), value));
            true
        }
    }
}

fn equal(a: &Tensor, b: &Tensor) -> bool {
    (a.dtype(), a.shape()) == (b.dtype(), b.shape())
        && a.has_data()
        && b.has_data()
        && a.to_bytes() == b.to_bytes()
}

/// Whether a value is a constant equal to that of a pattern. A single float is compared after
/// rounding to the type that the model has, and has any number of dimensions of size 1.
fn is_constant(model: &Model, value: Value, wanted: &Tensor) -> bool {
    let Def::Constant(own) = model[value].def() else {
        return false;
    };
    let single = |t: &Tensor| t.numel() == 1 && t.has_data();
    let number = match wanted.dtype() {
        DType::F32 if single(wanted) => wanted.to_vec::<f32>().map(|v| f64::from(v[0])),
        DType::F64 if single(wanted) => wanted.to_vec::<f64>().map(|v| v[0]),
        _ => None,
    };
    match (number, number_of(model, value)) {
        (Some(number), Some((dtype, own))) => {
            // What the pattern has as float32 is given in decimals, of which the model may have
            // more.
            rounded(dtype, number) == own || (dtype == DType::F64 && (own as f32) == number as f32)
        }
        _ => equal(own, wanted),
    }
}
