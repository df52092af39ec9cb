//! Work on another thread.

use std::thread;

/// JSON of fewer bytes is read sooner than another thread starts.
pub(crate) const LONG: usize = 1 << 21;

/// Size of a thread's stack in bytes: that of the main thread, as arguments and pickles nest.
pub(crate) const STACK: usize = 8 << 20;

/// Does two things, the second on another thread if they take `long` and a thread can be started.
pub(crate) fn both<A, B: Send>(
    long: bool,
    first: impl FnOnce() -> A,
    second: impl Fn() -> B + Sync,
) -> (A, B) {
    thread::scope(|scope| {
        let start = || thread::Builder::new().stack_size(STACK).spawn_scoped(scope, &second).ok();
        let thread = long.then(start).flatten();
        let first = first();
        let second = thread.and_then(|thread| thread.join().ok()).unwrap_or_else(&second);
        (first, second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_done_elsewhere_if_it_takes_long() {
        let here = || thread::current().id();
        for long in [false, true] {
            let (first, second) = both(long, here, here);
            assert_eq!(first, here());
            assert_eq!(second != first, long);
        }
    }
}
