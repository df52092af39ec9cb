//! Weights and constants: the `*_config.json` that says which record holds which tensor, and the
//! views of the records.

use super::{open::Archive, stored_tensor::stored, torch_save::Saved};
use crate::{
    error::{Error, Invalid, Place, Result},
    graph::build,
    schema as s,
};
use pt2onnx_tensor::Tensor;

/// Tensors and objects by qualified name.
pub(super) type Payloads = Vec<(String, Payload)>;

/// The data of a qualified name.
pub(super) enum Payload {
    Tensor(Tensor),
    /// A pickle, unread.
    Opaque {
        record: String,
    },
    /// Why it cannot be read, which only matters if the program uses it.
    Unread(Error),
}

impl Archive {
    /// All tensors of `FOLDER/MODEL_KIND_config.json`, or of `FOLDER/MODEL.pt` if torch 2.8 wrote
    /// the archive. Tensors that are not plain are pickled one by one.
    pub(super) fn payload(
        &self,
        what: &'static str,
        folder: &str,
        kind: &str,
        model: &str,
    ) -> Result<Payloads> {
        let config = format!("{folder}{model}_{kind}_config.json");
        let legacy = format!("{folder}{model}.pt");
        if !self.records.has(&config) && self.records.has(&legacy) {
            return self.saved(&legacy);
        }
        let (json, place) = self.records.checked(&config)?;
        let config: s::PayloadConfig = serde_json::from_slice(json.bytes())
            .map_err(|error| Error::Json { place: place.clone(), error })?;
        let mut payloads = Vec::with_capacity(config.config.0.len());
        for (name, meta) in &config.config.0 {
            let opaque = ["custom_obj_", "opaque_obj_"]
                .iter()
                .any(|start| meta.path_name.starts_with(start));
            let payload = if opaque {
                let record = meta.path_name.to_string();
                Payload::Opaque { record }
            } else if meta.use_pickle {
                let (place, name) = (place.clone(), name.to_string());
                Payload::Unread(Error::Pickled { place, what, name })
            } else {
                Payload::Tensor(self.tensor(what, folder, name, meta, &place)?)
            };
            payloads.push((name.to_string(), payload));
        }
        Ok(payloads)
    }

    /// The tensors of an archive of torch 2.1 to 2.7: one record that `torch.save` wrote. Versions
    /// before 2.3 gave it the ending `.json`.
    pub(super) fn flat_payload(&self, name: &str) -> Result<Payloads> {
        let mut records = [format!("{name}.pt"), format!("{name}.json")].into_iter();
        let Some(record) = records.find(|record| self.records.has(record)) else {
            return Ok(Payloads::new());
        };
        self.saved(&record)
    }

    /// The tensors of a record that `torch.save` wrote. An empty record is an empty dict.
    fn saved(&self, record: &str) -> Result<Payloads> {
        let (bytes, place) = self.records.required(record)?;
        if bytes.bytes().is_empty() {
            return Ok(Payloads::new());
        }
        let tensors = Saved::new(place, bytes)?.tensors()?.into_iter();
        Ok(tensors.map(|(name, tensor)| (name, Payload::Tensor(tensor))).collect())
    }

    fn tensor(
        &self,
        what: &'static str,
        folder: &str,
        name: &str,
        meta: &s::PayloadMeta,
        place: &Place,
    ) -> Result<Tensor> {
        let owner = || format!("{what} {name}");
        let invalid = |invalid| Error::Invalid { place: place.clone(), invalid: Box::new(invalid) };
        let meta_of = meta.tensor_meta.as_ref();
        let tensor = meta_of.ok_or_else(|| invalid(Invalid::NoTensorMeta { owner: owner() }))?;
        let dtype = build::dtype(tensor.dtype, owner).map_err(invalid)?;
        let known = |sizes: &[s::SymInt], what| {
            let known = sizes.iter().map(|size| match size {
                s::SymInt::Int(i) => usize::try_from(*i).ok(),
                s::SymInt::Expr(_) => None,
            });
            let owner = owner();
            known
                .collect::<Option<Vec<usize>>>()
                .ok_or_else(|| invalid(Invalid::NotStatic { owner, what }))
        };
        let sizes = known(&tensor.sizes, "each size")?;
        let strides = known(&tensor.strides, "each stride")?;
        let offset = known(std::slice::from_ref(&tensor.storage_offset), "the offset")?;
        let offset = offset.first().copied().unwrap_or_default();
        let (storage, _) = self.records.required(&format!("{folder}{}", &*meta.path_name))?;
        let view = stored(dtype, sizes, strides, offset, storage);
        view.map_err(|error| place.tensor(what, name, error))
    }
}
