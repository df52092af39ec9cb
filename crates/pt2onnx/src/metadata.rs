//! The user's metadata, in the header of the model.

use crate::options::Options;
use pt2onnx_ir::Model;

/// Writes the user's metadata into the model.
pub(crate) fn write(model: &mut Model, options: &Options) {
    for (key, value) in &options.metadata_prop {
        // The last of equal keys wins.
        model.metadata.retain(|(k, _)| k != key);
        model.metadata.push((key.clone().into(), value.as_str().into()));
    }
    model.doc_string.clone_from(&options.model_doc);
    model.model_version = options.model_version;
    model.producer.clone_from(&options.producer);
    model.source_lines = options.node_docs;
}
