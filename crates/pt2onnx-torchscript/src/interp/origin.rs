//! Where nodes come from: modules and lines of the functions that run.

use super::Interp;
use pt2onnx_fx::{ModuleFrame, NodeMeta};
use std::sync::Arc;

impl Interp<'_> {
    /// Where a node comes from.
    pub(super) fn node_meta(&self) -> Arc<NodeMeta> {
        let mut modules: Vec<ModuleFrame> = Vec::new();
        let mut trace = String::new();
        for frame in &self.frames {
            if let Some(module) = &frame.module
                && modules.last() != Some(module)
            {
                modules.push(module.clone());
            }
            let (path, line) = self.line(frame);
            let text = self.archive.files().get(frame.file).map_or("", |file| &file.text);
            let code = text.lines().nth((line as usize).saturating_sub(1)).unwrap_or_default();
            let function = &frame.function;
            trace.push_str(&format!(
                "  File \"{path}\", line {line}, in {function}\n    {}\n",
                code.trim()
            ));
        }
        Arc::new(NodeMeta {
            stack_trace: Some(trace.into()),
            nn_module_stack: modules.into(),
            ..NodeMeta::default()
        })
    }

    pub(super) fn set_at(&mut self, at: u32) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = at;
        }
    }
}
