//! Parts of a program that cannot be translated.

use pt2onnx_aten::{LowerError, SignatureError};
use pt2onnx_fx::{PassProblem, Site};
use pt2onnx_ir::Diagnostic;
use pt2onnx_report::ErrorKind;
use std::fmt;

/// The suggestion for ops of other libraries.
const CUSTOM_OPS: &str = "add a translation: an ONNX function (the option `op-functions` names its file), a Python function \
    (`@pt2onnx.translation`) or a closure in Rust (`Registry::register`), see \
    https://github.com/pt2onnx/pt2onnx/blob/main/docs/custom-ops.md; or keep the op for a runtime that knows it: \
    the option `unsupported-ops`, set to `fallthrough`; or let PyTorch expand it before saving: `exported_program.run_decompositions()`";

/// A part of the program that cannot be translated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Failure {
    /// The node; `None` for an input or output.
    pub site: Option<Site>,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a part of the program cannot be translated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A pass over the program's graph cannot handle the node.
    #[error(transparent)]
    Pass(PassProblem),
    /// The node has no translation.
    #[error(transparent)]
    Lower(LowerError),
    /// The op behaves as in training, and [`Training::Error`](crate::Training::Error) is set.
    #[error("behaves as in training: call `model.eval()` before export")]
    Training,
    /// An input or output is of a kind that ONNX does not have.
    #[error(transparent)]
    Signature(SignatureError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.site {
            Some(site) => write!(f, "{site}: {}", self.reason),
            None => self.reason.fmt(f),
        }
    }
}

impl Failure {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self.reason {
            Reason::Lower(_) => ErrorKind::UnsupportedOperator,
            Reason::Pass(_) | Reason::Signature(_) | Reason::Training => ErrorKind::Conversion,
        }
    }

    /// A suggestion for the user, if the reason has none.
    pub fn suggestion(&self) -> Option<String> {
        let site = self.site.as_ref();
        match &self.reason {
            Reason::Lower(LowerError::UnknownOp { op, .. }) if !op.starts_with("aten") => {
                Some(CUSTOM_OPS.to_owned())
            }
            Reason::Lower(LowerError::UnknownOp { nearest, .. }) => Some(match nearest {
                Some(op) => format!("use {op}, or other operations that `pt2onnx ops` lists"),
                None => "use operations that `pt2onnx ops` lists".to_owned(),
            }),
            Reason::Lower(
                LowerError::WrongType { .. } | LowerError::Diagnostic(Diagnostic::Wrong(_)),
            ) => Some(
                "if PyTorch runs the program with such inputs, this is a bug of pt2onnx: please report it with the archive"
                    .to_owned(),
            ),
            Reason::Lower(_) => {
                let op = site?.target.schema_name();
                Some(format!(
                    "write this part of the model in other operations; see `pt2onnx explain {op}`"
                ))
            }
            Reason::Pass(_) | Reason::Signature(_) | Reason::Training => None,
        }
    }
}

/// Failures of passes over the graph. An error that is not about a node is returned as it is.
pub(crate) fn of_passes(
    errors: Vec<pt2onnx_fx::Error>,
) -> impl Iterator<Item = Result<Failure, pt2onnx_fx::Error>> {
    errors.into_iter().map(|error| match error {
        pt2onnx_fx::Error::Pass { site, problem } => {
            Ok(Failure { site: Some(*site), reason: Reason::Pass(problem) })
        }
        other => Err(other),
    })
}

/// The inputs, outputs and nodes that could not be lowered.
pub(crate) fn of_lowering(error: pt2onnx_aten::Error) -> impl Iterator<Item = Failure> {
    let ends =
        error.signature.into_iter().map(|e| Failure { site: None, reason: Reason::Signature(e) });
    let nodes = error
        .nodes
        .into_iter()
        .map(|e| Failure { site: Some(e.site), reason: Reason::Lower(e.reason) });
    ends.chain(nodes)
}
