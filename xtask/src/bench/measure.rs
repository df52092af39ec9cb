//! Measures processes: time, peak memory, bytes written.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wait4::Wait4;

/// A command that writes into a folder.
pub struct Run {
    /// Its name in tables.
    pub name: &'static str,
    program: OsString,
    args: Vec<OsString>,
    /// The folder it writes into, emptied before each run.
    out: PathBuf,
    /// Whether it is so slow that it runs only once.
    once: bool,
}

/// The medians of all runs.
#[derive(Clone, Copy)]
pub struct Measured {
    /// Elapsed time.
    pub wall: Duration,
    /// CPU time of all threads, including time in the kernel.
    pub cpu: Duration,
    /// Peak memory in bytes, including mapped pages of files.
    pub peak: u64,
    /// Size of the written files in bytes.
    pub written: u64,
}

impl Run {
    pub fn new(name: &'static str, out: PathBuf, command: &Command) -> Self {
        Self {
            name,
            program: command.get_program().to_owned(),
            args: command.get_args().map(OsString::from).collect(),
            out,
            once: false,
        }
    }

    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    fn run(&self) -> Result<Measured> {
        if self.out.exists() {
            fs::remove_dir_all(&self.out)?;
        }
        fs::create_dir_all(&self.out)?;
        let start = Instant::now();
        let child = Command::new(&self.program)
            .args(&self.args)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", self.name))?;
        let used = child.wait4()?;
        let wall = start.elapsed();
        ensure!(used.status.success(), "{}: {}", self.name, used.status);
        let files = fs::read_dir(&self.out)?.map(|entry| Ok(entry?.metadata()?.len()));
        Ok(Measured {
            wall,
            cpu: used.rusage.utime + used.rusage.stime,
            peak: used.rusage.maxrss,
            written: files.collect::<Result<Vec<u64>>>()?.into_iter().sum(),
        })
    }
}

/// Runs each of them `times` times, in turns, so that other load on the machine affects all.
pub fn in_turns(runs: &[Run], times: usize) -> Result<Vec<Measured>> {
    let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); runs.len()];
    for turn in 0..times.max(1) {
        for (run, measured) in runs.iter().zip(&mut measured) {
            if turn == 0 || !run.once {
                measured.push(run.run()?);
            }
        }
    }
    for run in runs {
        fs::remove_dir_all(&run.out)
            .or_else(|error| if run.out.exists() { Err(error) } else { Ok(()) })?;
    }
    Ok(measured.iter().map(|all| medians(all)).collect())
}

fn medians(all: &[Measured]) -> Measured {
    fn median<T: Ord + Copy>(all: &[Measured], of: impl Fn(&Measured) -> T) -> T {
        let mut values: Vec<T> = all.iter().map(of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    }
    Measured {
        wall: median(all, |m| m.wall),
        cpu: median(all, |m| m.cpu),
        peak: median(all, |m| m.peak),
        written: median(all, |m| m.written),
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mega = |bytes: u64| bytes as f64 / 1e6;
        write!(
            f,
            "{:.3} s, {:.3} s of CPU, {:.0} MB of memory, {:.1} MB written",
            self.wall.as_secs_f64(),
            self.cpu.as_secs_f64(),
            mega(self.peak),
            mega(self.written)
        )
    }
}
