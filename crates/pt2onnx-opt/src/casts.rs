//! Casts before and after a node, so that it computes in another element type.

use crate::eval;
use pt2onnx_ir::{
    Attribute, Attributes, InsertPoint, Model, NodeId, RegionId, TensorType, Type, Value,
    schema::{self, OpSchema},
};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;

/// The element type that a type variable of the operator has in a node.
pub(crate) fn bound(model: &Model, id: NodeId, schema: &OpSchema, variable: &str) -> Option<DType> {
    let node = &model[id];
    let inputs = node.inputs().iter().enumerate();
    let inputs = inputs
        .filter(|(i, _)| schema.input(*i).is_some_and(|p| p.ty == variable))
        .filter_map(|(_, v)| *v);
    let outputs = node.outputs().iter().enumerate();
    let outputs = outputs
        .filter(|(i, _)| schema.output(*i).is_some_and(|p| p.ty == variable))
        .map(|(_, v)| *v);
    inputs.chain(outputs).find_map(|v| model.dtype(v))
}

/// Makes a node compute in `to` where a type variable of its operator is `from`: inputs of that
/// variable are cast to `to`, and its outputs back to `from`. Values of unknown type count as
/// `from`.
pub(crate) fn cast_around(
    model: &mut Model,
    id: NodeId,
    schema: &OpSchema,
    variable: &str,
    from: DType,
    to: DType,
) {
    let mut cast: FxHashMap<Value, Value> = FxHashMap::default();
    for i in 0..model[id].inputs().len() {
        let Some(value) =
            model[id].input(i).filter(|_| schema.input(i).is_some_and(|p| p.ty == variable))
        else {
            continue;
        };
        if model.dtype(value).is_none_or(|t| t == from) {
            let wide = *cast
                .entry(value)
                .or_insert_with(|| insert_cast(model, InsertPoint::Before(id), value, to, id));
            model.replace_input(id, i, Some(wide));
        }
    }
    retarget(model, id, from, to);
    for (i, value) in model[id].outputs().to_vec().into_iter().enumerate() {
        let affected = !model[value].is_left_out()
            && schema.output(i).is_some_and(|p| p.ty == variable)
            && model.dtype(value).is_none_or(|t| t == from);
        if !affected {
            continue;
        }
        // The node's own output gets the new type, so all other users take the output of the cast
        // after it.
        let narrow = insert_cast(model, model.after(id), value, from, id);
        let (name, ty) = (model[value].name.take(), model[value].ty.clone());
        let metadata = std::mem::take(&mut model[value].metadata);
        model.replace_all_uses(value, narrow);
        if let Some(cast) = model.producer(narrow) {
            model.replace_input(cast, 0, Some(value));
        }
        (model[narrow].name, model[narrow].metadata) = (name, metadata);
        model[narrow].ty = ty.or(model[narrow].ty.take());
        let shape = model.shape(narrow).cloned();
        model[value].ty = Some(Type::Tensor(TensorType { dtype: to, shape }));
    }
}

/// The most bytes of a constant that is stored in the type that it is cast to.
const FOLDED: usize = 1024;

/// Merges equal casts of a value in a body; small constants without a name need none.
pub(crate) fn merge_casts(model: &mut Model) {
    let mut first: FxHashMap<(RegionId, Value, i64), Value> = FxHashMap::default();
    for id in model.nodes_in(&[Model::MAIN]) {
        let (Some(value), Some(to)) = (model[id].input(0), model[id].int("to")) else { continue };
        let (plain, cast) = (model[id].attributes.len() == 1, model[id].outputs()[0]);
        if !model[id].is("Cast") || !plain || model[cast].is_output() {
            continue;
        }
        let region = model[id].region();
        let other = match model[value].constant().filter(|_| model[value].name.is_none()) {
            Some(constant) => eval::evaluate(&model[id], &[Some(constant)], FOLDED)
                .and_then(|all| all.into_iter().next())
                .map(|folded| model.add_constant(folded)),
            None => None,
        };
        let other = other.or_else(|| first.get(&(region, value, to)).copied());
        match other {
            Some(other) => {
                model.replace_all_uses(cast, other);
                model.erase(id);
            }
            None => _ = first.insert((region, value, to), cast),
        }
    }
}

/// Changes attributes that give the element type of outputs.
fn retarget(model: &mut Model, id: NodeId, from: DType, to: DType) {
    for (name, attribute) in &mut model[id].attributes {
        let names_type = matches!(&**name, "to" | "dtype" | "output_dtype" | "output_datatype");
        if names_type && matches!(attribute, Attribute::Int(i) if *i == schema::data_type(from)) {
            *attribute = Attribute::Int(schema::data_type(to));
        }
    }
}

fn insert_cast(
    model: &mut Model,
    at: InsertPoint,
    value: Value,
    to: DType,
    origin: NodeId,
) -> Value {
    let attributes: Attributes =
        [("to".into(), Attribute::Int(schema::data_type(to)))].into_iter().collect();
    let node = model.add_node(at, "Cast", &[Some(value)], attributes, 1);
    model[node].origins = model[origin].origins.clone();
    let output = model[node].outputs()[0];
    let shape = model.shape(value).cloned();
    model[output].ty = Some(Type::Tensor(TensorType { dtype: to, shape }));
    output
}
