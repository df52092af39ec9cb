//! The process that the command runs in.

use rayon::ThreadPoolBuilder;

/// The process that the command runs in.
#[derive(Clone, Copy, Debug)]
pub enum Process {
    /// One that ends with the command.
    Own,
    /// Another program's, such as Python's.
    Shared,
}

impl Process {
    /// Makes this thread one of those that share the work on a model. It would sleep meanwhile, and
    /// memory that it has freed would be of no use to them. On one processor it is then the only
    /// one: work that another thread shared would wait for it for ever. So nothing changes in a
    /// shared process, whose other threads may share work later.
    pub(crate) fn take_part(self) {
        if matches!(self, Self::Own) {
            // If they run already, or cannot be started, the work is shared without this thread.
            let _ = ThreadPoolBuilder::new().use_current_thread().build_global();
        }
    }
}
