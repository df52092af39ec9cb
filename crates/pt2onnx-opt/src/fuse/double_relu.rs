//! `Relu(Relu(x))` becomes `Relu(x)`.

use super::{Because, Fusion, Pass, Patterns, Run};

pub(crate) static DOUBLE_RELU: Pass = Pass {
    name: "double-relu",
    description: "Replaces two Relu in a row by one.",
    precondition: "The sizes are known.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

fn fusions() -> Patterns {
    Ok(vec![Fusion::new("Relu(r:Relu(x))", |cx, found| {
        found.keeps_shape(cx, found.get("x")?).because("the sizes are not known")?;
        found.get("r")
    })?])
}
