//! Two walks over a model at once.

use crate::Model;
use std::thread;

/// Fewer values are walked over sooner than another thread starts.
const MANY: usize = 1 << 12;

/// Does two things with a model, the second on another thread if the model is long and a thread can be started.
pub(crate) fn both<A, B: Send>(
    model: &Model,
    first: impl FnOnce() -> A,
    second: impl Fn() -> B + Sync,
) -> (A, B) {
    thread::scope(|scope| {
        let start = || thread::Builder::new().spawn_scoped(scope, &second).ok();
        let thread = (model.values.len() >= MANY).then(start).flatten();
        let first = first();
        (first, thread.and_then(|thread| thread.join().ok()).unwrap_or_else(&second))
    })
}
