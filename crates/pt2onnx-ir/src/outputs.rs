//! Output slots of regions, and the `Identity` nodes that ONNX needs for some of them.
//!
//! ONNX demands that the outputs of a graph are distinct values that nodes of the same graph make.
//! (An output of the main graph can also be an initialiser.) Passes do not have to care: a slot may
//! hold any value, and [`Model::finish_outputs`] inserts an `Identity` for each slot whose value
//! ONNX does not allow.
//!
//! An example: a pass removes the `Relu` of
//!
//! ```text
//! g (float[2] x) => (float[2] a, float[2] b) {
//!   a = Relu (x)
//!   b = Exp (x)
//! }
//! ```
//!
//! by `replace_all_uses(a, x)` and `erase(relu)`. Now the first slot holds the input `x`, which
//! cannot be the output `a`. So `replace_all_uses` plans a copy ([`PlannedCopy`]), which records
//! what is lost with the `Relu`: its result `a` and its origins. If the slot still holds `x` at the
//! end, `finish_outputs` makes the copy:
//!
//! ```text
//!   a = Identity (x)
//!   b = Exp (x)
//! ```
//!
//! The copy stands where the `Relu` stood and makes the same value, with its number, name, type and
//! metadata. So nodes keep the order of the source program, and other values keep their names
//! ([`Model::assign_names`] names values in the order of their numbers), whichever passes ran.
//! There are three exceptions:
//! - If another pass has put a value into the slot that can be an output (made by a node of the
//!   region, and in no other slot), that value takes over name, type and metadata, and there is no
//!   copy.
//! - If the value in the slot is made after the place of the `Relu`, the copy stands after the
//!   value's node.
//! - If the pass did not erase the `Relu` after all, the copy makes a new value, and stands at the
//!   end of the region.
//!
//! A small constant in several slots of the main graph becomes as many constants.

use crate::{
    attribute::Attributes,
    ids::{NodeId, OriginId, RegionId, Value},
    model::{Links, Model},
    origin::Name,
    region::{InsertPoint, Output, PlannedCopy},
    types::Type,
    uses::Use,
    value::Def,
};
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use std::iter;

/// A constant of up to so many bytes that is several outputs is written as often; a larger one
/// once, and copied.
const MAX_DOUBLED_BYTES: usize = 1 << 14;

impl Model {
    /// Sets the output slots of a region. A slot may hold any value, and several slots may hold the
    /// same one: [`Model::assign_names`] inserts an `Identity` where ONNX needs one.
    pub fn set_outputs(&mut self, region: RegionId, outputs: &[Value]) {
        self.set_outputs_of(region, outputs, &[]);
    }

    /// As [`Model::set_outputs`], with the origins that inserted nodes get.
    pub(crate) fn set_outputs_of(
        &mut self,
        region: RegionId,
        outputs: &[Value],
        origins: &[OriginId],
    ) {
        self.put_outputs(region, outputs);
        let mut seen = FxHashSet::default();
        for (i, &value) in outputs.iter().enumerate() {
            if !seen.insert(value) || !self.can_define_outputs(region, value) {
                self.plan_copy(region, i, origins);
            }
        }
    }

    /// Sets the output slots of a region as given: no `Identity` is ever inserted for them, but for
    /// a constant in a body. A file may have it as an initialiser of the body; in a model,
    /// constants belong to no region.
    pub fn set_outputs_as_written(&mut self, region: RegionId, outputs: &[Value]) {
        self.put_outputs(region, outputs);
        for (i, &value) in outputs.iter().enumerate() {
            if region != Self::MAIN && matches!(self[value].def(), Def::Constant(_)) {
                self.plan_copy(region, i, &[]);
            }
        }
    }

    /// Plans a copy for a slot that has no node which made its value.
    fn plan_copy(&mut self, region: RegionId, i: usize, origins: &[OriginId]) {
        let ty = self[self[region].outputs[i].value].ty.clone();
        let node = self.add_erased_node();
        let result = self.add_value(Def::Node(node, 0), ty);
        self[region].outputs[i].copy = Some(PlannedCopy { result, origins: origins.into() });
    }

    fn put_outputs(&mut self, region: RegionId, outputs: &[Value]) {
        let slot = |&value: &Value| Output { name: None, value, copy: None };
        let new = outputs.iter().map(slot).collect();
        let old = std::mem::replace(&mut self[region].outputs, new);
        for (i, output) in old.into_iter().enumerate() {
            self.drop_use(Some(output.value), Use::Output(region, i as u32));
        }
        for (i, &value) in outputs.iter().enumerate() {
            self.note_use(Some(value), Use::Output(region, i as u32));
        }
    }

    /// Names an output slot. The value in it keeps its own name until [`Model::finish_outputs`].
    /// Returns false if the region has no such slot.
    pub fn set_output_name(
        &mut self,
        region: RegionId,
        index: usize,
        name: impl Into<Name>,
    ) -> bool {
        let output = self[region].outputs.get_mut(index);
        output.map(|output| output.name = Some(name.into())).is_some()
    }

    /// The name of an output slot; `None` if it has none yet.
    pub fn output_name<'a>(&'a self, output: &'a Output) -> Option<&'a Name> {
        match (&output.name, &output.copy) {
            (Some(name), _) => Some(name),
            (None, Some(_)) => None,
            (None, None) => self[output.value].name.as_ref(),
        }
    }

    /// The type of an output slot; `None` if it is not known.
    pub fn output_type(&self, output: &Output) -> Option<&Type> {
        let value = output.copy.as_ref().map_or(output.value, |copy| copy.result);
        self[value].ty.as_ref()
    }

    /// Replaces `old` by `new` wherever it is used. An output slot keeps its name, type and
    /// metadata.
    pub fn replace_all_uses(&mut self, old: Value, new: Value) {
        if old == new {
            return;
        }
        let uses = std::mem::take(&mut self[old].uses);
        for &at in uses.as_slice() {
            match at {
                Use::Input(node, i) => self[node].inputs[i as usize] = Some(new),
                Use::Output(region, i) => self.replace_output(region, i as usize, old, new),
            }
            self.note_use(Some(new), at);
        }
    }

    /// Puts `new` into a slot that held `old`: plans a copy if it needs one, drops the planned copy
    /// if it needs none.
    pub(crate) fn replace_output(&mut self, region: RegionId, i: usize, old: Value, new: Value) {
        self[region].outputs[i].value = new;
        let planned = self[region].outputs[i].copy.as_ref().map(|copy| copy.result);
        if self.can_be_output(region, i) {
            self.take_over(new, planned.unwrap_or(old));
            let output = &mut self[region].outputs[i];
            output.copy = None;
            if let Some(name) = output.name.take() {
                self[new].name = Some(name);
            }
        } else if planned.is_none() {
            let node = self.producer(old);
            let origins = node.map(|node| self[node].origins.clone()).unwrap_or_default();
            let name = self[old].name.take();
            let output = &mut self[region].outputs[i];
            output.name = output.name.take().or(name);
            output.copy = Some(PlannedCopy { result: old, origins });
        }
    }

    /// Whether a value is defined where ONNX allows outputs of the region to be defined: by a node
    /// of the region, or as an initialiser of the main graph. A constant that has a name already,
    /// such as a weight, keeps it, so it cannot be an output.
    fn can_define_outputs(&self, region: RegionId, value: Value) -> bool {
        match self[value].def() {
            Def::Node(node, _) => self.contains(*node) && self[*node].region == region,
            Def::Constant(_) => region == Self::MAIN && self[value].name.is_none(),
            Def::Input(..) => false,
        }
    }

    /// Whether the value in a slot can be the output itself: no other slot without a copy holds it.
    fn can_be_output(&self, region: RegionId, index: usize) -> bool {
        let value = self[region].outputs[index].value;
        let is_other_output = |u: Use| match u {
            Use::Input(..) => false,
            Use::Output(r, i) if (r, i as usize) == (region, index) => false,
            Use::Output(r, i) => self[r].outputs[i as usize].copy.is_none(),
        };
        self.can_define_outputs(region, value) && !self[value].uses().any(is_other_output)
    }

    /// Gives `new` the name, type, metadata and documentation of `old`, which nothing uses any
    /// more.
    fn take_over(&mut self, new: Value, old: Value) {
        if old == new {
            return;
        }
        let old = &mut self[old];
        let (name, ty) = (old.name.take(), old.ty.clone());
        let (metadata, doc_string) = (std::mem::take(&mut old.metadata), old.doc_string.take());
        let new = &mut self[new];
        new.name = name.or(new.name.take());
        new.ty = Type::fuller(ty, new.ty.take());
        new.metadata.extend(metadata);
        new.doc_string = doc_string.or(new.doc_string.take());
    }

    /// Makes the outputs of a region valid ONNX: distinct values that nodes of the region make,
    /// with the names of their slots. Inserts an `Identity` where the value in a slot cannot be the
    /// output. [`Model::assign_names`] does this for all regions.
    pub fn finish_outputs(&mut self, region: RegionId) {
        let mut order: Vec<usize> = (0..self[region].outputs.len()).collect();
        let mut places = FxHashMap::default();
        if self[region].outputs.iter().any(|output| output.copy.is_some()) {
            places = self.nodes(region).enumerate().map(|(place, node)| (node, place)).collect();
            // Copies are made in the order of the nodes that they replace, those that replace none
            // last.
            order.sort_by_key(|&i| {
                let copy = self[region].outputs[i].copy.as_ref();
                let node = copy.and_then(|copy| self.producer(copy.result));
                (node.is_none(), node)
            });
        }
        order.into_iter().for_each(|i| self.finish_output(region, i, &mut places));
    }

    pub(crate) fn finish_all_outputs(&mut self) {
        let regions = (0..self.regions.len()).map(RegionId::new);
        regions.for_each(|region| self.finish_outputs(region));
    }

    /// Whether no output needs [`Model::finish_outputs`].
    pub(crate) fn has_finished_outputs(&self) -> bool {
        self.regions.iter().flat_map(|region| &region.outputs).all(Output::is_finished)
    }

    /// Finishes one slot. `places` are the positions of the region's nodes.
    fn finish_output(&mut self, region: RegionId, i: usize, places: &mut Places) {
        let output = &mut self[region].outputs[i];
        let (value, name, copy) = (output.value, output.name.take(), output.copy.take());
        let Some(copy) = copy else {
            if name.is_some() {
                self[value].name = name;
            }
            return;
        };
        let planned = &mut self[copy.result];
        planned.name = name.or(planned.name.take());
        if self.can_be_output(region, i) {
            self.take_over(value, copy.result);
            return;
        }
        let result = match self.other_output(region, i, value) {
            Some(same) => self.make_constant(same, copy),
            None => self.make_copy(region, value, copy, places),
        };
        self[result].ty = self[value].ty.clone().or(self[result].ty.take());
        self[region].outputs[i].value = result;
        self.drop_use(Some(value), Use::Output(region, i as u32));
        self.note_use(Some(result), Use::Output(region, i as u32));
    }

    /// The tensor of a constant that is another output of the main graph already, if it is small
    /// enough to be there twice.
    fn other_output(&self, region: RegionId, index: usize, value: Value) -> Option<Tensor> {
        let tensor = self[value].constant().filter(|t| t.nbytes() <= MAX_DOUBLED_BYTES)?;
        let other = |(i, output): (usize, &Output)| {
            i != index && output.value == value && output.copy.is_none()
        };
        let found = region == Self::MAIN && self[region].outputs.iter().enumerate().any(other);
        found.then(|| tensor.clone())
    }

    /// Makes a constant in place of a planned copy; returns it.
    fn make_constant(&mut self, tensor: Tensor, copy: PlannedCopy) -> Value {
        let result = self.add_constant(tensor);
        self.take_over(result, copy.result);
        result
    }

    /// Makes a planned copy of `value`; returns its result.
    fn make_copy(
        &mut self,
        region: RegionId,
        value: Value,
        copy: PlannedCopy,
        places: &mut Places,
    ) -> Value {
        let erased = self.producer(copy.result).filter(|node| !self.contains(*node));
        let mut next = erased.and_then(|node| self.next_not_erased(node, region));
        let place_of = |node: Option<NodeId>| node.and_then(|node| places.get(&node).copied());
        let mut place = place_of(next).unwrap_or(usize::MAX);
        let maker = self.producer(value);
        if let (Some(maker), Some(made)) = (maker, place_of(maker))
            && made >= place
        {
            next = self.next(maker);
            place = place_of(next).unwrap_or(usize::MAX);
        }
        let at = next.map_or(InsertPoint::End(region), InsertPoint::Before);
        let node = self.add_node(at, "Identity", &[Some(value)], Attributes::new(), 0);
        places.insert(node, place);
        let result = match erased {
            Some(erased) => {
                // Another copy may be planned for the place of the same node.
                self.links[erased.index()] = Links { prev: Some(node), next: Some(node) };
                copy.result
            }
            None => {
                let own = self.add_value(Def::Node(node, 0), None);
                self.take_over(own, copy.result);
                own
            }
        };
        self[result].def = Def::Node(node, 0);
        self[node].outputs.push(result);
        self[node].origins = copy.origins;
        result
    }

    /// The next node after the place in a region where an erased node stood. An erased node keeps
    /// its neighbours, so that following them leads to a node that is still there. `None` if that
    /// one was moved to another region.
    fn next_not_erased(&self, erased: NodeId, region: RegionId) -> Option<NodeId> {
        iter::successors(self.next(erased), |node| self.next(*node))
            .find(|n| self.contains(*n))
            .filter(|n| self[*n].region == region)
    }
}

/// The positions of the nodes of a region. A copy has the position of the node after it.
type Places = FxHashMap<NodeId, usize>;
