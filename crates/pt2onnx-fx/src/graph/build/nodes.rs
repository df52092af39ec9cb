//! Builds nodes and where they came from.

use super::builder::{Builder, Built};
use crate::{
    graph::{ArgKind, Argument, ModuleFrame, NamedArg, Node, NodeMeta, OpName},
    schema as s,
};
use std::sync::Arc;

impl Builder {
    /// A node, in the form that the newest PyTorch writes.
    pub(super) fn node(&mut self, n: &s::Node) -> Built<Node> {
        let target = match self.targets.get(&*n.target) {
            Some(target) => target.clone(),
            None => {
                let target = OpName::parse(&n.target);
                self.targets.insert((&*n.target).into(), target.clone());
                target
            }
        };
        let mut outputs = self.all(&n.outputs, Self::argument)?;
        let mut single_return = n.is_hop_single_tensor_return;
        // Before 2.7 a higher-order op had one result, a list, where it has one result each since.
        if target.is_higher_order()
            && single_return.is_none()
            && let [Argument::Tensors(names)] = outputs.as_mut_slice()
        {
            outputs = names.drain(..).map(Argument::Tensor).collect();
            single_return = Some(false);
        }
        let name = match (&n.name, outputs.as_slice()) {
            (Some(name), _) => self.name(name),
            // torch 2.9 and 2.10 write no name: a single result has it; of several results it is
            // lost.
            (None, [only]) if only.name().is_some() => {
                only.name().cloned().unwrap_or_else(|| target.name.clone())
            }
            (None, _) => target.name.clone(),
        };
        let args = self.all(&n.inputs, |cx, a| {
            Ok(NamedArg {
                name: cx.name(&a.name),
                kind: match a.kind {
                    Some(1) => ArgKind::Positional,
                    Some(2) => ArgKind::Keyword,
                    _ => ArgKind::Unknown,
                },
                value: cx.given(&target, &a.arg)?,
            })
        })?;
        Ok(Node { name, target, args, outputs, single_return, meta: self.meta(n).into() })
    }

    /// Where a node came from: the metadata that later stages read. Other keys are left out.
    pub(super) fn meta(&mut self, n: &s::Node) -> NodeMeta {
        let mut meta = NodeMeta::default();
        for (key, text) in &n.metadata.0 {
            match &**key {
                "stack_trace" => meta.stack_trace = Some(self.text(text)),
                "from_node" => meta.from_node = Some((&**text).into()),
                "custom" => meta.custom = Some(self.text(text)),
                "torch_fn" => {
                    meta.torch_fn = text.split_once(';').map(|(a, b)| (self.name(a), self.name(b)));
                }
                "source_fn_stack" => {
                    let pairs = text.split(';').filter_map(|pair| pair.split_once(','));
                    meta.source_fn_stack =
                        pairs.map(|(a, b)| (self.name(a), self.name(b))).collect();
                }
                "nn_module_stack" => {
                    meta.nn_module_stack = self.module_stack(text);
                }
                _ => {}
            }
        }
        meta
    }

    /// The calls of modules in `nn_module_stack`, from the outermost. Nodes with the same text
    /// share them.
    fn module_stack(&mut self, text: &str) -> Arc<[ModuleFrame]> {
        if let Some(stack) = self.stacks.get(text) {
            return stack.clone();
        }
        let stack: Arc<[_]> = text.split(';').filter_map(|frame| self.frame(frame)).collect();
        self.stacks.insert(text.into(), stack.clone());
        stack
    }

    /// `key,path,type`; commas in brackets do not count.
    pub(super) fn frame(&mut self, text: &str) -> Option<ModuleFrame> {
        let mut depth = 0;
        let mut parts = text.splitn(3, |c| {
            depth += i32::from(matches!(c, '[' | '(')) - i32::from(matches!(c, ']' | ')'));
            c == ',' && depth == 0
        });
        Some(ModuleFrame {
            key: self.name(parts.next()?),
            path: self.name(parts.next()?),
            ty: self.name(parts.next()?),
        })
    }
}
