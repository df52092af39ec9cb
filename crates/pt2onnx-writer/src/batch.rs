//! Files that are written together: all of them, or none.

use crate::{
    arrange::{arranged, data_path},
    error::{Error, MAX_MODEL},
    file_identity::Identity,
    inputs::{Inputs, MODEL},
    moored::{Kept, moored},
    options::{SaveOptions, Weights},
    output_file::{Destination, Device, Output, OutputFile, Replaced, Temporary, locked},
    sink::FileSink,
    stream::{DataFile, Stream},
};
use pt2onnx_ir::Model;
use std::{
    cell::Cell,
    fmt,
    io::Write,
    path::{Path, PathBuf},
};
use tempfile::TempPath;

/// The name of data files in errors.
const DATA: &str = "data file";

/// The result of [`save`](crate::save).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Bytes of the model file.
    pub bytes: u64,
    /// The data files, and the bytes of each.
    pub data: Vec<(PathBuf, u64)>,
}

/// Files that are written together. Each is completed under no name or a hidden one.
/// [`commit`](Self::commit) gives them their names. After an error, or if the batch is dropped,
/// there are no new files, and existing ones are unchanged.
///
/// No file that is read may be written, and no file may be written twice.
pub struct Batch<'a> {
    inputs: Inputs,
    /// The outputs, by their names in errors.
    taken: Vec<(&'static str, PathBuf, Identity)>,
    files: Vec<(OutputFile, Temporary)>,
    /// The models, which get their names last.
    models: Vec<(OutputFile, Temporary)>,
    streams: Vec<Streamed<'a>>,
}

/// A model for a device, a pipe or standard output, which is written when all files are complete.
struct Streamed<'a> {
    device: Device,
    model: Stream<'a>,
    progress: &'a dyn Fn(u64, u64),
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl<'a> Batch<'a> {
    /// An empty batch, of a program that reads these files.
    pub fn new(inputs: Inputs) -> Self {
        let (files, models) = (Vec::new(), Vec::new());
        Self { inputs, taken: Vec::new(), files, models, streams: Vec::new() }
    }

    /// Checks that a file may be written; `what` is its name in errors, such as `report`. No file
    /// is touched. The batch then counts the file as written.
    ///
    /// # Errors
    /// [`Error::Overwrites`]; [`Error::Target`] if there cannot be a file at this path.
    pub fn claim(&mut self, what: &'static str, to: impl Into<Output>) -> Result<(), Error> {
        self.place(what, &to.into()).map(drop)
    }

    /// Does the same as [`claim`](Self::claim), and checks that a file can be created there.
    ///
    /// # Errors
    /// Those of `claim`, and [`Error::Io`].
    pub fn check(&mut self, what: &'static str, to: impl Into<Output>) -> Result<(), Error> {
        match self.place(what, &to.into())? {
            Destination::File(target) => target.temporary().map(drop),
            Destination::Device(_) => Ok(()),
        }
    }

    /// Adds a model, with its data files. `progress` is called with the bytes written so far and
    /// the total. Files that its tensors are in count as read.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn model(
        &mut self,
        model: &'a Model,
        to: impl Into<Output>,
        options: &SaveOptions,
        progress: &'a dyn Fn(u64, u64),
    ) -> Result<Saved, Error> {
        let to = to.into();
        self.inputs.add_tensors(model);
        let target = match self.place(MODEL, &to)? {
            Destination::File(target) => target,
            Destination::Device(device) => return self.stream(model, device, options, progress),
        };
        let data_path = data_path(target.path(), options)?;
        let stream = arranged(model, options, &data_path, target.path())?;
        let mut data = Vec::new();
        for file in stream.files() {
            let path = data_path.with_file_name(&file.name);
            match self.place(DATA, &Output::File(path.clone()))? {
                Destination::File(target) => data.push(target),
                Destination::Device(_) => {
                    return Err(Error::Target {
                        path,
                        what: "is a device or pipe; give the name of a file",
                    });
                }
            }
        }
        let total = stream.size() + stream.files().iter().map(DataFile::size).sum::<u64>();
        let done = Cell::new(0);
        let advance = |bytes: u64| {
            pt2onnx_cancel::check();
            done.set(done.get() + bytes);
            progress(done.get(), total);
        };
        let mut saved = Saved { bytes: stream.size(), data: Vec::new() };
        for (target, file) in data.into_iter().zip(stream.files()) {
            let fill =
                |out: &_| FileSink::fill(out, file.size(), &advance, |sink| file.write(sink));
            let written = target.write(fill)?;
            saved.data.push((target.path().to_owned(), file.size()));
            self.files.push((target, written));
        }
        // A file that is read, or linked, is of use.
        let of_use = || self.inputs.check(DATA, &data_path, &Identity::of(&data_path)).is_err();
        if saved.data.is_empty() && data_path.exists() && !of_use() {
            let path = data_path.display();
            tracing::warn!("{path} is of an earlier export, this one does not use it");
        }
        let written = target
            .write(|out| FileSink::fill(out, saved.bytes, &advance, |sink| stream.write(sink)))?;
        self.models.push((target, written));
        Ok(saved)
    }

    /// Adds a model that is written to a device: in one piece, as there is no place for other files
    /// beside it.
    fn stream(
        &mut self,
        model: &'a Model,
        device: Device,
        options: &SaveOptions,
        progress: &'a dyn Fn(u64, u64),
    ) -> Result<Saved, Error> {
        let named = options.data_file.is_some() || options.shard_size.is_some();
        if named || matches!(options.weights, Weights::External | Weights::Link) {
            return Err(Error::NoFolder(device.path()));
        }
        let stream = Stream::new(model, options)?;
        if !matches!(options.weights, Weights::Auto | Weights::None) {
            stream.complete()?;
        }
        match stream.size() {
            0..=MAX_MODEL => {}
            size => return Err(Error::TooLarge(size)),
        }
        let saved = Saved { bytes: stream.size(), data: Vec::new() };
        self.streams.push(Streamed { device, model: stream, progress });
        Ok(saved)
    }

    /// Adds a file with this content; `what` is its name in errors, such as `report`.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Target`] and [`Error::Overwrites`].
    pub fn file(
        &mut self,
        what: &'static str,
        path: impl AsRef<Path>,
        content: &[u8],
    ) -> Result<(), Error> {
        let fill = |out: &_| FileSink::stream(out, &|_| {}, |sink| sink.write_all(content));
        match self.place(what, &Output::from(path))? {
            Destination::File(target) => {
                let written = target.write(fill)?;
                self.files.push((target, written));
                Ok(())
            }
            Destination::Device(device) => device.write(fill),
        }
    }

    /// Gives all files their names, the models last. Files at new names are not synced to the disk;
    /// if any file is replaced, all are, so that after a system crash there are the old files or
    /// the new ones. Devices, pipes and standard output are written first. Meanwhile the folders
    /// are locked, where the system can: of two batches of the same files, one comes after the
    /// other.
    ///
    /// # Errors [`Error::Io`]. Bytes sent to a device cannot be taken back.
    pub fn commit(self) -> Result<(), Error> {
        let Self { files, models, streams, .. } = self;
        let sync = files.iter().chain(&models).any(|(target, _)| target.exists());
        let name = |(target, temporary): (OutputFile, Temporary)| {
            if sync {
                target.sync(&temporary)?;
            }
            Ok((target.name(temporary)?, target))
        };
        let files: Vec<_> = files.into_iter().map(name).collect::<Result<_, Error>>()?;
        let models: Vec<_> = models.into_iter().map(name).collect::<Result<_, Error>>()?;
        for Streamed { device, model, progress } in streams {
            let (done, total) = (Cell::new(0), model.size());
            let advance = |bytes: u64| {
                done.set(done.get() + bytes);
                progress(done.get(), total);
            };
            device.write(|out| FileSink::stream(out, &advance, |sink| model.write(sink)))?;
        }
        let _locks = locked(files.iter().chain(&models).map(|(_, target)| target.folder()));
        // If an error follows, dropping these restores the old files, models first.
        let kept = files.iter().map(|(_, target)| target.keep()).collect::<Result<Vec<_>, _>>()?;
        let kept_models = moor(&models, &kept, sync)?;
        for (name, target) in files.into_iter().chain(models) {
            target.rename(name)?;
            if sync {
                target.sync_folder();
            }
        }
        kept_models.into_iter().chain(kept).for_each(Replaced::commit);
        Ok(())
    }

    /// Where a file is written to, if it may be.
    fn place(&mut self, what: &'static str, to: &Output) -> Result<Destination, Error> {
        let destination = Destination::new(to)?;
        let (path, identity) = destination.identity();
        self.inputs.check(what, &path, &identity)?;
        if let Some((other, other_path, _)) = self.taken.iter().find(|t| t.2 == identity) {
            return Err(Error::Overwrites {
                path,
                output: what,
                other: format!(
                    "{} {other} to be written",
                    if *other == what { "another" } else { "the" }
                ),
                other_path: other_path.clone(),
            });
        }
        self.taken.push((what, path, identity));
        Ok(destination)
    }
}

/// Lets old models refer to their data by the names under which these are kept: wherever the
/// process ends, each model has its data. Keeps the models that may have to be restored.
fn moor(
    models: &[(TempPath, OutputFile)],
    data: &[Replaced],
    sync: bool,
) -> Result<Vec<Replaced>, Error> {
    let data: Vec<Kept> = data.iter().filter_map(Replaced::kept).collect();
    let mut kept = Vec::new();
    for (i, (_, target)) in models.iter().enumerate() {
        let moored = moored(target.path(), &data);
        // No other file follows the last model.
        if moored.is_some() || i + 1 < models.len() {
            kept.push(target.keep()?);
        }
        if let Some(moored) = moored {
            let temporary = target.write(|mut out| out.write_all(&moored))?;
            if sync {
                target.sync(&temporary)?;
            }
            target.rename(target.name(temporary)?)?;
            if sync {
                target.sync_folder();
            }
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, save};
    use std::fs;
    use tempfile::tempdir;

    /// The only weight of a model.
    fn weight(path: &Path) -> Vec<f32> {
        let model = read(path).unwrap();
        model.values().find_map(|(_, v)| v.constant().cloned()).unwrap().to_vec().unwrap()
    }

    #[test]
    fn a_model_has_its_data_wherever_the_process_ends() {
        let folder = tempdir().unwrap();
        let (model, data) = (folder.path().join("m.onnx"), folder.path().join("m.onnx.data"));
        let of = |number: &str| -> Model {
            let text = r#"<ir_version: 9, opset_import: ["" : 20]>
                main_graph (float[1] x) => (float[1] y) <float[1] w = {NUMBER}> { y = Add (x, w) }"#;
            text.replace("NUMBER", number).parse().unwrap()
        };
        let options = SaveOptions { threshold: 0, ..Weights::External.into() };
        save(&of("1.0"), &model, options.clone()).unwrap();
        let target = |path: &Path| match Destination::new(&Output::from(path)).unwrap() {
            Destination::File(target) => target,
            Destination::Device(_) => unreachable!(),
        };
        let named = |target: &OutputFile, content: &[u8]| {
            let temporary = target.write(|mut out| out.write_all(content)).unwrap();
            target.name(temporary).unwrap()
        };
        let (old, changed) = (fs::read(&model).unwrap(), 2f32.to_le_bytes());
        let kept = vec![target(&data).keep().unwrap()];
        assert_eq!(weight(&model), [1.0]);
        let models = [(named(&target(&model), b"new"), target(&model))];
        let kept_models = moor(&models, &kept, false).unwrap();
        assert_eq!(weight(&model), [1.0]);
        target(&data).rename(named(&target(&data), &changed)).unwrap();
        assert_eq!(weight(&model), [1.0]);
        assert_eq!(fs::read(&data).unwrap(), changed);
        // After an error, both are restored.
        drop(kept_models);
        drop(kept);
        drop(models);
        assert_eq!((fs::read(&model).unwrap(), weight(&model)), (old, vec![1.0]));
        save(&of("3.0"), &model, options).unwrap();
        assert_eq!(weight(&model), [3.0]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
