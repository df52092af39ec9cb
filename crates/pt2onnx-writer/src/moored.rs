//! Keeps an old model and its data a pair while both are replaced: the model refers to the data by
//! the names under which they are kept.

use crate::{
    file_identity::{Identity, folder},
    read::decode,
};
use prost::Message;
use pt2onnx_proto::{GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A data file that will be replaced, and the path under which it is kept.
pub(crate) struct Kept {
    pub identity: Identity,
    pub path: PathBuf,
}

/// The model at `path` with the new locations of its data. `None` if the file is not a model, or
/// none of its data are kept.
pub(crate) fn moored(path: &Path, kept: &[Kept]) -> Option<Vec<u8>> {
    if kept.is_empty() {
        return None;
    }
    let mut model = decode(fs::read(path).ok()?.into()).ok()?;
    let mut moved = false;
    let mut last: Option<(String, Option<String>)> = None;
    each_tensor(&mut model, &mut |tensor| {
        for entry in tensor.external_data.iter_mut().filter(|entry| entry.key() == "location") {
            let old = entry.value();
            let new = match last.take() {
                Some((known, new)) if known == old => new,
                _ => location(old, path, kept),
            };
            last = Some((old.to_owned(), new.clone()));
            moved |= new.is_some();
            entry.value = new.or_else(|| entry.value.take());
        }
    });
    moved.then(|| model.encode_to_vec())
}

/// The new location of data; `None` if they are not kept.
fn location(old: &str, model: &Path, kept: &[Kept]) -> Option<String> {
    let identity = Identity::of(&folder(model).join(old));
    let kept = kept.iter().find(|kept| kept.identity == identity)?;
    Path::new(old).with_file_name(kept.path.file_name()?).to_str().map(str::to_owned)
}

fn each_tensor(model: &mut ModelProto, f: &mut dyn FnMut(&mut TensorProto)) {
    let training = model.training_info.iter_mut();
    let training = training.flat_map(|info| [&mut info.initialization, &mut info.algorithm]);
    model.graph.iter_mut().chain(training.flatten()).for_each(|graph| of_graph(graph, f));
    model.functions.iter_mut().flat_map(|function| &mut function.node).for_each(|n| of_node(n, f));
}

fn of_graph(graph: &mut GraphProto, f: &mut dyn FnMut(&mut TensorProto)) {
    graph.initializer.iter_mut().for_each(&mut *f);
    graph.sparse_initializer.iter_mut().for_each(|sparse| of_sparse(sparse, f));
    graph.node.iter_mut().for_each(|node| of_node(node, f));
}

fn of_node(node: &mut NodeProto, f: &mut dyn FnMut(&mut TensorProto)) {
    for attribute in &mut node.attribute {
        attribute.t.as_deref_mut().into_iter().chain(&mut attribute.tensors).for_each(&mut *f);
        let sparse = attribute.sparse_tensor.as_deref_mut().into_iter();
        sparse.chain(&mut attribute.sparse_tensors).for_each(|sparse| of_sparse(sparse, f));
        let graphs = attribute.g.as_deref_mut().into_iter().chain(&mut attribute.graphs);
        graphs.for_each(|graph| of_graph(graph, f));
    }
}

fn of_sparse(sparse: &mut SparseTensorProto, f: &mut dyn FnMut(&mut TensorProto)) {
    sparse.values.iter_mut().chain(&mut sparse.indices).for_each(f);
}
