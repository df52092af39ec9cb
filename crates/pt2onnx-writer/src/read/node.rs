//! Converts nodes and their attributes to the IR.

use super::{
    error::{Invalid, Result},
    graph::{Infos, Reader, domain, metadata, words},
    sparse,
    tensor::tensor,
    types::type_of,
};
use pt2onnx_ir::{
    Attribute, Attributes, InsertPoint, Name, Origin, RegionId, Value, schema::AttributeKind,
};
use pt2onnx_proto::{AttributeProto, NodeProto, attribute_proto::AttributeType};
use std::borrow::Cow;

impl Reader {
    /// Adds a node to a region, and its outputs with what the graph states about them. Outputs that
    /// are left out are none if no others come after them; operators of other domains may count
    /// them.
    pub fn node(
        &mut self,
        mut proto: NodeProto,
        region: RegionId,
        infos: &mut Infos,
    ) -> Result<()> {
        let names = || proto.output.iter().find(|o| !o.is_empty());
        let place = match (proto.name(), names()) {
            ("", Some(output)) => format!("{} (of `{output}`)", proto.op_type()),
            (name, _) => format!("{} `{name}`", proto.op_type()),
        };
        if proto.op_type().is_empty() {
            return Err(Invalid::NoOperator.at(place));
        }
        if !proto.device_configurations.is_empty() {
            self.lost.insert("device configurations");
        }
        if domain(proto.domain()).is_empty() {
            let end = proto.output.iter().rposition(|name| !name.is_empty());
            proto.output.truncate(end.map_or(0, |last| last + 1));
        }
        let input = |name: &String| {
            if name.is_empty() { Ok(None) } else { self.find(name, &place).map(Some) }
        };
        let inputs: Vec<Option<Value>> = proto.input.iter().map(input).collect::<Result<_>>()?;
        let mut attributes = self.attributes(proto.attribute, &place)?;
        // A sparse tensor was read as a dense one.
        if proto.op_type.as_deref() == Some("Constant")
            && let Some((name, _)) = attributes.iter_mut().find(|(n, _)| n == "sparse_value")
        {
            *name = Cow::Borrowed("value");
        }
        let id = self.model.add_node(
            InsertPoint::End(region),
            proto.op_type.unwrap_or_default(),
            &inputs,
            attributes,
            proto.output.len(),
        );
        for (i, name) in proto.output.iter().enumerate() {
            let value = self.model[id].outputs()[i];
            if name.is_empty() {
                self.model[value].name = Some("".into());
                continue;
            }
            self.define(value, name, &place)?;
            if let Some(info) = infos.remove(name) {
                self.inform(value, info)?;
            }
        }
        let name: Option<Name> = words(proto.name);
        let origin = Origin {
            node: name.clone().unwrap_or_default(),
            doc_string: words(proto.doc_string),
            metadata: metadata(proto.metadata_props),
            ..Origin::default()
        };
        if origin.doc_string.is_some() || !origin.metadata.is_empty() {
            let origin = self.model.add_origin(origin);
            self.model[id].origins.push(origin);
        }
        let node = &mut self.model[id];
        node.name = name;
        node.domain = match domain(proto.domain.as_deref().unwrap_or_default()) {
            "" => Cow::Borrowed(""),
            domain => Cow::Owned(domain.to_owned()),
        };
        node.overload = proto.overload.unwrap_or_default().into();
        Ok(())
    }

    pub fn attributes(&mut self, protos: Vec<AttributeProto>, place: &str) -> Result<Attributes> {
        let mut attributes = Attributes::with_capacity(protos.len());
        for proto in protos {
            let name = proto.name().to_owned();
            if attributes.iter().any(|(taken, _)| *taken == name) {
                return Err(Invalid::TwoAttributes(name).at(place));
            }
            let value = self.attribute(proto, place)?;
            attributes.push((Cow::Owned(name), value));
        }
        Ok(attributes)
    }

    fn attribute(&mut self, a: AttributeProto, place: &str) -> Result<Attribute> {
        let unknown = || Invalid::Attribute(a.name().to_owned()).at(place);
        let kind = match AttributeType::try_from(a.r#type.unwrap_or_default()) {
            // Before IR version 2, attributes did not have a type.
            Ok(AttributeType::Undefined) => guessed(&a).ok_or_else(unknown)?,
            Ok(kind) => kind,
            Err(_) => return Err(unknown()),
        };
        if let Some(name) = a.ref_attr_name.filter(|n| !n.is_empty()) {
            let kind =
                attribute_kind(kind).ok_or_else(|| Invalid::Attribute(name.clone()).at(place))?;
            return Ok(Attribute::Reference { name, kind });
        }
        let name = a.name.unwrap_or_default();
        let missing = || Invalid::Attribute(name.clone()).at(place);
        let here = format!("{place}, attribute `{name}`");
        Ok(match kind {
            AttributeType::Undefined => return Err(missing()),
            // A proto3 writer omits zeros.
            AttributeType::Float => Attribute::Float(a.f.unwrap_or_default()),
            AttributeType::Int => Attribute::Int(a.i.unwrap_or_default()),
            AttributeType::String => match String::from_utf8(a.s.unwrap_or_default()) {
                Ok(text) => Attribute::String(text),
                Err(e) => Attribute::Bytes(e.into_bytes()),
            },
            AttributeType::Tensor => {
                let proto = a.t.ok_or_else(missing)?;
                Attribute::Tensor(tensor(&mut self.files, *proto, &here)?)
            }
            AttributeType::Graph => Attribute::Region(self.body(*a.g.ok_or_else(missing)?)?),
            AttributeType::TypeProto => {
                let ty = type_of(&mut self.model, *a.tp.ok_or_else(missing)?, &here)?;
                Attribute::Type(ty.ok_or_else(missing)?)
            }
            AttributeType::Floats => Attribute::Floats(a.floats),
            AttributeType::Ints => Attribute::Ints(a.ints),
            AttributeType::Strings => {
                let utf8 = |s: &Vec<u8>| String::from_utf8(s.clone()).ok();
                match a.strings.iter().map(utf8).collect() {
                    Some(texts) => Attribute::Strings(texts),
                    None => Attribute::BytesList(a.strings),
                }
            }
            AttributeType::Tensors => {
                let mut read = |t| tensor(&mut self.files, t, &here);
                Attribute::Tensors(a.tensors.into_iter().map(&mut read).collect::<Result<_>>()?)
            }
            AttributeType::Graphs => {
                let mut read = |g| self.body(g);
                Attribute::Regions(a.graphs.into_iter().map(&mut read).collect::<Result<_>>()?)
            }
            AttributeType::TypeProtos => {
                let mut read =
                    |t| type_of(&mut self.model, t, &here).and_then(|t| t.ok_or_else(missing));
                Attribute::Types(a.type_protos.into_iter().map(&mut read).collect::<Result<_>>()?)
            }
            AttributeType::SparseTensor => {
                let proto = a.sparse_tensor.ok_or_else(missing)?;
                Attribute::Tensor(sparse::dense(&mut self.files, *proto, &here)?)
            }
            AttributeType::SparseTensors => {
                return Err(missing());
            }
        })
    }
}

/// The type of an attribute without a stated type, from the only field that is set.
fn guessed(a: &AttributeProto) -> Option<AttributeType> {
    use AttributeType::*;
    let given = [
        (a.f.is_some(), Float),
        (a.i.is_some(), Int),
        (a.s.is_some(), String),
        (a.t.is_some(), Tensor),
        (a.g.is_some(), Graph),
        (!a.floats.is_empty(), Floats),
        (!a.ints.is_empty(), Ints),
        (!a.strings.is_empty(), Strings),
        (!a.tensors.is_empty(), Tensors),
        (!a.graphs.is_empty(), Graphs),
    ];
    let mut given = given.iter().filter(|(there, _)| *there);
    match (given.next(), given.next()) {
        (Some((_, kind)), None) => Some(*kind),
        _ => None,
    }
}

fn attribute_kind(kind: AttributeType) -> Option<AttributeKind> {
    Some(match kind {
        AttributeType::Undefined => return None,
        AttributeType::Float => AttributeKind::Float,
        AttributeType::Int => AttributeKind::Int,
        AttributeType::String => AttributeKind::String,
        AttributeType::Tensor => AttributeKind::Tensor,
        AttributeType::Graph => AttributeKind::Graph,
        AttributeType::SparseTensor => AttributeKind::SparseTensor,
        AttributeType::TypeProto => AttributeKind::TypeProto,
        AttributeType::Floats => AttributeKind::Floats,
        AttributeType::Ints => AttributeKind::Ints,
        AttributeType::Strings => AttributeKind::Strings,
        AttributeType::Tensors => AttributeKind::Tensors,
        AttributeType::Graphs => AttributeKind::Graphs,
        AttributeType::SparseTensors => AttributeKind::SparseTensors,
        AttributeType::TypeProtos => AttributeKind::TypeProtos,
    })
}
