//! Converts the model, its graphs and functions.

use super::{
    error::{Invalid, Result},
    files::Files,
    order,
    reading::Reading,
    sparse,
    tensor::tensor,
    types::{has_denotations, type_of},
};
use indexmap::IndexMap;
use pt2onnx_ir::{
    Attribute, Attributes, Function, InsertPoint, Metadata, Model, Name, Origin, RegionId, Value,
    schema::AttributeKind,
};
use pt2onnx_proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, ValueInfoProto, attribute_proto::AttributeType,
};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{borrow::Cow, collections::BTreeSet};

/// Builds a model.
pub(super) struct Reader {
    files: Files,
    model: Model,
    ir_version: i64,
    /// Values by name: the scope of a graph comes after the scopes of the graphs around it.
    scopes: Vec<FxHashMap<Name, Value>>,
    /// What the file has but the IR does not.
    lost: BTreeSet<&'static str>,
}

/// What a graph states about its values, by name.
type Infos = FxHashMap<String, ValueInfoProto>;

impl Reader {
    pub fn new(files: Files) -> Self {
        Self {
            files,
            model: Model::new(0),
            ir_version: 0,
            scopes: Vec::new(),
            lost: BTreeSet::new(),
        }
    }

    pub fn model(mut self, proto: ModelProto) -> Result<Reading> {
        let graph = proto.graph.ok_or_else(|| Invalid::NoGraph.at("the model"))?;
        // Opsets came with IR version 3: a file that has some and no version is of a newer one, which is not known.
        let unknown = proto.ir_version.is_none() && !proto.opset_import.is_empty();
        self.ir_version = proto.ir_version.unwrap_or(if unknown { 4 } else { 1 });
        let ir_version = u32::try_from(self.ir_version);
        let ir_version = ir_version.map_err(|_| Invalid::Version(self.ir_version).at("ir_version"));
        let mut imports = imports(&proto.opset_import)?;
        // Before, all models used the first opset.
        let unsaid = (self.ir_version < 3 && imports.is_empty()).then_some(1);
        let model = &mut self.model;
        model.ir_version = Some(ir_version?).filter(|_| !unknown);
        model.opset = imports.shift_remove("").or(unsaid).unwrap_or(0);
        model.imports = imports;
        model.producer = Some(proto.producer_name.unwrap_or_default());
        model.producer_version = proto.producer_version;
        model.domain = proto.domain;
        model.model_version = proto.model_version;
        model.doc_string = proto.doc_string;
        model.metadata = metadata(proto.metadata_props);
        model.name = graph.name().to_owned();
        model.graph_metadata = metadata(graph.metadata_props.clone());
        if !proto.training_info.is_empty() {
            self.lost.insert("training information");
        }
        if !proto.configuration.is_empty() {
            self.lost.insert("device configurations");
        }
        self.graph(graph, Model::MAIN)?;
        for function in proto.functions {
            self.function(function)?;
        }
        let inputs = self.files.inputs();
        Ok(Reading { model: self.model, lost: self.lost.into_iter().collect(), inputs })
    }

    fn function(&mut self, proto: FunctionProto) -> Result<()> {
        let place = format!("function {}.{}", proto.domain(), proto.name());
        let body = self.model.add_region();
        let mut function = Function::new(proto.domain(), proto.name(), body);
        function.domain = domain(proto.domain()).to_owned();
        function.overload = proto.overload().to_owned();
        let key = |f: &Function| (f.domain.clone(), f.name.clone(), f.overload.clone());
        if self.model.functions.iter().any(|f| key(f) == key(&function)) {
            return Err(Invalid::TwoFunctions.at(place));
        }
        // A function does not see values of the graph.
        let outer = std::mem::replace(&mut self.scopes, vec![FxHashMap::default()]);
        for name in &proto.input {
            let value = self.model.add_input(body, None);
            self.define(value, name, &place)?;
        }
        function.attributes = proto.attribute;
        function.defaults = self.attributes(proto.attribute_proto, &place)?;
        function.imports = imports(&proto.opset_import)?;
        function.doc_string = proto.doc_string;
        function.metadata = metadata(proto.metadata_props);
        if !proto.value_info.is_empty() {
            self.lost.insert("types of values in functions");
        }
        let mut infos = Infos::default();
        for node in order::sorted(proto.node) {
            self.node(node, body, &mut infos)?;
        }
        let outputs = proto.output.iter().map(|o| self.find(o, &place));
        let outputs: Vec<Value> = outputs.collect::<Result<_>>()?;
        self.model.set_outputs_as_written(body, &outputs);
        self.model.functions.push(function);
        self.scopes = outer;
        Ok(())
    }

    fn graph(&mut self, proto: GraphProto, region: RegionId) -> Result<()> {
        let main = region == Model::MAIN;
        let place = match main {
            true => "the graph".to_owned(),
            false => format!("graph `{}`", proto.name()),
        };
        if !main {
            self.model[region].name = proto.name.map(Into::into);
            self.model[region].metadata = metadata(proto.metadata_props);
        }
        self.model[region].doc_string = proto.doc_string.map(Into::into);
        if !proto.quantization_annotation.is_empty() {
            self.lost.insert("quantisation annotations");
        }
        let outputs: Vec<String> = proto.output.iter().map(|o| o.name().to_owned()).collect();
        // What is stated with the outputs takes precedence.
        let mut infos = Infos::default();
        let described: Vec<String> = proto.value_info.iter().map(|i| i.name().to_owned()).collect();
        for info in proto.output.into_iter().chain(proto.value_info) {
            infos.entry(info.name().to_owned()).or_insert(info);
        }

        self.scopes.push(FxHashMap::default());
        let mut defaults = FxHashMap::default();
        let inputs: FxHashSet<&str> = proto.input.iter().map(|i| i.name()).collect();
        let mut initialisers = Vec::new();
        for initialiser in proto.initializer {
            // Before IR version 4, initialisers must be inputs; callers did not have to give them.
            if !inputs.contains(initialiser.name()) {
                initialisers.push(initialiser);
            } else if let Some(twice) = defaults.insert(initialiser.name().to_owned(), initialiser)
            {
                return Err(Invalid::TwoValues(twice.name().to_owned()).at(place));
            }
        }
        for info in proto.input {
            match defaults.remove(info.name()) {
                Some(initialiser) if self.ir_version < 4 => {
                    initialisers.push(initialiser);
                    infos.insert(info.name().to_owned(), info);
                }
                Some(_) if !main => {
                    return Err(Invalid::DefaultOfBody.at(format!("{place}, `{}`", info.name())));
                }
                default => {
                    let value = self.model.add_input(region, None);
                    self.define(value, info.name(), &place)?;
                    if let Some(proto) = default {
                        let tensor = self.initialiser(proto)?;
                        self.model[value].default = Some(Box::new(tensor));
                    }
                    self.inform(value, info)?;
                }
            }
        }
        for mut initialiser in initialisers {
            let name = initialiser.name().to_owned();
            let metadata = metadata(std::mem::take(&mut initialiser.metadata_props));
            let doc_string = initialiser.doc_string.take();
            let tensor = self.initialiser(initialiser)?;
            let value = self.model.add_constant(tensor);
            self.define(value, &name, &place)?;
            self.model[value].metadata = metadata;
            self.model[value].doc_string = words(doc_string);
            if let Some(mut info) = infos.remove(&name) {
                // Its type is that of the tensor.
                info.r#type = None;
                self.inform(value, info)?;
            }
        }
        for mut sparse in proto.sparse_initializer {
            let values = sparse.values.get_or_insert_default();
            let name = values.name.take().unwrap_or_default();
            let here = format!("initialiser `{name}`");
            let tensor = sparse::dense(&mut self.files, sparse, &here)?;
            let value = self.model.add_constant(tensor);
            self.define(value, &name, &place)?;
        }
        if main {
            let made = proto.node.iter().flat_map(|node| &node.output);
            let made: FxHashSet<&str> = made.map(String::as_str).collect();
            for name in described.iter().filter(|name| !made.contains(&***name)) {
                self.declared(name, &mut infos, &place)?;
            }
        }
        for node in order::sorted(proto.node) {
            self.node(node, region, &mut infos)?;
        }
        let outputs = outputs.iter().map(|o| self.find(o, &place));
        let outputs: Vec<Value> = outputs.collect::<Result<_>>()?;
        self.model.set_outputs_as_written(region, &outputs);
        self.scopes.pop();
        Ok(())
    }

    /// A weight of a model that was saved without weights: a value with a type that nothing computes.
    fn declared(&mut self, name: &str, infos: &mut Infos, place: &str) -> Result<()> {
        if self.find(name, place).is_ok() {
            return Ok(());
        }
        let Some(info) = infos.get(name).cloned() else {
            return Ok(());
        };
        let at = || format!("value `{name}`");
        let ty = match info.r#type.clone() {
            Some(proto) => type_of(&mut self.model, proto, &at())?,
            None => None,
        };
        let sizes = ty.as_ref().and_then(|ty| {
            let ty = ty.as_tensor().filter(|ty| ty.dtype != DType::String)?;
            let sizes = ty.shape.as_deref()?.iter();
            let sizes = sizes.map(|d| usize::try_from(d.as_int()?).ok());
            Some((ty.dtype, sizes.collect::<Option<Vec<usize>>>()?))
        });
        let Some((dtype, sizes)) = sizes else {
            return Ok(());
        };
        let absent = Tensor::absent(dtype, sizes).map_err(|e| Invalid::Tensor(e).at(at()))?;
        let value = self.model.add_constant(absent);
        self.define(value, name, place)?;
        infos.remove(name);
        self.inform(value, info)
    }

    fn initialiser(&mut self, proto: TensorProto) -> Result<Tensor> {
        let place = format!("initialiser `{}`", proto.name());
        tensor(&mut self.files, proto, &place)
    }

    /// Copies what the file states about a value.
    fn inform(&mut self, value: Value, info: ValueInfoProto) -> Result<()> {
        if let Some(proto) = info.r#type {
            if has_denotations(&proto) {
                self.lost.insert("denotations");
            }
            let place = format!("value `{}`", info.name.as_deref().unwrap_or_default());
            self.model[value].ty = type_of(&mut self.model, proto, &place)?;
        }
        let data = &mut self.model[value];
        data.metadata.extend(metadata(info.metadata_props));
        if data.doc_string.is_none() {
            data.doc_string = words(info.doc_string);
        }
        Ok(())
    }

    /// Names a value. No other value of the graph may have the name.
    fn define(&mut self, value: Value, name: &str, place: &str) -> Result<()> {
        if name.is_empty() {
            return Err(Invalid::Unnamed.at(format!("{place}: an input or initialiser")));
        }
        let name = Name::from(name);
        self.model[value].name = Some(name.clone());
        let taken = self.scopes.last_mut().and_then(|scope| scope.insert(name.clone(), value));
        match taken {
            Some(_) => Err(Invalid::TwoValues(name.to_string()).at(place)),
            None => Ok(()),
        }
    }

    fn find(&self, name: &str, place: &str) -> Result<Value> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.copied().ok_or_else(|| Invalid::Undefined(name.to_owned()).at(place))
    }

    fn node(&mut self, proto: NodeProto, region: RegionId, infos: &mut Infos) -> Result<()> {
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
        let input = |name: &String| match name.is_empty() {
            true => Ok(None),
            false => self.find(name, &place).map(Some),
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

    fn attributes(&mut self, protos: Vec<AttributeProto>, place: &str) -> Result<Attributes> {
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
                Attribute::Tensor(tensor(&mut self.files, proto, &here)?)
            }
            AttributeType::Graph => Attribute::Region(self.body(a.g.ok_or_else(missing)?)?),
            AttributeType::TypeProto => {
                let ty = type_of(&mut self.model, a.tp.ok_or_else(missing)?, &here)?;
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
                Attribute::Tensor(sparse::dense(&mut self.files, proto, &here)?)
            }
            AttributeType::SparseTensors => {
                return Err(missing());
            }
        })
    }

    fn body(&mut self, proto: GraphProto) -> Result<RegionId> {
        let region = self.model.add_region();
        self.graph(proto, region)?;
        Ok(region)
    }
}

/// Versions by domain.
fn imports(protos: &[OperatorSetIdProto]) -> Result<IndexMap<String, u32>> {
    let mut imports = IndexMap::new();
    for proto in protos {
        let name = domain(proto.domain());
        let place = || format!("opset_import of `{name}`");
        let version = u32::try_from(proto.version());
        let version = version.map_err(|_| Invalid::Version(proto.version()).at(place()))?;
        if imports.insert(name.to_owned(), version).is_some_and(|v| v != version) {
            return Err(Invalid::TwoVersions(name.to_owned()).at("opset_import"));
        }
    }
    Ok(imports)
}

/// The domain. ONNX's own always becomes the empty string.
fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

fn metadata<T: From<String>>(entries: Vec<StringStringEntryProto>) -> Metadata<T> {
    let pair = |e: StringStringEntryProto| {
        (Cow::Owned(e.key.unwrap_or_default()), e.value.unwrap_or_default().into())
    };
    entries.into_iter().map(pair).collect()
}

/// A text that is not empty.
fn words<T: From<String>>(text: Option<String>) -> Option<T> {
    text.filter(|t| !t.is_empty()).map(Into::into)
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
