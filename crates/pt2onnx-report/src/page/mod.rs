//! Reports and comparisons as one page of HTML, which loads nothing. The graph is laid out in the
//! page, by `dagre`.

mod compare;

pub use compare::diff_page;

use crate::{
    drawing::{self, Drawing},
    printable,
    report::{Named, Report, Reports},
    warning::{WarningGroup, grouped},
};
use pt2onnx_fx::ExportedProgram;
use pt2onnx_ir::Model;
use serde_json::{Map, Value, json};

const STYLE: &str = include_str!("page.css");
const GRAPH: &str = include_str!("graph.js");
const PAGE: &str = include_str!("page.js");
const DAGRE: &str = include_str!("dagre/dagre.min.js");
const LICENCE: &str = include_str!("dagre/LICENSE");

impl Report {
    /// A page that shows the model and its report: the graph, folded by module, operators and
    /// weights by size, warnings, the program and the model as text.
    pub fn to_html_with(&self, program: Option<&ExportedProgram>, model: &Model) -> String {
        let mut report = self.clone();
        if report.model_text.is_none() {
            report.put_texts(program, model);
        }
        of_report(&report, Some(&drawing::of_model(model)))
    }

    /// A page without a model, for a failure. It draws the program, with the failures in their
    /// places, if the archive could be read.
    pub fn to_html(&self) -> String {
        of_report(self, self.drawing.as_deref())
    }
}

impl Reports<'_> {
    /// A page for all: a table, and the report of each archive. It draws the programs of failures,
    /// and no models.
    pub fn to_html(&self) -> String {
        let one = |named: &Named<'_>| {
            let report = named.report;
            let page = report.map(|r| data(&named.name, r, r.drawing.as_deref()));
            json!({"title": named.name, "good": named.is_good(), "why": named.why(), "page": page})
        };
        let title = format!("{} of {} converted", self.converted(), self.all().len());
        let data = json!({
            "kind": "reports",
            "title": title,
            "blockers": self.blockers(),
            "reports": self.all().iter().map(one).collect::<Vec<_>>(),
        });
        write(&title, data, &self.to_markdown())
    }
}

fn of_report(report: &Report, drawing: Option<&Drawing>) -> String {
    let path = report.archive.as_ref().map(|a| a.path.display().to_string());
    let brief = Report { program_text: None, model_text: None, ..report.clone() };
    write(
        path.as_deref().unwrap_or("ONNX model"),
        data(path.as_deref().unwrap_or("model"), report, drawing),
        &brief.to_markdown(),
    )
}

/// The data that the page of a report shows.
fn data(title: &str, report: &Report, drawing: Option<&Drawing>) -> Value {
    json!({
        "kind": "report",
        "title": title,
        "report": report,
        "warnings": warnings(report),
        "drawing": drawing,
    })
}

/// The warnings, similar ones grouped.
fn warnings(report: &Report) -> Vec<Value> {
    let groups = grouped(report.warnings.iter().map(|warning| (&(), warning)));
    let row = |group: &WarningGroup<'_, ()>| json!({"kind": group.example.kind, "text": group.to_string()});
    groups.iter().map(row).collect()
}

/// The page. Nothing in `data` can end its element, or hide or reorder what is shown. `plain` is
/// shown where scripts are off.
fn write(title: &str, data: Value, plain: &str) -> String {
    let data = visible(data).to_string().replace('<', "\\u003c");
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let (title, plain) = (escaped(&printable::line(title)), escaped(&printable::lines(plain)));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
    let parts = [
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"",
        policy,
        "\">\n<title>",
        &title,
        " · pt2onnx</title>\n<style>\n",
        STYLE,
        "</style>\n</head>\n<body>\n<noscript><p>This page draws with JavaScript, which is off. It loads \
         nothing. This is the same report without drawings:</p>\n<pre>",
        &plain,
        "</pre></noscript>\n",
        "<script type=\"application/json\" id=\"data\">",
        &data,
        "</script>\n<script>\n/* dagre, which lays out the graph:\n\n",
        LICENCE,
        "*/\n",
        DAGRE,
        "</script>\n<script>\n",
        GRAPH,
        "</script>\n<script>\n",
        PAGE,
        "</script>\n</body>\n</html>\n",
    ];
    parts.concat()
}

/// The data with control characters and the like as escapes, in keys and values. Lines and tabs
/// stay.
fn visible(data: Value) -> Value {
    match data {
        Value::String(text) => Value::String(printable::lines(&text).into_owned()),
        Value::Array(all) => Value::Array(all.into_iter().map(visible).collect()),
        Value::Object(entries) => {
            let entries = entries.into_iter();
            let entries = entries.map(|(k, v)| (printable::line(&k).into_owned(), visible(v)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_the_data_or_is_hidden() {
        let page = write(
            "</title>\u{202e}&",
            json!({"</script>\u{7}": "<!--<script>\u{202e}\u{1b}\n"}),
            "</pre><b>&",
        );
        assert!(page.contains("<pre>&lt;/pre>&lt;b>&amp;</pre>"));
        assert!(page.contains("<title>&lt;/title>\\u{202e}&amp; · pt2onnx</title>"));
        let data =
            r#"{"\u003c/script>\\u{7}":"\u003c!--\u003cscript>\\u{202e}\\u{1b}\n"}</script>"#;
        assert!(page.contains(data), "{page}");
        assert_eq!(page.matches("</script>").count(), 4);
        assert!(!page.contains("src=") && !page.contains("href="));
    }
}
