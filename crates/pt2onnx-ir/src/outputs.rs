//! Output slots: what stands in them may change freely, and one finishing step makes them what ONNX wants.
//!
//! A slot whose value cannot be the output itself has a planned copy: an `Identity` with its place, origins, type and
//! metadata, which is linked into the region by [`Model::finish_outputs`] if the value still cannot be the output.

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
use std::borrow::Cow;

impl Model {
    /// Sets the output slots of a region. Any values may be given, and a value more than once: where ONNX wants an
    /// `Identity`, [`Model::assign_names`] inserts it.
    pub fn set_outputs(&mut self, region: RegionId, outputs: &[Value]) {
        self.set_outputs_of(region, outputs, &[]);
    }

    /// As [`Model::set_outputs`]; inserted nodes come from these origins.
    pub(crate) fn set_outputs_of(
        &mut self,
        region: RegionId,
        outputs: &[Value],
        origins: &[OriginId],
    ) {
        self.set_outputs_as_written(region, outputs);
        let mut prev = self[region].last;
        for (i, &value) in outputs.iter().enumerate() {
            if !self.is_made_for(region, value) || outputs[..i].contains(&value) {
                let links = Links { prev, next: None };
                let ty = self[value].ty.clone();
                let made = self.add_value(Def::Node(NodeId::new(self.nodes.len()), 0), ty);
                let copy = self.plan_copy(region, links, origins.into(), made);
                self[region].outputs[i].copy = Some(copy);
                prev = Some(copy);
            }
        }
    }

    /// Sets the output slots of a region just as a file has them: no `Identity` is inserted for them.
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
        let value = output.copy.map_or(output.value, |copy| self.copied(copy));
        self[value].ty.as_ref()
    }

    /// Lets everything that uses `old` use `new`. An output slot keeps its name, type and metadata.
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

    fn replace_output(&mut self, region: RegionId, i: usize, old: Value, new: Value) {
        self[region].outputs[i].value = new;
        let planned = self[region].outputs[i].copy.map(|copy| self.copied(copy));
        let from = planned.unwrap_or(old);
        if self.can_be_output(region, i) {
            self.hand_over(from, new);
            let output = &mut self[region].outputs[i];
            output.copy = None;
            if let Some(name) = output.name.take() {
                self[new].name = Some(name);
            }
        } else if planned.is_none() {
            let (links, origins) = match self.producer(old) {
                Some(node) => {
                    let links = Links { prev: self.prev(node), next: Some(node) };
                    (links, self[node].origins.clone())
                }
                None => (Links { prev: self[region].last, next: None }, SmallVec::new()),
            };
            let name = self[old].name.take();
            let copy = self.plan_copy(region, links, origins, old);
            let output = &mut self[region].outputs[i];
            output.name = output.name.take().or(name);
            output.copy = Some(copy);
        }
    }

    /// Whether a node of the region makes the value. An initialiser can be an output of the main graph, too: a constant
    /// without a name, which takes that of the output.
    fn is_made_for(&self, region: RegionId, value: Value) -> bool {
        match self[value].def() {
            Def::Node(node, _) => self[*node].region == region,
            Def::Constant(_) => region == Self::MAIN && self[value].name.is_none(),
            Def::Input(..) => false,
        }
    }

    /// Whether the value in the slot can be the output itself: no other slot holds it without a copy.
    fn can_be_output(&self, region: RegionId, index: usize) -> bool {
        let value = self[region].outputs[index].value;
        let holds_it = |u: Use| match u {
            Use::Input(..) => false,
            Use::Output(r, i) if (r, i as usize) == (region, index) => false,
            Use::Output(r, i) => self[r].outputs[i as usize].copy.is_none(),
        };
        self.is_made_for(region, value) && !self[value].uses().any(holds_it)
    }

    /// Gives `new` the name, type, metadata and documentation of `old`, which loses its last use.
    fn hand_over(&mut self, old: Value, new: Value) {
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

    /// An `Identity` that is not linked into its region. `made` is what it gives: a value of its own, or the output that
    /// another value took the place of, whose node is about to go.
    fn plan_copy(
        &mut self,
        region: RegionId,
        links: Links,
        origins: SmallVec<[OriginId; 1]>,
        made: Value,
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
            outputs: smallvec![made],
            region,
        }));
        self.links.push(links);
        self.tags.push(None);
        id
    }

    /// What a planned copy gives.
    fn copied(&self, copy: NodeId) -> Value {
        self[copy].outputs[0]
    }

    /// Makes the outputs of a region what ONNX wants: each a value of its own, made by a node of the region, with the
    /// name of its slot. Where the value in a slot is none, an `Identity` is inserted. [`Model::assign_names`] does this
    /// for all regions.
    pub fn finish_outputs(&mut self, region: RegionId) {
        // In the order of the nodes that copies stand for; those at the end of the region come after them.
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
        let made = self.copied(copy);
        self[made].name = name.or(self[made].name.take());
        if self.can_be_output(region, i) {
            self.hand_over(made, value);
            self.nodes[copy.index()] = None;
            return;
        }
        let gone = self.producer(made);
        let (prev, next) = match gone {
            // The node that the copy was to stand for is still there, and the value may be made behind it: at the end, every value is made.
            Some(node) if node != copy && self.contains(node) => (self[region].last, None),
            _ => self.place(region, self.links[copy.index()]),
        };
        self.link(region, prev, Some(copy));
        self.link(region, Some(copy), next);
        let made = self.define_by(copy, made);
        self[made].ty = self[value].ty.clone().or(self[made].ty.take());
        if let Some(gone) = gone.filter(|n| *n != copy && !self.contains(*n)) {
            self.links[gone.index()] = Links { prev: Some(copy), next: Some(copy) };
        }
        self.set_op(copy, "Identity");
        self.set_inputs(copy, &[Some(value)]);
        self.drop_use(Some(value), Use::Output(region, i as u32));
        self[region].outputs[i].value = made;
        self.note_use(Some(made), Use::Output(region, i as u32));
    }

    /// Makes a planned copy the definition of its value; of a new one if the node that made it is still there.
    fn define_by(&mut self, copy: NodeId, made: Value) -> Value {
        let is_free = |node| node == copy || !self.contains(node);
        if self.producer(made).is_some_and(is_free) {
            self[made].def = Def::Node(copy, 0);
            return made;
        }
        let own = self.add_value(Def::Node(copy, 0), None);
        self.hand_over(made, own);
        self[copy].outputs = smallvec![own];
        own
    }

    /// The neighbours of a place in a region. Some of those planned may have been erased since: an erased node still knows
    /// its own neighbours, or the copy that took its place.
    fn place(&self, region: RegionId, planned: Links) -> (Option<NodeId>, Option<NodeId>) {
        let mut next = planned.next;
        while let Some(node) = next.filter(|n| !self.contains(*n)) {
            next = self.links[node.index()].next;
        }
        if planned.next.is_some() {
            return (next.map_or(self[region].last, |node| self.prev(node)), next);
        }
        let mut prev = planned.prev;
        while let Some(node) = prev.filter(|n| !self.contains(*n)) {
            prev = self.links[node.index()].prev;
        }
        (prev, prev.map_or(self[region].first, |n| self.next(n)))
    }
}
