//! Adds nodes and constants to a graph.

use pt2onnx_ir::{
    Attribute, Attributes, Def, InsertPoint, Model, Name, Node, NodeId, RegionId, TensorType, Type,
    Value,
};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashSet;

pub(crate) struct Edit<'m> {
    pub model: &'m mut Model,
    names: FxHashSet<Name>,
}

/// Where a node is added, and the node that it is made for the same source nodes as.
pub(crate) type Place = (InsertPoint, Option<NodeId>);

pub(crate) struct NewNode {
    op: &'static str,
    domain: &'static str,
    inputs: Vec<Option<Value>>,
    attributes: Attributes,
}

impl NewNode {
    /// A node of ONNX's own domain without attributes.
    pub fn of(
        op: &'static str,
        inputs: impl IntoIterator<Item = impl Into<Option<Value>>>,
    ) -> Self {
        let inputs = inputs.into_iter().map(Into::into).collect();
        Self { op, domain: "", inputs, attributes: Vec::new() }
    }

    /// With an integer.
    pub fn int(mut self, name: &'static str, value: usize) -> Self {
        let value = Attribute::Int(i64::try_from(value).unwrap_or(i64::MAX));
        self.attributes.push((name.into(), value));
        self
    }

    /// With these attributes.
    pub fn with(self, attributes: Attributes) -> Self {
        Self { attributes, ..self }
    }

    /// In the domain of ONNX Runtime's operators.
    pub fn ort(self) -> Self {
        Self { domain: "com.microsoft", ..self }
    }
}

impl<'m> Edit<'m> {
    pub fn new(model: &'m mut Model) -> Self {
        let names = model.values().filter_map(|(_, data)| data.name.clone()).collect();
        Self { model, names }
    }

    /// A constant, named after a weight.
    pub fn constant(&mut self, tensor: Tensor, weight: &str, end: &str) -> Value {
        let first = format!("{weight}_{end}");
        let others = (1..).map(|i| format!("{weight}_{end}_{i}"));
        let mut all = std::iter::once(first).chain(others).map(Name::from);
        let name = all.find(|name| self.names.insert(name.clone()));
        let value = self.model.add_constant(tensor);
        self.model[value].name = name;
        value
    }

    /// A node with outputs of the given types.
    pub fn add(
        &mut self,
        (at, like): Place,
        node: NewNode,
        types: impl IntoIterator<Item = Option<Type>, IntoIter: ExactSizeIterator>,
    ) -> Vec<Value> {
        let NewNode { op, domain, inputs, attributes } = node;
        let types = types.into_iter();
        let id = self.model.add_node(at, op, Node::given(&inputs), attributes, types.len());
        if !domain.is_empty() {
            self.model[id].domain = domain.into();
            self.model.imports.entry(domain.to_owned()).or_insert(1);
        }
        if let Some(like) = like {
            self.model.merge_origins(id, like);
        }
        let outputs = self.model[id].outputs().to_vec();
        for (value, ty) in outputs.iter().zip(types) {
            self.model[*value].ty = ty;
        }
        outputs
    }

    /// A node with one output.
    pub fn add1(&mut self, place: Place, node: NewNode, ty: Option<Type>) -> Value {
        let outputs = self.add(place, node, [ty]);
        outputs.first().copied().unwrap_or_else(|| self.model.add_constant(Tensor::scalar(0_i64)))
    }

    /// A `Cast`.
    pub fn cast(&mut self, place: Place, value: Value, to: DType) -> Value {
        let ty = with_dtype(self.model, value, to);
        let mut node = NewNode::of("Cast", [value]);
        node.attributes.push(("to".into(), Attribute::Int(pt2onnx_ir::schema::data_type(to))));
        self.add1(place, node, ty)
    }

    /// Where a node stands that all users of a constant can see.
    pub fn before(&self, users: &[(NodeId, usize)]) -> Place {
        let first = users.first().map(|(node, _)| *node);
        let main = |node: &NodeId| self.model[*node].region() == Model::MAIN;
        match first.filter(|_| users.iter().all(|(node, _)| main(node))) {
            Some(node) => (InsertPoint::Before(node), first),
            None => (start(self.model, Model::MAIN), first),
        }
    }

    /// Right after a value is made, or at the start of what it is an input of.
    pub fn after(&self, value: Value) -> InsertPoint {
        match *self.model[value].def() {
            Def::Node(node, _) => self.model.after(node),
            Def::Input(region, _) => start(self.model, region),
            Def::Constant(_) => start(self.model, Model::MAIN),
        }
    }
}

fn start(model: &Model, region: RegionId) -> InsertPoint {
    match model.nodes(region).next() {
        Some(first) => InsertPoint::Before(first),
        None => InsertPoint::End(region),
    }
}

pub(crate) fn with_dtype(model: &Model, value: Value, dtype: DType) -> Option<Type> {
    match model[value].ty.clone()? {
        Type::Tensor(tensor) => Some(Type::Tensor(TensorType { dtype, ..tensor })),
        _ => None,
    }
}
