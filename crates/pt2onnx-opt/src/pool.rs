//! The pool of threads: looks through the nodes or values of a graph on all cores.
//!
//! Passes run until none changes the graph, so most runs find nothing to do. Changes are made by
//! one thread, in order.

use rayon::prelude::*;

/// Below this, starting threads costs more than the search.
const MANY: usize = 1 << 11;

/// Runs work that searches so many nodes several times. If they are many, it runs on a thread of
/// the pool, which takes part in each search; another thread would sleep and be woken for each.
pub(crate) fn run<T: Send>(nodes: usize, work: impl FnOnce() -> T + Send) -> T {
    if nodes < MANY || rayon::current_thread_index().is_some() {
        return work();
    }
    let (worker, waiter) = pt2onnx_cancel::hand_over();
    let mut done = None;
    rayon::in_place_scope(|scope| {
        let done = &mut done;
        scope.spawn(move |_| *done = Some(worker.run(work)));
        waiter.wait();
    });
    done.unwrap_or_else(|| unreachable!("a panic of the work passes through the scope"))
}

/// The results for nodes or values that have one, each with its place among them, in order.
pub(crate) fn find<I: Copy + Sync, T: Send>(
    all: &[I],
    find: impl Fn(I) -> Option<T> + Sync,
) -> Vec<(usize, T)> {
    let at = |(place, &one): (usize, &I)| Some((place, find(one)?));
    if all.len() < MANY {
        all.iter().enumerate().filter_map(at).collect()
    } else {
        all.par_iter().enumerate().filter_map(at).collect()
    }
}
