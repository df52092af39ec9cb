//! Prints what the libraries log to standard error, as lines such as `warning: ...`.

use crate::error::with_flags;
use pt2onnx::{Warning, grouped, printable::message};
use std::{fmt, io};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

/// Shows warnings, unless `quiet`; if `verbose` is 1, also each stage; if it is more, also details.
pub fn init(verbose: u8, quiet: bool) {
    let level = match verbose {
        _ if quiet => Level::ERROR,
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    let subscriber =
        tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).event_format(Line);
    // Only fails where there is one already.
    let _ = subscriber.try_init();
}

/// Shows the warnings of an export, many of the same as one.
pub fn warn(warnings: &[Warning]) {
    for group in grouped(warnings.iter().map(|warning| (&(), warning))) {
        tracing::warn!("{group}");
    }
}

struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = Text::default();
        event.record(&mut text);
        match *event.metadata().level() {
            Level::ERROR => writer.write_str("error: ")?,
            Level::WARN => writer.write_str("warning: ")?,
            _ => {}
        }
        writeln!(writer, "{}", message(&with_flags(&text.0)))
    }
}

/// The text of an event, without the escapes that `tracing_subscriber` adds.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.0.insert_str(0, &format!("{value:?}")),
            name => self.0 += &format!(" {name}={value:?}"),
        }
    }
}
