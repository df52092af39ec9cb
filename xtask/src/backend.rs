//! `backend`: checks that the models of the ONNX backend tests give the expected outputs after
//! `pt2onnx optimize`, also at other opsets.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::generate::{root, target};
use crate::python::{interpreter, run};

/// The task. With `opsets`, also for these.
pub fn backend(opsets: Option<&str>) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo).args(["build", "--quiet", "--package", "pt2onnx-cli"]))?;
    let command = target().join(format!("debug/pt2onnx{}", env::consts::EXE_SUFFIX));
    let folder = target().join("backend");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let python = interpreter()?;
    let script = |task: &str| {
        let script = root().join("xtask/python/backend.py");
        run(Command::new(&python).arg(script).arg(task).arg(&folder))
    };
    script("write")?;
    let after = folder.join("after");
    fs::create_dir_all(&after)?;
    let entries = fs::read_dir(folder.join("before"))?.map(|e| Ok(e?.path()));
    let mut models: Vec<PathBuf> = entries.collect::<Result<_>>()?;
    models.sort();
    let count = models.len();
    let refused = optimize(&command, models, &after)?;
    println!("{:5} of {count} models were optimised", count - refused.len());
    ensure!(refused.is_empty(), "`pt2onnx optimize` refused these models:\n{}", refused.join("\n"));
    script("check")?;
    fs::remove_dir_all(&folder)?;
    match opsets {
        Some(opsets) => {
            let script = root().join("xtask/python/opset_pairs.py");
            run(Command::new(&python)
                .arg(script)
                .arg(&command)
                .args(["--opsets", opsets, "--forms"]))
        }
        None => Ok(()),
    }
}

/// Runs the command for each model, one per processor at a time. Returns its messages for the
/// models that it refuses.
fn optimize(command: &Path, models: Vec<PathBuf>, after: &Path) -> Result<Vec<String>> {
    let (queue, refused) = (Mutex::new(models.into_iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().ok()?.next();
    let one = |model: &Path| -> Result<Output> {
        let output = after.join(model.file_name().context("the path of a model has no file name")?);
        let mut command = Command::new(command);
        command.arg("optimize").arg(model).arg("-o").arg(output);
        Ok(command.output()?)
    };
    let work = || -> Result<()> {
        while let Some(model) = next() {
            let output = one(&model)?;
            if !output.status.success()
                && let Ok(mut refused) = refused.lock()
            {
                let said = String::from_utf8_lossy(&output.stderr);
                refused.push(format!("{}: {said}", model.display()));
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism()?.get();
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        anyhow::Ok(())
    })?;
    Ok(refused.into_inner().unwrap_or_default())
}
