//! The arena of a model: its nodes, values and regions, and the methods that change them.
//!
//! Ids are never reused; an erased node leaves its slot empty. The nodes of a region form a linked
//! list, so that inserting and erasing take constant time. Constants (weights too) belong to no
//! region: any region can use them.

use crate::{
    attribute::Attributes,
    function::Function,
    ids::{ModuleId, NodeId, OriginId, RegionId, Value},
    node::Node,
    op_set::{OpSet, OpTag},
    origin::{Metadata, ModuleCall, Origin},
    region::{InsertPoint, Region},
    traits::Traits,
    types::{Type, unknown_symbol},
    uses::{Use, Uses},
    value::{Def, ValueData},
};
use indexmap::IndexMap;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;
use smallvec::SmallVec;
use std::borrow::Cow;

/// Neighbours of a node in its region. They are stored apart from the node, so that a walk does not
/// touch the nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    pub prev: Option<NodeId>,
    pub next: Option<NodeId>,
}

/// An ONNX model: the arena of its graphs, and the header of the file.
#[derive(Clone, Debug)]
pub struct Model {
    /// Opset of the default domain; 0 if the model does not import it.
    pub opset: u32,
    /// Versions of the other domains that the model imports.
    pub imports: IndexMap<String, u32>,
    /// IR version to write. If `None`, the lowest that fits the opset and the features in use
    /// ([`Model::ir_version()`]).
    pub ir_version: Option<u32>,
    /// Name of the main graph.
    pub name: String,
    /// The program that made the model; `None` means pt2onnx.
    pub producer: Option<String>,
    /// Version of that program, if `producer` is set.
    pub producer_version: Option<String>,
    /// Namespace of the model, as a reversed DNS name.
    pub domain: Option<String>,
    /// The user's version of the model.
    pub model_version: Option<i64>,
    /// Documentation.
    pub doc_string: Option<String>,
    /// Whether the source lines of a node's origins are written into its `doc_string`.
    pub source_lines: bool,
    /// Whether the types of values that are no inputs or outputs are written.
    pub inner_types: bool,
    /// `metadata_props` of the model.
    pub metadata: Metadata,
    /// `metadata_props` of the main graph.
    pub graph_metadata: Metadata,
    /// Model-local functions.
    pub functions: Vec<Function>,
    pub(crate) nodes: Vec<Option<Node>>,
    pub(crate) links: Vec<Links>,
    /// The hashed operator of each node; `None` for erased nodes.
    pub(crate) tags: Vec<Option<OpTag>>,
    pub(crate) values: Vec<ValueData>,
    pub(crate) regions: Vec<Region>,
    pub(crate) origins: Vec<Origin>,
    pub(crate) modules: Vec<ModuleCall>,
    pub(crate) unknown_dims: usize,
    pub(crate) edits: u64,
}

impl Model {
    /// An empty model. Its main graph is [`Model::MAIN`].
    pub fn new(opset: u32) -> Self {
        Self {
            opset,
            imports: IndexMap::new(),
            ir_version: None,
            name: "main_graph".to_owned(),
            producer: None,
            producer_version: None,
            domain: None,
            model_version: None,
            doc_string: None,
            source_lines: false,
            inner_types: true,
            metadata: Metadata::new(),
            graph_metadata: Metadata::new(),
            functions: Vec::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            tags: Vec::new(),
            values: Vec::new(),
            regions: vec![Region::default()],
            origins: Vec::new(),
            modules: Vec::new(),
            unknown_dims: 0,
            edits: 0,
        }
    }

    /// The main graph.
    pub const MAIN: RegionId = RegionId::MAIN;

    /// Reserves memory for more nodes, each with an output and an origin.
    pub fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
        self.links.reserve(nodes);
        self.tags.reserve(nodes);
        self.values.reserve(nodes);
        self.origins.reserve(nodes);
    }

    /// Adds an empty region, for an attribute or a function to refer to.
    pub fn add_region(&mut self) -> RegionId {
        self.regions.push(Region::default());
        RegionId::new(self.regions.len() - 1)
    }

    /// How many edits were made so far: values and neighbours of nodes that were added or moved,
    /// and uses that were added or dropped.
    pub fn edits(&self) -> u64 {
        self.edits
    }

    /// A new unknown dimension, equal to no other.
    pub fn unknown_dim(&mut self) -> Expr {
        self.unknown_dims += 1;
        unknown_symbol(self.unknown_dims)
    }

    /// Adds an origin, for nodes to refer to.
    pub fn add_origin(&mut self, origin: Origin) -> OriginId {
        self.origins.push(origin);
        OriginId::new(self.origins.len() - 1)
    }

    pub(crate) fn add_value(&mut self, def: Def, ty: Option<Type>) -> Value {
        self.edits += 1;
        self.values.push(ValueData {
            name: None,
            ty,
            metadata: Metadata::new(),
            doc_string: None,
            default: None,
            def,
            uses: Uses::default(),
        });
        Value::new(self.values.len() - 1)
    }

    /// Appends an input to a region.
    pub fn add_input(&mut self, region: RegionId, ty: Option<Type>) -> Value {
        let index = self.regions[region.index()].inputs.len() as u32;
        let value = self.add_value(Def::Input(region, index), ty);
        self.regions[region.index()].inputs.push(value);
        value
    }

    /// Removes the inputs of the main graph that nothing uses, except for those at the positions
    /// `keep`. Returns their positions.
    pub fn remove_unused_inputs(&mut self, keep: &[usize]) -> Vec<usize> {
        let inputs = self.inputs().to_vec().into_iter().enumerate();
        let used = |at: &(usize, Value)| self[at.1].uses().len() > 0 || keep.contains(&at.0);
        let (kept, gone): (Vec<_>, Vec<_>) = inputs.partition(used);
        let values = |all: &[(usize, Value)]| all.iter().map(|at| at.1).collect::<Vec<_>>();
        self.order_inputs(&values(&kept), &values(&gone));
        gone.into_iter().map(|(position, _)| position).collect()
    }

    /// Makes the inputs of the main graph these, in this order; the others, which nothing uses, are
    /// gone.
    pub(crate) fn order_inputs(&mut self, inputs: &[Value], gone: &[Value]) {
        let main = Self::MAIN;
        self[main].inputs = inputs.to_vec();
        for (i, &value) in inputs.iter().enumerate() {
            self.values[value.index()].def = Def::Input(main, i as u32);
        }
        for &value in gone {
            let data = &mut self.values[value.index()];
            let nothing = Tensor::scalar(0_i64);
            (data.def, data.name, data.ty) = (Def::Constant(nothing), None, None);
        }
    }

    /// Adds a constant. It is written if something uses it.
    pub fn add_constant(&mut self, tensor: Tensor) -> Value {
        let ty = Type::of(&tensor);
        self.add_value(Def::Constant(tensor), Some(ty))
    }

    /// The elements of a constant of int64 or int32; `None` for other values.
    pub fn const_ints(&self, value: Value) -> Option<Vec<i64>> {
        self[value].constant()?.to_ints()
    }

    /// The only element of a constant of int64 or int32; `None` for other values.
    pub fn const_int(&self, value: Value) -> Option<i64> {
        match self.const_ints(value)?[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Replaces the tensor of a constant. Returns false, and changes nothing, if the value is not a
    /// constant or the element type or sizes differ.
    pub fn set_constant(&mut self, value: Value, tensor: Tensor) -> bool {
        match &mut self.values[value.index()].def {
            Def::Constant(old)
                if (old.dtype(), old.shape()) == (tensor.dtype(), tensor.shape()) =>
            {
                *old = tensor;
                true
            }
            _ => false,
        }
    }

    /// Adds a node of the default domain with `outputs` new values of unknown type.
    ///
    /// # Panics
    /// `at` is [before](InsertPoint::Before) an erased node.
    pub fn add_node(
        &mut self,
        at: InsertPoint,
        op: impl Into<Cow<'static, str>>,
        inputs: &[Option<Value>],
        attributes: Attributes,
        outputs: usize,
    ) -> NodeId {
        let id = NodeId::new(self.nodes.len());
        let (region, prev, next) = match at {
            InsertPoint::End(region) => (region, self.regions[region.index()].last, None),
            InsertPoint::Before(node) => {
                let (region, prev) = (self[node].region, self.prev(node));
                (region, prev, Some(node))
            }
        };
        let outputs = (0..outputs).map(|i| self.add_value(Def::Node(id, i as u32), None)).collect();
        for (i, input) in inputs.iter().enumerate() {
            self.note_use(*input, Use::Input(id, i as u32));
        }
        let op = op.into();
        self.tags.push(Some(OpTag::of(&op)));
        self.nodes.push(Some(Node {
            traits: Traits::of(&op),
            op,
            domain: Cow::Borrowed(""),
            overload: Cow::Borrowed(""),
            attributes,
            name: None,
            origins: SmallVec::new(),
            inputs: inputs.into(),
            outputs,
            region,
        }));
        self.links.push(Links::default());
        self.link(region, prev, Some(id));
        self.link(region, Some(id), next);
        id
    }

    /// Adds a node that is erased already, to be the producer of a value whose node is not made
    /// yet.
    pub(crate) fn add_erased_node(&mut self) -> NodeId {
        self.nodes.push(None);
        self.links.push(Links::default());
        self.tags.push(None);
        NodeId::new(self.nodes.len() - 1)
    }

    /// Inserts an output into a node, in front of the one at `index` or at the end. Returns its
    /// value, of unknown type.
    pub fn insert_output(&mut self, node: NodeId, index: usize) -> Value {
        let index = index.min(self[node].outputs.len());
        let value = self.add_value(Def::Node(node, index as u32), None);
        self[node].outputs.insert(index, value);
        for (i, moved) in self[node].outputs.clone().into_iter().enumerate().skip(index + 1) {
            self[moved].def = Def::Node(node, i as u32);
        }
        value
    }

    /// Changes the operator of a node.
    pub fn set_op(&mut self, node: NodeId, op: impl Into<Cow<'static, str>>) {
        let op = op.into();
        self.tags[node.index()] = Some(OpTag::of(&op));
        self[node].traits = Traits::of(&op);
        self[node].op = op;
    }

    /// Makes `a` and `b` neighbours; `None` is the region's boundary.
    pub(crate) fn link(&mut self, region: RegionId, a: Option<NodeId>, b: Option<NodeId>) {
        self.edits += 1;
        match a {
            Some(a) => self.links[a.index()].next = b,
            None => self.regions[region.index()].first = b,
        }
        match b {
            Some(b) => self.links[b.index()].prev = a,
            None => self.regions[region.index()].last = a,
        }
    }

    /// Takes a node out of its region's list.
    pub(crate) fn unlink(&mut self, node: NodeId) {
        let Links { prev, next } = self.links[node.index()];
        self.link(self[node].region, prev, next);
    }

    pub(crate) fn note_use(&mut self, value: Option<Value>, at: Use) {
        self.edits += 1;
        if let Some(v) = value {
            self.values[v.index()].uses.insert(at);
        }
    }

    pub(crate) fn drop_use(&mut self, value: Option<Value>, at: Use) {
        self.edits += 1;
        if let Some(v) = value {
            self.values[v.index()].uses.remove(at);
        }
    }

    /// Replaces one input of a node. Returns false, and changes nothing, if the node has fewer
    /// inputs.
    pub fn replace_input(&mut self, node: NodeId, index: usize, value: Option<Value>) -> bool {
        let Some(slot) = self[node].inputs.get_mut(index) else {
            return false;
        };
        let old = std::mem::replace(slot, value);
        self.drop_use(old, Use::Input(node, index as u32));
        self.note_use(value, Use::Input(node, index as u32));
        true
    }

    /// Sets all inputs of a node.
    pub fn set_inputs(&mut self, node: NodeId, inputs: &[Option<Value>]) {
        let old = std::mem::replace(&mut self[node].inputs, inputs.into());
        for (i, value) in old.into_iter().enumerate() {
            self.drop_use(value, Use::Input(node, i as u32));
        }
        for (i, &value) in inputs.iter().enumerate() {
            self.note_use(value, Use::Input(node, i as u32));
        }
    }

    /// Sets all attributes of a node, and empties the bodies that it then does not have any more.
    pub fn set_attributes(&mut self, node: NodeId, attributes: Attributes) {
        let old = std::mem::replace(&mut self[node].attributes, attributes);
        let kept: Vec<_> = self[node].regions().collect();
        for body in old.iter().flat_map(|(_, attribute)| attribute.regions()) {
            if !kept.contains(body) {
                self.clear(*body);
            }
        }
    }

    /// Removes a node and its bodies. Returns false, and changes nothing, if an output of the node
    /// is used.
    pub fn erase(&mut self, node: NodeId) -> bool {
        if !self.is_unused(node) {
            return false;
        }
        for owned in self[node].regions().collect::<Vec<_>>() {
            self.clear(owned);
        }
        self.unlink(node);
        self.tags[node.index()] = None;
        if let Some(gone) = self.nodes[node.index()].take() {
            for (i, value) in gone.inputs.into_iter().enumerate() {
                self.drop_use(value, Use::Input(node, i as u32));
            }
        }
        true
    }

    pub(crate) fn clear(&mut self, region: RegionId) {
        self.set_outputs(region, &[]);
        let mut last = self.regions[region.index()].last;
        while let Some(node) = last {
            last = self.prev(node);
            self.erase(node);
        }
    }

    /// Whether nothing uses any output of the node.
    pub fn is_unused(&self, node: NodeId) -> bool {
        self[node].outputs.iter().all(|v| self[*v].uses().len() == 0)
    }

    /// Whether the node has not been erased.
    pub fn contains(&self, node: NodeId) -> bool {
        self.tags.get(node.index()).is_some_and(Option::is_some)
    }

    /// Whether a node exists and may have one of these operators. Fast, but not exact: true can be
    /// wrong, false cannot.
    pub fn may_be(&self, node: NodeId, ops: OpSet) -> bool {
        let tag = self.tags.get(node.index()).copied().flatten();
        tag.is_some_and(|tag| ops.contains(tag))
    }

    /// The operators of nodes.
    pub fn ops_of(&self, nodes: &[NodeId]) -> OpSet {
        let mut ops = OpSet::default();
        let tags = nodes.iter().filter_map(|node| self.tags.get(node.index()).copied().flatten());
        tags.for_each(|tag| ops.insert(tag));
        ops
    }

    /// Adds the origins of `from` to those of `to`, for a node `to` that replaces `from`.
    pub fn merge_origins(&mut self, to: NodeId, from: NodeId) {
        for origin in self[from].origins.clone() {
            if !self[to].origins.contains(&origin) {
                self[to].origins.push(origin);
            }
        }
    }
}

macro_rules! index {
    ($id:ty, $data:ty, $field:ident) => {
        impl std::ops::Index<$id> for Model {
            type Output = $data;
            fn index(&self, id: $id) -> &$data {
                &self.$field[id.index()]
            }
        }
        impl std::ops::IndexMut<$id> for Model {
            fn index_mut(&mut self, id: $id) -> &mut $data {
                &mut self.$field[id.index()]
            }
        }
    };
}
index!(Value, ValueData, values);
index!(OriginId, Origin, origins);
index!(ModuleId, ModuleCall, modules);
index!(RegionId, Region, regions);

/// Panics for an erased node, as `Vec` does for an index out of bounds. [`Model::contains`] returns
/// whether a node exists.
impl std::ops::Index<NodeId> for Model {
    type Output = Node;
    #[expect(clippy::expect_used, reason = "same contract as Vec's index")]
    fn index(&self, id: NodeId) -> &Node {
        self.nodes[id.index()].as_ref().expect("erased node")
    }
}
impl std::ops::IndexMut<NodeId> for Model {
    #[expect(clippy::expect_used, reason = "same contract as Vec's index")]
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id.index()].as_mut().expect("erased node")
    }
}
