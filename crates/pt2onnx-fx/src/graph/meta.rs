//! Where a node came from: module path, function, source line.

use super::name::Name;
use std::{borrow::Cow, sync::Arc};

/// Where a node came from. Everything may be absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeMeta {
    /// Python's text of the stack at the call, outermost frame first.
    pub stack_trace: Option<Arc<str>>,
    /// The modules whose `forward` was running, outermost first.
    pub nn_module_stack: Arc<[ModuleFrame]>,
    /// The function that was traced: (`linear_1`, `builtin_function_or_method.linear`).
    pub torch_fn: Option<(Name, Name)>,
    /// Strict mode: (name, operator), outermost first.
    pub source_fn_stack: Vec<(Name, Name)>,
    /// JSON, as written: what the node was before each pass.
    pub from_node: Option<Arc<str>>,
    /// JSON, as written: the user's annotations.
    pub custom: Option<Arc<str>>,
}

/// A module on the stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModuleFrame {
    /// `L__self___layer1`.
    pub key: Name,
    /// `layer1.0`; empty for the root.
    pub path: Name,
    /// Class: `torch.nn.modules.linear.Linear`.
    pub ty: Name,
}

/// A line of the user's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceLine<'a> {
    /// Path as Python had it.
    pub file: &'a str,
    /// Counted from 1.
    pub line: u32,
    /// Function the line is in.
    pub function: &'a str,
    /// Text of the line; empty where Python did not know it.
    pub code: &'a str,
}

impl NodeMeta {
    /// Whether the archive says that the node was an operator whose name starts so, `aten.isin.`,
    /// before it was decomposed.
    pub fn is_part_of(&self, op: &str) -> bool {
        self.from_node.as_deref().is_some_and(|text| text.contains(op))
    }

    /// The user's line that made the node: the innermost frame of the stack trace that is not in
    /// the package `torch`. `None` if all frames are, as of a module that only a
    /// `torch.nn.Sequential` calls: what is the user's is then the path of the module.
    pub fn source_line(&self) -> Option<SourceLine<'_>> {
        SourceLine::of_stack(self.stack_trace.as_deref()?)
    }

    /// The user's line that made the node, or else its module by path and class.
    pub fn place(&self) -> Option<String> {
        place(self.source_line(), self.nn_module_stack.last().map(|frame| (&frame.path, &frame.ty)))
    }
}

impl<'a> SourceLine<'a> {
    /// The user's line in Python's text of a stack, outermost frame first: that of the innermost
    /// frame that is not in the package `torch`.
    pub fn of_stack(stack_trace: &'a str) -> Option<Self> {
        frames(stack_trace).find(|frame| !is_of_torch(frame.file))
    }

    /// The line of the innermost frame, whosever it is.
    pub fn innermost(stack_trace: &'a str) -> Option<Self> {
        frames(stack_trace).next()
    }
}

/// The user's line, or else the module by its path and class.
pub(super) fn place(
    line: Option<SourceLine<'_>>,
    module: Option<(&Name, &Name)>,
) -> Option<String> {
    line.map(|line| line.to_string()).or_else(|| {
        let (path, class) = module.filter(|(path, _)| !path.is_empty())?;
        Some(format!("module {path} of class {class}"))
    })
}

/// The frames of a stack, innermost first.
fn frames(stack_trace: &str) -> impl Iterator<Item = SourceLine<'_>> {
    let mut code = "";
    stack_trace.lines().rev().filter_map(move |line| {
        let Some(frame) = line.trim_start().strip_prefix("File \"") else {
            code = line;
            return None;
        };
        let (file, rest) = frame.split_once('"')?;
        let rest = rest.strip_prefix(", line ")?;
        let (line, rest) = rest.split_once(',').unwrap_or((rest, ""));
        let function = rest.strip_prefix(" in ").unwrap_or_default();
        let (line, function) = (line.trim().parse().ok()?, function.trim());
        let code = std::mem::take(&mut code).trim();
        Some(SourceLine { file, line, function, code })
    })
}

/// Starts of the paths of torch's files in traces, after `torch/`. A user's folder may have that
/// name, too.
const FILES_OF_TORCH: &str = "_compile.py _decomp/ _dynamo/ _export/ _functorch/ _higher_order_ops/ _jit_internal.py \
    _library/ _meta_registrations.py _ops.py _prims/ _prims_common/ _refs/ _subclasses/ \
    _tensor.py ao/ autograd/ export/ functional.py fx/ jit/ nn/attention/ nn/functional.py \
    nn/modules/ nn/parallel/ nn/parameter.py nn/utils/ overrides.py utils/_contextlib.py \
    utils/_device.py utils/_pytree.py utils/checkpoint.py";

/// Whether a file is of the package `torch`, installed or a checkout of its sources, or is code
/// that `torch.fx` made.
fn is_of_torch(file: &str) -> bool {
    if file.starts_with("<eval_with_key>") {
        return true;
    }
    if !file.contains("torch") {
        return false;
    }
    let file =
        if file.contains('\\') { Cow::Owned(file.replace('\\', "/")) } else { Cow::Borrowed(file) };
    if file.contains("-packages/torch/") {
        return true;
    }
    let folders = file.match_indices("torch/");
    let mut inside = folders.filter(|(at, _)| *at == 0 || file[..*at].ends_with('/'));
    inside.any(|(at, folder)| {
        let rest = &file[at + folder.len()..];
        FILES_OF_TORCH.split(' ').any(|path| rest.starts_with(path))
    })
}

/// `model.py:12: x = self.relu(x)`, the file without its folders.
impl std::fmt::Display for SourceLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.rsplit(['/', '\\']).next().unwrap_or(self.file);
        write!(f, "{file}:{}", self.line)?;
        match self.code {
            "" => Ok(()),
            code => write!(f, ": {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_line_is_the_source() {
        let meta = |s: &str| NodeMeta { stack_trace: Some(s.into()), ..NodeMeta::default() };
        let torch = "  File \"/a/m.py\", line 3, in forward\n    x = self.bn(x)\n  \
            File \"/v/site-packages/torch/nn/modules/batchnorm.py\", line 210, in forward\n    return F.batch_norm(";
        let two = "  File \"/a/m.py\", line 3, in forward\n    x = self.f(x)\n  File \"/a/n.py\", line 41, in f\n    return x.relu_()\n";
        let line = |trace: &str| meta(trace).source_line().map(|line| line.to_string());
        for (trace, expected) in [
            (two, Some("n.py:41: return x.relu_()")),
            (torch, Some("m.py:3: x = self.bn(x)")),
            ("File \"/v/site-packages/torch/nn/f.py\", line 3, in f", None),
            ("File \"m.py\", line 3, in forward", Some("m.py:3")),
            ("File \"m.py\", line x, in forward", None),
            ("", None),
        ] {
            assert_eq!(line(trace).as_deref(), expected);
        }
        for (inner, expected) in [
            ("/v/site-packages/torch/f.py", "m.py:3"),
            ("C:\\Lib\\site-packages\\torch\\nn\\f.py", "m.py:3"),
            ("/src/pytorch/torch/nn/modules/linear.py", "m.py:3"),
            ("torch/fx/passes/runtime_assert.py", "m.py:3"),
            ("<eval_with_key>.1", "m.py:3"),
            ("/v/site-packages/torchvision/ops/misc.py", "misc.py:1: x"),
            ("/home/me/torch/net.py", "net.py:1: x"),
            ("/home/me/mytorch/nn/modules/net.py", "net.py:1: x"),
        ] {
            let trace =
                format!("File \"C:\\m.py\", line 3, in f\n  File \"{inner}\", line 1, in f\n    x");
            assert_eq!(line(&trace).as_deref(), Some(expected));
        }
    }

    #[test]
    fn without_a_line_the_module_is_named() {
        let (own, torch) = (
            "File \"m.py\", line 3, in forward\n    self.pool(x)",
            "File \"/v/site-packages/torch/nn/modules/pooling.py\", line 7, in forward\n    F.avg_pool2d(",
        );
        let place = |trace: &str, path: &str| {
            let (key, ty) = ("pool".into(), "torch.nn.modules.pooling.AvgPool2d".into());
            let frame = ModuleFrame { key, path: path.into(), ty };
            let (stack_trace, nn_module_stack) = (Some(trace.into()), [frame].into());
            NodeMeta { stack_trace, nn_module_stack, ..NodeMeta::default() }.place()
        };
        let module = "module last.4 of class torch.nn.modules.pooling.AvgPool2d";
        assert_eq!(place(torch, "last.4").as_deref(), Some(module));
        assert_eq!(place(own, "last.4").as_deref(), Some("m.py:3: self.pool(x)"));
        assert_eq!(place(torch, ""), None);
        let innermost = SourceLine::innermost(torch).map(|line| line.to_string());
        assert_eq!(innermost.as_deref(), Some("pooling.py:7: F.avg_pool2d("));
    }
}
