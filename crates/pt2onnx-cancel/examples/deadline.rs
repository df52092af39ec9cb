//! Work that ends at a deadline, without a `Result` from its steps.
//! `cargo run -p pt2onnx-cancel --example deadline`

use pt2onnx_cancel::{Cancelled, check, scope};
use std::{sync::LazyLock, time::Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn collatz(start: u64) -> usize {
    check();
    let next = |&n: &u64| (n != 1).then(|| if n % 2 == 0 { n / 2 } else { 3 * n + 1 });
    std::iter::successors(Some(start), next).count()
}

fn main() {
    let late = || START.elapsed().as_millis() > 50;
    LazyLock::force(&START);
    let longest = scope(late, || (1..=u64::MAX).map(collatz).max());
    assert_eq!(longest, Err(Cancelled));
}

#[test]
fn it_runs() {
    main();
}
