//! How messages name nodes.

use crate::{ids::NodeId, model::Model};

impl Model {
    /// A node in messages: its operator, and its origin (op, source node and source line) or else
    /// its name.
    pub fn describe(&self, node: NodeId) -> String {
        let node = &self[node];
        let origin = node.origins.first().map(|o| &self[*o]);
        let Some(origin) = origin.filter(|o| !o.op.is_empty()) else {
            return match &node.name {
                Some(name) => format!("{} `{name}`", node.op),
                None => node.op.to_string(),
            };
        };
        let place = origin.location.as_deref().map(|l| format!(" at {l}")).unwrap_or_default();
        format!("{} (from {} `{}`{place})", node.op, origin.op, origin.node)
    }
}
