//! Infers types: element types from the type variables of the operator's schema, shapes by a rule
//! for each operator.
//!
//! A rule never guesses: it gives an unknown dimension or rank instead.

mod control;
mod dtype;
mod facts;
mod images;
mod moves;
mod node;
mod rules;
mod sequences;
mod shape;

pub use facts::{Contents, Facts, InferError};
pub use rules::einsum_terms;
pub(crate) use shape::{broadcast, product, without};

use crate::{
    attribute::Attribute,
    ids::NodeId,
    is_possible,
    model::Model,
    schema,
    types::{TensorType, Type},
};
use node::Node;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use std::cell::{Cell, RefCell};

/// Infers the types of a node's outputs from its inputs and attributes; `None` where nothing is
/// known. The node must be valid at [`schema::CANONICAL_OPSET`]. The model is only changed to make
/// new unknown dimensions.
///
/// # Errors
/// Returns an error if the node cannot have inputs of these sizes.
pub fn infer(
    model: &mut Model,
    facts: Facts,
    node: NodeId,
) -> Result<Vec<Option<Type>>, InferError> {
    match types_and_error(model, facts, node) {
        (_, Some(error)) => Err(error),
        (types, None) => Ok(types),
    }
}

/// Does the same as [`infer`], and gives types also if there is an error.
pub(crate) fn types_and_error(
    model: &mut Model,
    facts: Facts,
    node: NodeId,
) -> (Vec<Option<Type>>, Option<InferError>) {
    let unknown_dims = Cell::new(model.unknown_dims);
    let node = Node { model, facts, node: &model[node], unknown_dims, error: RefCell::default() };
    let types = types(&node);
    let (unknown_dims, error) = (node.unknown_dims.get(), node.error.into_inner());
    model.unknown_dims = unknown_dims;
    (types, error)
}

fn types(node: &Node) -> Vec<Option<Type>> {
    let outputs = node.node.outputs().len();
    let Some(schema) = schema::lookup(node.node.op(), schema::CANONICAL_OPSET) else {
        return vec![None; outputs];
    };
    if let Some(types) = control::types(node).or_else(|| sequences::types(node)) {
        return types;
    }
    if node.node.is("Constant") {
        return vec![constant(node.node)];
    }
    let mut shapes = rules::shapes(node);
    shapes.resize(outputs, None);
    let types = shapes.into_iter().enumerate();
    types
        .map(|(i, shape)| (i, shape.filter(|sizes| is_possible(sizes))))
        .map(|(i, shape)| Some(Type::Tensor(TensorType { dtype: node.dtype(schema, i)?, shape })))
        .collect()
}

/// The type of a `Constant`.
fn constant(node: &crate::Node) -> Option<Type> {
    match node.attributes.as_slice() {
        [(_, Attribute::String(_))] => Some(Type::tensor(DType::String, [])),
        [(_, Attribute::Strings(all))] => {
            Some(Type::tensor(DType::String, [Expr::int(all.len() as i64)]))
        }
        _ => node.given_tensor().as_ref().map(Type::of),
    }
}
