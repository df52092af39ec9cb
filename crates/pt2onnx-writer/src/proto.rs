//! Converts the IR to protobuf messages. Elements of initialisers are left out: `stream` writes
//! them.

use crate::{
    error::Error,
    fields::NodeFields,
    options::{SaveOptions, Weights},
    strings::{metadata, text},
    types::{data_type, type_proto},
};
use bytes::Bytes;
use prost::Message;
use pt2onnx_ir::{
    Attribute, Function, Metadata, Model, Node, NodeId, Origin, Output, Region, RegionId,
    SharedText, Value, ValueData, schema::AttributeKind,
};
use pt2onnx_proto::{
    AttributeProto, FunctionProto, GraphProto, NodeProto, OperatorSetIdProto, TensorProto,
    ValueInfoProto, attribute_proto::AttributeType,
};
use pt2onnx_tensor::Tensor;
use smallvec::SmallVec;
use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

/// The metadata key with the names of all origins of a node.
const ORIGINS: &str = "pkg.pt2onnx.origins";

/// The metadata key of a value that was an input of the program: a parameter, buffer or tensor, if
/// it is a constant.
const INPUT_KIND: &str = "pkg.torch.export.graph_signature.InputSpec.kind";

/// The outputs of a region, each made as ONNX wants it.
fn finished(region: &Region) -> Result<Vec<Value>, Error> {
    let value = |output: &Output| {
        if output.is_finished() {
            Ok(output.value())
        } else {
            Err(Error::Unnamed(output.value().index()))
        }
    };
    region.outputs().iter().map(value).collect()
}

/// The main graph without nodes and initialisers.
pub(crate) struct Frame {
    pub graph: GraphProto,
    /// Types of initialisers, encoded: as messages they are several times as large.
    pub types: Vec<u8>,
}

/// Appends the fields of a graph.
pub(crate) fn field(graph: GraphProto, to: &mut Vec<u8>) {
    // `encode` would measure the message first, to see whether it fits.
    graph.encode_raw(to);
}

/// Appends the type of a value.
pub(crate) fn typed(value_info: ValueInfoProto, to: &mut Vec<u8>) {
    let value_info = vec![value_info];
    field(GraphProto { value_info, ..GraphProto::default() }, to);
}

/// Converts parts of a model.
pub(crate) struct Cx<'a> {
    pub model: &'a Model,
    pub ir_version: u32,
    options: Arc<SaveOptions>,
    /// Tensors without values, by name.
    pub absent: Vec<String>,
    /// The constants that are visible: those of the main graph or function, and of the bodies
    /// around that have their own.
    around: Vec<Arc<BTreeSet<Value>>>,
}

impl<'a> Cx<'a> {
    pub fn new(model: &'a Model, options: &SaveOptions) -> Self {
        Self {
            model,
            ir_version: model.ir_version(),
            options: Arc::new(options.clone()),
            absent: Vec::new(),
            around: Vec::new(),
        }
    }

    /// A context for other nodes of the same region.
    pub fn for_siblings(&self) -> Self {
        Self {
            model: self.model,
            ir_version: self.ir_version,
            options: Arc::clone(&self.options),
            absent: Vec::new(),
            around: self.around.clone(),
        }
    }

    /// Enters a region that sees these constants, and those that were visible before.
    pub fn enter(&mut self, constants: &[(Value, &Tensor)]) {
        self.around.push(Arc::new(constants.iter().map(|(value, _)| *value).collect()));
    }

    pub fn leave(&mut self) {
        self.around.pop();
    }

    /// Whether an initialiser is written without its values.
    pub fn is_left_out(&self, value: Value, tensor: &Tensor) -> bool {
        is_absent(tensor) || self.options.weights == Weights::None && self.is_weight(value, tensor)
    }

    fn is_weight(&self, value: Value, tensor: &Tensor) -> bool {
        match &self.options.initializers {
            Some(all) => is_absent(tensor) || all.contains(&value),
            None => is_initializer(&self.model[value], tensor),
        }
    }

    fn name(&self, value: Value) -> Result<&'a str, Error> {
        self.model[value].name.as_deref().ok_or(Error::Unnamed(value.index()))
    }

    fn names(&self, values: &[Value]) -> Result<Vec<String>, Error> {
        values.iter().map(|v| self.name(*v).map(str::to_owned)).collect()
    }

    /// Domains of model-local functions are imported too, at version 1 unless the model says
    /// otherwise.
    pub fn imports(&self) -> Vec<OperatorSetIdProto> {
        let own: BTreeSet<&str> = self.model.functions.iter().map(|f| f.domain.as_str()).collect();
        let own = own.into_iter().filter(|d| !d.is_empty() && !self.model.imports.contains_key(*d));
        Some(self.model.opset)
            .filter(|opset| *opset > 0)
            .map(|opset| import("", opset))
            .into_iter()
            .chain(self.model.imports.iter().map(|(domain, version)| import(domain, *version)))
            .chain(own.map(|domain| import(domain, 1)))
            .collect()
    }

    /// The constants that a region uses, bodies included, in the order in which they were created.
    /// Bodies of nodes of other domains are left out: only these nodes know whether their bodies
    /// see values from outside.
    pub fn constants(&self, root: RegionId) -> Vec<(Value, &'a Tensor)> {
        let constant = |v: Value| Some((v, self.model[v].constant()?));
        let (mut todo, mut used) = (vec![root], Vec::new());
        while let Some(region) = todo.pop() {
            used.extend(self.model[region].output_values().filter_map(constant));
            for id in self.model.nodes(region) {
                let node = &self.model[id];
                used.extend(node.inputs().iter().copied().flatten().filter_map(constant));
                if node.domain.is_empty() {
                    todo.extend(node.regions());
                }
            }
        }
        used.sort_unstable_by_key(|(v, _)| *v);
        used.dedup_by_key(|(v, _)| *v);
        used
    }

    /// The body of a node of another domain, with the constants that nothing around it uses as
    /// initialisers.
    fn closed(&mut self, region: RegionId, name: &str) -> Result<GraphProto, Error> {
        let mut own = self.constants(region);
        own.retain(|(v, _)| !self.around.iter().any(|constants| constants.contains(v)));
        self.enter(&own);
        let mut graph = self.graph(region, name)?;
        self.leave();
        for (value, tensor) in own {
            let name = self.name(value)?;
            let embedded = self.embedded(tensor, name)?;
            graph.initializer.push(TensorProto { name: Some(name.to_owned()), ..embedded });
        }
        Ok(graph)
    }

    /// The body of a node of the given domain.
    fn body(&mut self, domain: &str, region: RegionId, name: &str) -> Result<GraphProto, Error> {
        if domain.is_empty() { self.graph(region, name) } else { self.closed(region, name) }
    }

    /// The defaults of inputs, which are initialisers, too.
    pub fn defaults(&self) -> impl Iterator<Item = (Value, &'a Tensor)> + use<'a> {
        let (model, left_out) = (self.model, self.options.weights == Weights::None);
        let inputs = model.inputs().iter().filter(move |_| !left_out);
        inputs.filter_map(move |v| Some((*v, model[*v].default.as_deref()?)))
    }

    /// The main graph with the types and metadata of its initialisers, and the names of those
    /// without values, but without nodes.
    pub fn main(&self, used: &[(Value, &Tensor)]) -> Result<(Frame, Vec<String>), Error> {
        let mut frame =
            Frame { graph: self.frame(Model::MAIN, &self.model.name)?, types: Vec::new() };
        let mut declared = Vec::new();
        // Before IR version 4, initialisers must be inputs.
        let are_inputs = self.ir_version < 4;
        for &(value, tensor) in used {
            let (data, left_out) = (&self.model[value], self.is_left_out(value, tensor));
            if left_out {
                declared.push(self.name(value)?.to_owned());
            }
            let is_input =
                self.options.keep_initializers_as_inputs && self.is_weight(value, tensor);
            // onnx_ir, and so PyTorch, reads and writes metadata of initialisers here.
            let told = !data.metadata.is_empty() || data.doc_string.is_some() || left_out;
            if told && !is_input {
                typed(self.value_info(value)?, &mut frame.types);
            }
            if are_inputs || is_input {
                frame.graph.input.push(self.value_info(value)?);
            }
        }
        Ok((frame, declared))
    }

    /// The body of a node.
    fn graph(&mut self, region: RegionId, name: &str) -> Result<GraphProto, Error> {
        let nodes = || self.model.nodes(region);
        let value_info = self.types(region, nodes()).collect::<Result<_, _>>()?;
        let node = nodes().map(|id| self.node(id)).collect::<Result<_, _>>()?;
        Ok(GraphProto { node, value_info, ..self.frame(region, name)? })
    }

    /// The types of what these nodes of a region compute. Outputs of the region have their types in
    /// the graph's frame.
    pub fn types(
        &self,
        region: RegionId,
        nodes: impl Iterator<Item = NodeId>,
    ) -> impl Iterator<Item = Result<ValueInfoProto, Error>> {
        let outputs: BTreeSet<Value> = self.model[region].output_values().collect();
        let values = nodes.flat_map(|id| self.model[id].outputs());
        let told = values.filter(move |&&value| {
            let data = &self.model[value];
            let inner = self.model.inner_types && !outputs.contains(&value);
            inner && data.ty.is_some() && !data.is_left_out()
        });
        told.map(|&value| self.value_info(value))
    }

    /// A graph without nodes and initialisers.
    fn frame(&self, region: RegionId, name: &str) -> Result<GraphProto, Error> {
        let data = &self.model[region];
        let described = |values: &[Value]| -> Result<_, Error> {
            values.iter().map(|v| self.value_info(*v)).collect()
        };
        Ok(GraphProto {
            name: Some(data.name.as_deref().unwrap_or(name).to_owned()),
            doc_string: data.doc_string.as_deref().map(str::to_owned),
            input: described(data.inputs())?,
            output: described(&finished(data)?)?,
            metadata_props: if region == Model::MAIN {
                metadata(&self.model.graph_metadata)
            } else {
                metadata(&data.metadata)
            },
            ..GraphProto::default()
        })
    }

    /// A function has no initialisers: its constants become `Constant` nodes.
    pub fn function(&mut self, function: &Function) -> Result<FunctionProto, Error> {
        let body = &self.model[function.body];
        let mut nodes = Vec::new();
        let constants = self.constants(function.body);
        self.enter(&constants);
        for (value, tensor) in constants {
            let name = self.name(value)?;
            nodes.push(NodeProto {
                attribute: vec![AttributeProto {
                    t: Some(Box::new(self.embedded(tensor, name)?)),
                    ..attribute_of("value", AttributeType::Tensor)
                }],
                output: vec![name.to_owned()],
                op_type: Some("Constant".to_owned()),
                ..NodeProto::default()
            });
        }
        for id in self.model.nodes(function.body) {
            nodes.push(self.node(id)?);
        }
        self.leave();
        Ok(FunctionProto {
            name: Some(function.name.clone()),
            domain: Some(function.domain.clone()),
            input: self.names(body.inputs())?,
            output: self.names(&finished(body)?)?,
            overload: text(&function.overload),
            attribute: function.attributes.clone(),
            attribute_proto: function
                .defaults
                .iter()
                .map(|(name, value)| self.attribute(("", &function.name), name, value))
                .collect::<Result<_, _>>()?,
            node: nodes,
            opset_import: if function.imports.is_empty() {
                self.imports()
            } else {
                (function.imports.iter())
                    .map(|(domain, version)| import(domain, *version))
                    .collect()
            },
            doc_string: function.doc_string.clone(),
            metadata_props: metadata(&function.metadata),
            ..FunctionProto::default()
        })
    }

    pub fn node(&mut self, id: NodeId) -> Result<NodeProto, Error> {
        self.fields(id).map(NodeFields::into_message)
    }

    /// The fields of a node.
    pub fn fields(&mut self, id: NodeId) -> Result<NodeFields<'a>, Error> {
        let node = &self.model[id];
        let (name, op) = (node.name.as_deref(), node.op());
        let owner = (&*node.domain, name.unwrap_or(op));
        let attributes = node.attributes.iter();
        let attribute = attributes.map(|(name, value)| self.attribute(owner, name, value));
        let rest = NodeProto {
            attribute: attribute.collect::<Result<_, _>>()?,
            domain: text(&node.domain),
            overload: text(&node.overload),
            doc_string: self.doc_string(node),
            ..NodeProto::default()
        };
        let input = |v: &Option<Value>| v.map_or(Ok(""), |v| self.name(v));
        Ok(NodeFields {
            inputs: node.inputs().iter().map(input).collect::<Result<_, _>>()?,
            outputs: node.outputs().iter().map(|v| self.name(*v)).collect::<Result<_, _>>()?,
            name,
            op,
            rest,
            metadata: self.origins(id),
        })
    }

    /// The metadata of a node: that of the first origin, whose result it computes. If there are
    /// several origins, also the names of all.
    fn origins(&self, id: NodeId) -> Cow<'a, Metadata<SharedText>> {
        let origins = self.model[id].origins.iter().map(|o| &self.model[*o]);
        let origins: SmallVec<[&Origin; 4]> = origins.filter(|o| !o.is_note()).collect();
        let Some(first) = origins.first() else {
            return Cow::default();
        };
        if first.metadata.is_empty() || origins.len() == 1 {
            return Cow::Borrowed(&first.metadata);
        }
        let mut entries = first.metadata.clone();
        entries.retain(|(key, _)| key != ORIGINS);
        let names = origins.iter().map(|o| {
            let listed = o.metadata.iter().find(|(key, _)| key == ORIGINS);
            listed.map_or_else(|| o.node.to_string(), |(_, names)| names.to_string())
        });
        let names = names.collect::<Vec<_>>().join(", ");
        entries.push((ORIGINS.into(), names.into()));
        Cow::Owned(entries)
    }

    /// The doc strings of all origins, and their source lines if the model asks for these.
    fn doc_string(&self, node: &Node) -> Option<String> {
        let mut lines: Vec<&str> = Vec::new();
        for origin in node.origins.iter().map(|o| &self.model[*o]) {
            let location = origin.location.as_deref();
            let location = location.filter(|_| self.model.source_lines);
            for line in origin.doc_string.as_deref().into_iter().chain(location) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn attribute(
        &mut self,
        (domain, owner): (&str, &str),
        name: &str,
        value: &Attribute,
    ) -> Result<AttributeProto, Error> {
        let mut a = attribute_of(name, attribute_type(value.kind()));
        match value {
            Attribute::Float(v) => a.f = Some(*v),
            Attribute::Int(v) => a.i = Some(*v),
            Attribute::String(v) => a.s = Some(v.clone().into_bytes()),
            Attribute::Tensor(t) => a.t = Some(Box::new(self.embedded(t, name)?)),
            Attribute::Region(r) => {
                a.g = Some(Box::new(self.body(domain, *r, &body_name(owner, name))?))
            }
            Attribute::Type(t) => a.tp = Some(Box::new(type_proto(t, name)?)),
            Attribute::Floats(v) => a.floats = v.clone(),
            Attribute::Ints(v) => a.ints = v.clone(),
            Attribute::Strings(v) => a.strings = v.iter().map(|s| s.clone().into_bytes()).collect(),
            Attribute::Tensors(v) => {
                a.tensors = v.iter().map(|t| self.embedded(t, name)).collect::<Result<_, _>>()?
            }
            Attribute::Regions(rs) => {
                let body = |(i, r): (usize, &RegionId)| {
                    self.body(domain, *r, &format!("{}_{i}", body_name(owner, name)))
                };
                a.graphs = rs.iter().enumerate().map(body).collect::<Result<_, _>>()?;
            }
            Attribute::Types(v) => {
                a.type_protos = v.iter().map(|t| type_proto(t, name)).collect::<Result<_, _>>()?
            }
            Attribute::Bytes(v) => a.s = Some(v.clone()),
            Attribute::BytesList(v) => a.strings = v.clone(),
            Attribute::Reference { name, .. } => a.ref_attr_name = Some(name.clone()),
        }
        Ok(a)
    }

    fn value_info(&self, value: Value) -> Result<ValueInfoProto, Error> {
        let (name, data) = (self.name(value)?, &self.model[value]);
        Ok(ValueInfoProto {
            r#type: data.ty.as_ref().map(|t| type_proto(t, name)).transpose()?,
            name: Some(name.to_owned()),
            metadata_props: metadata(&data.metadata),
            doc_string: data.doc_string.as_deref().map(str::to_owned),
        })
    }

    /// An initialiser without its elements, but with its strings.
    pub fn initialiser(&mut self, value: Value, tensor: &Tensor) -> Result<TensorProto, Error> {
        let name = self.name(value)?;
        let described = self.described(tensor, name)?;
        Ok(TensorProto { name: Some(name.to_owned()), ..described })
    }

    /// A tensor in an attribute, with its elements. Contiguous ones are not copied.
    fn embedded(&mut self, tensor: &Tensor, name: &str) -> Result<TensorProto, Error> {
        let proto = self.described(tensor, name)?;
        let tensor = tensor.evaluated().map_err(Error::weight)?;
        let raw_data = tensor.storage().map(|storage| match tensor.to_bytes() {
            Cow::Borrowed(lying) => storage.bytes().slice_ref(lying),
            Cow::Owned(gathered) => Bytes::from(gathered),
        });
        Ok(TensorProto { raw_data, ..proto })
    }

    /// A tensor without its elements, but with its strings.
    fn described(&mut self, tensor: &Tensor, name: &str) -> Result<TensorProto, Error> {
        if is_absent(tensor) {
            self.absent.push(name.to_owned());
        }
        Ok(TensorProto {
            // Only a tensor without elements can have a size above i64, and no format that is read
            // can express one.
            dims: tensor.shape().iter().map(|&s| i64::try_from(s).unwrap_or(i64::MAX)).collect(),
            data_type: Some(data_type(tensor.dtype(), name)?),
            string_data: tensor
                .as_strings()
                .unwrap_or_default()
                .iter()
                .map(|s| s.to_vec())
                .collect(),
            ..TensorProto::default()
        })
    }
}

/// Constants without a place in the signature that have no more elements are not weights:
/// torch.onnx makes them nodes, and not initialisers.
const SMALL: usize = 16;

/// Whether a constant is an initialiser as torch.onnx makes them: a tensor of the program, or any
/// with more than 16 elements.
pub fn is_initializer(data: &ValueData, tensor: &Tensor) -> bool {
    let signed = data.metadata.iter().any(|(key, _)| key == INPUT_KIND);
    signed || is_absent(tensor) || tensor.numel() > SMALL
}

/// Whether a tensor has elements but no values.
fn is_absent(tensor: &Tensor) -> bool {
    !tensor.has_data() && tensor.nbytes() > 0
}

/// A name for a body, such as `node_If_0_then_branch`: it has no meaning, but must be there.
fn body_name(owner: &str, attribute: &str) -> String {
    format!("{owner}_{attribute}")
}

fn import(domain: &str, version: u32) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version.into()) }
}

fn attribute_of(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(kind.into()),
        ..AttributeProto::default()
    }
}

fn attribute_type(kind: AttributeKind) -> AttributeType {
    match kind {
        AttributeKind::Float => AttributeType::Float,
        AttributeKind::Int => AttributeType::Int,
        AttributeKind::String => AttributeType::String,
        AttributeKind::Tensor => AttributeType::Tensor,
        AttributeKind::Graph => AttributeType::Graph,
        AttributeKind::SparseTensor => AttributeType::SparseTensor,
        AttributeKind::TypeProto => AttributeType::TypeProto,
        AttributeKind::Floats => AttributeType::Floats,
        AttributeKind::Ints => AttributeType::Ints,
        AttributeKind::Strings => AttributeType::Strings,
        AttributeKind::Tensors => AttributeType::Tensors,
        AttributeKind::Graphs => AttributeType::Graphs,
        AttributeKind::SparseTensors => AttributeType::SparseTensors,
        AttributeKind::TypeProtos => AttributeType::TypeProtos,
    }
}
