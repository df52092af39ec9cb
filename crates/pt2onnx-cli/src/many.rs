//! Several archives at once: which files are meant, and threads that work on them.

use crate::error::{Code, CommandError};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::{num::NonZeroUsize, path::PathBuf};

/// Size of a thread's stack in bytes. It is that of the main thread, as graphs nest.
const STACK: usize = 8 << 20;

/// The files that paths and patterns (`models/*.pt2`, where the shell has not replaced them) name.
pub fn expand(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, CommandError> {
    let mut all = Vec::new();
    for path in paths {
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists());
        let Some(pattern) = pattern else {
            all.push(path);
            continue;
        };
        let usage = |what: String| CommandError::new(Code::Usage, what);
        let matches = glob::glob(pattern)
            .map_err(|e| usage(format!("the pattern `{pattern}` is wrong: {e}")))?;
        let known = all.len();
        all.extend(matches.flatten());
        if all.len() == known {
            return Err(usage(format!("no file matches `{pattern}`")));
        }
    }
    Ok(all)
}

/// Works on each archive, on several threads. The results are in the order of the archives.
pub fn each<A: Sync, T: Send>(
    archives: &[A],
    jobs: Option<NonZeroUsize>,
    quiet: bool,
    work: impl Fn(&A) -> T + Sync,
) -> Result<Vec<T>, CommandError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.map_or(0, |jobs| jobs.get().min(archives.len().max(1))))
        .stack_size(STACK)
        .build()
        .map_err(|e| CommandError::new(Code::Internal, format!("cannot start threads: {e}")))?;
    let progress = match quiet {
        true => ProgressBar::hidden(),
        false => progress(archives.len()),
    };
    let done = pool.install(|| {
        let archives = archives.par_iter().with_max_len(1);
        archives
            .map(|archive| {
                let done = work(archive);
                progress.inc(1);
                done
            })
            .collect()
    });
    progress.finish_and_clear();
    Ok(done)
}

/// A progress bar, shown on a terminal only.
fn progress(archives: usize) -> ProgressBar {
    let bar = ProgressBar::new(archives as u64);
    match ProgressStyle::with_template("{bar:30} {pos}/{len} archives") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
