//! Converts the model, its graphs and functions to the IR.

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
use pt2onnx_ir::{Function, Metadata, Model, Name, RegionId, Value};
use pt2onnx_proto::{
    FunctionProto, GraphProto, ModelProto, OperatorSetIdProto, SparseTensorProto,
    StringStringEntryProto, TensorProto, ValueInfoProto,
};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{borrow::Cow, collections::BTreeSet};

/// Builds a model.
pub(super) struct Reader {
    pub files: Files,
    pub model: Model,
    /// Domain, name and overload of each function.
    functions: FxHashSet<[Name; 3]>,
    ir_version: i64,
    /// Values by name: the scope of a graph comes after the scopes of the graphs around it.
    scopes: Vec<FxHashMap<Name, Value>>,
    /// Parts of the file that the IR does not have.
    pub lost: BTreeSet<&'static str>,
}

/// Statements of a graph about its values, by name.
pub(super) type Infos = FxHashMap<String, ValueInfoProto>;

impl Reader {
    /// A reader without a model, whose external data are in these files.
    pub fn new(files: Files) -> Self {
        Self {
            files,
            model: Model::new(0),
            functions: FxHashSet::default(),
            ir_version: 0,
            scopes: Vec::new(),
            lost: BTreeSet::new(),
        }
    }

    /// The model of a file.
    pub fn model(mut self, proto: ModelProto) -> Result<Reading> {
        let graph = proto.graph.ok_or_else(|| Invalid::NoGraph.at("the model"))?;
        // Opsets came with IR version 3: a file that has some and no version is of a newer one,
        // which is not known.
        let unknown = proto.ir_version.is_none() && !proto.opset_import.is_empty();
        self.ir_version = proto.ir_version.unwrap_or(if unknown { 4 } else { 1 });
        let ir_version = u32::try_from(self.ir_version);
        let ir_version = ir_version.map_err(|_| Invalid::Version(self.ir_version).at("ir_version"));
        let mut imports = imports(&proto.opset_import)?;
        // Before, all models used the first opset.
        let unsaid = (self.ir_version < 3 && imports.is_empty()).then_some(1);
        let model = &mut self.model;
        // ONNX Runtime fuses and reuses memory by what it knows of sizes, which can be slower.
        model.inner_types = false;
        model.ir_version = Some(ir_version?).filter(|_| !unknown);
        model.opset = imports.shift_remove("").or(unsaid).unwrap_or(0);
        model.imports = imports;
        model.producer = Some(proto.producer_name.unwrap_or_default());
        model.producer_version = proto.producer_version;
        model.domain = proto.domain;
        model.model_version = proto.model_version;
        model.doc_string = proto.doc_string;
        model.metadata = metadata(proto.metadata_props);
        // The standard demands a name, runtimes do not.
        if !graph.name().is_empty() {
            model.name = graph.name().to_owned();
        }
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
        let key = [&function.domain, &function.name, &function.overload].map(|s| s.as_str().into());
        if !self.functions.insert(key) {
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
        let place = if main { "the graph".to_owned() } else { format!("graph `{}`", proto.name()) };
        if !main {
            self.model[region].name = proto.name.map(Into::into);
            self.model[region].metadata = metadata(proto.metadata_props);
        }
        self.model[region].doc_string = proto.doc_string.map(Into::into);
        if !proto.quantization_annotation.is_empty() {
            self.lost.insert("quantisation annotations");
        }
        let names = |infos: &[ValueInfoProto]| -> Vec<String> {
            infos.iter().map(|info| info.name().to_owned()).collect()
        };
        let (outputs, described) = (names(&proto.output), names(&proto.value_info));
        self.model.inner_types |= !described.is_empty();
        // Statements with the outputs take precedence.
        let mut infos = Infos::default();
        for info in proto.output.into_iter().chain(proto.value_info) {
            infos.entry(info.name().to_owned()).or_insert(info);
        }

        self.scopes.push(FxHashMap::default());
        let constants = self.inputs(proto.input, proto.initializer, region, &mut infos, &place)?;
        for initialiser in constants {
            self.constant(initialiser, &mut infos, &place)?;
        }
        for sparse in proto.sparse_initializer {
            self.sparse_constant(sparse, &place)?;
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
        self.outputs(&outputs, region, &place)?;
        self.scopes.pop();
        Ok(())
    }

    /// Sets the outputs of a graph. `torch.onnx.export` repeats the name of a tensor that a program
    /// returns more than once, which ONNX does not allow: in the main graph, these outputs get
    /// distinct names.
    fn outputs(&mut self, names: &[String], region: RegionId, place: &str) -> Result<()> {
        let values = names.iter().map(|name| self.find(name, place));
        let values: Vec<Value> = values.collect::<Result<_>>()?;
        let mut taken = FxHashSet::default();
        let again: Vec<usize> =
            (0..names.len()).filter(|&i| !taken.insert(names[i].clone())).collect();
        if region != Model::MAIN || again.is_empty() {
            self.model.set_outputs_as_written(region, &values);
            return Ok(());
        }
        self.lost.insert("equal names of outputs");
        self.model.set_outputs(region, &values);
        for i in again {
            let mut others = (1..).map(|k| format!("{}_{k}", names[i]));
            let free = others.find(|name| self.find(name, place).is_err() && !taken.contains(name));
            if let Some(name) = free {
                taken.insert(name.clone());
                self.model.set_output_name(region, i, name);
            }
        }
        Ok(())
    }

    /// Adds the inputs of a graph with their defaults, and returns the initialisers that are
    /// constants. Before IR version 4, each initialiser had to be an input as well, which callers
    /// did not have to give: it is a constant.
    fn inputs(
        &mut self,
        inputs: Vec<ValueInfoProto>,
        initialisers: Vec<TensorProto>,
        region: RegionId,
        infos: &mut Infos,
        place: &str,
    ) -> Result<Vec<TensorProto>> {
        let names: FxHashSet<&str> = inputs.iter().map(|i| i.name()).collect();
        let mut defaults = FxHashMap::default();
        let mut constants = Vec::new();
        for initialiser in initialisers {
            let name = initialiser.name().to_owned();
            if !names.contains(&*name) {
                constants.push(initialiser);
            } else if defaults.insert(name.clone(), initialiser).is_some() {
                return Err(Invalid::TwoValues(name).at(place));
            }
        }
        for info in inputs {
            match defaults.remove(info.name()) {
                Some(initialiser) if self.ir_version < 4 => {
                    constants.push(initialiser);
                    infos.insert(info.name().to_owned(), info);
                }
                Some(_) if region != Model::MAIN => {
                    return Err(Invalid::DefaultOfBody.at(format!("{place}, `{}`", info.name())));
                }
                default => {
                    let value = self.model.add_input(region, None);
                    self.define(value, info.name(), place)?;
                    if let Some(proto) = default {
                        let tensor = self.initialiser(proto)?;
                        self.model[value].default = Some(Box::new(tensor));
                    }
                    self.inform(value, info)?;
                }
            }
        }
        Ok(constants)
    }

    /// Adds an initialiser that is a constant.
    fn constant(
        &mut self,
        mut initialiser: TensorProto,
        infos: &mut Infos,
        place: &str,
    ) -> Result<()> {
        let name = initialiser.name().to_owned();
        let metadata = metadata(std::mem::take(&mut initialiser.metadata_props));
        let doc_string = initialiser.doc_string.take();
        let tensor = self.initialiser(initialiser)?;
        let value = self.model.add_constant(tensor);
        self.define(value, &name, place)?;
        self.model[value].metadata = metadata;
        self.model[value].doc_string = words(doc_string);
        if let Some(mut info) = infos.remove(&name) {
            // Its type is that of the tensor.
            info.r#type = None;
            self.inform(value, info)?;
        }
        Ok(())
    }

    /// Adds a sparse initialiser as a dense constant.
    fn sparse_constant(&mut self, mut sparse: SparseTensorProto, place: &str) -> Result<()> {
        let name = sparse.values.get_or_insert_default().name.take().unwrap_or_default();
        let tensor = sparse::dense(&mut self.files, sparse, &format!("initialiser `{name}`"))?;
        let value = self.model.add_constant(tensor);
        self.define(value, &name, place)
    }

    /// A weight of a model that was saved without weights: a value with a type that nothing
    /// computes.
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
    pub fn inform(&mut self, value: Value, info: ValueInfoProto) -> Result<()> {
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
    pub fn define(&mut self, value: Value, name: &str, place: &str) -> Result<()> {
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

    /// The value of this name in the graph or those around it.
    pub fn find(&self, name: &str, place: &str) -> Result<Value> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.copied().ok_or_else(|| Invalid::Undefined(name.to_owned()).at(place))
    }

    /// Adds the body of a node.
    pub fn body(&mut self, proto: GraphProto) -> Result<RegionId> {
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
pub(super) fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

pub(super) fn metadata<T: From<String>>(entries: Vec<StringStringEntryProto>) -> Metadata<T> {
    let pair = |e: StringStringEntryProto| {
        (Cow::Owned(e.key.unwrap_or_default()), e.value.unwrap_or_default().into())
    };
    entries.into_iter().map(pair).collect()
}

/// A text that is not empty.
pub(super) fn words<T: From<String>>(text: Option<String>) -> Option<T> {
    text.filter(|t| !t.is_empty()).map(Into::into)
}
