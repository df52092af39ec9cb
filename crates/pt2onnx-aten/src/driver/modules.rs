//! Finds the call of a module that each node is part of, and adds these calls to the model.

use pt2onnx_fx::graph::{ModuleFrame, Name, NodeMeta};
use pt2onnx_ir::{Metadata, Model, ModuleCall, ModuleId, SharedText};
use rustc_hash::FxHashMap;

/// Calls nest at most this deeply. Deeper calls are part of the call around them.
const MAX_DEPTH: usize = 200;

/// The first version of PyTorch that marks each further call of a module, as `L__self__layer@1`.
const MARKS_CALLS: (u32, u32) = (2, 6);

/// Finds the call of each node.
pub(super) struct Modules {
    /// Whether the keys of frames differ between calls of one module.
    marked: bool,
    /// The last call for each caller and key.
    known: FxHashMap<(Option<ModuleId>, Name), ModuleId>,
    /// The calls around the node before, and their keys.
    current: Vec<(Name, ModuleId)>,
}

impl Modules {
    /// `version` is the one of PyTorch that wrote the program.
    pub(super) fn new(version: &str) -> Self {
        let marked = marks_calls(version);
        Self { marked, known: FxHashMap::default(), current: Vec::new() }
    }

    /// The innermost call that a node is part of; `None` if it is not known. `describe` returns the
    /// metadata of a new call, from the frames around it and its own.
    pub(super) fn call(
        &mut self,
        model: &mut Model,
        meta: &NodeMeta,
        mut describe: impl FnMut(&[ModuleFrame]) -> Metadata<SharedText>,
    ) -> Option<ModuleId> {
        let frames = &meta.nn_module_stack;
        // PyTorch's placeholder for nodes that belong to no module has no class.
        if frames.iter().any(|f| f.key == f.ty) {
            return None;
        }
        let frames = &frames[..frames.len().min(MAX_DEPTH)];
        for (depth, frame) in frames.iter().enumerate() {
            if self.current.get(depth).is_some_and(|(key, _)| *key == frame.key) {
                continue;
            }
            self.current.truncate(depth);
            let around = self.current.last().map(|(_, module)| *module);
            let known = self.known.get(&(around, frame.key.clone())).copied();
            let module = match known.filter(|_| self.marked) {
                Some(known) => known,
                None => {
                    let mut call = ModuleCall::new(around, frame.path.clone(), frame.ty.clone());
                    call.metadata = describe(&frames[..=depth]);
                    let module = model.add_module(call);
                    self.known.insert((around, frame.key.clone()), module);
                    module
                }
            };
            self.current.push((frame.key.clone(), module));
        }
        if frames.len() < self.current.len() {
            self.current.truncate(frames.len().max(1));
        }
        frames.last().and_then(|_| self.current.last()).map(|(_, module)| *module)
    }
}

/// Whether this version of PyTorch marks further calls of a module. Any other text is a version of
/// pt2onnx, which does.
fn marks_calls(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= MARKS_CALLS,
        _ => true,
    }
}
