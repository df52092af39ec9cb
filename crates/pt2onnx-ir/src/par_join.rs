//! Runs two walks over a model, in parallel if the model is long.

use crate::Model;
use std::thread;

/// Parallelism threshold, in values.
const MIN_VALUES: usize = 1 << 12;

/// Runs both functions, the second on another thread if the model is long and a thread can be
/// started.
pub(crate) fn par_join<A, B: Send>(
    model: &Model,
    first: impl FnOnce() -> A,
    second: impl Fn() -> B + Sync,
) -> (A, B) {
    thread::scope(|scope| {
        let start = || thread::Builder::new().spawn_scoped(scope, &second).ok();
        let thread = (model.values.len() >= MIN_VALUES).then(start).flatten();
        let first = first();
        (first, thread.and_then(|thread| thread.join().ok()).unwrap_or_else(&second))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_tensor::Tensor;

    #[test]
    fn long_models_use_a_second_thread() {
        let here = || thread::current().id();
        for (values, long) in [(MIN_VALUES - 1, false), (MIN_VALUES, true)] {
            let mut model = Model::new(20);
            (0..values).for_each(|i| _ = model.add_constant(Tensor::scalar(i as i64)));
            let (first, second) = par_join(&model, here, here);
            assert_eq!(first, here());
            assert_eq!(second != first, long);
        }
    }
}
