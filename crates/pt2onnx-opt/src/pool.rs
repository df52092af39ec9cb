//! Looks through the nodes or values of a graph on all cores.
//!
//! Passes run until none changes the graph, so most runs find nothing to do. Changes are made by
//! one thread, in order.

use rayon::prelude::*;

/// Fewer nodes are looked through sooner than other threads start.
const MANY: usize = 1 << 11;

/// Runs work that looks through so many nodes several times. If they are many, it runs on a thread
/// of the pool, which takes part in each look; any other thread would sleep meanwhile, and be woken
/// up after each.
pub(crate) fn run<T: Send>(nodes: usize, work: impl FnOnce() -> T + Send) -> T {
    if nodes < MANY { work() } else { rayon::scope(|_| work()) }
}

/// What is found at some of the nodes or values, each with its place among them, in order.
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
