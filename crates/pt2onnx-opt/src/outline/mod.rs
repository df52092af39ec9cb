//! Functions from calls of modules: the nodes of each call become a call of a function.
//!
//! 1. `places` finds for each node the call of a module that it belongs to.
//! 2. `groups` orders each region so that the nodes of a call are neighbours, and makes a tree of
//!    these groups.
//! 3. Innermost first, each group is moved into a body, and `share` makes one function of equal
//!    bodies.

mod groups;
mod names;
mod places;
mod share;
mod structural_hash;

use groups::{Groups, Member};
use names::Names;
use places::Places;
use pt2onnx_ir::{Model, ModuleId, NodeId, Origin, ValueData};
use share::{Body, share};

/// Constants with more elements become inputs of functions, as weights do.
const SMALL: usize = 16;

/// Makes functions of the calls of modules for which `chosen` is true. The nodes of other calls
/// stay in the function of the call around them, or in the main graph. Returns how many calls
/// became calls of functions.
///
/// A function has the class of its module as name, and the rest of the class's qualified name as
/// domain. Weights, other large constants and computed values are its inputs. Modules of one class
/// share a function if their bodies have the same nodes: where values of attributes or small
/// constants differ, the function has an attribute.
///
/// A node whose work several calls share is part of the innermost call around them. If the nodes of
/// a call cannot be neighbours, because others compute something in between, its parts become
/// several functions.
///
/// Types, names and metadata of the model's inputs, outputs and weights stay unchanged. Values in
/// functions need names: [`Model::assign_names`].
pub fn outline(model: &mut Model, chosen: impl Fn(ModuleId) -> bool) -> usize {
    let bodies = |n: &NodeId| model[*n].regions().collect::<Vec<_>>();
    let regions: Vec<_> = model.graph_nodes().iter().flat_map(bodies).collect();
    for &region in regions.iter().chain([&Model::MAIN]) {
        model.finish_outputs(region);
    }
    let mut places = Places::find(model, chosen);
    let groups = Groups::of(model, &mut places);
    let mut work = Outliner { calls: vec![None; groups.len()], groups };
    let mut names = Names::of(model);
    for height in work.groups.heights() {
        let bodies = work.outlined(model, height);
        share(model, bodies, &mut names);
    }
    work.calls.iter().flatten().count()
}

struct Outliner {
    groups: Groups,
    /// The node that stands for each group.
    calls: Vec<Option<NodeId>>,
}

impl Outliner {
    fn outlined(&mut self, model: &mut Model, height: u32) -> Vec<Body> {
        let mut bodies = Vec::new();
        for (index, group) in self.groups.of_height(height) {
            let nodes = self.nodes(&group.members);
            let Some(made) = model.outline(&nodes, stays_inside) else { continue };
            let module = &model[group.module];
            let origin = Origin {
                node: module.path.clone(),
                op: module.class.as_str().into(),
                metadata: module.metadata.clone(),
                ..Origin::default()
            };
            let origin = model.add_origin(origin);
            model[made.call].origins.push(origin);
            self.calls[index] = Some(made.call);
            bodies.push(Body { module: group.module, around: group.around, made });
        }
        bodies
    }

    fn nodes(&self, members: &[Member]) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut todo: Vec<Member> = members.iter().rev().copied().collect();
        while let Some(member) = todo.pop() {
            match member {
                Member::Node(node) => nodes.push(node),
                Member::Group(inner) => match self.calls[inner] {
                    Some(call) => nodes.push(call),
                    None => todo.extend(self.groups.members(inner).iter().rev()),
                },
            }
        }
        nodes
    }
}

/// Whether a constant is not a weight, and so small that each function has its own.
fn stays_inside(data: &ValueData) -> bool {
    data.name.is_none() && data.constant().is_some_and(|t| t.numel() <= SMALL)
}
