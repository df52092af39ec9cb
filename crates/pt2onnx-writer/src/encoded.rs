//! The main graph as bytes, without its initialisers.
//!
//! A message is a sequence of its fields, so that nodes are encoded while others are written: as
//! messages, all of them would be several times as large.

use crate::{
    error::Error,
    proto::{Cx, Frame, typed},
    sink::Sink,
};
use prost::Message;
use pt2onnx_ir::{Model, NodeId};
use rayon::prelude::*;
use std::{io, iter};

/// As many nodes are encoded by one thread at a time.
const TOGETHER: usize = 128;

/// So many groups of nodes are encoded while as many are written, some megabytes.
const AT_ONCE: usize = 16;

/// The field of a graph with its nodes.
const NODE: u32 = 1;

/// The main graph.
pub(crate) struct Encoded<'a> {
    nodes: Nodes<'a>,
    /// Everything but nodes and types of values.
    frame: Vec<u8>,
    /// Types of initialisers.
    types: Vec<u8>,
}

/// The nodes of the main graph, which are encoded when they are written.
pub(crate) struct Nodes<'a> {
    cx: Cx<'a>,
    groups: Vec<Group>,
    /// Tensors without values in attributes, by name.
    pub absent: Vec<String>,
}

/// Some neighbouring nodes.
struct Group {
    ids: Vec<NodeId>,
    /// The bytes of the nodes.
    length: usize,
    /// The types of their outputs.
    types: Vec<u8>,
}

impl<'a> Nodes<'a> {
    /// Measures the nodes, and encodes the types of what they compute.
    pub fn measured(cx: Cx<'a>) -> Result<Self, Error> {
        let ids: Vec<NodeId> = cx.model.nodes(Model::MAIN).collect();
        let group = |ids: &[NodeId]| {
            let mut cx = cx.for_siblings();
            Ok((Group::new(&mut cx, ids)?, cx.absent))
        };
        let groups: Result<Vec<_>, Error> = if ids.len() <= TOGETHER {
            ids.chunks(TOGETHER).map(group).collect()
        } else {
            ids.par_chunks(TOGETHER).map(group).collect()
        };
        let (groups, absent): (_, Vec<_>) = groups?.into_iter().unzip();
        Ok(Self { cx, groups, absent: absent.into_iter().flatten().collect() })
    }
}

impl<'a> Encoded<'a> {
    pub fn new(nodes: Nodes<'a>, Frame { graph, types }: Frame) -> Self {
        Self { nodes, frame: graph.encode_to_vec(), types }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        let groups = self.nodes.groups.iter().map(|group| group.length + group.types.len());
        groups.sum::<usize>() + self.frame.len() + self.types.len()
    }

    /// Writes the graph.
    pub fn write(self, out: &mut impl Sink) -> io::Result<()> {
        let Self { nodes: Nodes { cx, groups, .. }, frame, types } = self;
        write_nodes(&cx, &groups, out)?;
        out.write_all(&frame)?;
        for Group { types, .. } in groups {
            let length = types.len();
            out.block(types, length)?;
        }
        out.write_all(&types)
    }
}

impl Group {
    fn new(cx: &mut Cx, ids: &[NodeId]) -> Result<Self, Error> {
        let mut length = 0;
        for id in ids {
            length += cx.fields(*id)?.encoded_length(NODE);
        }
        let mut types = Vec::new();
        for ty in cx.types(Model::MAIN, ids.iter().copied()) {
            typed(ty?, &mut types);
        }
        Ok(Self { ids: ids.to_vec(), length, types })
    }

    /// The encoded nodes, in memory that is given.
    fn encoded(&self, cx: &mut Cx, mut memory: Vec<u8>) -> Result<Vec<u8>, Error> {
        memory.clear();
        memory.reserve(self.length);
        for id in &self.ids {
            cx.fields(*id)?.encode(NODE, &mut memory);
        }
        debug_assert_eq!(memory.len(), self.length);
        Ok(memory)
    }
}

/// Writes the nodes of groups, in order. The next ones are encoded meanwhile, on all cores.
fn write_nodes(cx: &Cx, groups: &[Group], out: &mut impl Sink) -> io::Result<()> {
    let mut write = |blocks: Vec<Vec<u8>>| {
        let write = |block: Vec<u8>| {
            let length = block.len();
            out.block(block, length)
        };
        blocks.into_iter().map(write).collect::<io::Result<Vec<_>>>()
    };
    let mut parts = groups.chunks(AT_ONCE);
    let mut blocks = encoded(cx, parts.next().unwrap_or_default(), Vec::new())?;
    let mut memory = Vec::new();
    for next in parts {
        let mut following = Ok(Vec::new());
        memory = rayon::in_place_scope(|scope| {
            scope.spawn(|_| following = encoded(cx, next, memory));
            write(blocks)
        })?;
        blocks = following?;
    }
    write(blocks).map(drop)
}

/// The nodes of each group, encoded on all cores, in memory of blocks that were written.
fn encoded(cx: &Cx, groups: &[Group], memory: Vec<Vec<u8>>) -> io::Result<Vec<Vec<u8>>> {
    let encode = |(group, memory): (&Group, Vec<u8>)| group.encoded(&mut cx.for_siblings(), memory);
    let memory = memory.into_iter().chain(iter::repeat_with(Vec::new));
    let groups = groups.iter().zip(memory);
    let blocks: Result<_, Error> = match groups.size_hint().0 {
        0 | 1 => groups.map(encode).collect(),
        _ => groups.collect::<Vec<_>>().into_par_iter().map(encode).collect(),
    };
    blocks.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SaveOptions;
    use pt2onnx_ir::{Attribute, InsertPoint, Origin, SharedText, Type};
    use pt2onnx_proto::{GraphProto, NodeProto};
    use pt2onnx_tensor::DType;
    use std::sync::Arc;

    /// A chain of so many nodes that have all kinds of fields.
    fn chain(nodes: usize) -> Model {
        let mut model = Model::new(20);
        let ty = || Some(Type::tensor(DType::F32, vec![]));
        let mut x = model.add_input(Model::MAIN, ty());
        let start = Arc::new(SharedText::from("m.Layer/"));
        for i in 0..nodes {
            let at = InsertPoint::End(Model::MAIN);
            let attributes =
                [("alpha".into(), Attribute::String(i.to_string()))].into_iter().collect();
            let node = model.add_node(at, "Clip", &[Some(x), None, Some(x)], attributes, 1);
            let metadata = vec![
                ("namespace".into(), SharedText::after(&start, "relu".repeat(i % 100))),
                ("".into(), SharedText::from("")),
            ];
            let origin = Origin { metadata, ..Origin::default() };
            let origin = model.add_origin(origin);
            model[node].origins.push(origin);
            model[node].domain = ["", "other"][i % 2].into();
            x = model[node].outputs()[0];
            model[x].ty = ty();
        }
        model.set_outputs(Model::MAIN, &[x]);
        model.assign_names();
        model
    }

    #[test]
    fn nodes_are_encoded_as_their_messages_are() {
        for count in [0, 1, TOGETHER + 1, 2 * AT_ONCE * TOGETHER + 1] {
            let model = chain(count);
            let mut cx = Cx::new(&model, &SaveOptions::default());
            let nodes = Nodes::measured(cx.for_siblings()).unwrap();
            let graph = Encoded::new(nodes, cx.main(&[]).unwrap().0);
            let (length, mut bytes) = (graph.len(), Vec::new());
            graph.write(&mut bytes).unwrap();
            assert_eq!(bytes.len(), length);
            let graph = GraphProto::decode(&*bytes).unwrap();
            let messages = model.nodes(Model::MAIN).map(|id| cx.node(id).unwrap());
            assert_eq!(graph.node, messages.collect::<Vec<NodeProto>>());
            assert_eq!(graph.value_info.len(), count.saturating_sub(1));
            assert_eq!(graph.encoded_len(), length);
        }
    }
}
