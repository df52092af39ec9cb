//! `pt2onnx apply-weights MODEL.onnx --weights FILE`.

use crate::{
    args::{ApplyWeights, defaults},
    error::{self, CommandError},
    files::{check_data_file, output},
    log,
    progress::{tell, watched},
};
use pt2onnx::{
    Error, Unused, apply_weights_with, read_weights,
    writer::{Batch, ExternalData, Inputs, read_with},
};
use std::path::Path;

/// Gives values to the weights of the model, and writes it to itself or to another file.
pub fn apply(args: ApplyWeights) -> Result<(), CommandError> {
    log::init(args.verbose, false);
    let to = args.output.as_ref().unwrap_or(&args.model);
    let mut options = defaults();
    options.weights = args.to;
    args.flags.put(&mut options);
    options.check_together()?;
    check_data_file(&options)?;
    let reading = read_with(&args.model, ExternalData::Mapped);
    let reading = reading.map_err(|e| error::model(&args.model, &e))?;
    for lost in &reading.lost {
        tracing::warn!("the model has {lost}, which are not kept");
    }
    let (mut model, mut inputs) = (reading.model, reading.inputs);
    add_weights(&mut inputs, &args.weights);
    let weights = read_weights(&args.weights).map_err(error::weights)?;
    let unused = if args.allow_unused { Unused::Allow } else { Unused::Error };
    let surplus = apply_weights_with(&mut model, &weights, unused).map_err(Error::Weights)?;
    if !surplus.is_empty() {
        tracing::info!("the model has no use for {}", surplus.join(", "));
    }
    let saved = watched(|progress| {
        let mut files = Batch::new(inputs);
        let saved = files.model(&model, output(to), &options.saving(), progress)?;
        files.commit()?;
        Ok(saved)
    });
    let saved = saved.map_err(Error::Write)?;
    tell(to, &saved);
    Ok(())
}

/// Adds a file of weights, or those that are read of a folder. Files that an index names are known
/// by their tensors.
fn add_weights(inputs: &mut Inputs, path: &Path) {
    let Ok(entries) = path.read_dir() else {
        return inputs.add("weights", path);
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") {
            inputs.add("weights", entry.path());
        }
    }
}
