//! The call of a module that each node belongs to.

use pt2onnx_ir::{Def, Model, ModuleId, NodeId, RegionId, Use, Value};
use pt2onnx_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

const MAX_RANK: i64 = 16;

/// The chosen call that each node belongs to.
pub(super) struct Places {
    /// For each call, the innermost chosen call that it is or is part of.
    nearest: Vec<Option<ModuleId>>,
    /// Nodes that are not here are part of no chosen call.
    of: FxHashMap<NodeId, ModuleId>,
    owners: FxHashMap<RegionId, NodeId>,
}

impl Places {
    pub(super) fn find(model: &Model, chosen: impl Fn(ModuleId) -> bool) -> Self {
        let mut found = Finder::new(model);
        found.infer();
        found.keep_within_owners();
        found.hoist_sizes();
        let mut nearest: Vec<Option<ModuleId>> = Vec::new();
        for (module, call) in model.modules() {
            // The outermost call is the program itself.
            let around = call.parent.map(|parent| nearest[parent.index()]);
            nearest
                .push(around.and_then(|around| if chosen(module) { Some(module) } else { around }));
        }
        let of = found.of.into_iter().filter_map(|(n, m)| Some((n, nearest[m.index()]?)));
        Self { of: of.collect(), nearest, owners: found.owners }
    }

    pub(super) fn of(&self, node: NodeId) -> Option<ModuleId> {
        self.of.get(&node).copied()
    }

    pub(super) fn put(&mut self, node: NodeId, module: ModuleId) {
        self.of.insert(node, module);
    }

    /// The chosen call that a region belongs to.
    pub(super) fn of_region(&self, region: RegionId) -> Option<ModuleId> {
        self.owners.get(&region).and_then(|owner| self.of(*owner))
    }

    /// The chosen call around a chosen call.
    pub(super) fn around(&self, model: &Model, module: ModuleId) -> Option<ModuleId> {
        model[module].parent.and_then(|parent| self.nearest[parent.index()])
    }
}

struct Finder<'a> {
    model: &'a Model,
    /// All nodes of the graph, each after those that it uses and before those of its bodies.
    nodes: Vec<NodeId>,
    of: FxHashMap<NodeId, ModuleId>,
    owners: FxHashMap<RegionId, NodeId>,
}

impl<'a> Finder<'a> {
    fn new(model: &'a Model) -> Self {
        let nodes = model.graph_nodes();
        let of = nodes.iter().filter_map(|n| Some((*n, model.module_of(*n)?))).collect();
        let owned = nodes.iter().flat_map(|n| model[*n].regions().map(|r| (r, *n)));
        Self { model, owners: owned.collect(), of, nodes }
    }

    fn users(&self, node: NodeId) -> impl Iterator<Item = ModuleId> + '_ {
        self.model.uses_of(node).filter_map(|at| match at {
            Use::Input(user, _) => self.of.get(&user).copied(),
            Use::Output(region, _) => self.of.get(self.owners.get(&region)?).copied(),
        })
    }

    fn common(&self, modules: impl IntoIterator<Item = ModuleId>) -> Option<ModuleId> {
        let mut modules = modules.into_iter();
        let first = modules.next()?;
        modules.try_fold(first, |a, b| self.model.common_module(a, b))
    }

    /// A node of unknown origin belongs to the innermost call around the nodes that use it.
    fn infer(&mut self) {
        for i in (0..self.nodes.len()).rev() {
            let node = self.nodes[i];
            if !self.of.contains_key(&node)
                && let Some(module) = self.common(self.users(node))
            {
                self.of.insert(node, module);
            }
        }
    }

    /// A node of a body belongs to the call of the node that has the body, or to one in it.
    fn keep_within_owners(&mut self) {
        for &node in &self.nodes {
            let Some(owner) = self.owners.get(&self.model[node].region()) else { continue };
            match (self.of.get(owner).copied(), self.of.get(&node).copied()) {
                (None, _) => _ = self.of.remove(&node),
                (Some(outer), inner) => {
                    let inner = inner.filter(|inner| self.model.is_within(*inner, outer));
                    self.of.insert(node, inner.unwrap_or(outer));
                }
            }
        }
    }

    /// Sizes are computed where they are first needed, but other calls use them, too. They belong
    /// to the innermost call around all of these, if what they are computed from can be used there.
    fn hoist_sizes(&mut self) {
        let sizes = self.sizes();
        let mut wanted = FxHashMap::default();
        for &node in self.nodes.iter().rev().filter(|n| sizes.contains(n)) {
            let Some(&own) = self.of.get(&node) else { continue };
            let users = self.model.uses_of(node).filter_map(|at| {
                let (user, _) = at.input()?;
                wanted.get(&user).or_else(|| self.of.get(&user)).copied()
            });
            if let Some(module) = self.common([own].into_iter().chain(users)).filter(|m| *m != own)
            {
                wanted.insert(node, module);
            }
        }
        for &node in &self.nodes {
            if let Some(&module) = wanted.get(&node)
                && self.model[node].inputs().iter().flatten().all(|v| self.is_visible(*v, module))
            {
                self.of.insert(node, module);
            }
        }
    }

    /// Whether a value is computed outside of a call or directly in it, but not in a call within.
    fn is_visible(&self, value: Value, module: ModuleId) -> bool {
        let maker = self.model.producer(value).and_then(|node| self.of.get(&node));
        maker.is_none_or(|maker| self.model.is_within(module, *maker))
    }

    /// The nodes that compute sizes from shapes and constants only.
    fn sizes(&self) -> FxHashSet<NodeId> {
        let mut sizes = FxHashSet::default();
        for &node in &self.nodes {
            let data = &self.model[node];
            let of_sizes = |v: &Value| match self.model[*v].def() {
                Def::Constant(_) => true,
                Def::Node(maker, _) => sizes.contains(maker),
                Def::Input(..) => false,
            };
            let is_size = data.domain.is_empty()
                && data.outputs().iter().all(|v| self.is_size(*v))
                && (matches!(data.op(), "Shape" | "Size")
                    || data.inputs().iter().flatten().all(of_sizes));
            if is_size {
                sizes.insert(node);
            }
        }
        sizes
    }

    fn is_size(&self, value: Value) -> bool {
        self.model.dtype(value) == Some(DType::I64)
            && match self.model.shape(value).map(Vec::as_slice) {
                Some([]) => true,
                Some([size]) => size.as_int().is_some_and(|size| size <= MAX_RANK),
                _ => false,
            }
    }
}
