//! Showing the progress of writing, and what was written.

use indicatif::{ProgressBar, ProgressStyle};
use pt2onnx::Saved;
use std::{cell::OnceCell, path::Path};

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
