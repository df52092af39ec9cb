//! Defines the functions of a model.

use crate::{Attributes, Metadata, Model, Node, RegionId};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// A function of a model (ONNX: model-local function). Nodes of its domain, name and overload call
/// it.
#[derive(Clone, Debug)]
pub struct Function {
    /// Domain of the nodes that call it.
    pub domain: String,
    /// Operator type of the nodes that call it.
    pub name: String,
    /// Distinguishes functions with the same domain and name; mostly empty.
    pub overload: String,
    /// Names of the attributes that its body may refer to.
    pub attributes: Vec<String>,
    /// More attributes, with the values for calls that do not give them.
    pub defaults: Attributes,
    /// Versions of the domains that the body uses. If empty, those of the model.
    pub imports: IndexMap<String, u32>,
    /// Documentation.
    pub doc_string: Option<String>,
    /// Its `metadata_props`.
    pub metadata: Metadata,
    /// Its body. The inputs and outputs of the body are those of the function.
    pub body: RegionId,
}

impl Function {
    /// A function without attributes.
    pub fn new(domain: impl Into<String>, name: impl Into<String>, body: RegionId) -> Self {
        Self {
            domain: domain.into(),
            name: name.into(),
            overload: String::new(),
            attributes: Vec::new(),
            defaults: Attributes::new(),
            imports: IndexMap::new(),
            doc_string: None,
            metadata: Metadata::new(),
            body,
        }
    }

    /// Its calls are recognised by these.
    fn key(&self) -> Key<'_> {
        (&self.domain, &self.name, &self.overload)
    }

    /// Domain and name, for errors.
    pub(crate) fn called(&self) -> String {
        format!("{}.{}", self.domain, self.name)
    }

    /// Whether both have the same domain, name and overload.
    pub fn is_same_as(&self, other: &Function) -> bool {
        self.key() == other.key()
    }
}

/// Domain, name and overload.
type Key<'a> = (&'a str, &'a str, &'a str);

/// Finds the functions of a model by their calls.
#[derive(Clone, Debug)]
pub struct FunctionIndex(FxHashMap<u64, SmallVec<[usize; 1]>>);

impl Model {
    /// An index of the functions, which is right until functions are added, removed or renamed.
    ///
    /// ```
    /// use pt2onnx_ir::Model;
    ///
    /// let text = r#"<ir_version: 9, opset_import: ["" : 20, "my" : 1]>
    /// main_graph (float[2] x) => (float[2] y) { y = my.f (x) }
    /// <domain: "my", opset_import: ["" : 20]> f (x) => (y) { y = Relu (x) }"#;
    /// let model: Model = text.parse()?;
    /// let index = model.function_index();
    /// let call = model.nodes(Model::MAIN).next().map(|id| &model[id]);
    /// assert!(call.is_some_and(|call| index.called(&model, call).is_some()));
    /// # Ok::<(), pt2onnx_ir::ParseError>(())
    /// ```
    pub fn function_index(&self) -> FunctionIndex {
        let mut index = FunctionIndex(FxHashMap::default());
        for (place, function) in self.functions.iter().enumerate() {
            index.0.entry(hash(function.key())).or_default().push(place);
        }
        index
    }
}

impl FunctionIndex {
    /// The function of the model that a node calls.
    pub fn called<'m>(&self, model: &'m Model, node: &Node) -> Option<&'m Function> {
        self.find(model, (&node.domain, &node.op, &node.overload))
    }

    /// The function of the model that has the domain, name and overload of another model's.
    pub fn same_as<'m>(&self, model: &'m Model, other: &Function) -> Option<&'m Function> {
        self.find(model, other.key())
    }

    fn find<'m>(&self, model: &'m Model, key: Key<'_>) -> Option<&'m Function> {
        if self.0.is_empty() {
            return None;
        }
        let alike = self.0.get(&hash(key))?.iter();
        alike.filter_map(|&place| model.functions.get(place)).find(|f| f.key() == key)
    }
}

fn hash(key: Key<'_>) -> u64 {
    FxBuildHasher.hash_one(key)
}
