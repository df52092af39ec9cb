//! `pt2onnx apply-weights MODEL.onnx --weights FILE`.

use crate::{
    args::{ApplyWeights, check_data_file},
    error::{self, CommandError},
    files::{data, refuse_to_overwrite},
    log,
    progress::{tell, watched},
};
use pt2onnx::{Error, Options, apply_weights, read_weights, writer};

/// Gives values to the weights of the model, and writes it to itself or to another file.
pub fn apply(args: ApplyWeights) -> Result<(), CommandError> {
    log::init(args.verbose);
    let output = args.output.as_ref().unwrap_or(&args.model);
    let mut options = Options::default();
    options.weights = args.to.into();
    args.saving.put(&mut options);
    check_data_file(&options)?;
    let data = data(output, options.weights_file.as_deref());
    refuse_to_overwrite("weights", &args.weights, [output, &data])?;
    let mut model = writer::read(&args.model).map_err(|e| error::model(&args.model, &e))?;
    let weights = read_weights(&args.weights).map_err(error::weights)?;
    let surplus = apply_weights(&mut model, &weights).map_err(Error::Weights)?;
    if !surplus.is_empty() {
        tracing::info!("the model has no use for {}", surplus.join(", "));
    }
    let saved =
        watched(|progress| writer::save_observed(&model, output, options.saving(), progress));
    let saved = saved.map_err(Error::Write)?;
    tell(output, &saved);
    Ok(())
}
