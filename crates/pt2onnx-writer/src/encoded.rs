//! The main graph as bytes, without its initialisers.
//!
//! A message is a sequence of its fields, so that each node is encoded at once: as messages, all of them would be several times
//! as large.

use crate::{
    error::Error,
    proto::{Cx, Frame, typed},
    sink::Sink,
    texts::{encode_metadata, start_field},
};
use prost::Message;
use pt2onnx_ir::{Model, NodeId};
use rayon::prelude::*;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// As many nodes are encoded by one thread at a time.
const TOGETHER: usize = 128;

/// So many bytes of a graph are kept. What comes after these is encoded again when it is written.
pub(crate) const KEPT: usize = 24 << 20;

/// So many groups of nodes are encoded again at once, some megabytes.
const AGAIN: usize = 64;

/// The field of a graph with its nodes.
const NODE: u32 = 1;

/// The main graph.
pub(crate) struct Encoded<'a> {
    cx: Cx<'a>,
    groups: Vec<Group>,
    /// Everything but nodes and types of values.
    frame: Vec<u8>,
    /// Types of initialisers.
    types: Vec<u8>,
}

/// Some neighbouring nodes.
struct Group {
    ids: Arc<[NodeId]>,
    nodes: Bytes,
    /// The types of their outputs.
    types: Bytes,
}

/// How much is kept.
struct Kept {
    most: usize,
    bytes: AtomicUsize,
}

enum Bytes {
    Kept(Vec<u8>),
    /// Not kept; so many they were.
    Dropped(usize),
}

impl<'a> Encoded<'a> {
    /// Encodes the graph, and keeps `keep` bytes. Names of tensors without values are added to those of `cx`.
    pub fn new(cx: &mut Cx<'a>, frame: Frame, keep: usize) -> Result<Self, Error> {
        let ids: Vec<NodeId> = cx.model.nodes(Model::MAIN).collect();
        let kept = Kept { most: keep, bytes: AtomicUsize::new(0) };
        let groups = match ids.len() <= TOGETHER {
            true => vec![Group::new(cx, &ids, &kept, &mut Vec::new())?],
            false => {
                let group = |scratch: &mut Vec<u8>, ids: &[NodeId]| {
                    let mut cx = cx.alike();
                    Ok((Group::new(&mut cx, ids, &kept, scratch)?, cx.absent))
                };
                let groups = ids.par_chunks(TOGETHER).map_init(Vec::new, group);
                let (groups, absent): (Vec<_>, Vec<_>) =
                    groups.collect::<Result<Vec<_>, Error>>()?.into_iter().unzip();
                cx.absent.extend(absent.into_iter().flatten());
                groups
            }
        };
        let Frame { graph, types } = frame;
        Ok(Self { cx: cx.alike(), groups, frame: graph.encode_to_vec(), types })
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        let groups = self.groups.iter().map(|g| g.nodes.len() + g.types.len());
        groups.sum::<usize>() + self.frame.len() + self.types.len()
    }

    /// Writes the graph.
    pub fn write(self, out: &mut impl Sink) -> io::Result<()> {
        let Self { cx, groups, frame, types } = self;
        let parts = |Group { ids, nodes, types }| ((Arc::clone(&ids), nodes), (ids, types));
        let (nodes, node_types) = groups.into_iter().map(parts).unzip();
        write_groups(nodes, out, |ids, bytes| encode_nodes(&mut cx.alike(), ids, bytes))?;
        out.write_all(&frame)?;
        write_groups(node_types, out, |ids, bytes| encode_types(&cx, ids, bytes))?;
        out.write_all(&types)
    }
}

impl Group {
    /// Encodes nodes, in memory that the next group takes too.
    fn new(cx: &mut Cx, ids: &[NodeId], kept: &Kept, memory: &mut Vec<u8>) -> Result<Self, Error> {
        encode_nodes(cx, ids, memory)?;
        let nodes = kept.bytes(memory);
        encode_types(cx, ids, memory)?;
        Ok(Self { nodes, types: kept.bytes(memory), ids: ids.into() })
    }
}

impl Kept {
    fn bytes(&self, bytes: &[u8]) -> Bytes {
        match self.bytes.fetch_add(bytes.len(), Relaxed) < self.most {
            true => Bytes::Kept(bytes.to_vec()),
            false => Bytes::Dropped(bytes.len()),
        }
    }
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Self::Kept(bytes) => bytes.len(),
            Self::Dropped(length) => *length,
        }
    }

    /// The bytes, which `encode` gives again if they were dropped.
    fn get(self, encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<Vec<u8>, Error> {
        match self {
            Self::Kept(bytes) => Ok(bytes),
            Self::Dropped(length) => {
                let mut bytes = Vec::with_capacity(length);
                encode(&mut bytes).map(|()| bytes)
            }
        }
    }
}

/// Writes parts of groups in order. Those that were dropped are encoded again on all cores.
fn write_groups(
    mut parts: Vec<(Arc<[NodeId]>, Bytes)>,
    out: &mut impl Sink,
    encode: impl Fn(&[NodeId], &mut Vec<u8>) -> Result<(), Error> + Sync,
) -> io::Result<()> {
    let get = |(ids, bytes): (Arc<[NodeId]>, Bytes)| bytes.get(|to| encode(&ids, to));
    while !parts.is_empty() {
        let now = parts.drain(..parts.len().min(AGAIN));
        let bytes: Result<Vec<Vec<u8>>, Error> = match now.len() {
            1 => now.map(get).collect(),
            _ => now.collect::<Vec<_>>().into_par_iter().map(get).collect(),
        };
        for bytes in bytes.map_err(io::Error::other)? {
            let length = bytes.len();
            out.block(bytes, length).map(drop)?;
        }
    }
    Ok(())
}

/// Replaces `bytes` by the encoded nodes.
fn encode_nodes(cx: &mut Cx, ids: &[NodeId], bytes: &mut Vec<u8>) -> Result<(), Error> {
    bytes.clear();
    let mut metadata = Vec::new();
    for id in ids {
        metadata.clear();
        encode_metadata(&cx.origins(*id), &mut metadata);
        let node = cx.bare_node(*id)?;
        start_field(NODE, node.encoded_len() + metadata.len(), bytes);
        node.encode_raw(bytes);
        bytes.extend_from_slice(&metadata);
    }
    Ok(())
}

/// Replaces `bytes` by the encoded types of what the nodes compute.
fn encode_types(cx: &Cx, ids: &[NodeId], bytes: &mut Vec<u8>) -> Result<(), Error> {
    bytes.clear();
    for ty in cx.types(Model::MAIN, ids.iter().copied()) {
        typed(ty?, bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SaveOptions;
    use pt2onnx_ir::{Attributes, InsertPoint, Type};
    use pt2onnx_proto::GraphProto;
    use pt2onnx_tensor::DType;

    #[test]
    fn what_is_dropped_is_encoded_again() {
        let mut model = Model::new(20);
        let ty = || Some(Type::tensor(DType::F32, vec![]));
        let mut x = model.add_input(Model::MAIN, ty());
        for _ in 0..2 * TOGETHER + 1 {
            let at = InsertPoint::End(Model::MAIN);
            let node = model.add_node(at, "Relu", &[Some(x)], Attributes::new(), 1);
            x = model[node].outputs()[0];
            model[x].ty = ty();
        }
        model.set_outputs(Model::MAIN, &[x]);
        model.assign_names();
        let bytes = |keep: usize| {
            let mut cx = Cx::new(&model, &SaveOptions::default());
            let frame = cx.main(&[]).unwrap().0;
            let graph = Encoded::new(&mut cx, frame, keep).unwrap();
            let (length, mut bytes) = (graph.len(), Vec::new());
            graph.write(&mut bytes).unwrap();
            assert_eq!(bytes.len(), length);
            bytes
        };
        let all = bytes(usize::MAX);
        let graph = GraphProto::decode(&*all).unwrap();
        assert_eq!((graph.node.len(), graph.value_info.len()), (2 * TOGETHER + 1, 2 * TOGETHER));
        assert!([0, 1, all.len() / 2].into_iter().all(|keep| bytes(keep) == all));
    }
}
