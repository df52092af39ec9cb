//! Counts the operators of an ONNX file, those of subgraphs too.
//! `cargo run -p pt2onnx-proto --example operators MODEL.onnx`

use prost::Message;
use pt2onnx_proto::{GraphProto, ModelProto};
use std::{collections::BTreeMap, io::Write};

fn count(graph: &GraphProto, counts: &mut BTreeMap<String, usize>) {
    for node in &graph.node {
        *counts.entry(node.op_type().to_owned()).or_default() += 1;
        for attribute in &node.attribute {
            attribute
                .g
                .as_deref()
                .into_iter()
                .chain(&attribute.graphs)
                .for_each(|graph| count(graph, counts));
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("no MODEL.onnx")?;
    let model = ModelProto::decode(&*std::fs::read(path)?)?;
    let mut counts = BTreeMap::new();
    model.graph.iter().for_each(|graph| count(graph, &mut counts));
    let mut out = std::io::stdout().lock();
    for (op, nodes) in counts {
        writeln!(out, "{op}: {nodes}")?;
    }
    Ok(())
}
