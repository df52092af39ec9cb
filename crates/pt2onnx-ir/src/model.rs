//! The arena: nodes, values and regions of a model, and the only ways to change them.
//!
//! Ids are never reused; an erased node leaves its slot empty. Nodes of a region form a linked list, so that inserting
//! and erasing take constant time wherever they happen. A constant (weights too) has no place: any region may use it.

use crate::{Attribute, Attributes, Function, Type, Use, op_set::OpTag, uses::Uses};
use indexmap::IndexMap;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::{borrow::Cow, num::NonZeroU32, sync::Arc};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// Position in the arena: ids count up from 0 in order of creation.
            pub fn index(self) -> usize {
                self.0.get() as usize - 1
            }

            fn new(index: usize) -> Self {
                // An arena of 2^32 entries would take hundreds of gigabytes before this could saturate.
                let number = u32::try_from(index).ok().and_then(|i| NonZeroU32::MIN.checked_add(i));
                Self(number.unwrap_or(NonZeroU32::MAX))
            }
        }
    };
}
id!(
    /// A value: a graph input, a constant or a node's output.
    Value
);
id!(
    /// A node.
    NodeId
);
id!(
    /// A region: the main graph, a body of `If`, `Loop` or `Scan`, or a function's body.
    RegionId
);
id!(
    /// Where in the source program a node comes from.
    OriginId
);

/// Name of a value, node or body. Cheap to clone; a short one lies in place.
pub type Name = SmolStr;

/// Key and value pairs that end up in `metadata_props`.
pub type Metadata = Vec<(Cow<'static, str>, Arc<str>)>;

/// What in the source program nodes were made from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Name of the source node.
    pub node: Name,
    /// What it did, such as `aten.relu.default`.
    pub op: Arc<str>,
    /// The user's source line, as `file.py:12`.
    pub location: Option<Arc<str>>,
    /// What it says of itself, where it was a node of an ONNX file.
    pub doc_string: Option<Arc<str>>,
    /// Metadata for every node made from it.
    pub metadata: Metadata,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub enum Def {
    /// Output `1` of a node.
    Node(NodeId, u32),
    /// Input `1` of a region.
    Input(RegionId, u32),
    /// A known tensor: an initialiser when written.
    Constant(Tensor),
}

/// All about a value.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its name; unnamed ones get one before the model is written. An output of a node that nothing uses may be left out
    /// of the file: its name is empty then.
    pub name: Option<Name>,
    /// Its type, if known.
    pub ty: Option<Type>,
    /// For `metadata_props` of inputs, outputs and initialisers.
    pub metadata: Metadata,
    /// Words about an input, output or initialiser.
    pub doc_string: Option<Arc<str>>,
    /// For an input of the main graph: what it is where the caller gives nothing.
    pub default: Option<Box<Tensor>>,
    def: Def,
    uses: Uses,
}

impl ValueData {
    /// Where it comes from.
    pub fn def(&self) -> &Def {
        &self.def
    }

    /// Where it is used.
    pub fn uses(&self) -> impl ExactSizeIterator<Item = Use> + '_ {
        self.uses.as_slice().iter().copied()
    }

    /// Whether it is an output that its node leaves out: some operators do other things where all are wanted.
    pub fn is_left_out(&self) -> bool {
        self.uses().len() == 0 && self.name.as_deref() == Some("")
    }

    /// The tensor, if it is a constant.
    pub fn constant(&self) -> Option<&Tensor> {
        match &self.def {
            Def::Constant(t) => Some(t),
            _ => None,
        }
    }
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) op: Cow<'static, str>,
    /// Domain; empty for ONNX's own operators.
    pub domain: Cow<'static, str>,
    /// Which of several functions of that domain and name it calls; mostly empty.
    pub overload: Cow<'static, str>,
    /// Attributes. Regions in them belong to this node.
    pub attributes: Attributes,
    /// Its name, if it has one already.
    pub name: Option<Name>,
    /// Where it comes from; several for a fused node, first that whose result it makes.
    pub origins: SmallVec<[OriginId; 1]>,
    inputs: SmallVec<[Option<Value>; 4]>,
    outputs: SmallVec<[Value; 2]>,
    region: RegionId,
}

/// Neighbours of a node in its region, apart from the node: who only walks past it does not touch it.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    prev: Option<NodeId>,
    next: Option<NodeId>,
}

impl Node {
    /// Operator type.
    pub fn op(&self) -> &str {
        &self.op
    }

    /// Inputs in order; `None` where an optional one is left out.
    pub fn inputs(&self) -> &[Option<Value>] {
        &self.inputs
    }

    /// Input `index`, if given.
    pub fn input(&self, index: usize) -> Option<Value> {
        self.inputs.get(index).copied().flatten()
    }

    /// Outputs in order.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// The region it stands in.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Whether it is ONNX's own operator `op`.
    pub fn is(&self, op: &str) -> bool {
        self.domain.is_empty() && self.op == op
    }

    /// The attribute of that name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        attribute(&self.attributes, name)
    }

    /// The integer attribute of that name.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name) {
            Some(Attribute::Int(i)) => Some(*i),
            _ => None,
        }
    }

    /// The regions it owns.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> + '_ {
        self.attributes.iter().flat_map(|(_, a)| a.regions().iter().copied())
    }
}

/// The attribute of that name.
pub(crate) fn attribute<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|(n, _)| n == name).map(|(_, a)| a)
}

/// An ordered list of nodes with inputs and outputs.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// Name of a body; one is made where there is none. The main graph's is [`Model::name`].
    pub name: Option<Name>,
    /// Words about it.
    pub doc_string: Option<Arc<str>>,
    /// `metadata_props` of a body. The main graph's are [`Model::graph_metadata`].
    pub metadata: Metadata,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    first: Option<NodeId>,
    last: Option<NodeId>,
}

impl Region {
    /// Inputs in order.
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    /// Outputs in order.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }
}

/// Where to put a new node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPoint {
    /// Behind all nodes of a region.
    End(RegionId),
    /// In front of a node.
    Before(NodeId),
}

/// A model: the arena and what the file says besides the graph.
#[derive(Clone, Debug)]
pub struct Model {
    /// Opset of ONNX's own operators that the graph is written for; 0 where it imports none.
    pub opset: u32,
    /// Opsets of other domains in use.
    pub imports: IndexMap<String, u32>,
    /// IR version to write; the lowest that opset and features need, unless set.
    pub ir_version: Option<u32>,
    /// Name of the main graph.
    pub name: String,
    /// Who made the model; pt2onnx and its version, unless set.
    pub producer: Option<String>,
    /// Version of the producer that is set.
    pub producer_version: Option<String>,
    /// Whose model it is, as a reversed DNS name.
    pub domain: Option<String>,
    /// The user's version of the model.
    pub model_version: Option<i64>,
    /// The user's words about the model.
    pub doc_string: Option<String>,
    /// Whether nodes tell the source lines of their origins in `doc_string`.
    pub source_lines: bool,
    /// `metadata_props` of the model.
    pub metadata: Metadata,
    /// `metadata_props` of the main graph.
    pub graph_metadata: Metadata,
    /// Model-local functions.
    pub functions: Vec<Function>,
    nodes: Vec<Option<Node>>,
    links: Vec<Links>,
    /// None of those that are gone.
    pub(crate) tags: Vec<Option<OpTag>>,
    values: Vec<ValueData>,
    regions: Vec<Region>,
    origins: Vec<Origin>,
    unknown_dims: usize,
    /// What passes work on.
    root: RegionId,
}

impl Model {
    /// An empty model; its main graph is [`Model::MAIN`].
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
            metadata: Metadata::new(),
            graph_metadata: Metadata::new(),
            functions: Vec::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            tags: Vec::new(),
            values: Vec::new(),
            regions: vec![Region::default()],
            origins: Vec::new(),
            unknown_dims: 0,
            root: Self::MAIN,
        }
    }

    /// The main graph.
    pub const MAIN: RegionId = RegionId(NonZeroU32::MIN);

    /// Makes room for so many more nodes, with an output and an origin each: lists that grow are moved.
    pub fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
        self.links.reserve(nodes);
        self.tags.reserve(nodes);
        self.values.reserve(nodes);
        self.origins.reserve(nodes);
    }

    /// A new, empty region; it becomes a body when an attribute or a function refers to it.
    pub fn add_region(&mut self) -> RegionId {
        self.regions.push(Region::default());
        RegionId::new(self.regions.len() - 1)
    }

    /// A dimension that nothing is known of, equal to no other.
    pub fn unknown_dim(&mut self) -> Expr {
        self.unknown_dims += 1;
        Expr::symbol(&format!("?{}", self.unknown_dims))
    }

    /// Registers where nodes come from.
    pub fn add_origin(&mut self, origin: Origin) -> OriginId {
        self.origins.push(origin);
        OriginId::new(self.origins.len() - 1)
    }

    fn add_value(&mut self, def: Def, ty: Option<Type>) -> Value {
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

    /// A new constant. It is written when something uses it.
    pub fn add_constant(&mut self, tensor: Tensor) -> Value {
        let shape: Vec<Expr> = tensor.shape().iter().map(|&s| Expr::int(s as i64)).collect();
        let ty = Type::tensor(tensor.dtype(), shape);
        self.add_value(Def::Constant(tensor), Some(ty))
    }

    /// Gives a constant other contents, of the same element type and sizes; false, and nothing happens, where it is no such
    /// constant.
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

    /// A new node with `outputs` new values of unknown type.
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

    /// Makes a node one of another operator type.
    pub fn set_op(&mut self, node: NodeId, op: impl Into<Cow<'static, str>>) {
        let op = op.into();
        self.tags[node.index()] = Some(OpTag::of(&op));
        self[node].op = op;
    }

    /// Makes `a` and `b` neighbours; `None` is the region's boundary.
    fn link(&mut self, region: RegionId, a: Option<NodeId>, b: Option<NodeId>) {
        match a {
            Some(a) => self.links[a.index()].next = b,
            None => self.regions[region.index()].first = b,
        }
        match b {
            Some(b) => self.links[b.index()].prev = a,
            None => self.regions[region.index()].last = a,
        }
    }

    fn note_use(&mut self, value: Option<Value>, at: Use) {
        if let Some(v) = value {
            self.values[v.index()].uses.insert(at);
        }
    }

    fn drop_use(&mut self, value: Option<Value>, at: Use) {
        if let Some(v) = value {
            self.values[v.index()].uses.remove(at);
        }
    }

    /// Sets the outputs of a region.
    pub fn set_outputs(&mut self, region: RegionId, outputs: &[Value]) {
        let old = std::mem::replace(&mut self.regions[region.index()].outputs, outputs.to_vec());
        for (i, value) in old.into_iter().enumerate() {
            self.drop_use(Some(value), Use::Output(region, i as u32));
        }
        for (i, &value) in outputs.iter().enumerate() {
            self.note_use(Some(value), Use::Output(region, i as u32));
        }
    }

    /// Replaces one input of a node.
    pub fn replace_input(&mut self, node: NodeId, index: usize, value: Option<Value>) {
        let Some(slot) = self[node].inputs.get_mut(index) else {
            return;
        };
        let old = std::mem::replace(slot, value);
        self.drop_use(old, Use::Input(node, index as u32));
        self.note_use(value, Use::Input(node, index as u32));
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

    /// Lets everything that used `old` use `new`.
    pub fn replace_all_uses(&mut self, old: Value, new: Value) {
        if old == new {
            return;
        }
        let uses = std::mem::take(&mut self.values[old.index()].uses);
        for &at in uses.as_slice() {
            match at {
                Use::Input(node, i) => self[node].inputs[i as usize] = Some(new),
                Use::Output(region, i) => self.regions[region.index()].outputs[i as usize] = new,
            }
            self.note_use(Some(new), at);
        }
    }

    /// Removes a node and the regions it owns. Returns whether it did: a node whose outputs are used stays.
    pub fn erase(&mut self, node: NodeId) -> bool {
        if !self.is_unused(node) {
            return false;
        }
        let (region, Links { prev, next }) = (self[node].region, self.links[node.index()]);
        for owned in self[node].regions().collect::<Vec<_>>() {
            self.clear(owned);
        }
        self.link(region, prev, next);
        self.tags[node.index()] = None;
        if let Some(gone) = self.nodes[node.index()].take() {
            for (i, value) in gone.inputs.into_iter().enumerate() {
                self.drop_use(value, Use::Input(node, i as u32));
            }
        }
        true
    }

    fn clear(&mut self, region: RegionId) {
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

    /// The node that makes a value.
    pub fn producer(&self, value: Value) -> Option<NodeId> {
        match self[value].def {
            Def::Node(node, _) => Some(node),
            _ => None,
        }
    }

    /// The node behind a node in its region.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        self.links[node.index()].next
    }

    /// The node in front of a node in its region.
    pub fn prev(&self, node: NodeId) -> Option<NodeId> {
        self.links[node.index()].prev
    }

    /// A region's nodes in order.
    pub fn nodes(&self, region: RegionId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self[region].first, |n| self.next(*n))
    }

    /// A region's nodes, last first.
    pub fn nodes_rev(&self, region: RegionId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self[region].last, |n| self.prev(*n))
    }

    /// All nodes of the main graph and the functions, a node in front of the nodes of its own regions.
    pub fn all_nodes(&self) -> Vec<NodeId> {
        let roots = std::iter::once(Self::MAIN).chain(self.functions.iter().map(|f| f.body));
        self.nodes_in(&roots.collect::<Vec<_>>())
    }

    /// All nodes that passes work on, a node in front of the nodes of its own regions: those of the main graph, or of a
    /// function's body, one at a time ([`Model::with_root`]).
    pub fn graph_nodes(&self) -> Vec<NodeId> {
        self.nodes_in(&[self.root])
    }

    /// The region that passes work on.
    pub fn root(&self) -> RegionId {
        self.root
    }

    /// Lets passes work on a function's body, which is written for that opset, as they do on the main graph.
    pub fn with_root<R>(
        &mut self,
        root: RegionId,
        opset: u32,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let outside = (self.root, self.opset);
        (self.root, self.opset) = (root, opset);
        let done = work(self);
        (self.root, self.opset) = outside;
        done
    }

    /// All nodes of regions, a node in front of the nodes of its own regions.
    pub fn nodes_in(&self, regions: &[RegionId]) -> Vec<NodeId> {
        let mut todo: Vec<NodeId> = regions.iter().flat_map(|r| self.nodes(*r)).collect();
        // There are no bodies to look for.
        if regions.len() == self.regions.len() {
            return todo;
        }
        todo.reverse();
        let mut all = Vec::with_capacity(todo.len());
        while let Some(node) = todo.pop() {
            all.push(node);
            let start = todo.len();
            todo.extend(self[node].regions().flat_map(|r| self.nodes(r)));
            todo[start..].reverse();
        }
        all
    }

    /// All values ever made, dead ones too.
    pub fn values(&self) -> impl Iterator<Item = (Value, &ValueData)> {
        self.values.iter().enumerate().map(|(i, v)| (Value::new(i), v))
    }

    /// Adds the origins of `from` to those of `to`, which now does what `from` did.
    pub fn merge_origins(&mut self, to: NodeId, from: NodeId) {
        for origin in self[from].origins.clone() {
            if !self[to].origins.contains(&origin) {
                self[to].origins.push(origin);
            }
        }
    }

    /// The main graph's inputs.
    pub fn inputs(&self) -> &[Value] {
        self[Self::MAIN].inputs()
    }

    /// The main graph's outputs.
    pub fn outputs(&self) -> &[Value] {
        self[Self::MAIN].outputs()
    }
}

/// Whether a dimension is one that nothing is known of: those have symbols that no program can spell.
pub fn is_unknown(dim: &Expr) -> bool {
    dim.as_symbol().is_some_and(|s| s.starts_with('?'))
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

impl std::ops::Index<RegionId> for Model {
    type Output = Region;
    fn index(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }
}

impl std::ops::IndexMut<RegionId> for Model {
    fn index_mut(&mut self, id: RegionId) -> &mut Region {
        &mut self.regions[id.index()]
    }
}

/// Indexing an erased node is a bug of the caller, as indexing out of a `Vec`'s bounds is.
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
