//! The main graph as bytes, without its initialisers.
//!
//! A message is a sequence of its fields, so that each node is encoded at once: as messages, all of them would be several times
//! as large.

use crate::{
    error::Error,
    proto::{Cx, Frame, field, typed},
    sink::Sink,
};
use prost::Message;
use pt2onnx_ir::{Model, NodeId};
use pt2onnx_proto::GraphProto;
use rayon::prelude::*;
use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// As many nodes are encoded by one thread at a time.
const TOGETHER: usize = 128;

/// So many bytes of a graph are kept. What comes after these is encoded again when it is written.
pub(crate) const KEPT: usize = 24 << 20;

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
    ids: Vec<NodeId>,
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
        let Self { mut cx, groups, frame, types } = self;
        let mut rest = Vec::with_capacity(groups.len());
        for Group { ids, nodes, types } in groups {
            nodes.write(out, |bytes| encode_nodes(&mut cx, &ids, bytes))?;
            rest.push((ids, types));
        }
        out.write_all(&frame)?;
        for (ids, types) in rest {
            types.write(out, |bytes| encode_types(&cx, &ids, bytes))?;
        }
        out.write_all(&types)
    }
}

impl Group {
    /// Encodes nodes, in memory that the next group takes too.
    fn new(cx: &mut Cx, ids: &[NodeId], kept: &Kept, memory: &mut Vec<u8>) -> Result<Self, Error> {
        encode_nodes(cx, ids, memory)?;
        let nodes = kept.bytes(memory);
        encode_types(cx, ids, memory)?;
        Ok(Self { nodes, types: kept.bytes(memory), ids: ids.to_vec() })
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

    /// Writes the bytes, which `encode` gives again if they were dropped.
    fn write(
        self,
        out: &mut impl Sink,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> io::Result<()> {
        let bytes = match self {
            Self::Kept(bytes) => bytes,
            Self::Dropped(length) => {
                let mut bytes = Vec::with_capacity(length);
                encode(&mut bytes).map_err(io::Error::other)?;
                bytes
            }
        };
        let length = bytes.len();
        out.block(bytes, length).map(drop)
    }
}

/// Replaces `bytes` by the encoded nodes.
fn encode_nodes(cx: &mut Cx, ids: &[NodeId], bytes: &mut Vec<u8>) -> Result<(), Error> {
    bytes.clear();
    for id in ids {
        let node = vec![cx.node(*id)?];
        field(GraphProto { node, ..GraphProto::default() }, bytes);
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
