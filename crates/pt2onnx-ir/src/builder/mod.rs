//! The builder: emits nodes and infers their types.
//!
//! Methods take `&self` and return values, so that calls nest like formulas. If something cannot be
//! done (a rank is not known, types do not fit), a method reports a [`Diagnostic`] and returns some
//! value of the model. [`Model::build`] returns all diagnostics, [`Builder::take_diagnostics`]
//! those so far.

mod arithmetic;
mod diagnostic;
mod operand;
mod reduction;
mod scopes;
mod sizes;
mod smart;
mod upcast;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use operand::Operand;
pub use reduction::Reduction;

use crate::{
    attribute::Attributes,
    ids::{NodeId, OriginId, RegionId, Value},
    infer::{self, Contents, Facts, InferError, infer},
    model::Model,
    node::Node,
    region::InsertPoint,
    types::{Shape, Type},
    value::Def,
};
use pt2onnx_symbolic::{Constraints, Expr, SymTensor};
use pt2onnx_tensor::{DType, Element, Scalar, Tensor};
use rustc_hash::FxHashMap;
use scopes::Sizes;
use smallvec::SmallVec;
use std::{
    borrow::Cow,
    cell::{Ref, RefCell},
};

/// Constants of at most this many bytes are interned.
const INTERNED_BYTES: usize = 256;

/// Emits nodes at one place of a model and infers their types.
#[derive(Debug)]
pub struct Builder<'m> {
    state: RefCell<State<'m>>,
    /// A separate cell, readable while nodes are emitted.
    constraints: Constraints,
}

#[derive(Debug)]
struct State<'m> {
    model: &'m mut Model,
    at: InsertPoint,
    /// Where each open region was opened, innermost last: emission continues there when the region
    /// is closed.
    outside: Vec<InsertPoint>,
    origins: SmallVec<[OriginId; 1]>,
    constants: FxHashMap<(DType, Vec<usize>, Vec<u8>), Value>,
    /// Known elements of integer vectors, which shapes are made of.
    contents: Contents,
    sizes: Sizes,
    diagnostics: Diagnostics,
}

impl Model {
    /// Emits nodes at a place of the model.
    ///
    /// ```
    /// use pt2onnx_ir::{InsertPoint, Model, Type};
    /// use pt2onnx_tensor::DType;
    ///
    /// let mut model = Model::new(20);
    /// let x = model.add_input(Model::MAIN, Some(Type::tensor(DType::F32, [])));
    /// let end = InsertPoint::End(Model::MAIN);
    /// let y = model.build(end, |cx| cx.exp(x))?;
    /// model.set_outputs(Model::MAIN, &[y]);
    /// let error = model.build(end, |cx| cx.dim(x, 5)).unwrap_err();
    /// assert_eq!(error.to_string(), "value 0: float has no dimension 5");
    /// # Ok::<(), pt2onnx_ir::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// Returns all diagnostics, if there are any. The emitted nodes stay in the model.
    pub fn build<R>(
        &mut self,
        at: InsertPoint,
        emit: impl FnOnce(&Builder) -> R,
    ) -> Result<R, Diagnostics> {
        let cx = Builder::new(self, at, Constraints::new());
        let result = emit(&cx);
        let diagnostics = cx.take_diagnostics();
        if diagnostics.is_empty() { Ok(result) } else { Err(diagnostics) }
    }
}

impl<'m> Builder<'m> {
    /// A builder that emits at `at`. `constraints` are the facts about the program's symbols.
    pub fn new(model: &'m mut Model, at: InsertPoint, constraints: Constraints) -> Self {
        let state = State {
            model,
            at,
            outside: Vec::new(),
            origins: SmallVec::new(),
            constants: FxHashMap::default(),
            contents: Contents::default(),
            sizes: Sizes::default(),
            diagnostics: Diagnostics::default(),
        };
        Self { state: RefCell::new(state), constraints }
    }

    /// The model. Do not hold the reference while nodes are emitted: that would panic.
    pub fn model(&self) -> Ref<'_, Model> {
        Ref::map(self.state.borrow(), |s| &*s.model)
    }

    /// Changes the model directly, such as names, metadata and inputs. `change` must not call the
    /// builder: that would panic.
    pub fn edit<R>(&self, change: impl FnOnce(&mut Model) -> R) -> R {
        change(self.state.borrow_mut().model)
    }

    /// Sets the origin of the nodes that are emitted from now on.
    pub fn set_origin(&self, origin: Option<OriginId>) {
        self.set_origins(origin.as_slice());
    }

    /// As [`Builder::set_origin`], for nodes that are made from several source nodes.
    pub fn set_origins(&self, origins: &[OriginId]) {
        self.state.borrow_mut().origins = origins.into();
    }

    /// The current origin of emitted nodes; the first if there are several.
    pub fn origin(&self) -> Option<OriginId> {
        self.state.borrow().origins.first().copied()
    }

    /// Makes a region. `inputs` are the types of its inputs; `body` gets the inputs, emits the
    /// nodes and returns the outputs.
    pub fn region(&self, inputs: &[Type], body: impl FnOnce(&[Value]) -> Vec<Value>) -> RegionId {
        let (region, inputs) = self.open_region(inputs);
        let outputs = body(&inputs);
        self.close_region(&outputs);
        region
    }

    /// Opens a region with inputs of the given types; returns it and its inputs. Nodes are emitted
    /// into it until [`Builder::close_region`]. Sizes that are bound or computed inside are not
    /// known outside.
    pub fn open_region(&self, inputs: &[Type]) -> (RegionId, Vec<Value>) {
        let mut s = self.state.borrow_mut();
        let s = &mut *s;
        let region = s.model.add_region();
        let inputs = inputs.iter().map(|t| s.model.add_input(region, Some(t.clone())));
        let inputs = inputs.collect();
        s.sizes.enter();
        s.outside.push(std::mem::replace(&mut s.at, InsertPoint::End(region)));
        (region, inputs)
    }

    /// Closes the innermost open region. Its outputs may be any values. Reports a diagnostic if no
    /// region is open.
    pub fn close_region(&self, outputs: &[Value]) {
        self.end_region(|model, region, origins| model.set_outputs_of(region, outputs, origins));
    }

    /// Closes the innermost open region; `set` sets its outputs.
    pub(crate) fn end_region(&self, set: impl FnOnce(&mut Model, RegionId, &[OriginId])) {
        let mut s = self.state.borrow_mut();
        let s = &mut *s;
        match (s.at, s.outside.pop()) {
            (InsertPoint::End(region), Some(outside)) => {
                set(s.model, region, &s.origins);
                s.sizes.leave();
                s.at = outside;
            }
            _ => {
                let what = "no region is open that could be closed";
                s.diagnostics.0.push(Diagnostic::Wrong(what.into()));
            }
        }
    }

    /// Reports a [`Diagnostic`]. The caller then returns any value of the model as a replacement.
    pub fn report(&self, what: impl Into<String>) {
        self.diagnose(Diagnostic::Wrong(what.into()));
    }

    pub(crate) fn diagnose(&self, diagnostic: Diagnostic) {
        self.state.borrow_mut().diagnostics.0.push(diagnostic);
    }

    /// Takes the diagnostics since the last call.
    pub fn take_diagnostics(&self) -> Diagnostics {
        std::mem::take(&mut self.state.borrow_mut().diagnostics)
    }

    /// The facts about the program's symbols.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// A new unknown dimension, equal to no other.
    pub fn unknown_dim(&self) -> Expr {
        self.edit(Model::unknown_dim)
    }

    // Queries of values.

    /// The type; `None` if it is not known.
    pub fn type_of(&self, value: Value) -> Option<Type> {
        self.state.borrow().model[value].ty.clone()
    }

    /// Sets the type, if the caller knows it better than inference.
    pub fn set_type(&self, value: Value, ty: Type) {
        self.state.borrow_mut().model[value].ty = Some(ty);
    }

    /// The element type; `None` if it is not known, or the value is not a tensor.
    pub fn known_dtype(&self, value: Value) -> Option<DType> {
        self.state.borrow().model[value].ty.as_ref().and_then(|t| t.as_tensor().map(|t| t.dtype))
    }

    /// The element type. Reports a diagnostic if it is not known.
    pub fn dtype(&self, value: Value) -> DType {
        self.known_dtype(value).unwrap_or_else(|| {
            self.report(format!("the element type of {} is not known", self.describe(value)));
            DType::F32
        })
    }

    /// The sizes; `None` if the rank is not known.
    pub fn known_shape(&self, value: Value) -> Option<Shape> {
        self.state.borrow().model[value].ty.as_ref()?.as_tensor()?.shape.clone()
    }

    /// The sizes. Reports a diagnostic if the rank is not known.
    pub fn shape(&self, value: Value) -> Shape {
        self.known_shape(value).unwrap_or_else(|| {
            self.report(format!("the rank of {} is not known", self.describe(value)));
            Shape::new()
        })
    }

    /// The number of dimensions. Reports a diagnostic if it is not known.
    pub fn rank(&self, value: Value) -> usize {
        self.shape(value).len()
    }

    /// The size of dimension `axis`; a negative axis counts from the end. Reports a diagnostic if
    /// there is no such dimension.
    pub fn dim(&self, value: Value, axis: i64) -> Expr {
        let shape = self.shape(value);
        let index = pt2onnx_symbolic::axis(axis, shape.len());
        index.and_then(|i| shape.get(i).cloned()).unwrap_or_else(|| {
            self.report(format!("{} has no dimension {axis}", self.describe(value)));
            Expr::int(1)
        })
    }

    /// Whether these are dimensions, each given once, of a tensor of this rank: `value`, or a
    /// result of it. Reports a diagnostic otherwise.
    fn has_axes(&self, value: Value, rank: usize, axes: &[usize]) -> bool {
        for (i, axis) in axes.iter().enumerate() {
            let what = match () {
                () if *axis >= rank => format!("{} has no dimension {axis}", self.describe(value)),
                () if axes[..i].contains(axis) => {
                    format!("dimension {axis} of {} is given twice", self.describe(value))
                }
                () => continue,
            };
            self.report(what);
            return false;
        }
        true
    }

    /// As [`Builder::has_axes`], of `value` itself. Any axis that ONNX can express may be one of an
    /// unknown rank.
    fn may_have_axes(&self, value: Value, axes: &[usize]) -> bool {
        let rank = self.known_shape(value).map_or(i32::MAX as usize, |shape| shape.len());
        self.has_axes(value, rank, axes)
    }

    /// The sizes, if the tensor has these dimensions. Reports a diagnostic otherwise, and if the
    /// rank is not known.
    fn shape_with(&self, value: Value, axes: &[usize]) -> Option<Shape> {
        let known = self.known_shape(value).is_some();
        let shape = self.shape(value);
        (known && self.has_axes(value, shape.len(), axes)).then_some(shape)
    }

    /// The number of elements. Reports a diagnostic if the rank is not known.
    pub fn numel(&self, value: Value) -> Expr {
        Expr::product(self.shape(value))
    }

    /// The shape that tensors of both shapes broadcast to. Reports a diagnostic if they do not
    /// broadcast.
    pub fn broadcast_shapes(&self, a: &[Expr], b: &[Expr]) -> Shape {
        let misfit =
            |x: &Expr, y: &Expr| self.report(format!("sizes {x} and {y} do not broadcast"));
        infer::broadcast(a, b, &self.constraints, || self.unknown_dim(), misfit)
    }

    /// The shape of the matrix product of two tensors. Reports a diagnostic if their batches do not
    /// broadcast.
    pub fn product_shape(&self, a: Value, b: Value) -> Shape {
        let broadcast = |a: &[Expr], b: &[Expr]| self.broadcast_shapes(a, b);
        infer::product(&self.shape(a), &self.shape(b), broadcast).unwrap_or_default()
    }

    /// The tensor of a constant; `None` for other values.
    pub fn constant_of(&self, value: Value) -> Option<Tensor> {
        self.state.borrow().model[value].constant().cloned()
    }

    /// The input of the node that makes `value`, if that is one of operator `op` with one input.
    pub fn argument_of(&self, op: &str, value: Value) -> Option<Value> {
        let s = self.state.borrow();
        let node = s.model.producer(value).map(|id| &s.model[id]).filter(|node| node.is(op))?;
        node.input(0).filter(|_| node.inputs().len() == 1)
    }

    /// The elements of an integer vector or scalar, as numbers or expressions; `None` if they are
    /// not known.
    pub fn contents(&self, value: Value) -> Option<Vec<Expr>> {
        let s = self.state.borrow();
        s.contents.of(s.model, value)
    }

    /// The sizes of a tensor and, if it is a short vector or scalar of integers, its elements.
    pub fn sym_tensor(&self, value: Value) -> SymTensor {
        let shape = self.known_shape(value);
        shape.map_or(SymTensor::Unknown, |shape| SymTensor::new(shape, self.contents(value)))
    }

    /// Sets the known elements of an integer vector or scalar.
    pub fn set_contents(&self, value: Value, elements: Vec<Expr>) {
        self.state.borrow_mut().contents.insert(value, elements);
    }

    /// A value in messages: its name, operator or number, and its type.
    pub fn describe(&self, value: Value) -> String {
        let s = self.state.borrow();
        let ty = s.model[value].ty.as_ref().map(|t| format!(": {t}")).unwrap_or_default();
        match (&s.model[value].name, s.model[value].def()) {
            (Some(name), _) => format!("`{name}`{ty}"),
            (None, Def::Node(node, _)) if !s.model.contains(*node) => {
                format!("an output of an erased node{ty}")
            }
            (None, Def::Node(node, _)) => format!("an output of {}{ty}", s.model[*node].op),
            (None, _) => format!("value {}{ty}", value.index()),
        }
    }

    // Emission.

    /// Emits a node of the default domain with `outputs` outputs, and infers their types. If the
    /// operator does not take the element type of an input, casts are inserted: to the nearest
    /// wider type that it takes, and back.
    pub fn emit(
        &self,
        op: &'static str,
        inputs: &[Option<Value>],
        attributes: Attributes,
        outputs: usize,
    ) -> SmallVec<[Value; 2]> {
        let upcast = self.upcast(op, inputs);
        let wide: SmallVec<[Option<Value>; 4]> = match &upcast {
            Some(upcast) => inputs
                .iter()
                .enumerate()
                .map(|(i, v)| v.map(|v| upcast.enter(self, i, v)))
                .collect(),
            None => inputs.into(),
        };
        let node = self.emit_node(op, &wide, attributes, outputs);
        self.infer(node);
        let values: SmallVec<[Value; 2]> = self.model()[node].outputs().into();
        match upcast {
            Some(upcast) => {
                values.into_iter().enumerate().map(|(i, v)| upcast.leave(self, i, v)).collect()
            }
            None => values,
        }
    }

    /// As [`Builder::emit`], for one output.
    pub fn emit1(
        &self,
        op: &'static str,
        inputs: &[Option<Value>],
        attributes: Attributes,
    ) -> Value {
        self.emit(op, inputs, attributes, 1)[0]
    }

    /// Emits a node with one output whose type the caller knows.
    fn emit_typed(
        &self,
        op: &'static str,
        inputs: &[Value],
        attributes: Attributes,
        ty: Type,
    ) -> Value {
        let inputs: SmallVec<[Option<Value>; 4]> = inputs.iter().map(|&v| Some(v)).collect();
        let node = self.emit_node(op, &inputs, attributes, 1);
        let value = self.model()[node].outputs()[0];
        self.set_type(value, ty);
        value
    }

    /// Infers the types of a node's outputs, as [`infer()`](crate::infer()) does.
    ///
    /// # Errors
    /// Returns an error if the node cannot have inputs of these sizes.
    pub fn inferred(&self, node: NodeId) -> Result<Vec<Option<Type>>, InferError> {
        let mut s = self.state.borrow_mut();
        let s = &mut *s;
        infer(s.model, Facts { contents: &s.contents, constraints: &self.constraints }, node)
    }

    /// Infers and sets the types of a node's outputs. The node must be valid at the canonical
    /// opset.
    pub(crate) fn infer(&self, node: NodeId) {
        let mut s = self.state.borrow_mut();
        let (types, error) = {
            let s = &mut *s;
            let facts = Facts { contents: &s.contents, constraints: &self.constraints };
            infer::types_and_error(s.model, facts, node)
        };
        if let Some(error) = error {
            let named = format!("{}: {error}", s.model[node].op());
            s.diagnostics.0.push(Diagnostic::Wrong(named));
        }
        let values: SmallVec<[Value; 2]> = s.model[node].outputs().into();
        for (value, ty) in values.into_iter().zip(types) {
            s.model[value].ty = ty;
        }
    }

    /// Emits a node without casts and without inference. Trailing inputs that are `None` are
    /// dropped.
    pub(crate) fn emit_node(
        &self,
        op: impl Into<Cow<'static, str>>,
        inputs: &[Option<Value>],
        attributes: Attributes,
        outputs: usize,
    ) -> NodeId {
        let mut s = self.state.borrow_mut();
        let s = &mut *s;
        let node = s.model.add_node(s.at, op, Node::given(inputs), attributes, outputs);
        s.model[node].origins.clone_from(&s.origins);
        node
    }

    /// Emits a node of another domain, and imports the domain (version 1, if the model does not
    /// import it yet). `outputs` are the types of its outputs, where known.
    pub fn emit_custom(
        &self,
        domain: &str,
        op: &str,
        inputs: &[Option<Value>],
        attributes: Attributes,
        outputs: &[Option<Type>],
    ) -> SmallVec<[Value; 2]> {
        let given = inputs.iter().rposition(Option::is_some).map_or(0, |i| i + 1);
        let mut s = self.state.borrow_mut();
        let s = &mut *s;
        let node =
            s.model.add_node(s.at, op.to_owned(), &inputs[..given], attributes, outputs.len());
        s.model[node].domain = domain.to_owned().into();
        s.model[node].origins.clone_from(&s.origins);
        s.model.imports.entry(domain.to_owned()).or_insert(1);
        let values: SmallVec<[Value; 2]> = s.model[node].outputs().into();
        for (&value, ty) in values.iter().zip(outputs) {
            s.model[value].ty.clone_from(ty);
        }
        values
    }

    // Constants.

    /// A constant. Small constants with equal type, sizes and elements are one value.
    pub fn constant(&self, tensor: Tensor) -> Value {
        let mut s = self.state.borrow_mut();
        if tensor.nbytes() > INTERNED_BYTES || tensor.storage().is_none() {
            return s.model.add_constant(tensor);
        }
        let key = (tensor.dtype(), tensor.shape().to_vec(), tensor.to_bytes().into_owned());
        if let Some(&known) = s.constants.get(&key) {
            return known;
        }
        let value = s.model.add_constant(tensor);
        s.constants.insert(key, value);
        value
    }

    /// A 0-d constant of an element type; a cast one for floats of 8 bits and less. Reports a
    /// diagnostic for complex types.
    pub fn scalar(&self, value: impl Into<Scalar>, dtype: DType) -> Value {
        let value = value.into();
        match value.to_tensor(dtype) {
            Some(tensor) => self.constant(tensor),
            None => self.cast(self.constant(Tensor::scalar(value.to_f64() as f32)), dtype),
        }
    }

    /// A 1-d int64 constant.
    pub fn ints(&self, values: &[i64]) -> Value {
        self.constant(Tensor::vector(values))
    }

    /// A 1-d constant with the element type of `T`.
    pub fn vector<T: Element>(&self, values: &[T]) -> Value {
        self.constant(Tensor::vector(values))
    }
}
