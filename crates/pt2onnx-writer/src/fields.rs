//! The fields of a node, encoded without a message: most of them are texts, which a message would
//! copy.

use crate::strings::{
    encode_metadata, encode_text, field_length, metadata_length, shared_metadata, start_field,
};
use prost::Message;
use pt2onnx_ir::{Metadata, SharedText};
use pt2onnx_proto::NodeProto;
use smallvec::SmallVec;
use std::borrow::Cow;

/// The fields of [`NodeProto`] that are written here. `rest` comes between the operator and the
/// metadata.
const INPUT: u32 = 1;
const OUTPUT: u32 = 2;
const NAME: u32 = 3;
const OP_TYPE: u32 = 4;
const METADATA_PROPS: u32 = 9;

/// The fields of a node. Its texts are those of the model.
pub(crate) struct NodeFields<'a> {
    /// The names of its inputs. One that is left out has an empty name.
    pub inputs: SmallVec<[&'a str; 4]>,
    pub outputs: SmallVec<[&'a str; 2]>,
    pub name: Option<&'a str>,
    pub op: &'a str,
    /// The other fields.
    pub rest: NodeProto,
    pub metadata: Cow<'a, Metadata<SharedText>>,
}

impl<'a> NodeFields<'a> {
    /// Appends the node as field `tag` of a message.
    pub fn encode(&self, tag: u32, to: &mut Vec<u8>) {
        start_field(tag, self.content_length(), to);
        self.texts().for_each(|(tag, text)| encode_text(tag, text, to));
        self.rest.encode_raw(to);
        encode_metadata(METADATA_PROPS, &self.metadata, to);
    }

    /// The bytes that [`encode`](Self::encode) appends.
    pub fn encoded_length(&self, tag: u32) -> usize {
        field_length(tag, self.content_length())
    }

    fn content_length(&self) -> usize {
        let texts = self.texts().map(|(tag, text)| field_length(tag, text.len()));
        texts.sum::<usize>()
            + self.rest.encoded_len()
            + metadata_length(METADATA_PROPS, &self.metadata)
    }

    /// The texts before `rest`, in the order of their fields.
    fn texts(&self) -> impl Iterator<Item = (u32, &'a str)> {
        let inputs = self.inputs.iter().map(|name| (INPUT, *name));
        let outputs = self.outputs.iter().map(|name| (OUTPUT, *name));
        let name = self.name.map(|name| (NAME, name));
        inputs.chain(outputs).chain(name).chain([(OP_TYPE, self.op)])
    }

    /// The node as a message.
    pub fn into_message(self) -> NodeProto {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        NodeProto {
            input: owned(&self.inputs),
            output: owned(&self.outputs),
            name: self.name.map(str::to_owned),
            op_type: Some(self.op.to_owned()),
            metadata_props: shared_metadata(&self.metadata),
            ..self.rest
        }
    }
}
