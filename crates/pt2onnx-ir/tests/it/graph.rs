//! A model as a graph of petgraph, and its drawing.

use super::model;
use insta::assert_snapshot;
use petgraph::{
    algo::{dominators::simple_fast, is_cyclic_directed, toposort},
    visit::Reversed,
};
use pt2onnx_ir::{Attributes, InsertPoint, Model, NodeId, OpSet, dot};

const MODEL: &str = "
    g (float[2] x, bool c) => (float[2] y, float[2] x2) {
        a = Relu (x)
        b = If <then_branch: graph = yes () => (float[2] p) { p = Neg (a) },
                else_branch: graph = no () => (float[2] q) { q = Abs (x) }> (c)
        y = Add (a, b)
        x2 = Identity (x)
    }";

#[test]
fn algorithms_work_on_models() {
    let model = model(MODEL);
    let graph = model.graph(Model::MAIN);
    let op = |n: NodeId| model[n].op().to_owned();
    let place = |list: &[NodeId], wanted: &str| list.iter().position(|n| op(*n) == wanted).unwrap();

    let sorted = toposort(&graph, None).unwrap();
    assert_eq!(sorted.len(), 4);
    // The body uses `a`, so its node does.
    assert!(place(&sorted, "Relu") < place(&sorted, "If"));
    assert!(place(&sorted, "If") < place(&sorted, "Add"));
    let backwards = toposort(Reversed(&graph), None).unwrap();
    assert!(place(&backwards, "Add") < place(&backwards, "Relu"));
    assert!(!is_cyclic_directed(&graph));

    let relu = sorted[place(&sorted, "Relu")];
    let add = sorted[place(&sorted, "Add")];
    let dominators = simple_fast(&graph, relu);
    assert_eq!(dominators.immediate_dominator(add), Some(relu));
}

#[test]
fn a_drawing() {
    let model = model(MODEL);
    assert_snapshot!(dot(&model), @r#"
digraph {
    0 [ label = "input x" ]
    1 [ label = "input c" ]
    2 [ label = "Relu" ]
    3 [ label = "If" ]
    4 [ label = "Neg" ]
    5 [ label = "Abs" ]
    6 [ label = "Add" ]
    7 [ label = "Identity" ]
    8 [ label = "output y" ]
    9 [ label = "output x2" ]
    0 -> 2 [ label = "float[2] x" ]
    1 -> 3 [ label = "bool c" ]
    2 -> 4 [ label = "float[2] a" ]
    4 -> 3 [ label = "" ]
    0 -> 5 [ label = "float[2] x" ]
    5 -> 3 [ label = "" ]
    2 -> 6 [ label = "float[2] a" ]
    3 -> 6 [ label = "float[2] b" ]
    0 -> 7 [ label = "float[2] x" ]
    6 -> 8 [ label = "float[2] y" ]
    7 -> 9 [ label = "float[2] x2" ]
}
"#);
}

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
