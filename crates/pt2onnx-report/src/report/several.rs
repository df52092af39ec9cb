//! Joins the reports of several archives.

use super::{REPORT_FORMAT, Report};
use serde::Serialize;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Reports of several archives, by the names of the archives, as one page of Markdown, JSON or HTML
/// that begins with an overview.
///
/// ```
/// use pt2onnx_report::{Report, Reports};
///
/// let report = Report::default();
/// let mut reports = Reports::default();
/// reports.add("mlp.pt2", Some(&report));
/// assert!(reports.to_markdown().contains("**0 of 1 converted.**"));
/// ```
#[derive(Clone, Debug, Default, Serialize)]
#[serde(into = "Form<'_>")]
pub struct Reports<'a>(Vec<Named<'a>>);

/// A report and the name of its archive.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Named<'a> {
    pub(crate) name: String,
    pub(crate) report: Option<&'a Report>,
}

/// An op that prevents conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Blocker {
    /// The op: `aten::add.Tensor`.
    pub op: String,
    /// Number of nodes that cannot be converted.
    pub nodes: usize,
    /// Number of archives that have such nodes.
    pub archives: usize,
}

/// The keys of the JSON form.
#[derive(Serialize)]
struct Form<'a> {
    format: u32,
    archives: usize,
    converted: usize,
    blockers: Vec<Blocker>,
    reports: Vec<Named<'a>>,
}

impl<'a> From<Reports<'a>> for Form<'a> {
    fn from(all: Reports<'a>) -> Self {
        Self {
            format: REPORT_FORMAT,
            archives: all.0.len(),
            converted: all.converted(),
            blockers: all.blockers(),
            reports: all.0,
        }
    }
}

impl<'a> Reports<'a> {
    /// Adds a report; `None` for a conversion that failed without one.
    pub fn add(&mut self, name: impl Into<String>, report: Option<&'a Report>) {
        self.0.push(Named { name: name.into(), report });
    }

    /// Number of archives that were converted, or can be.
    pub fn converted(&self) -> usize {
        self.0.iter().filter(|named| named.is_good()).count()
    }

    /// The ops that prevent conversion, those of most archives first.
    pub fn blockers(&self) -> Vec<Blocker> {
        let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for report in self.0.iter().filter_map(|named| named.report) {
            let mut own: BTreeMap<&str, usize> = BTreeMap::new();
            for op in report.failures.iter().filter_map(|f| f.op.as_deref()) {
                *own.entry(op).or_default() += 1;
            }
            for (op, nodes) in own {
                let (archives, all_nodes) = all.entry(op).or_default();
                (*archives, *all_nodes) = (*archives + 1, *all_nodes + nodes);
            }
        }
        let blocker =
            |(op, (archives, nodes)): (&str, _)| Blocker { op: op.to_owned(), nodes, archives };
        let mut all: Vec<Blocker> = all.into_iter().map(blocker).collect();
        all.sort_by_key(|blocker| Reverse((blocker.archives, blocker.nodes)));
        all
    }

    /// The single reports, in the order of [`add`](Self::add).
    pub(crate) fn all(&self) -> &[Named<'a>] {
        &self.0
    }
}

impl Named<'_> {
    /// The reason why the archive was not converted, in one line: the ops that prevent it, or else
    /// the error.
    pub(crate) fn why(&self) -> String {
        const MOST: usize = 5;
        let Some(report) = self.report else {
            return "pt2onnx ended unexpectedly".to_owned();
        };
        let ops: BTreeSet<&str> =
            report.failures.iter().filter_map(|failure| failure.op.as_deref()).collect();
        let shown: Vec<String> = ops.iter().take(MOST).map(|op| format!("`{op}`")).collect();
        match (ops.len(), &report.error) {
            (0, Some(error)) => error.message.lines().next().unwrap_or_default().to_owned(),
            (0, None) => String::new(),
            (n, _) if n > MOST => format!("{} and {} more ops", shown.join(", "), n - MOST),
            _ => shown.join(", "),
        }
    }

    /// Whether the archive was converted.
    pub(crate) fn is_good(&self) -> bool {
        self.report.is_some_and(|report| report.success)
    }
}
