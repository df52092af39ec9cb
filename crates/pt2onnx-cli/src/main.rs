//! The executable of the `pt2onnx` command.
#![expect(unsafe_code, reason = "the allocator is in C")]

use libmimalloc_sys::{mi_option_set, mi_option_t};
use std::{env, process::ExitCode};

/// Graphs are many small allocations, which this allocator keeps together by size.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// mimalloc's `mi_option_purge_delay`, which the crate leaves out: after so many milliseconds, unused memory goes back to the system.
const PURGE_DELAY: mi_option_t = 15;

fn main() -> ExitCode {
    // The default is 10. Memory that is used again sooner would be cleared again, and huge pages would be split.
    // SAFETY: The option exists, and takes any number.
    unsafe { mi_option_set(PURGE_DELAY, 25) };
    ExitCode::from(pt2onnx_cli::main(env::args_os()))
}

#[cfg(test)]
mod tests {
    use super::PURGE_DELAY;
    use libmimalloc_sys::mi_option_get;

    #[test]
    fn the_option_is_the_one_whose_default_is_10() {
        // SAFETY: It reads a number.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 10);
    }
}
