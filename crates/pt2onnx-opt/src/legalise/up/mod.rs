//! Rewrites of nodes into newer forms of their operators.

pub(super) mod canonical;
pub(super) mod extensions;
pub(super) mod opset_7;
