//! Tests over whole programs and archives. They are one binary, which is linked once.

mod functional;
mod indices;
mod infer;
