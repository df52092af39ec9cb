//! Writes the measured parts of docs/benchmarks.md, each between two markers, and its plots.

use std::fmt::Write;
use std::fs;
use std::thread::available_parallelism;

use anyhow::{Context, Result};

use super::measure::Measured;
use super::plot::{Plot, Series};
use crate::generate::root;

/// The measurements of an archive.
pub struct Row {
    /// Its name.
    pub archive: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The measurements of each command.
    pub runs: Vec<(&'static str, Measured)>,
}

/// Writes a section that is one table.
pub fn rows(name: &str, rows: &[Row]) -> Result<()> {
    let mut text = String::new();
    table(&mut text, rows)?;
    section(name, &text)
}

/// Writes the section on layers: time per layer, a plot, all figures.
pub fn layers(rows: &[(u64, Row)]) -> Result<()> {
    let mut text =
        "| layers | ms of CPU | ms of CPU per layer |\n| ---: | ---: | ---: |\n".to_owned();
    for (count, row) in rows {
        let ms = row.runs.first().map_or(0.0, |(_, m)| m.cpu.as_secs_f64() * 1e3);
        writeln!(text, "| {count} | {ms:.0} | {:.2} |", ms / *count as f64)?;
    }
    text += "\n![Seconds by layers](benchmarks/layers.svg)\n\n";
    table(&mut text, rows.iter().map(|(_, row)| row))?;
    picture("layers", plot("Seconds by layers", "layers", rows))?;
    section("layers", &text)
}

/// Writes the section on gigabytes: a plot, all figures.
pub fn gigabytes(rows: &[(u64, Row)]) -> Result<()> {
    let mut text = "![Seconds by size](benchmarks/gigabytes.svg)\n\n".to_owned();
    table(&mut text, rows.iter().map(|(_, row)| row))?;
    picture("gigabytes", plot("Seconds by size of the archive", "GB", rows))?;
    section("gigabytes", &text)
}

fn picture(name: &str, plot: Plot) -> Result<()> {
    let folder = root().join("docs/benchmarks");
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(name).with_extension("svg"), plot.svg())?)
}

/// Writes the section with this name. It names the machine, unless it is the one on language
/// models, which is in their page and has no times.
pub fn section(name: &str, text: &str) -> Result<()> {
    if name == "language-models" {
        return replace("docs/language-models.md", name, &format!("{text}\n"));
    }
    let machine = format!("On {} cores of {}.", available_parallelism()?, processor());
    replace("docs/benchmarks.md", name, &format!("{machine}\n\n{text}\n"))
}

/// Replaces the text between the markers with this name in a page.
fn replace(page: &str, name: &str, text: &str) -> Result<()> {
    let path = root().join(page);
    let old = fs::read_to_string(&path)?;
    let begin = format!("<!-- cargo xtask bench {name}: begin -->\n");
    let end = format!("<!-- cargo xtask bench {name}: end -->\n");
    let missing = || format!("{} lacks the markers of `{name}`", path.display());
    let (head, rest) = old.split_once(&begin).with_context(missing)?;
    let (_, tail) = rest.split_once(&end).with_context(missing)?;
    Ok(fs::write(&path, format!("{head}{begin}\n{text}{end}{tail}"))?)
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

/// One line for each command.
fn plot(title: &'static str, x: &'static str, rows: &[(u64, Row)]) -> Plot {
    let mut series: Vec<Series> = Vec::new();
    for (at, row) in rows {
        for (name, measured) in &row.runs {
            let point = (*at as f64, measured.wall.as_secs_f64());
            match series.iter_mut().find(|series| series.name == *name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name, points: vec![point] }),
            }
        }
    }
    Plot { title, x, series }
}

/// The name of the processor, if the system reports it.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or(std::env::consts::ARCH, |(_, name)| name).to_owned()
}
