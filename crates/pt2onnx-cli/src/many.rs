//! Several archives at once: which files are meant, and threads that work on them.

use crate::error::{Code, CommandError};
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    io, iter,
    num::NonZeroUsize,
    panic,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    thread::{self, ScopedJoinHandle},
};

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
///
/// The threads are not those of rayon's pool, where a conversion that waits for its parts would
/// begin another one.
pub fn each<A: Sync, T: Send>(
    archives: &[A],
    jobs: Option<NonZeroUsize>,
    quiet: bool,
    work: impl Fn(&A) -> T + Sync,
) -> Result<Vec<T>, CommandError> {
    let jobs = jobs.map_or_else(rayon::current_num_threads, NonZeroUsize::get);
    let progress = if quiet { ProgressBar::hidden() } else { progress(archives.len()) };
    let queue = Mutex::new(archives.iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || -> Vec<(usize, T)> {
        let one = |(place, archive)| {
            let done = work(archive);
            progress.inc(1);
            (place, done)
        };
        iter::from_fn(next).map(one).collect()
    };
    let done: io::Result<Vec<_>> = thread::scope(|scope| {
        let mut started = Vec::new();
        for _ in 0..jobs.min(archives.len()) {
            match thread::Builder::new().stack_size(STACK).spawn_scoped(scope, worker) {
                Ok(thread) => started.push(thread),
                Err(error) if started.is_empty() => return Err(error),
                // Fewer threads do it, too.
                Err(_) => break,
            }
        }
        Ok(started.into_iter().map(ScopedJoinHandle::join).collect())
    });
    progress.finish_and_clear();
    let done =
        done.map_err(|e| CommandError::new(Code::Internal, format!("cannot start threads: {e}")))?;
    let mut done: Vec<(usize, T)> =
        done.into_iter().flat_map(|d| d.unwrap_or_else(|e| panic::resume_unwind(e))).collect();
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, done)| done).collect())
}

/// A progress bar, shown on a terminal only.
fn progress(archives: usize) -> ProgressBar {
    let bar = ProgressBar::new(archives as u64);
    match ProgressStyle::with_template("{bar:30} {pos}/{len} archives") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
