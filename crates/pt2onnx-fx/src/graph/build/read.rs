//! Reads the JSON of a program, of any version of the schema.

use super::builder::Builder;
use crate::{
    error::{Error, Place, Result},
    graph::ExportedProgram,
    schema::{self as s, upgrade},
};
use std::borrow::Cow;

/// A program without its tensors.
pub(crate) struct Parsed {
    pub(crate) program: ExportedProgram,
    /// Constants that the JSON held: a name and what `torch.save` wrote, in base 64.
    pub(crate) constants: Vec<(String, String)>,
}

/// Reads a program's JSON, without the tensors.
pub(crate) fn program(json: &[u8], place: &Place) -> Result<Parsed> {
    // A program of a newer schema is read in one go.
    match serde_json::from_slice::<s::ExportedProgram>(json) {
        Ok(program) if is_current(program.schema_version) => build(&program, Vec::new(), place),
        _ => upgraded(json, place),
    }
}

/// Reads a program of any older schema, or tells what is wrong with one of the newest.
fn upgraded(json: &[u8], place: &Place) -> Result<Parsed> {
    let in_json = |source| Error::Json { place: place.clone(), source };
    let json = match serde_json::from_slice::<s::Header>(json) {
        Ok(header) if header.schema_version >= BARE_FLOATS_UNTIL => Cow::Borrowed(json),
        _ => upgrade::quote_floats(json),
    };
    let header: s::Header = serde_json::from_slice(&json).map_err(in_json)?;
    let version = header.schema_version;
    if version.major > s::MAJOR {
        return Err(Error::SchemaVersion {
            place: place.clone(),
            found: (version.major, version.minor),
            torch_version: header.torch_version.to_string(),
        });
    }
    let upgraded = upgrade::upgrade(json, version.major).map_err(in_json)?;
    let mut program: s::ExportedProgram =
        serde_json::from_slice(&upgraded.json).map_err(in_json)?;
    program.schema_version = version;
    build(&program, upgraded.constants, place)
}

fn build(
    program: &s::ExportedProgram,
    constants: Vec<(String, String)>,
    place: &Place,
) -> Result<Parsed> {
    let program = Builder::default()
        .program(program)
        .map_err(|invalid| Error::Invalid { place: place.clone(), invalid: Box::new(invalid) })?;
    Ok(Parsed { program, constants })
}

/// Torch 2.7, which writes schema 8.7, was the first to write infinities and NaN as strings, so that the JSON is valid.
const BARE_FLOATS_UNTIL: s::SchemaVersion = s::SchemaVersion { major: 8, minor: 7 };

fn is_current(version: s::SchemaVersion) -> bool {
    version >= BARE_FLOATS_UNTIL && version.major == s::MAJOR
}
