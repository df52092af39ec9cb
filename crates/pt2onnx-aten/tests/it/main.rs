//! Tests of lowerings, of the driver over whole programs, and of types.
//!
//! They are one binary, which is linked once; the library has no unit tests, so that an edit of one
//! op compiles it once.

#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod adding_an_op;
mod checks;
mod functional;
mod infer;
mod infer_nodes;
mod metadata;
mod registry;
