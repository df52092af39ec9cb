//! Where nodes come from: modules, and lines of the user's source or else of the archive's code.

use crate::{error::Site, eval::Evaluator, note::Note, state::Frame};
use pt2onnx_fx::{ModuleFrame, NodeMeta};
use pt2onnx_torchscript_archive::{Line, Origin};
use std::sync::Arc;

impl Evaluator<'_> {
    pub(crate) fn node_meta(&self) -> Arc<NodeMeta> {
        let modules = self.state.calls.frames.iter().flat_map(Frame::modules);
        let mut modules: Vec<ModuleFrame> = modules.cloned().collect();
        modules.dedup();
        Arc::new(NodeMeta {
            stack_trace: Some(self.stack_trace().into()),
            nn_module_stack: modules.into(),
            ..NodeMeta::default()
        })
    }

    pub(crate) fn site(&self) -> Site {
        let frames = &self.state.calls.frames;
        let Some(frame) = frames.last() else {
            let function = self.state.calls.outside.to_owned();
            let place = self.cx.archive.place().to_string();
            return Site { function, place, ..Site::default() };
        };
        let module = frames.iter().flat_map(Frame::modules).next_back();
        Site {
            function: frame.function.to_string(),
            module: module.map(|m| m.path.to_string()).unwrap_or_default(),
            place: String::new(),
            stack_trace: self.stack_trace(),
        }
    }

    /// Adds a warning about the place where the interpreter is now.
    pub(crate) fn note(&mut self, text: String) {
        let site = Some(self.site());
        self.state.warnings.push(Note { site, text });
    }

    /// The stack in Python's form, outermost frame first: the user's lines, or else the archive's.
    fn stack_trace(&self) -> String {
        let frames = self.state.calls.frames.iter();
        let origins: Vec<_> = frames.map(|frame| (frame, self.origin(frame))).collect();
        let known = origins.iter().any(|(_, origin)| origin.is_some());
        let mut lines: Vec<String> = Vec::new();
        for (frame, origin) in origins {
            match origin.as_deref() {
                Some(Origin::Line(line)) => lines.push(text(line, &frame.function)),
                // A stack has all frames around it.
                Some(Origin::Stack(stack)) => {
                    lines = stack.iter().map(|line| text(line, &frame.function)).collect();
                }
                None if known => {}
                None => {
                    let Some(file) = self.cx.archive.files().get(frame.file) else { continue };
                    let (line, code) = file.line(frame.at);
                    let (file, code) = (file.path.clone(), code.trim().to_owned());
                    let line = Line { file, line: line as u64, function: None, code };
                    lines.push(text(&line, &frame.function));
                }
            }
        }
        lines.join("\n  ")
    }

    fn origin(&self, Frame { file, at, .. }: &Frame) -> Option<Arc<Origin>> {
        let mut origins = self.cx.origins.borrow_mut();
        let origin = || self.cx.archive.origin(*file, *at).map(Arc::new);
        origins.entry((*file, *at)).or_insert_with(origin).clone()
    }

    /// Formulas of pt2onnx have no places.
    pub(crate) fn set_at(&mut self, at: u32) {
        if let Some(frame) = self.state.calls.frames.last_mut()
            && at > 0
        {
            frame.at = at;
        }
    }
}

/// `File "model.py", line 12, in forward`, and the line's text.
fn text(line: &Line, function: &str) -> String {
    let Line { file, line: number, function: own, code } = line;
    let function = own.as_deref().unwrap_or(function);
    let place = format!("File \"{file}\", line {number}, in {function}");
    if code.is_empty() { place } else { format!("{place}\n    {code}") }
}
