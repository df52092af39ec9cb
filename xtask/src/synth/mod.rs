//! `synth`: writes an archive with the layout of PyTorch 2.15, with any number of decoder layers or
//! gigabytes, as a stream.

mod decoder;
mod program;
mod script;

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use serde_json::json;
use zip::write::{FileOptions, SimpleFileOptions};
use zip::{CompressionMethod, ZipWriter};

pub use decoder::Decoder;
use program::tensor_meta;
pub use program::{Program, Weight};
pub use script::Script;

/// The size of the archive.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// The number of decoder layers.
    Layers(u64),
    /// The size of the weights in bytes, which gives the number of layers.
    Bytes(u64),
}

impl FromStr for Extent {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let count: u64 = digits
            .parse()
            .context("expected a number of layers, or a size such as 500MB or 4GB")?;
        let bytes =
            |unit| count.checked_mul(unit).context("the size is too large").map(Extent::Bytes);
        match &text[digits.len()..] {
            "" => Ok(Extent::Layers(count)),
            "MB" => bytes(1_000_000),
            "GB" => bytes(1_000_000_000),
            unit => bail!("unknown unit `{unit}`; use MB or GB"),
        }
    }
}

/// The task. `hidden` is the width of the decoder. The default is 256 for a number of layers, 2048
/// for a size. `vocabulary` is the number of rows of its embedding and of its last layer. The
/// default is 1000.
///
/// # Errors
/// `hidden` cannot be divided into heads, or the file cannot be written.
pub fn synth(
    extent: Extent,
    hidden: Option<u64>,
    vocabulary: Option<u64>,
    path: &Path,
) -> Result<()> {
    let (layers, width) = match extent {
        Extent::Layers(layers) => (layers, 256),
        Extent::Bytes(_) => (0, 2048),
    };
    let mut decoder = Decoder::new(layers, hidden.unwrap_or(width))?;
    if let Some(vocabulary) = vocabulary {
        decoder = decoder.vocabulary(vocabulary);
    }
    if let Extent::Bytes(bytes) = extent {
        decoder = decoder.of_bytes(bytes);
    }
    let program = decoder.program();
    let mut archive = Archive::create(path)?;
    archive.weights(&program.weights)?;
    archive.record("data/constants/model_constants_config.json", br#"{"config": {}}"#)?;
    archive.record("models/model.json", program.json().as_bytes())?;
    for (name, content) in [
        ("data/sample_inputs/model.pt", ""),
        ("archive_format", "pt2"),
        ("archive_version", "0"),
        (".data/version", "6\n"),
        ("byteorder", "little"),
    ] {
        archive.record(name, content.as_bytes())?;
    }
    archive.finish()?;
    println!(
        "{}: {} layers, {} nodes, {} bytes of weights",
        path.display(),
        decoder.layers,
        program.nodes,
        program.weights.iter().map(Weight::bytes).sum::<u64>(),
    );
    Ok(())
}

/// A zip archive of uncompressed records below one folder, aligned like PyTorch's.
struct Archive(ZipWriter<BufWriter<File>>);

impl Archive {
    fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        Ok(Self(ZipWriter::new(BufWriter::with_capacity(1 << 20, file))))
    }

    fn start(&mut self, name: &str, large: bool) -> Result<()> {
        let options: SimpleFileOptions = FileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .with_alignment(64)
            .large_file(large);
        Ok(self.0.start_file(format!("model/{name}"), options)?)
    }

    fn record(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.start(name, false)?;
        Ok(self.0.write_all(content)?)
    }

    /// Writes the list of the weights, and the values of each: pseudo-random, never zero.
    fn weights(&mut self, weights: &[Weight]) -> Result<()> {
        let mut config = serde_json::Map::new();
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for (index, weight) in weights.iter().enumerate() {
            let path = format!("weight_{index}");
            self.start(&format!("data/weights/{path}"), weight.bytes() > u32::MAX.into())?;
            random(&mut self.0, &mut state, weight)?;
            let meta = tensor_meta(7, &weight.dims(), weight.is_param);
            config.insert(
                weight.name.clone(),
                json!({"path_name": path, "is_param": weight.is_param, "use_pickle": false, "tensor_meta": meta}),
            );
        }
        let config = json!({"config": config}).to_string();
        self.record("data/weights/model_weights_config.json", config.as_bytes())
    }

    fn finish(self) -> Result<()> {
        self.0.finish()?.into_inner()?.rewind()?;
        Ok(())
    }
}

/// Writes the float32 values of a weight. They are around its centre, with a spread for which a
/// layer keeps the magnitude of its input.
fn random(out: &mut impl Write, state: &mut u64, weight: &Weight) -> Result<()> {
    let fan_in = weight.sizes.last().copied().unwrap_or(1) as f32;
    let spread = fan_in.sqrt().recip();
    let mut block = Vec::with_capacity(1 << 16);
    let mut left = weight.bytes();
    while left > 0 {
        block.clear();
        while block.len() < (1 << 16) && (block.len() as u64) < left {
            // xorshift64
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            // A float in [1, 2) whose last bit is set, so that it is never 1.5.
            let unit = f32::from_bits(0x3f80_0001 | (*state >> 41) as u32);
            let value = weight.centre + (unit - 1.5) * spread;
            block.extend_from_slice(&value.to_le_bytes());
        }
        out.write_all(&block)?;
        left -= block.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_program_with_its_weights() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("synth.pt2");
        synth(Extent::Layers(3), Some(128), Some(300), &path).unwrap();
        let program = pt2onnx_fx::archive::read(&path).unwrap();
        let layer = "layers.2.mlp.down_proj.weight";
        let bytes = program.state[layer].to_bytes();
        assert_eq!(bytes.len(), 4 * 128 * 384);
        assert!(bytes.chunks(4).all(|value| value != [0; 4]));
        assert_eq!(program.state["lm_head.weight"].shape(), [300, 128]);
        assert_ne!(bytes, program.state["layers.1.mlp.down_proj.weight"].to_bytes());
    }

    #[test]
    fn an_extent_is_layers_or_bytes() {
        assert!(matches!("32".parse(), Ok(Extent::Layers(32))));
        assert!(matches!("4GB".parse(), Ok(Extent::Bytes(4_000_000_000))));
        assert!("4TB".parse::<Extent>().is_err());
    }
}
