//! Calls of modules in the source program, to which the origins of nodes refer.

use crate::{
    Attributes, Model, ModuleCall, Origin,
    ids::{ModuleId, NodeId},
};

impl Model {
    /// Adds a call of a module, for origins to refer to.
    pub fn add_module(&mut self, mut call: ModuleCall) -> ModuleId {
        call.depth = call.parent.map_or(0, |parent| self[parent].depth.saturating_add(1));
        self.modules.push(call);
        ModuleId::new(self.modules.len() - 1)
    }

    /// Sets the attributes of each module ([`ModuleCall::attributes`]).
    pub fn set_module_attributes(&mut self, of: impl Fn(&ModuleCall) -> Option<Attributes>) {
        for call in &mut self.modules {
            call.attributes = of(call);
        }
    }

    /// All calls of modules. A call comes after the call that made it.
    pub fn modules(&self) -> impl Iterator<Item = (ModuleId, &ModuleCall)> {
        self.modules.iter().enumerate().map(|(i, call)| (ModuleId::new(i), call))
    }

    /// A call, and the calls around it, innermost first.
    pub fn modules_around(&self, module: ModuleId) -> impl Iterator<Item = ModuleId> + '_ {
        std::iter::successors(Some(module), |m| self[*m].parent)
    }

    /// Whether `inner` is `outer` or was made within it.
    pub fn is_within(&self, inner: ModuleId, outer: ModuleId) -> bool {
        let depth = self[outer].depth;
        self.modules_around(inner).find(|m| self[*m].depth <= depth) == Some(outer)
    }

    /// The innermost call that both are part of; `None` if they are of different programs.
    pub fn common_module(&self, a: ModuleId, b: ModuleId) -> Option<ModuleId> {
        self.modules_around(a).find(|m| self.is_within(b, *m))
    }

    /// The innermost call of a module that all origins of a node are part of; `None` if that is not
    /// known.
    pub fn module_of(&self, node: NodeId) -> Option<ModuleId> {
        let mut known = self[node].origins.iter().filter_map(|o| self[*o].module);
        let first = known.next()?;
        known.try_fold(first, |a, b| self.common_module(a, b))
    }

    /// Notes that a node also does the work of another one, which may be of another module. The
    /// node's metadata stay unchanged.
    pub fn share(&mut self, node: NodeId, with: NodeId) {
        let (Some(own), Some(other)) = (self.module_of(node), self.module_of(with)) else { return };
        let common = self.common_module(own, other).filter(|common| *common != own);
        if let Some(module) = common {
            let note = self.add_origin(Origin { module: Some(module), ..Origin::default() });
            self[node].origins.push(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InsertPoint;

    #[test]
    fn nodes_belong_to_the_innermost_common_call() {
        let mut model = Model::new(20);
        let root = model.add_module(ModuleCall::new(None, "", "m.Net"));
        let layer = model.add_module(ModuleCall::new(Some(root), "layer", "m.Layer"));
        let calls = ["a", "b"].map(|path| {
            model.add_module(ModuleCall::new(Some(layer), format!("layer.{path}"), "m.Linear"))
        });
        let other = model.add_module(ModuleCall::new(None, "", "m.Other"));
        let mut node = |modules: &[ModuleId]| {
            let node =
                model.add_node(InsertPoint::End(Model::MAIN), "Relu", &[], Attributes::new(), 1);
            for &module in modules {
                let origin = Origin { node: "n".into(), module: Some(module), ..Origin::default() };
                let origin = model.add_origin(origin);
                model[node].origins.push(origin);
            }
            node
        };
        let [a, b] = calls;
        let (none, of_a, of_b, of_both) = (node(&[]), node(&[a]), node(&[b, b]), node(&[a, b]));
        let found = [none, of_a, of_b, of_both].map(|n| model.module_of(n));
        assert_eq!(found, [None, Some(a), Some(b), Some(layer)]);
        assert!(model.is_within(a, layer) && model.is_within(a, a) && !model.is_within(layer, a));
        assert_eq!(model.common_module(a, other), None);
        model.share(of_a, of_b);
        model.share(of_a, of_b);
        assert_eq!((model.module_of(of_a), model[of_a].origins.len()), (Some(layer), 2));
    }
}
