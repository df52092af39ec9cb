//! The tree of groups of nodes: one for each call of a module. Regions are ordered so that the
//! nodes of a group are neighbours.

use super::places::Places;
use petgraph::{algo::kosaraju_scc, graph::DiGraph};
use pt2onnx_ir::{Model, ModuleId, NodeId, RegionId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// How often groups of a level are split. Nodes that then stay apart belong to the call around.
const MAX_SPLITS: usize = 64;

/// A part of a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Member {
    Node(NodeId),
    /// The position of another group.
    Group(usize),
}

pub(super) struct Group {
    pub(super) module: ModuleId,
    /// The call around it.
    pub(super) around: Option<ModuleId>,
    pub(super) members: Vec<Member>,
    /// 0 if there is no other group in it, else more than the height of each.
    height: u32,
}

pub(super) struct Groups {
    all: Vec<Group>,
}

impl Groups {
    pub(super) fn of(model: &mut Model, places: &mut Places) -> Self {
        let bodies = |n: &NodeId| model[*n].regions().collect::<Vec<_>>();
        let mut regions = vec![Model::MAIN];
        regions.extend(model.graph_nodes().iter().flat_map(bodies));
        let mut work = Grouper { model, places, all: Vec::new(), heights: FxHashMap::default() };
        // Bodies before the regions around them.
        for region in regions.into_iter().rev() {
            work.region(region);
        }
        Self { all: work.all }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn members(&self, group: usize) -> &[Member] {
        &self.all[group].members
    }

    pub(super) fn heights(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.all.iter().map(|g| g.height + 1).max().unwrap_or(0)
    }

    /// The groups of this height, with their positions.
    pub(super) fn of_height(&self, height: u32) -> impl Iterator<Item = (usize, &Group)> {
        self.all.iter().enumerate().filter(move |(_, g)| g.height == height)
    }
}

struct Grouper<'a> {
    model: &'a mut Model,
    places: &'a mut Places,
    all: Vec<Group>,
    /// For each region, a number above the heights of the groups in it.
    heights: FxHashMap<RegionId, u32>,
}

impl Grouper<'_> {
    fn region(&mut self, region: RegionId) {
        let nodes: Vec<NodeId> = self.model.nodes(region).collect();
        let positions: FxHashMap<NodeId, usize> =
            nodes.iter().enumerate().map(|(i, n)| (*n, i)).collect();
        let uses = nodes.iter().map(|node| {
            let makers = self.model.values_used(*node).into_iter();
            let makers = makers.filter_map(|v| positions.get(&self.model.producer(v)?).copied());
            let mut makers: Vec<usize> = makers.collect();
            makers.sort_unstable();
            makers.dedup();
            makers
        });
        let graph = Graph { uses: uses.collect(), nodes };
        let (all, here) = ((0..graph.nodes.len()).collect(), self.places.of_region(region));
        let (members, height) = self.level(&graph, all, here);
        self.heights.insert(region, height);
        let order = self.in_order(&members);
        self.model.reorder(region, &order);
    }

    fn in_order(&self, members: &[Member]) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut todo: Vec<Member> = members.iter().rev().copied().collect();
        while let Some(member) = todo.pop() {
            match member {
                Member::Node(node) => nodes.push(node),
                Member::Group(inner) => todo.extend(self.all[inner].members.iter().rev()),
            }
        }
        nodes
    }

    /// Groups nodes of a call, by positions; returns members, and a number above their heights.
    fn level(
        &mut self,
        graph: &Graph,
        nodes: Vec<usize>,
        here: Option<ModuleId>,
    ) -> (Vec<Member>, u32) {
        let units = nodes.iter().map(|i| self.inner(graph.nodes[*i], here)).collect();
        let mut level = Level::new(graph, nodes, units);
        let order = level.order();
        for (node, module) in level.absorbed.drain(..) {
            self.places.put(graph.nodes[node], module);
        }
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); level.units.len()];
        for (i, unit) in level.nodes.iter().zip(&level.unit_of) {
            parts[*unit].push(*i);
        }
        let (mut members, mut above) = (Vec::new(), 0);
        for unit in order {
            let part = std::mem::take(&mut parts[unit]);
            let Some(module) = level.units[unit] else {
                for node in part.into_iter().map(|i| graph.nodes[i]) {
                    let bodies = self.model[node].regions();
                    let inner = bodies.filter_map(|r| self.heights.get(&r).copied()).max();
                    above = above.max(inner.unwrap_or(0));
                    members.push(Member::Node(node));
                }
                continue;
            };
            let (inner, height) = self.level(graph, part, Some(module));
            self.all.push(Group { module, around: here, members: inner, height });
            members.push(Member::Group(self.all.len() - 1));
            above = above.max(height + 1);
        }
        (members, above)
    }

    /// The call directly within `here` that a node belongs to; `None` if that is `here` itself.
    fn inner(&self, node: NodeId, here: Option<ModuleId>) -> Option<ModuleId> {
        let around = |m: &ModuleId| self.places.around(self.model, *m);
        let mut chain = std::iter::successors(self.places.of(node), around);
        chain.find(|m| Some(*m) != here && around(m) == here)
    }
}

struct Graph {
    nodes: Vec<NodeId>,
    uses: Vec<Vec<usize>>,
}

/// The nodes of a call in units: single nodes, and groups of nodes that shall be neighbours.
struct Level<'a> {
    graph: &'a Graph,
    nodes: Vec<usize>,
    unit_of: Vec<usize>,
    /// The call of each unit; `None` for a single node.
    units: Vec<Option<ModuleId>>,
    /// Where in `nodes` the node of a position is.
    places: FxHashMap<usize, usize>,
    /// Nodes that were put into a group, by position.
    absorbed: Vec<(usize, ModuleId)>,
}

impl<'a> Level<'a> {
    fn new(graph: &'a Graph, nodes: Vec<usize>, modules: Vec<Option<ModuleId>>) -> Self {
        let mut groups = FxHashMap::default();
        let (mut units, mut unit_of) = (Vec::new(), Vec::new());
        for module in modules {
            let mut next = || {
                units.push(module);
                units.len() - 1
            };
            unit_of.push(match module {
                Some(module) => *groups.entry(module).or_insert_with(next),
                None => next(),
            });
        }
        let places = nodes.iter().enumerate().map(|(i, n)| (*n, i)).collect();
        Self { graph, nodes, unit_of, units, places, absorbed: Vec::new() }
    }

    /// An order in which each unit comes after those that it uses; changes units to have one.
    fn order(&mut self) -> Vec<usize> {
        if self.units.iter().all(Option::is_none) {
            return (0..self.units.len()).collect();
        }
        let mut splits = 0;
        loop {
            let (order, done) = self.sorted();
            if order.len() == self.units.len() {
                return order;
            }
            match splits {
                0 => self.absorb(),
                n if n <= MAX_SPLITS => self.split(&done),
                _ => self.dissolve(&done),
            }
            splits += 1;
        }
    }

    /// The places of the nodes of this level that a node uses.
    fn used(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let uses = self.graph.uses[self.nodes[place]].iter();
        uses.filter_map(|used| self.places.get(used).copied())
    }

    /// Pairs of a unit and another one that uses it.
    fn edges(&self) -> Vec<(usize, usize)> {
        let pairs = (0..self.nodes.len()).flat_map(|place| {
            self.used(place).map(move |used| (self.unit_of[used], self.unit_of[place]))
        });
        let mut edges: Vec<_> = pairs.filter(|(a, b)| a != b).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    fn sorted(&self) -> (Vec<usize>, Vec<bool>) {
        let (mut waits, mut after) =
            (vec![0; self.units.len()], vec![Vec::new(); self.units.len()]);
        for (unit, user) in self.edges() {
            waits[user] += 1;
            after[unit].push(user);
        }
        let mut first = vec![usize::MAX; self.units.len()];
        for (place, unit) in self.unit_of.iter().enumerate().rev() {
            first[*unit] = place;
        }
        let free = (0..self.units.len()).filter(|unit| waits[*unit] == 0);
        let mut free: BTreeSet<(usize, usize)> = free.map(|unit| (first[unit], unit)).collect();
        let (mut order, mut done) = (Vec::new(), vec![false; self.units.len()]);
        while let Some((_, unit)) = free.pop_first() {
            order.push(unit);
            done[unit] = true;
            for &user in &after[unit] {
                waits[user] -= 1;
                if waits[user] == 0 {
                    free.insert((first[user], user));
                }
            }
        }
        (order, done)
    }

    /// Puts single nodes between the nodes of one group into that group.
    fn absorb(&mut self) {
        let edges = self.edges().into_iter().map(|(a, b)| (a as u32, b as u32));
        let units = DiGraph::<(), (), u32>::from_edges(edges);
        let mut into = FxHashMap::default();
        for circle in kosaraju_scc(&units) {
            let mut groups = circle.iter().filter(|unit| self.units[unit.index()].is_some());
            if let (Some(group), None) = (groups.next(), groups.next()) {
                into.extend(circle.iter().map(|unit| (unit.index(), group.index())));
            }
        }
        let old = self.unit_of.clone();
        for (place, unit) in old.into_iter().enumerate() {
            if let Some(&group) = into.get(&unit).filter(|group| **group != unit) {
                self.unit_of[place] = group;
                self.absorbed.extend(self.units[group].map(|m| (self.nodes[place], m)));
            }
        }
        self.renumber();
    }

    /// Separates the nodes of a group that can be computed next from its other nodes.
    fn split(&mut self, done: &[bool]) {
        let Some(stuck) = self.unit_of.iter().copied().find(|unit| !done[*unit]) else { return };
        let mut ready: Vec<bool> = self.unit_of.iter().map(|unit| done[*unit]).collect();
        let mut rest = Vec::new();
        for place in 0..self.nodes.len() {
            if self.unit_of[place] == stuck {
                ready[place] = self.used(place).all(|used| ready[used]);
                rest.extend((!ready[place]).then_some(place));
            }
        }
        self.units.push(self.units[stuck]);
        for place in rest {
            self.unit_of[place] = self.units.len() - 1;
        }
        self.renumber();
    }

    /// Makes single nodes of the groups that cannot be put in order.
    fn dissolve(&mut self, done: &[bool]) {
        for place in 0..self.nodes.len() {
            if done.get(self.unit_of[place]) == Some(&false) {
                self.units.push(None);
                self.unit_of[place] = self.units.len() - 1;
            }
        }
        self.renumber();
    }

    fn renumber(&mut self) {
        let (mut numbers, mut units) = (FxHashMap::default(), Vec::new());
        for unit in &mut self.unit_of {
            let old = *unit;
            *unit = *numbers.entry(old).or_insert_with(|| {
                units.push(self.units[old]);
                units.len() - 1
            });
        }
        self.units = units;
    }
}
