//! Output slots of regions, and the `Identity` nodes that ONNX needs for some of them.
//!
//! ONNX demands that each output of a graph is a value of its own, and that a node of the same graph makes it. (An output
//! of the main graph can also be an initialiser.) Passes do not have to care: a slot may hold any value, and
//! [`Model::finish_outputs`] inserts an `Identity` for each slot whose value ONNX does not allow.
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
//! by `replace_all_uses(a, x)` and `erase(relu)`. Now the first slot holds the input `x`, which cannot be the output `a`. So
//! `replace_all_uses` plans a copy: it makes an `Identity` node, but does not link it into the region, so that other passes
//! do not see it. The plan records what is lost when the `Relu` is erased:
//! - The place: the copy will stand where the `Relu` stood. Nodes keep the order of the source program, whichever passes
//!   ran.
//! - The result: the copy will make the value of the `Relu`, with its number, name, type and metadata.
//!   [`Model::assign_names`] names values in the order of their numbers, so other values keep their names, too.
//! - The origins of the `Relu`.
//!
//! If the slot still holds `x` at the end, `finish_outputs` links the copy:
//!
//! ```text
//!   a = Identity (x)
//!   b = Exp (x)
//! ```
//!
//! If another pass has put a value into the slot that can be an output (made by a node of the region, and in no other slot),
//! that value takes over name, type and metadata, and the planned copy is dropped.
//!
//! If the pass did not erase the `Relu` after all, the copy makes a new value, and stands at the end of the region.

use crate::{
    attribute::Attributes,
    ids::{NodeId, OriginId, RegionId, Value},
    model::{Links, Model},
    node::Node,
    origin::Name,
    region::Output,
    types::Type,
    uses::Use,
    value::Def,
};
use smallvec::{SmallVec, smallvec};
use std::{borrow::Cow, iter};

impl Model {
    /// Sets the output slots of a region. A slot may hold any value, and several slots may hold the same one:
    /// [`Model::assign_names`] inserts an `Identity` where ONNX needs one.
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
        self.set_outputs_as_written(region, outputs);
        let mut prev = self[region].last;
        for (i, &value) in outputs.iter().enumerate() {
            if !self.can_define_outputs(region, value) || outputs[..i].contains(&value) {
                let ty = self[value].ty.clone();
                let result = self.add_value(Def::Node(NodeId::new(self.nodes.len()), 0), ty);
                let place = Links { prev, next: None };
                let copy = self.plan_copy(region, place, origins.into(), result);
                self[region].outputs[i].copy = Some(copy);
                prev = Some(copy);
            }
        }
    }

    /// Sets the output slots of a region exactly as given: no `Identity` is ever inserted for them.
    pub fn set_outputs_as_written(&mut self, region: RegionId, outputs: &[Value]) {
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
    pub fn set_output_name(&mut self, region: RegionId, index: usize, name: impl Into<Name>) {
        if let Some(output) = self[region].outputs.get_mut(index) {
            output.name = Some(name.into());
        }
    }

    /// The name of an output slot; `None` if it has none yet.
    pub fn output_name<'a>(&'a self, output: &'a Output) -> Option<&'a Name> {
        match (&output.name, output.copy) {
            (Some(name), _) => Some(name),
            (None, Some(_)) => None,
            (None, None) => self[output.value].name.as_ref(),
        }
    }

    /// The type of an output slot; `None` if it is not known.
    pub fn output_type(&self, output: &Output) -> Option<&Type> {
        let value = output.copy.map_or(output.value, |copy| self.result_of(copy));
        self[value].ty.as_ref()
    }

    /// Replaces `old` by `new` wherever it is used. An output slot keeps its name, type and metadata.
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

    /// Puts `new` into a slot that held `old`: plans a copy if it needs one, drops the planned copy if it needs none.
    fn replace_output(&mut self, region: RegionId, i: usize, old: Value, new: Value) {
        self[region].outputs[i].value = new;
        let planned = self[region].outputs[i].copy.map(|copy| self.result_of(copy));
        if self.can_be_output(region, i) {
            self.take_over(new, planned.unwrap_or(old));
            let output = &mut self[region].outputs[i];
            output.copy = None;
            if let Some(name) = output.name.take() {
                self[new].name = Some(name);
            }
        } else if planned.is_none() {
            let (place, origins) = match self.producer(old) {
                Some(node) => {
                    let place = Links { prev: self.prev(node), next: Some(node) };
                    (place, self[node].origins.clone())
                }
                None => (Links { prev: self[region].last, next: None }, SmallVec::new()),
            };
            let name = self[old].name.take();
            let copy = self.plan_copy(region, place, origins, old);
            let output = &mut self[region].outputs[i];
            output.name = output.name.take().or(name);
            output.copy = Some(copy);
        }
    }

    /// Whether a value is defined where ONNX allows outputs of the region to be defined: by a node of the region, or as
    /// an initialiser of the main graph. A constant that has a name already, such as a weight, keeps it, so it is no
    /// output.
    fn can_define_outputs(&self, region: RegionId, value: Value) -> bool {
        match self[value].def() {
            Def::Node(node, _) => self[*node].region == region,
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

    /// Gives `new` the name, type, metadata and documentation of `old`, which nothing uses any more.
    fn take_over(&mut self, new: Value, old: Value) {
        if old == new {
            return;
        }
        let old = &mut self[old];
        let (name, ty) = (old.name.take(), old.ty.clone());
        let (metadata, doc_string) = (std::mem::take(&mut old.metadata), old.doc_string.take());
        let new = &mut self[new];
        new.name = name.or(new.name.take());
        new.ty = ty.or(new.ty.take());
        new.metadata.extend(metadata);
        new.doc_string = doc_string.or(new.doc_string.take());
    }

    /// Plans a copy: adds an `Identity` without an input that is not linked into the region. `place` are its neighbours
    /// to be. `result` is the value that it will make: a new one, or the one that was in the slot before, whose node is
    /// about to be erased.
    fn plan_copy(
        &mut self,
        region: RegionId,
        place: Links,
        origins: SmallVec<[OriginId; 1]>,
        result: Value,
    ) -> NodeId {
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(Some(Node {
            op: Cow::Borrowed("Identity"),
            domain: Cow::Borrowed(""),
            overload: Cow::Borrowed(""),
            attributes: Attributes::new(),
            name: None,
            origins,
            inputs: SmallVec::new(),
            outputs: smallvec![result],
            region,
        }));
        self.links.push(place);
        self.tags.push(None);
        id
    }

    /// The value that a planned copy will make.
    fn result_of(&self, copy: NodeId) -> Value {
        self[copy].outputs[0]
    }

    /// Makes the outputs of a region valid ONNX: each is a value of its own that a node of the region makes, with the
    /// name of its slot. Inserts an `Identity` where the value in a slot cannot be the output. [`Model::assign_names`]
    /// does this for all regions.
    pub fn finish_outputs(&mut self, region: RegionId) {
        // Copies are linked in the order of the nodes that they replace, those at the end of the region last.
        let place = |i: &usize| {
            let next = self[region].outputs[*i].copy.and_then(|copy| self.links[copy.index()].next);
            (next.is_none(), next)
        };
        let mut order: Vec<usize> = (0..self[region].outputs.len()).collect();
        order.sort_by_key(place);
        order.into_iter().for_each(|i| self.finish_output(region, i));
    }

    pub(crate) fn finish_all_outputs(&mut self) {
        let regions = (0..self.regions.len()).map(RegionId::new);
        regions.for_each(|region| self.finish_outputs(region));
    }

    /// Whether no output needs [`Model::finish_outputs`].
    pub(crate) fn has_finished_outputs(&self) -> bool {
        self.regions.iter().flat_map(|region| &region.outputs).all(Output::is_finished)
    }

    fn finish_output(&mut self, region: RegionId, i: usize) {
        let output = &mut self[region].outputs[i];
        let (value, name, copy) = (output.value, output.name.take(), output.copy.take());
        let Some(copy) = copy else {
            if name.is_some() {
                self[value].name = name;
            }
            return;
        };
        let result = self.result_of(copy);
        self[result].name = name.or(self[result].name.take());
        if self.can_be_output(region, i) {
            self.take_over(value, result);
            self.nodes[copy.index()] = None;
            return;
        }
        self.link_copy(region, copy);
        self.set_op(copy, "Identity");
        self.set_inputs(copy, &[Some(value)]);
        self.drop_use(Some(value), Use::Output(region, i as u32));
        let result = self.result_of(copy);
        self[result].ty = self[value].ty.clone().or(self[result].ty.take());
        self[region].outputs[i].value = result;
        self.note_use(Some(result), Use::Output(region, i as u32));
    }

    /// Links a planned copy into its region and makes it the node that defines its result.
    fn link_copy(&mut self, region: RegionId, copy: NodeId) {
        let result = self.result_of(copy);
        let producer = self.producer(result);
        let Links { prev, next } = match producer {
            // The node to replace is still there: the value in the slot may be made after it, so the copy goes to the end.
            Some(node) if node != copy && self.contains(node) => {
                Links { prev: self[region].last, next: None }
            }
            _ => self.current_place(region, self.links[copy.index()]),
        };
        self.link(region, prev, Some(copy));
        self.link(region, Some(copy), next);
        match producer {
            Some(node) if node == copy => {}
            Some(node) if !self.contains(node) => {
                // Copies planned at the place of the erased node go next to this one.
                self.links[node.index()] = Links { prev: Some(copy), next: Some(copy) };
                self[result].def = Def::Node(copy, 0);
            }
            // The value is still defined elsewhere (its node was not erased), so the copy makes a new one.
            _ => {
                let own = self.add_value(Def::Node(copy, 0), None);
                self.take_over(own, result);
                self[copy].outputs = smallvec![own];
            }
        }
    }

    /// Where a planned place is now. The neighbours may have been erased since: an erased node keeps its own neighbours,
    /// so that following them leads to a node that is still there.
    fn current_place(&self, region: RegionId, planned: Links) -> Links {
        let still_there = |from: Option<NodeId>, step: fn(&Links) -> Option<NodeId>| {
            let mut nodes = iter::successors(from, |node| step(&self.links[node.index()]));
            nodes.find(|node| self.contains(*node))
        };
        if planned.next.is_some() {
            let next = still_there(planned.next, |links| links.next);
            Links { prev: next.map_or(self[region].last, |node| self.prev(node)), next }
        } else {
            let prev = still_there(planned.prev, |links| links.prev);
            Links { prev, next: prev.map_or(self[region].first, |node| self.next(node)) }
        }
    }
}
