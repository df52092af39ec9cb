//! Measures exports of models in memory, in Python: capture alone, pt2onnx.export,
//! torch.onnx.export. Each runs in a separate process.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::generate::root;

/// The models of bench_models.py.
const MODELS: [&str; 4] = ["ResNet-18", "BERT-base", "Llama, 4 layers", "Llama, 32 layers"];

/// The ways, and what tables call them. The first is what the others are compared with.
const WAYS: [(&str, &str); 3] = [
    ("capture", "capture alone"),
    ("pt2onnx", "pt2onnx.export"),
    ("torch.onnx", "torch.onnx.export"),
];

/// The output of a process.
#[derive(Clone, Copy, Deserialize)]
struct Measured {
    wall: f64,
    cpu: f64,
    peak: f64,
}

/// The table of all models, each exported `times` times in each way, in turns.
pub fn table(python: &Path, times: usize) -> Result<String> {
    let mut text =
        "| model | by | seconds | of CPU | times capture | peak MB | MB above capture |\n\
                    | --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    for model in MODELS {
        let mut measured = [const { Vec::new() }; WAYS.len()];
        for _ in 0..times.max(1) {
            for ((way, _), measured) in WAYS.iter().zip(&mut measured) {
                measured.push(export(python, model, way)?);
            }
        }
        let medians = measured.map(|all| median(&all));
        let capture = medians[0];
        for (index, ((_, name), m)) in WAYS.iter().zip(medians).enumerate() {
            let shown = if index == 0 { model } else { "" };
            let (times, mega) = (m.cpu / capture.cpu, m.peak / 1e6);
            let above = (m.peak - capture.peak) / 1e6;
            let row = format!(
                "| {shown} | {name} | {:.2} | {:.2} | {times:.2} | {mega:.0} | {above:.0} |\n",
                m.wall, m.cpu
            );
            print!("{row}");
            text += &row;
        }
    }
    Ok(text)
}

fn export(python: &Path, model: &str, way: &str) -> Result<Measured> {
    let output = Command::new(python)
        .arg(root().join("xtask/python/bench_export.py"))
        .args([model, way])
        .env("PYTHONPATH", root().join("python"))
        // Threads that wait for others use seconds, too.
        .env("OMP_NUM_THREADS", "1")
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", python.display()))?;
    ensure!(output.status.success(), "{model} by {way}: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().last().context("nothing was printed")?;
    Ok(serde_json::from_str(line)?)
}

fn median(all: &[Measured]) -> Measured {
    let of = |value: fn(&Measured) -> f64| {
        let mut values: Vec<f64> = all.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Measured { wall: of(|m| m.wall), cpu: of(|m| m.cpu), peak: of(|m| m.peak) }
}
