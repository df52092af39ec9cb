//! Reading archives, and the choice of one of their programs.

use crate::{
    error::Error,
    options::{OptionError, Options},
    source_program::SourceProgram,
    torchscript_program,
};
use pt2onnx_aten::Registry;
use pt2onnx_fx::archive::{Archive, Records};
use pt2onnx_report::{Report, Warning, WarningKind};
use std::path::Path;

/// Reads the program of an archive, of either kind.
pub(crate) fn read(
    records: Records,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Result<SourceProgram, Error> {
    let archive = match Archive::new(records.clone()) {
        Err(error) if torchscript_program::is_one(&error) => {
            return flattened(records, options, registry, report);
        }
        opened => opened.map_err(Error::Archive)?,
    };
    let program = archive.program(options.program.as_deref()).map_err(Error::Archive)?;
    let mut read = SourceProgram { archived: true, ..SourceProgram::exported(program, options)? };
    let others: Vec<String> =
        archive.models().filter(|name| *name != "model").map(|name| format!("`{name}`")).collect();
    if options.program.is_none() && !others.is_empty() {
        let text = format!(
            "the archive has other programs besides `model`, which are not in this model: {}; the option `program` names one",
            others.join(", ")
        );
        read.warnings.push(Warning::new(WarningKind::Programs, text));
    }
    Ok(read)
}

/// The program of a TorchScript archive.
fn flattened(
    records: Records,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Result<SourceProgram, Error> {
    if let Some(model) = &options.program {
        return Err(Error::Options(OptionError::OneProgram(model.clone())));
    }
    let archive = pt2onnx_torchscript_archive::Archive::new(records)
        .map_err(pt2onnx_torchscript::Error::from)?;
    report.torchscript = torchscript_program::summary(&archive);
    let read = torchscript_program::read(&archive, options, registry);
    if read.is_err()
        && let Ok(weights) = torchscript_program::weights(&archive)
    {
        report.stored(weights.values());
    }
    read
}

/// The names of the programs in an archive of `torch.export.save` or `package_pt2`; none in one of
/// TorchScript.
///
/// # Errors
/// The file cannot be read, or is not an archive.
pub fn programs(archive: impl AsRef<Path>) -> Result<Vec<String>, Error> {
    match Archive::open(archive) {
        Err(error) if torchscript_program::is_one(&error) => Ok(Vec::new()),
        opened => Ok(opened.map_err(Error::Archive)?.models().map(str::to_owned).collect()),
    }
}
