//! Cancellation of long work: between its steps, the work asks whether it is still wanted.
//!
//! Layer 0. Unwinding needs no `Result` from the steps in between: destructors free what they hold,
//! and remove files that are not complete.
//!
#![doc = include_str!("../README.md")]

use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

/// The work was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was cancelled")]
pub struct Cancelled;

impl Cancelled {
    /// Whether a panic is a cancellation. Code that catches panics passes those on.
    pub fn is_payload(panic: &(dyn Any + Send)) -> bool {
        panic.is::<Self>()
    }
}

/// The question whether the work of a thread is to end, and the time to ask it again.
type Question = (fn() -> bool, Instant);

thread_local! {
    /// The question, on the thread that entered a scope.
    static QUESTION: Cell<Option<Question>> = const { Cell::new(None) };
    /// Whether the work is to end, on a thread that works for another one.
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The time between two questions: they may wait for a lock, such as Python's.
const PERIOD: Duration = Duration::from_millis(20);

/// Runs work that ends early once `is_cancelled` returns true. This thread calls it, at most every
/// 20 ms, in [`check`] and while it [waits](Waiter::wait) for another one.
///
/// # Errors
/// [`Cancelled`]: a [`check`] found that the work is not wanted any more.
pub fn scope<T>(is_cancelled: fn() -> bool, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
    let outer = QUESTION.replace(Some((is_cancelled, Instant::now() + PERIOD)));
    // A cancelled model is never looked at: the caller drops it, or has a copy.
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    QUESTION.set(outer);
    match done {
        Ok(done) => Ok(done),
        Err(panic) if Cancelled::is_payload(&*panic) => Err(Cancelled),
        Err(panic) => panic::resume_unwind(panic),
    }
}

/// A step of work is done: unwinds to [`scope`] if the work is not wanted any more, without a call
/// of the panic hook. Costs some nanoseconds. No lock may be held that others take later.
pub fn check() {
    let flagged = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
    if is_asked() || FLAG.with_borrow(|flag| flag.as_ref().is_some_and(flagged)) {
        cancel();
    }
}

/// Unwinds to [`scope`]: the work is not wanted any more.
pub fn cancel() -> ! {
    panic::resume_unwind(Box::new(Cancelled))
}

/// Asks this thread's question, if it is time to.
fn is_asked() -> bool {
    let Some((is_cancelled, time)) = QUESTION.get() else { return false };
    if Instant::now() < time {
        return false;
    }
    let cancelled = is_cancelled();
    QUESTION.set(Some((is_cancelled, Instant::now() + PERIOD)));
    cancelled
}

/// Two ends of work that this thread hands to another one, so that [`check`] works there.
///
/// ```
/// let (worker, waiter) = pt2onnx_cancel::hand_over();
/// let sum: u64 = std::thread::scope(|scope| {
///     let thread = scope.spawn(|| worker.run(|| (1..=10).sum()));
///     waiter.wait();
///     thread.join().unwrap_or_default()
/// });
/// assert_eq!(sum, 55);
/// ```
pub fn hand_over() -> (Worker, Waiter) {
    let flag = FLAG.with_borrow(Clone::clone).unwrap_or_default();
    let (running, ended) = channel();
    (Worker { flag: Arc::clone(&flag), _running: running }, Waiter { flag, ended })
}

/// The end on the thread that works.
#[derive(Debug)]
pub struct Worker {
    flag: Arc<AtomicBool>,
    /// The waiter is woken when this is dropped.
    _running: Sender<()>,
}

impl Worker {
    /// Runs the work.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let _outer = Outer(FLAG.replace(Some(Arc::clone(&self.flag))));
        work()
    }
}

/// The flag of a thread before it worked for another one. Dropping it puts it back.
struct Outer(Option<Arc<AtomicBool>>);

impl Drop for Outer {
    fn drop(&mut self) {
        FLAG.set(self.0.take());
    }
}

/// The end on the thread that waits.
#[derive(Debug)]
pub struct Waiter {
    flag: Arc<AtomicBool>,
    ended: Receiver<()>,
}

impl Waiter {
    /// Returns when the work has ended, for whatever reason.
    pub fn wait(self) {
        if QUESTION.get().is_none() {
            // Only the end of the sender is received.
            _ = self.ended.recv();
            return;
        }
        while self.ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            if is_asked() {
                self.flag.store(true, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn endless() -> bool {
        loop {
            check();
            thread::yield_now();
        }
    }

    fn elsewhere(work: impl FnOnce() -> bool + Send) -> bool {
        let (worker, waiter) = hand_over();
        thread::scope(|scope| {
            let thread = scope.spawn(|| worker.run(work));
            waiter.wait();
            thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        })
    }

    #[test]
    fn work_ends_at_a_check() {
        assert_eq!(scope(|| true, endless), Err(Cancelled));
        assert_eq!(scope(|| true, || 1), Ok(1));
        assert_eq!(scope(|| false, || elsewhere(|| true)), Ok(true));
    }

    #[test]
    fn work_on_other_threads_ends_too() {
        assert_eq!(scope(|| true, || elsewhere(endless)), Err(Cancelled));
        assert_eq!(scope(|| true, || elsewhere(|| elsewhere(endless))), Err(Cancelled));
    }

    #[test]
    fn nothing_is_asked_outside() {
        assert_eq!(scope(|| true, || scope(|| false, || ())), Ok(Ok(())));
        check();
        assert!(elsewhere(|| {
            check();
            true
        }));
    }

    #[test]
    fn other_panics_pass() {
        let panic = panic::catch_unwind(|| scope(|| false, || panic::resume_unwind(Box::new(7))));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&7));
    }
}
