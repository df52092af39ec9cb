//! Adds nodes and constants to a graph.

use pt2onnx_ir::{
    Attribute, Attributes, Def, InsertPoint, Model, Name, Node, NodeId, RegionId, Type, Value,
};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashSet;

/// A model to which nodes are added.
pub(crate) struct Edit<'m> {
    pub model: &'m mut Model,
    names: FxHashSet<Name>,
}

/// A node to be added.
pub(crate) struct NewNode<'a> {
    pub op: &'static str,
    pub domain: &'static str,
    pub inputs: &'a [Option<Value>],
    pub attributes: Attributes,
}

impl<'a> NewNode<'a> {
    /// A node of ONNX's own domain without attributes.
    pub fn of(op: &'static str, inputs: &'a [Option<Value>]) -> Self {
        Self { op, domain: "", inputs, attributes: Vec::new() }
    }

    /// With an integer.
    pub fn int(mut self, name: &'static str, value: usize) -> Self {
        self.attributes
            .push((name.into(), Attribute::Int(i64::try_from(value).unwrap_or(i64::MAX))));
        self
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

    /// A node, made for the same source nodes as `like`, and its outputs of the given types.
    pub fn add(
        &mut self,
        at: InsertPoint,
        like: Option<NodeId>,
        node: NewNode<'_>,
        types: &[Option<Type>],
    ) -> Vec<Value> {
        let NewNode { op, domain, inputs, attributes } = node;
        let id = self.model.add_node(at, op, Node::given(inputs), attributes, types.len());
        if !domain.is_empty() {
            self.model[id].domain = domain.into();
            self.model.imports.entry(domain.to_owned()).or_insert(1);
        }
        if let Some(like) = like {
            self.model.merge_origins(id, like);
        }
        let outputs = self.model[id].outputs().to_vec();
        for (value, ty) in outputs.iter().zip(types) {
            self.model[*value].ty.clone_from(ty);
        }
        outputs
    }

    /// A node with one output.
    pub fn add1(
        &mut self,
        at: InsertPoint,
        like: Option<NodeId>,
        node: NewNode<'_>,
        ty: Option<Type>,
    ) -> Value {
        let outputs = self.add(at, like, node, &[ty]);
        outputs.first().copied().unwrap_or_else(|| self.model.add_constant(Tensor::scalar(0_i64)))
    }

    /// A `Cast`.
    pub fn cast(
        &mut self,
        at: InsertPoint,
        like: Option<NodeId>,
        value: Value,
        to: DType,
    ) -> Value {
        let ty = with_dtype(self.model, value, to);
        let number = Attribute::Int(pt2onnx_ir::schema::data_type(to));
        let inputs = [Some(value)];
        let node =
            NewNode { attributes: vec![("to".into(), number)], ..NewNode::of("Cast", &inputs) };
        self.add1(at, like, node, ty)
    }

    /// Where a node stands that all users of a constant can see.
    pub fn before(&self, users: &[(NodeId, usize)]) -> (InsertPoint, Option<NodeId>) {
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
            Def::Node(node, _) => match self.model.next(node) {
                Some(next) => InsertPoint::Before(next),
                None => InsertPoint::End(self.model[node].region()),
            },
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

/// The type of a tensor with another element type.
pub(crate) fn with_dtype(model: &Model, value: Value, dtype: DType) -> Option<Type> {
    let mut ty = model[value].ty.clone()?;
    match &mut ty {
        Type::Tensor(tensor) => tensor.dtype = dtype,
        _ => return None,
    }
    Some(ty)
}
