//! Attention that was decomposed before the program was saved: for NaN, the formula gives something
//! else than PyTorch's kernel.
//!
//! The kernel is used if queries and values have the same width and there is no mask but the causal
//! one. It replaces the scores of later keys, where the formula adds `-inf` to them. With fewer
//! keys than a vector register holds, it gives 0 for a query whose scores are all NaN.

use crate::graph::{Argument, ExportedProgram, Graph, Name, NamedArg, Node, OpName, TensorMeta};
use pt2onnx_symbolic::Expr;
use rustc_hash::FxHashMap;

/// The bits of a vector register of AVX-512.
const REGISTER: i64 = 512;

/// Lets formulas that the archive says are of `scaled_dot_product_attention` compute what that
/// gives. The formula's last part is `where(logical_not(any(logical_not(eq(scores, -inf)))), 0,
/// softmax(scores))`.
pub fn restore_attention(program: &mut ExportedProgram) {
    let graph = &mut program.graph;
    if !graph.nodes.iter().any(|node| is_part(node)) {
        return;
    }
    let edits: Vec<(usize, Node)> = Formulas::of(graph).edits();
    for (i, node) in edits {
        if let Some(place) = graph.nodes.get_mut(i) {
            *place = node.into();
        }
    }
}

/// Whether a node is part of a decomposed attention.
fn is_part(node: &Node) -> bool {
    node.meta.is_part_of("aten.scaled_dot_product_attention.")
}

/// The nodes of a graph, by what they define and what they use.
struct Formulas<'a> {
    graph: &'a Graph,
    producers: FxHashMap<&'a str, usize>,
}

impl<'a> Formulas<'a> {
    fn of(graph: &'a Graph) -> Self {
        let results = graph.nodes.iter().enumerate().filter_map(|(i, node)| {
            let [Argument::Tensor(name)] = node.outputs.as_slice() else {
                return None;
            };
            Some((&**name, i))
        });
        Self { graph, producers: results.collect() }
    }

    /// The nodes to replace, and what replaces them.
    fn edits(&self) -> Vec<(usize, Node)> {
        let ends = self.graph.nodes.iter().enumerate().filter(|(_, n)| is_part(n));
        ends.filter_map(|(i, end)| self.restored(i, end)).flatten().collect()
    }

    /// The new nodes of the formula that ends with the node at `i`, its weights.
    fn restored(&self, i: usize, end: &'a Node) -> Option<Vec<(usize, Node)>> {
        let softmax =
            self.call(end.target.is_aten("where").then_some(end)?, "other", "_softmax")?.1;
        let scores = tensor(softmax.arg("self")?)?;
        let hidden = self.call(end, "condition", "logical_not")?.1;
        let any = self.call(hidden, "self", "any")?.1;
        let (place, seen) = self.call(any, "self", "logical_not")?;
        let compared = self.call(seen, "self", "eq")?.1;
        if tensor(compared.arg("self")?)? != scores || !is_lowest(compared.arg("other")?) {
            return None;
        }
        let mut edits = Vec::new();
        let (at, producer) = self.producer(scores)?;
        let products = if producer.target.is_aten("add") {
            let bias = self.call(producer, "other", "where")?.1;
            edits.push((at, self.chosen(producer, bias)?));
            tensor(producer.arg("self")?)?
        } else {
            scores
        };
        let meta = self.meta(scores)?;
        if self.query_width(products)? != self.value_width(i, end)? {
            return None;
        }
        // Halves are computed in float32.
        let lanes = REGISTER / meta.dtype.bits().max(32) as i64;
        if meta.sizes.last()?.as_int().is_some_and(|keys| keys < lanes) {
            let mut node = seen.clone();
            node.target = OpName::new("aten", "gt", "Scalar");
            let other = NamedArg { name: "other".into(), ..compared.args.get(1)?.clone() };
            node.args = vec![compared.args.first()?.clone(), other];
            edits.push((place, node));
        }
        Some(edits)
    }

    /// `add(x, where(causal, 0, -inf))` as `where(causal, x, -inf)`.
    fn chosen(&self, add: &Node, bias: &Node) -> Option<Node> {
        let condition = bias.args.iter().find(|a| &*a.name == "condition")?;
        let lowest = bias.args.iter().find(|a| &*a.name == "other")?;
        let number = self.call(bias, "other", "scalar_tensor")?.1;
        if !is_lowest(number.arg("s")?) || !self.is_constant(tensor(&condition.value)?, 32) {
            return None;
        }
        let x = add.args.iter().find(|a| &*a.name == "self")?;
        let mut node = add.clone();
        node.target = OpName::new("aten", "where", "self");
        node.args = vec![condition.clone(), x.clone(), lowest.clone()];
        Some(node)
    }

    /// Whether a value follows from no input and no weight, found in that many steps.
    fn is_constant(&self, name: &Name, steps: u32) -> bool {
        let Some((_, node)) = self.producer(name).filter(|_| steps > 0) else {
            return false;
        };
        is_part(node)
            && node.args.iter().all(|a| match &a.value {
                Argument::Tensor(x) => self.is_constant(x, steps - 1),
                Argument::Tensors(all) => all.iter().all(|x| self.is_constant(x, steps - 1)),
                _ => true,
            })
    }

    /// The width of the queries in this product of queries and keys.
    fn query_width(&self, products: &Name) -> Option<&'a Expr> {
        let (_, mut node) = self.producer(products)?;
        while &*node.target.name == "view" {
            (_, node) = self.producer(tensor(node.arg("self")?)?)?;
        }
        let is_product = matches!(&*node.target.name, "bmm" | "matmul");
        self.meta(tensor(node.arg("self").filter(|_| is_product)?)?)?.sizes.last()
    }

    /// The width of the values that the weights at `i` are multiplied with.
    fn value_width(&self, i: usize, weights: &'a Node) -> Option<&'a Expr> {
        let mut name = weights.outputs.first().and_then(tensor)?;
        for node in self.graph.nodes.get(i + 1..)? {
            if node.args.first().and_then(|a| tensor(&a.value)) != Some(name) {
                continue;
            }
            name = node.outputs.first().and_then(tensor)?;
            match &*node.target.name {
                "bmm" | "matmul" => return self.meta(name)?.sizes.last(),
                "expand" | "view" | "_to_copy" | "clone" => {}
                _ => return None,
            }
        }
        None
    }

    /// The node that computes an argument, and its place, if it is that operator.
    fn call(&self, node: &Node, arg: &str, op: &str) -> Option<(usize, &'a Node)> {
        let found = self.producer(tensor(node.arg(arg)?)?)?;
        (&*found.1.target.name == op && is_part(found.1)).then_some(found)
    }

    fn producer(&self, name: &Name) -> Option<(usize, &'a Node)> {
        let &i = self.producers.get(&**name)?;
        Some((i, self.graph.nodes.get(i)?))
    }

    fn meta(&self, name: &Name) -> Option<&'a TensorMeta> {
        self.graph.tensor(name)
    }
}

fn tensor(argument: &Argument) -> Option<&Name> {
    match argument {
        Argument::Tensor(name) => Some(name),
        _ => None,
    }
}

fn is_lowest(argument: &Argument) -> bool {
    matches!(argument, Argument::Float(number) if *number == f64::NEG_INFINITY)
}
