//! Values in the bodies of `If`, `Loop` and `Scan`, as outputs of the model.
//!
//! A value in a body is computed any number of times. The model gets two more outputs for it: the
//! concatenated elements of all times, and for each time the rank and the sizes. Branches that do
//! not compute it add nothing.

use crate::error::RunError;
use pt2onnx_ir::{Attribute, Attributes, Def, InsertPoint, Model, NodeId, RegionId, Type, Value};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

/// A value in a body, as two values of the main graph.
#[derive(Clone, Copy)]
pub(super) struct Collected {
    /// The elements.
    pub(super) elements: Value,
    /// For each time the number of dimensions, and the sizes.
    pub(super) sizes: Value,
}

/// The region that a value is of; `None` for a constant.
pub(super) fn region(model: &Model, value: Value) -> Option<RegionId> {
    match model[value].def() {
        Def::Node(node, _) => Some(model[*node].region()),
        Def::Input(region, _) => Some(*region),
        Def::Constant(_) => None,
    }
}

/// The node of each body.
pub(super) type Owners = FxHashMap<RegionId, NodeId>;

/// The node that each body belongs to. The bodies of functions belong to none.
pub(super) fn owners(model: &Model) -> Owners {
    let nodes = model.all_nodes().into_iter();
    let owned = nodes
        .flat_map(|node| model[node].regions().map(move |body| (body, node)).collect::<Vec<_>>());
    owned.collect()
}

/// Whether a region is the main graph, or a body in it.
pub(super) fn in_main(model: &Model, owners: &Owners, mut region: RegionId) -> bool {
    while region != Model::MAIN {
        match owners.get(&region) {
            Some(&node) => region = model[node].region(),
            None => return false,
        }
    }
    true
}

/// Carries a value of a body out to the main graph.
pub(super) fn collect(
    model: &mut Model,
    owners: &Owners,
    value: Value,
    mut region: RegionId,
) -> Result<Collected, String> {
    let tensor = model[value].ty.as_ref().and_then(Type::as_tensor);
    let dtype = tensor.ok_or("it is not known to be a tensor")?.dtype;
    let mut carrier = Carrier { model, dtype };
    let mut carried = carrier.flatten(value, region)?;
    // Whether the number of elements may differ from step to step.
    let mut varies = false;
    while region != Model::MAIN {
        let node = *owners.get(&region).ok_or("it is in a function")?;
        carried = match carrier.model[node].op() {
            _ if !carrier.model[node].domain.is_empty() => {
                Err("its body is of an unknown operator")
            }
            "If" => Ok(carrier.out_of_if(node, region, carried)?),
            "Loop" => Ok(carrier.out_of_loop(node, region, carried)?),
            "Scan" if varies => Err(
                "it is in a branch or loop inside of a Scan, whose steps must all give equally many elements",
            ),
            "Scan" => Ok(carrier.out_of_scan(node, region, carried)?),
            _ => Err("its body is of an unknown operator"),
        }?;
        varies |= !carrier.model[node].is("Scan");
        region = carrier.model[node].region();
    }
    Ok(carried)
}

/// All times in one tensor: the first dimension counts them. Sizes of a value that was never
/// computed are those of `ty`, or 0.
pub(super) fn together(
    name: &str,
    elements: &Tensor,
    sizes: &Tensor,
    ty: Option<&Type>,
) -> Result<Tensor, RunError> {
    let failed = |reason: String| RunError::Output { name: name.to_owned(), reason };
    let numbers = sizes.to_vec::<i64>().unwrap_or_default();
    let (mut rest, mut shapes) = (&numbers[..], Vec::new());
    while let Some((&rank, more)) = rest.split_first() {
        let split = usize::try_from(rank).ok().and_then(|rank| more.split_at_checked(rank));
        let (shape, more) = split.ok_or_else(|| failed("its sizes are not understood".into()))?;
        shapes.push(shape);
        rest = more;
    }
    if let Some(other) = shapes.iter().find(|shape| **shape != shapes[0]) {
        let shapes = format!("{:?} and {other:?}", shapes[0]);
        return Err(failed(format!("its sizes change from time to time: {shapes}")));
    }
    let size = |size: i64| usize::try_from(size).unwrap_or(0);
    let one: Vec<usize> = match shapes.first() {
        Some(shape) => shape.iter().map(|&s| size(s)).collect(),
        None => {
            let tensor = ty.and_then(Type::as_tensor).and_then(|t| t.shape.as_deref());
            let dims = tensor.unwrap_or_default().iter();
            dims.map(|dim| dim.as_int().map_or(0, size)).collect()
        }
    };
    let shape: Vec<usize> = std::iter::once(shapes.len()).chain(one).collect();
    let tensor = elements.reshaped(shape);
    tensor.ok_or_else(|| failed("its elements do not fit its sizes".into()))
}

/// Adds nodes, inputs and outputs for one value.
struct Carrier<'a> {
    model: &'a mut Model,
    dtype: DType,
}

impl Carrier<'_> {
    /// The elements and sizes of one time.
    fn flatten(&mut self, value: Value, region: RegionId) -> Result<Collected, String> {
        let whole = self.model.add_constant(Tensor::vector(&[-1_i64]));
        let end = InsertPoint::End(region);
        let elements = self.node(end, "Reshape", &[value, whole], self.dtype);
        let shape = self.node(end, "Shape", &[value], DType::I64);
        let rank = self.node(end, "Shape", &[shape], DType::I64);
        Ok(Collected { elements, sizes: self.concat(end, rank, shape) })
    }

    /// The branch gives its part, the other one nothing.
    fn out_of_if(
        &mut self,
        node: NodeId,
        taken: RegionId,
        part: Collected,
    ) -> Result<Collected, String> {
        for branch in self.model[node].regions().collect::<Vec<_>>() {
            let part = if branch == taken { part } else { self.nothing()? };
            let mut outputs: Vec<Value> = self.model[branch].output_values().collect();
            outputs.extend([part.elements, part.sizes]);
            self.model.set_outputs(branch, &outputs);
        }
        let end = self.model[node].outputs().len();
        Ok(self.outputs(node, end))
    }

    /// Each iteration appends its part to what the ones before it gave.
    fn out_of_loop(
        &mut self,
        node: NodeId,
        body: RegionId,
        part: Collected,
    ) -> Result<Collected, String> {
        let carried = self.model[body].inputs().len().saturating_sub(2);
        let none = self.nothing()?;
        let mut inputs = self.model[node].inputs().to_vec();
        inputs.resize(2 + carried, None);
        inputs.extend([Some(none.elements), Some(none.sizes)]);
        self.model.set_inputs(node, &inputs);
        let ty =
            |carrier: &mut Self, dtype| Some(Type::tensor(dtype, [carrier.model.unknown_dim()]));
        let elements = ty(self, self.dtype);
        let elements = self.model.add_input(body, elements);
        let sizes = ty(self, DType::I64);
        let sizes = self.model.add_input(body, sizes);
        let end = InsertPoint::End(body);
        let appended =
            [self.concat(end, elements, part.elements), self.concat(end, sizes, part.sizes)];
        let mut outputs: Vec<Value> = self.model[body].output_values().collect();
        // The condition is the first.
        let at = (1 + carried).min(outputs.len());
        outputs.splice(at..at, appended);
        self.model.set_outputs(body, &outputs);
        Ok(self.outputs(node, carried))
    }

    /// Each step gives its part as a row.
    fn out_of_scan(
        &mut self,
        node: NodeId,
        body: RegionId,
        part: Collected,
    ) -> Result<Collected, String> {
        let mut outputs: Vec<Value> = self.model[body].output_values().collect();
        outputs.extend([part.elements, part.sizes]);
        self.model.set_outputs(body, &outputs);
        for (name, value) in &mut self.model[node].attributes {
            if let ("scan_output_axes" | "scan_output_directions", Attribute::Ints(given)) =
                (&**name, value)
            {
                given.extend([0, 0]);
            }
        }
        let end = self.model[node].outputs().len();
        let rows = self.outputs(node, end);
        let at = match self.model.next(node) {
            Some(next) => InsertPoint::Before(next),
            None => InsertPoint::End(self.model[node].region()),
        };
        let whole = self.model.add_constant(Tensor::vector(&[-1_i64]));
        for value in [rows.elements, rows.sizes] {
            self.model[value].ty = None;
        }
        Ok(Collected {
            elements: self.node(at, "Reshape", &[rows.elements, whole], self.dtype),
            sizes: self.node(at, "Reshape", &[rows.sizes, whole], DType::I64),
        })
    }

    /// Two new outputs of a node.
    fn outputs(&mut self, node: NodeId, at: usize) -> Collected {
        let elements = self.model.insert_output(node, at);
        let sizes = self.model.insert_output(node, at + 1);
        self.typed(elements, self.dtype);
        self.typed(sizes, DType::I64);
        Collected { elements, sizes }
    }

    /// No element, of no time.
    fn nothing(&mut self) -> Result<Collected, String> {
        let none = Tensor::new(self.dtype, vec![0], Vec::new());
        let none =
            none.map_err(|_| format!("elements of type {} cannot be carried", self.dtype))?;
        Ok(Collected {
            elements: self.model.add_constant(none),
            sizes: self.model.add_constant(Tensor::vector::<i64>(&[])),
        })
    }

    fn concat(&mut self, at: InsertPoint, a: Value, b: Value) -> Value {
        let dtype =
            self.model[b].ty.as_ref().and_then(Type::as_tensor).map_or(DType::I64, |t| t.dtype);
        let value = self.node(at, "Concat", &[a, b], dtype);
        if let Some(node) = self.model.producer(value) {
            self.model[node].set_attribute("axis", 0);
        }
        value
    }

    fn node(&mut self, at: InsertPoint, op: &'static str, inputs: &[Value], dtype: DType) -> Value {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        let node = self.model.add_node(at, op, &inputs, Attributes::new(), 1);
        let value = self.model[node].outputs()[0];
        self.typed(value, dtype);
        value
    }

    fn typed(&mut self, value: Value, dtype: DType) {
        let size = self.model.unknown_dim();
        self.model[value].ty = Some(Type::tensor(dtype, [size]));
    }
}
