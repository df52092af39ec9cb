//! Errors in reports: everything that prevents conversion, one by one.

use super::{export::Error, failure::Failure};
use pt2onnx_report::{ErrorKind, Report, ReportError, ReportedFailure};

/// An export that failed: its error and its report.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// The error.
    pub error: Error,
    /// The report.
    pub report: Box<Report>,
}

impl Failed {
    /// Records the error in the report.
    pub(crate) fn new(error: Error, mut report: Report) -> Self {
        report.failed(&error);
        Self { error, report: Box::new(report) }
    }
}

impl ReportError for Error {
    fn kind(&self) -> ErrorKind {
        self.kind()
    }

    fn failures(&self) -> Vec<ReportedFailure> {
        let plain = |reason: String, suggestion: Option<String>| ReportedFailure {
            kind: self.kind(),
            node: None,
            op: None,
            module: None,
            file: None,
            line: None,
            code: None,
            reason,
            suggestion,
        };
        match self {
            Error::Program(failures) => failures.iter().map(reported).collect(),
            Error::Legalise(pt2onnx_opt::LegaliseError::Nodes { failures, .. }) => {
                let failures = failures.iter();
                let each = failures.map(|f| {
                    let suggestion = format!("use opset {} or higher", f.lowest);
                    plain(format!("{}: {}", f.place, f.reason), Some(suggestion))
                });
                each.collect()
            }
            Error::Target(pt2onnx_opt::TargetError::Nodes { failures, .. }) => {
                let reasons = failures.iter().map(|f| format!("{}: {}", f.place, f.reason));
                reasons.map(|reason| plain(reason, None)).collect()
            }
            Error::Warnings(warnings) => {
                warnings.iter().map(|w| plain(w.to_string(), None)).collect()
            }
            Error::Verify(errors) | Error::Invalid(errors) | Error::Edited(errors) => {
                errors.iter().map(|e| plain(e.to_string(), None)).collect()
            }
            Error::Write(pt2onnx_writer::Error::NoData(names)) => {
                let names = names.iter();
                let each = names.map(|name| {
                    let suggestion =
                        "save the program with real weights, not under FakeTensorMode".to_owned();
                    plain(format!("the weight `{name}` has no values"), Some(suggestion))
                });
                each.collect()
            }
            Error::TorchScript(error) => match &**error {
                pt2onnx_torchscript::Error::Run { site, problem } => {
                    let line = site.source_line();
                    vec![ReportedFailure {
                        op: problem.op().map(str::to_owned),
                        module: Some(site.module.clone()),
                        file: line.map(|l| l.file.to_owned()),
                        line: line.map(|l| l.line),
                        code: line.map(|l| l.code.to_owned()),
                        ..plain(problem.to_string(), None)
                    }]
                }
                other => vec![plain(other.to_string(), None)],
            },
            _ => vec![plain(self.to_string(), None)],
        }
    }
}

fn reported(failure: &Failure) -> ReportedFailure {
    let site = failure.site.as_ref();
    let line = site.and_then(|s| s.source_line());
    ReportedFailure {
        kind: failure.kind(),
        node: site.map(|s| s.node.to_string()),
        op: site.map(|s| s.target.schema_name().to_owned()),
        module: site.and_then(|s| s.module.as_ref()).map(ToString::to_string),
        file: line.map(|l| l.file.to_owned()),
        line: line.map(|l| l.line),
        code: line.map(|l| l.code.to_owned()),
        reason: failure.reason.to_string(),
        suggestion: failure.suggestion(),
    }
}
