//! Two walks over a model at once: verification looks at names beside nodes.

use crate::Model;
use std::thread;

/// Fewer values are walked over sooner than another thread starts.
const MANY: usize = 1 << 12;

/// Does two things with a model, the second on another thread if the model is long and a thread can
/// be started.
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

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_tensor::Tensor;

    #[test]
    fn the_second_is_done_elsewhere_if_the_model_is_long() {
        let here = || thread::current().id();
        for (values, long) in [(MANY - 1, false), (MANY, true)] {
            let mut model = Model::new(20);
            (0..values).for_each(|i| _ = model.add_constant(Tensor::scalar(i as i64)));
            let (first, second) = both(&model, here, here);
            assert_eq!(first, here());
            assert_eq!(second != first, long);
        }
    }
}
