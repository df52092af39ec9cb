//! Finds functions by their calls.

use crate::{Function, Model, Node, function::Key};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::hash::BuildHasher;

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
