//! Walks a model with petgraph: the nodes in topological order, each with its dominator.
//!
//! `cargo run -p pt2onnx-ir --example graph_walk`
#![expect(clippy::print_stdout, reason = "an example")]

use petgraph::algo::{dominators::simple_fast, toposort};
use pt2onnx_ir::{Model, NodeId};

const MODEL: &str = "
    residual (float[N,8] x, float[8,8] w) => (float[N,8] y) {
        a = Relu (x)
        b = MatMul (a, w)
        c = Sigmoid (b)
        d = Mul (b, c)
        y = Add (a, d)
    }";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model: Model = MODEL.parse()?;
    let graph = model.graph(Model::MAIN);
    let sorted = toposort(&graph, None).map_err(|_| "the graph has a cycle")?;
    let first = *sorted.first().ok_or("the graph is empty")?;
    let dominators = simple_fast(&graph, first);
    let name = |node: NodeId| model[node].op().to_owned();
    for &node in &sorted {
        let dominator = dominators.immediate_dominator(node).map(name);
        println!("{:8} {}", name(node), dominator.unwrap_or_else(|| "-".to_owned()));
    }
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
