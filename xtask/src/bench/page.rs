//! The measured part of docs/benchmarks.md, between its two markers, and its plots.

use std::fmt::Write;
use std::fs;
use std::thread::available_parallelism;

use anyhow::{Context, Result};

use super::Row;
use super::plot::{Plot, Series};
use crate::generate::root;

const BEGIN: &str = "<!-- cargo xtask bench: begin -->\n";
const END: &str = "<!-- cargo xtask bench: end -->\n";

/// Writes the section and the plots.
pub fn write(layers: &[(u64, Row)], gigabytes: &[(u64, Row)], models: &[Row]) -> Result<()> {
    let docs = root().join("docs");
    let page = docs.join("benchmarks.md");
    let text = fs::read_to_string(&page)?;
    let (head, rest) = text
        .split_once(BEGIN)
        .context("docs/benchmarks.md has no marker")?;
    let (_, tail) = rest
        .split_once(END)
        .context("docs/benchmarks.md has no end marker")?;
    let section = section(layers, gigabytes, models)?;
    fs::write(&page, format!("{head}{BEGIN}{section}{END}{tail}"))?;
    fs::create_dir_all(docs.join("benchmarks"))?;
    fs::write(
        docs.join("benchmarks/layers.svg"),
        plot("Seconds by layers", "layers", layers).svg(),
    )?;
    fs::write(
        docs.join("benchmarks/gigabytes.svg"),
        plot("Seconds by size of the archive", "GB", gigabytes).svg(),
    )?;
    println!("{}", page.display());
    Ok(())
}

fn section(layers: &[(u64, Row)], gigabytes: &[(u64, Row)], models: &[Row]) -> Result<String> {
    let mut text = format!(
        "\nMeasured on {} cores of `{}`; the machine had other work to do, so that seconds of CPU tell more than seconds.\n",
        available_parallelism()?,
        processor(),
    );
    text += "\n## Models\n\nFrom the archive to the saved model, each in a process of its own.\n\n";
    table(&mut text, models)?;
    text += "\n## By layers\n\nA decoder of narrow layers, so that its graph is nearly all there is to do.\n\n";
    text += "| layers | ms of CPU | ms of CPU per layer |\n| ---: | ---: | ---: |\n";
    for (count, row) in layers {
        let ms = row
            .runs
            .first()
            .map_or(0.0, |(_, m)| m.cpu.as_secs_f64() * 1e3);
        writeln!(text, "| {count} | {ms:.0} | {:.2} |", ms / *count as f64)?;
    }
    text += "\n![Seconds by layers](benchmarks/layers.svg)\n\n";
    let rows: Vec<&Row> = layers.iter().map(|(_, row)| row).collect();
    table(&mut text, rows)?;
    text += "\n## By size\n\nA decoder of wide layers, nearly all weights.\n\n";
    text += "![Seconds by size](benchmarks/gigabytes.svg)\n\n";
    let rows: Vec<&Row> = gigabytes.iter().map(|(_, row)| row).collect();
    table(&mut text, rows)?;
    text += "\n";
    Ok(text)
}

fn table<'a>(text: &mut String, rows: impl IntoIterator<Item = &'a Row>) -> Result<()> {
    *text += "| archive | MB | by | seconds | of CPU | peak MB | MB written |\n";
    *text += "| --- | ---: | --- | ---: | ---: | ---: | ---: |\n";
    let mega = |bytes: u64| bytes as f64 / 1e6;
    for row in rows {
        for (index, (name, m)) in row.runs.iter().enumerate() {
            let (archive, bytes) = match index {
                0 => (row.archive.as_str(), format!("{:.0}", mega(row.bytes))),
                _ => ("", String::new()),
            };
            let (wall, cpu) = (m.wall.as_secs_f64(), m.cpu.as_secs_f64());
            let (peak, written) = (mega(m.peak), mega(m.written));
            writeln!(
                text,
                "| {archive} | {bytes} | {name} | {wall:.2} | {cpu:.2} | {peak:.0} | {written:.1} |"
            )?;
        }
    }
    Ok(())
}

/// One line for each way of converting.
fn plot(title: &'static str, x: &'static str, rows: &[(u64, Row)]) -> Plot {
    let mut series: Vec<Series> = Vec::new();
    for (at, row) in rows {
        for (name, measured) in &row.runs {
            let point = (*at as f64, measured.wall.as_secs_f64());
            match series.iter_mut().find(|series| series.name == *name) {
                Some(series) => series.points.push(point),
                None => series.push(Series {
                    name,
                    points: vec![point],
                }),
            }
        }
    }
    Plot { title, x, series }
}

/// The processor's name, where the system tells.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or(std::env::consts::ARCH, |(_, name)| name)
        .to_owned()
}
