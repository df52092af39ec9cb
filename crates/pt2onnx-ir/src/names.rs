//! Names of values and nodes: gives missing ones, and changes those that clash.

use crate::{Model, Name, Node, NodeId, RegionId, Value, ids::OriginId, value::Def};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::{SmallVec, smallvec};
use smol_str::format_smolstr;

/// Key in the metadata of a value that has another name in the source program: that name.
pub const ORIGINAL_NAME: &str = "pkg.torch.onnx.original_node_name";

/// Key in the metadata of a constant that a pass computed: the weights that it was computed from,
/// or else the source nodes.
pub const FOLDED_FROM: &str = "pkg.pt2onnx.folded_from";

/// Names in use. The set keeps their order, because lookups mostly follow it.
type Names = IndexSet<Name, FxBuildHasher>;

impl Model {
    /// Finishes all outputs ([`Model::finish_outputs`]), then gives every value and node a unique
    /// name. If names clash, inputs and outputs of the main graph keep theirs first, then
    /// constants, then other values in the order of their numbers. Each function has its own scope
    /// of names, and so has each body of an operator of another domain, whose runtime may go by the
    /// names of its inputs and outputs.
    ///
    /// - A constant that was computed from the weight `fc.weight` ([`FOLDED_FROM`]) is called
    ///   `fc.weight_folded`.
    /// - The node that computes the result of the source node `linear` is called `node_linear`; if
    ///   several nodes compute its results, `node_max_1__0` and `node_max_1__1`. Other nodes that
    ///   were made from it have their operator in the name: `node_linear_MatMul`.
    /// - Everything else has a number: `val_0`, `node_Add_0`.
    pub fn assign_names(&mut self) {
        self.finish_all_outputs();
        let nameless = self.name_values();
        self.name_nodes(&nameless);
    }

    /// The name of a constant, or the one that it is going to have; `None` if that will be a
    /// number.
    pub fn weight_name(&self, constant: Value) -> Option<Name> {
        let data = &self[constant];
        data.name.clone().or_else(|| {
            let said = |key: &str| data.metadata.iter().find(|(k, _)| k == key);
            said(FOLDED_FROM)?;
            let (_, weight) = said(ORIGINAL_NAME)?;
            Some(format_smolstr!("{weight}_folded"))
        })
    }

    /// Returns whether each value had no name before.
    fn name_values(&mut self) -> Vec<bool> {
        let scopes = self.scopes();
        let mut taken = Taken::new(scopes.count, scopes.of.len());
        let mut nameless = Vec::new();
        for value in self.naming_order(&scopes) {
            let data = &self[value];
            if self.is_gone(value) || data.is_left_out() {
                continue;
            }
            let Some(name) = data.name.as_ref().filter(|n| !n.is_empty()) else {
                nameless.push(value);
                continue;
            };
            let seen = scopes.seen_in(self, value);
            if let Some(new) = taken.another(name, &seen) {
                self[value].name = Some(new);
            }
        }
        let mut counter = 0;
        let mut were_nameless = vec![false; scopes.of.len()];
        for value in nameless {
            were_nameless[value.index()] = true;
            let seen = scopes.seen_in(self, value);
            let weight = self[value].constant().and_then(|_| self.weight_name(value));
            self[value].name = Some(match weight {
                Some(name) => taken.another(&name, &seen).unwrap_or(name),
                None => taken.fresh("val", &mut counter, &seen),
            });
        }
        were_nameless
    }

    /// All values, each once: inputs and outputs of the main graph and of bodies with their own
    /// scope, then constants, then the others.
    fn naming_order(&self, scopes: &Scopes) -> Vec<Value> {
        let all = || self.values().map(|(value, _)| value);
        let constants = all().filter(|value| self[*value].constant().is_some());
        let graphs = std::iter::once(&Self::MAIN).chain(&scopes.bodies).map(|&graph| &self[graph]);
        let interface = graphs.flat_map(|g| g.inputs().iter().copied().chain(g.output_values()));
        let mut seen = vec![false; self.values.len()];
        let mut order: Vec<Value> = interface.chain(constants).chain(all()).collect();
        order.retain(|value| !std::mem::replace(&mut seen[value.index()], true));
        order
    }

    /// Whether a value is not in the model any more: its node is erased, it is a constant that
    /// nothing uses, or its region was discarded.
    fn is_gone(&self, value: Value) -> bool {
        match self[value].def() {
            Def::Node(node, _) => !self.contains(*node),
            Def::Constant(_) => self[value].uses().len() == 0,
            Def::Input(region, i) => self[*region].inputs().get(*i as usize) != Some(&value),
        }
    }

    /// `nameless` says which values had no name before they got a number.
    fn name_nodes(&mut self, nameless: &[bool]) {
        let (mut results, mut others) = (Vec::new(), Vec::new());
        let mut count = vec![0; self.origins.len()];
        let nodes = self.all_nodes();
        let mut taken = Taken::new(1, nodes.len());
        let graph = Seen::In(smallvec![0]);
        for node in nodes {
            if let Some(name) = self[node].name.as_ref().filter(|n| !n.is_empty()) {
                if let Some(new) = taken.another(name, &graph) {
                    self[node].name = Some(new);
                }
                continue;
            }
            let named = |v: &&Value| !nameless[v.index()] && !self[**v].is_left_out();
            let result = self[node].outputs().iter().find(named);
            let origin = self.origin_to_name(node, result.copied());
            match (origin, result) {
                (Some(origin), Some(_)) => {
                    count[origin.index()] += 1;
                    results.push((node, origin));
                }
                _ => others.push((node, origin)),
            }
        }
        let mut given = vec![0; count.len()];
        for (node, origin) in results {
            let mut name = self.node_name_of(origin);
            if count[origin.index()] > 1 {
                name = format_smolstr!("{name}__{}", given[origin.index()]);
                given[origin.index()] += 1;
            }
            let new = taken.another(&name, &graph);
            self[node].name = Some(new.unwrap_or(name));
        }
        let (mut counter, mut numbers) = (0, FxHashMap::<Name, usize>::default());
        for (node, origin) in others {
            self[node].name = Some(match origin {
                Some(origin) => {
                    let parts = [&self.node_name_of(origin), "_", self[node].op()];
                    let name: Name = parts.into_iter().collect();
                    // A source node may have become thousands of nodes.
                    let number = numbers.entry(name.clone()).or_default();
                    let mut candidate = name.clone();
                    while !taken.insert(&candidate, &graph) {
                        *number += 1;
                        candidate = format_smolstr!("{name}_{number}");
                    }
                    candidate
                }
                None => {
                    let prefix = format_smolstr!("node_{}", self[node].op);
                    taken.fresh(&prefix, &mut counter, &graph)
                }
            });
        }
    }

    /// The source node that a node is called after: the one that its result is called after, or
    /// else the last one.
    fn origin_to_name(&self, node: NodeId, result: Option<Value>) -> Option<OriginId> {
        let known = || self[node].origins.iter().copied().filter(|o| !self[*o].node.is_empty());
        let name = result.and_then(|v| self[v].name.as_ref());
        known().find(|o| Some(&self[*o].node) == name).or_else(|| known().max_by_key(|o| o.index()))
    }

    /// `node_linear`; a node of an ONNX file has such a name already.
    fn node_name_of(&self, origin: OriginId) -> Name {
        let origin = &self[origin];
        if origin.op.is_empty() {
            origin.node.clone()
        } else {
            ["node_", &origin.node].into_iter().collect()
        }
    }

    /// The scope of each value's name, as [`Model::assign_names`] has them.
    pub fn scopes(&self) -> Scopes {
        let functions: Vec<RegionId> = self.functions.iter().map(|f| f.body).collect();
        let nodes = self.all_nodes();
        let foreign = nodes.iter().map(|&node| &self[node]).filter(|node| !node.domain.is_empty());
        let bodies: Vec<RegionId> = foreign.flat_map(Node::regions).collect();
        let mut of = vec![0; self.values().count()];
        let mut captured: FxHashMap<Value, SmallVec<[usize; 1]>> = FxHashMap::default();
        // Bodies come after those around them.
        for (i, &root) in functions.iter().chain(&bodies).enumerate() {
            let scope = i + 1;
            let nodes = self.nodes_in(&[root]);
            let regions = nodes.iter().flat_map(|n| self[*n].regions()).chain([root]);
            let inputs = regions.flat_map(|r| self[r].inputs().to_vec());
            let outputs = nodes.iter().flat_map(|n| self[*n].outputs().to_vec());
            inputs.chain(outputs).for_each(|v| of[v.index()] = scope);
            let used = nodes.iter().flat_map(|n| self[*n].inputs()).flatten();
            for value in used.filter(|v| i >= functions.len() && of[v.index()] < scope) {
                let scopes = captured.entry(*value).or_default();
                if !scopes.contains(&scope) {
                    scopes.push(scope);
                }
            }
        }
        Scopes { of, count: 1 + functions.len() + bodies.len(), bodies, captured }
    }
}

/// The scopes of names: the main graph, then each function, then each body of an operator of
/// another domain.
#[derive(Debug)]
pub struct Scopes {
    /// The scope of each value's name. Constants have that of the main graph.
    pub(crate) of: Vec<usize>,
    pub(crate) count: usize,
    /// The bodies of operators of other domains.
    bodies: Vec<RegionId>,
    /// The scopes of bodies that use a value from around them.
    pub(crate) captured: FxHashMap<Value, SmallVec<[usize; 1]>>,
}

impl Scopes {
    /// Whether a value's name is of the main graph's scope.
    pub fn has_main(&self, value: Value) -> bool {
        self.of.get(value.index()) == Some(&0)
    }

    /// The scopes in which a value's name means the value: no other one may have it there. Any
    /// function can use a constant.
    fn seen_in(&self, model: &Model, value: Value) -> Seen {
        match model[value].constant() {
            _ if self.count == 1 => Seen::In(smallvec![0]),
            Some(_) => Seen::Everywhere,
            None => {
                let captured = self.captured.get(&value).into_iter().flatten().copied();
                Seen::In(std::iter::once(self.of[value.index()]).chain(captured).collect())
            }
        }
    }
}

/// The scopes in which a name means the same.
enum Seen {
    Everywhere,
    In(SmallVec<[usize; 1]>),
}

/// The names that are taken.
struct Taken {
    /// In each scope, but those that are taken everywhere.
    scopes: Vec<Names>,
    everywhere: Names,
    /// In any scope, if there are several.
    anywhere: Names,
}

impl Taken {
    /// No names, with memory for so many in the first scope.
    fn new(scopes: usize, names: usize) -> Self {
        let mut scopes = vec![Names::default(); scopes];
        if let Some(first) = scopes.first_mut() {
            first.reserve(names);
        }
        Self { scopes, everywhere: Names::default(), anywhere: Names::default() }
    }

    fn has(&self, name: &Name, seen: &Seen) -> bool {
        match seen {
            Seen::Everywhere => self.anywhere.contains(name),
            Seen::In(scopes) => {
                self.everywhere.contains(name)
                    || scopes.iter().any(|&scope| self.scopes[scope].contains(name))
            }
        }
    }

    /// Takes a name in scopes, unless it is taken already in one of them.
    fn insert(&mut self, name: &Name, seen: &Seen) -> bool {
        if let (Seen::In(scopes), [only]) = (seen, self.scopes.as_mut_slice())
            && scopes.len() == 1
        {
            return only.insert(name.clone());
        }
        let free = !self.has(name, seen);
        if free {
            match seen {
                Seen::Everywhere => _ = self.everywhere.insert(name.clone()),
                Seen::In(scopes) => {
                    scopes.iter().for_each(|&scope| _ = self.scopes[scope].insert(name.clone()))
                }
            }
            self.anywhere.insert(name.clone());
        }
        free
    }

    /// Takes a name in scopes; if it is taken already in one of them, takes and returns another
    /// one.
    fn another(&mut self, name: &Name, seen: &Seen) -> Option<Name> {
        if self.insert(name, seen) {
            return None;
        }
        let mut numbered = (1..).map(|n| format_smolstr!("{name}_{n}"));
        numbered.find(|name| self.insert(name, seen))
    }

    /// A name that is not taken in these scopes. It is not added: the next one has another number.
    fn fresh(&self, prefix: &str, counter: &mut usize, seen: &Seen) -> Name {
        loop {
            let candidate = format_smolstr!("{prefix}_{counter}");
            *counter += 1;
            if !self.has(&candidate, seen) {
                return candidate;
            }
        }
    }
}
