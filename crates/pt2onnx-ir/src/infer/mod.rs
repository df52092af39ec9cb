//! Types of the outputs of a node that was just emitted: element types from the operator schema's type variables, shapes
//! by rules. A rule says nothing rather than guess; what it cannot know is an unknown dimension or an unknown rank.

mod control;
mod images;
mod moves;
mod rules;

pub(crate) use rules::broadcast;

use crate::{
    Attribute, Attributes, Builder, NodeId, Shape, TensorType, Type, Value,
    node::attribute,
    schema::{self, OpSchema, Param},
    types::from_onnx_name,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use smallvec::SmallVec;

/// What a rule sees: the builder (for types of values) and the node.
struct Node<'a, 'm> {
    cx: &'a Builder<'m>,
    op: String,
    inputs: SmallVec<[Option<Value>; 4]>,
    outputs: usize,
    attributes: Attributes,
}

/// The types of a node's outputs, `None` where nothing is known.
pub(crate) fn infer(cx: &Builder, node: NodeId) -> Vec<Option<Type>> {
    let node = cx.with_node(node, |n| Node {
        cx,
        op: n.op.to_string(),
        inputs: n.inputs().into(),
        outputs: n.outputs().len(),
        attributes: n.attributes.clone(),
    });
    let Some(schema) = schema::lookup(&node.op, schema::CANONICAL_OPSET) else {
        return vec![None; node.outputs];
    };
    if let Some(types) = control::types(&node) {
        return types;
    }
    let mut shapes = rules::shapes(&node);
    shapes.resize(node.outputs, None);
    let types = shapes.into_iter().enumerate();
    types
        .map(|(i, shape)| Some(Type::Tensor(TensorType { dtype: node.dtype(schema, i)?, shape })))
        .collect()
}

impl Node<'_, '_> {
    /// Element type of output `i`: from a `dtype`-like attribute, else what the formal output's type variable stands for.
    fn dtype(&self, schema: &OpSchema, i: usize) -> Option<DType> {
        let formal = schema.output(i)?.ty;
        let set = schema.type_set(formal);
        // A sequence or optional.
        if set.map_or(!formal.starts_with("tensor("), |s| s.tensor == 0) {
            return None;
        }
        let named = ["to", "dtype", "output_dtype", "output_datatype"];
        if let Some(to) = named.iter().find_map(|a| self.int(a)).filter(|&to| to != 0) {
            return schema::dtype(to);
        }
        if let Some(inner) = formal.strip_prefix("tensor(").and_then(|t| t.strip_suffix(')')) {
            return from_onnx_name(inner);
        }
        if let Some(only) = set.and_then(|set| set.only_tensor()) {
            return Some(only);
        }
        if let Some(Attribute::Tensor(value)) = attribute(&self.attributes, "value") {
            return Some(value.dtype());
        }
        let of_variable = |(i, value): (usize, &Option<Value>)| {
            let same = schema.input(i).is_some_and(|p: &Param| p.ty == formal);
            value.filter(|_| same).map(|v| self.cx.dtype(v))
        };
        self.inputs.iter().enumerate().find_map(of_variable).or(match self.op.as_str() {
            "EyeLike" | "RandomNormalLike" | "RandomUniformLike" | "Bernoulli" => {
                Some(self.cx.dtype(self.inputs[0]?))
            }
            "QuantizeLinear" => Some(DType::U8),
            // Without `output_dtype`, that of the scale.
            "DequantizeLinear" => Some(self.cx.dtype(self.inputs.get(1).copied()??)),
            "Multinomial" => Some(DType::I32),
            "ConstantOfShape" | "RandomNormal" | "RandomUniform" | "BlackmanWindow"
            | "HannWindow" | "HammingWindow" => Some(DType::F32),
            _ => None,
        })
    }

    fn int(&self, name: &str) -> Option<i64> {
        match attribute(&self.attributes, name)? {
            Attribute::Int(i) => Some(*i),
            _ => None,
        }
    }

    fn ints(&self, name: &str) -> Option<&[i64]> {
        match attribute(&self.attributes, name)? {
            Attribute::Ints(v) => Some(v),
            _ => None,
        }
    }

    fn string(&self, name: &str) -> Option<&str> {
        match attribute(&self.attributes, name)? {
            Attribute::String(v) => Some(v),
            _ => None,
        }
    }

    fn input(&self, i: usize) -> Option<Value> {
        self.inputs.get(i).copied().flatten()
    }

    fn shape(&self, i: usize) -> Option<Shape> {
        self.cx.known_shape(self.input(i)?)
    }

    /// Elements of input `i`, an integer vector.
    fn contents(&self, i: usize) -> Option<Vec<Expr>> {
        self.cx.contents(self.input(i)?)
    }

    /// Elements of input `i`, where all are numbers.
    fn numbers(&self, i: usize) -> Option<Vec<i64>> {
        self.contents(i)?.iter().map(Expr::as_int).collect()
    }

    /// The axis attribute, counted from the front.
    fn axis(&self, default: i64, rank: usize) -> Option<usize> {
        normalize(self.int("axis").unwrap_or(default), rank)
    }
}

/// An axis counted from the front; `None` outside of `-rank..rank`.
fn normalize(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|&a| a < rank)
}
