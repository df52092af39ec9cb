//! Files that are read, and therefore must not be written.

use crate::{
    error::Error,
    file_identity::{Identity, real},
};
use pt2onnx_ir::Model;
use pt2onnx_tensor::Tensor;
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The name of the model file in errors.
pub(crate) const MODEL: &str = "output";

/// Files that are read. [`Batch`](crate::Batch) refuses to write them, under whatever name: files
/// are compared by device and inode.
#[derive(Clone, Debug, Default)]
pub struct Inputs(Vec<Input>);

#[derive(Clone, Debug)]
struct Input {
    what: &'static str,
    path: PathBuf,
    identity: Identity,
    /// Whether a model of this name may take its place.
    replaceable: bool,
}

impl Inputs {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, and what it is: `archive`, `weights`.
    pub fn add(&mut self, what: &'static str, path: impl AsRef<Path>) {
        self.push(what, path.as_ref(), Identity::of(path.as_ref()), false);
    }

    /// Adds the file of an ONNX model. It is the one file that may be replaced: by a model that is
    /// written to this very path.
    pub fn add_model(&mut self, path: impl AsRef<Path>) {
        self.push("model", path.as_ref(), Identity::of(path.as_ref()), true);
    }

    /// Adds other files that are read. None of them may be replaced.
    pub fn extend(&mut self, others: &Self) {
        for Input { what, path, identity, .. } in &others.0 {
            self.push(what, path, identity.clone(), false);
        }
    }

    /// Adds the files that the tensors of a model are in.
    pub(crate) fn add_tensors(&mut self, model: &Model) {
        let mut last: Option<Arc<File>> = None;
        for (_, data) in model.values() {
            let tensors = data.constant().into_iter().chain(data.default.as_deref());
            for source in tensors.flat_map(Tensor::sources) {
                if !last.is_some_and(|last| Arc::ptr_eq(&last, &source.file)) {
                    let identity = Identity::of_open(&source.file, &source.path);
                    self.push("weights", &source.path, identity, false);
                }
                last = Some(source.file);
            }
        }
    }

    fn push(&mut self, what: &'static str, path: &Path, identity: Identity, replaceable: bool) {
        // The first description of a file is the most precise.
        if self.0.iter().all(|input| input.identity != identity) {
            self.0.push(Input { what, path: path.to_owned(), identity, replaceable });
        }
    }

    /// An error if an output would overwrite one of them.
    pub(crate) fn check(
        &self,
        output: &'static str,
        path: &Path,
        identity: &Identity,
    ) -> Result<(), Error> {
        let Some(input) = self.0.iter().find(|input| input.identity == *identity) else {
            return Ok(());
        };
        if input.replaceable && output == MODEL && real(path) == real(&input.path) {
            Ok(())
        } else {
            Err(Error::Overwrites {
                path: path.to_owned(),
                output,
                other: format!("the {} to be read", input.what),
                other_path: input.path.clone(),
            })
        }
    }
}
