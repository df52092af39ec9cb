//! Sets of operator types.

use pt2onnx_ir::{Attributes, InsertPoint, Model, OpSet};

#[test]
fn what_a_node_may_be() {
    let mut model = Model::new(20);
    let end = InsertPoint::End(Model::MAIN);
    let node = model.add_node(end, "Relu", &[], Attributes::new(), 1);
    let (relu, others) = (OpSet::from_iter(["Relu", "Add"]), OpSet::from_iter(["Mul", "Tanh"]));
    assert!(model.may_be(node, relu) && !model.may_be(node, others));
    model.set_op(node, "Tanh");
    assert!(!model.may_be(node, relu) && model.may_be(node, others));
    assert!(model.erase(node));
    assert!(!model.may_be(node, others) && !model.contains(node));
}
