//! Showing the progress of writing, and what was written.

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use pt2onnx::{OnnxProgram, Saved, printable::lines};
use std::{
    cell::OnceCell,
    io::{self, IsTerminal, Write},
    path::Path,
    time::Duration,
};

/// Writes with a progress bar, if it writes to a terminal and takes long.
pub fn watched<T>(write: impl FnOnce(&dyn Fn(u64, u64)) -> T) -> T {
    const SLOW: u64 = 64 << 20;
    let template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar: OnceCell<ProgressBar> = OnceCell::new();
    let written = write(&|done, total| {
        if total > SLOW {
            bar.get_or_init(|| ProgressBar::new(total).with_style(style.clone()))
                .set_position(done);
        }
    });
    if let Some(bar) = bar.into_inner() {
        bar.finish_and_clear();
    }
    written
}

/// Logs the files that were written.
pub fn tell(output: &Path, saved: &Saved) {
    tracing::info!("{}: {} bytes", output.display(), saved.bytes);
    for (data, bytes) in &saved.data {
        tracing::info!("{}: {bytes} bytes", data.display());
    }
}

/// Logs what each compressed weight lost.
pub fn tell_losses(program: &OnnxProgram) {
    for weight in program.compressed() {
        tracing::info!("{weight}");
    }
}

/// Whether somebody sees what goes to standard error.
pub fn on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Prints to standard error, without control characters. Failures to print are ignored.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(lines(text).as_bytes());
}

/// On a terminal, one line about the model that was written.
pub fn done(output: &Path, program: &OnnxProgram, saved: &Saved, time: Duration) {
    if !on_terminal() {
        return;
    }
    let (nodes, opset) = (program.model().all_nodes().len(), program.model().opset);
    let data: u64 = saved.data.iter().map(|(_, bytes)| bytes).sum();
    let (size, seconds) = (HumanBytes(saved.bytes + data), time.as_secs_f64());
    say(&format!("{}: {nodes} nodes, {size}, opset {opset}, {seconds:.2} s\n", output.display()));
}
