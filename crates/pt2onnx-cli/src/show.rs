//! `pt2onnx show`: an ONNX model as text or as a drawing, and the program of an archive.

use crate::{
    args::{Show, defaults},
    error::{self, Code, CommandError},
};
use pt2onnx::{
    Exporter,
    ir::TextOptions,
    writer::{ExternalData, read_with},
};
use std::{
    io::{self, Read},
    path::Path,
};

/// How zip files start, and so archives.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// The model in ONNX's textual syntax or in the DOT language, or the program as PyTorch prints it.
pub fn show(args: Show) -> Result<String, CommandError> {
    if is_zip(&args.model).unwrap_or(false) {
        return program(args);
    }
    if let Some(key) = args.raw.then_some("raw").or(args.script.first()) {
        let what = format!("--{key} is for archives, and this is none");
        return Err(CommandError::new(Code::Usage, what).place(args.model.display()));
    }
    let reading = read_with(&args.model, ExternalData::Ignored);
    let reading = reading.map_err(|e| error::model(&args.model, &e))?;
    let mut options = TextOptions::default();
    (options.values, options.types, options.absent) = (!args.no_values, args.types, true);
    Ok(if args.dot {
        pt2onnx::ir::dot(&reading.model)
    } else {
        reading.model.text(options).to_string()
    })
}

fn program(args: Show) -> Result<String, CommandError> {
    for (flag, given) in
        [("--dot", args.dot), ("--no-values", args.no_values), ("--types", args.types)]
    {
        if given {
            let what = format!("{flag} is for ONNX models, and this is an archive");
            return Err(CommandError::new(Code::Usage, what)
                .place(args.model.display())
                .help("convert the archive, and show the model"));
        }
    }
    let mut options = defaults();
    args.script.put(&mut options);
    let text = Exporter::with_options(options)?.program_text(&args.model, args.raw)?;
    // As `print` does after the text.
    Ok(text + "\n")
}

fn is_zip(path: &Path) -> io::Result<bool> {
    let mut start = [0; ZIP.len()];
    pt2onnx::tensor::open(path)?.read_exact(&mut start)?;
    Ok(start == ZIP)
}
