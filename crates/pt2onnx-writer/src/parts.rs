//! A model in the parts in which it is written.

use crate::{
    encoded::{Encoded, KEPT},
    error::Error,
    options::{SaveOptions, Weights},
    proto::Cx,
    texts::metadata,
};
use pt2onnx_ir::{Model, Value};
use pt2onnx_proto::{ModelProto, TensorProto};
use pt2onnx_tensor::Tensor;

/// A model in parts.
pub(crate) struct Parts<'a> {
    /// Everything but the graph.
    pub model: ModelProto,
    /// The main graph without initialisers.
    pub graph: Encoded<'a>,
    /// Initialisers of the main graph, in the order in which the constants were created.
    pub initialisers: Vec<Initialiser<'a>>,
    /// Names of initialisers without values. The graph has their types.
    pub declared: Vec<String>,
}

/// An initialiser of the main graph.
pub(crate) struct Initialiser<'a> {
    /// Everything but the elements. Strings are included: they have no raw form.
    pub proto: TensorProto,
    /// Its elements.
    pub tensor: &'a Tensor,
}

impl<'a> Parts<'a> {
    /// Converts a model. Of the options, it needs those that say what weights become.
    pub fn new(model: &'a Model, options: &SaveOptions) -> Result<Self, Error> {
        let mut cx = Cx::new(model, options);
        let used = cx.constants(Model::MAIN);
        cx.enter(&used);
        let (frame, declared) = cx.main(&used)?;
        let graph = Encoded::new(&mut cx, frame, KEPT)?;
        cx.leave();
        let functions = model.functions.iter().map(|f| cx.function(f)).collect::<Result<_, _>>()?;
        let default = |v: &Value| Some((*v, model[*v].default.as_deref()?));
        let defaults = model.inputs().iter().filter_map(default);
        let defaults = defaults.filter(|_| options.weights != Weights::None);
        let kept = used.into_iter().filter(|(value, tensor)| !cx.is_left_out(*value, tensor));
        let kept: Vec<_> = kept.chain(defaults).collect();
        let initialisers = kept
            .into_iter()
            .map(|(value, tensor)| {
                Ok(Initialiser { proto: cx.initialiser(value, tensor)?, tensor })
            })
            .collect::<Result<_, _>>()?;
        if !cx.absent.is_empty() {
            return Err(Error::NoData(cx.absent));
        }
        let proto = ModelProto {
            ir_version: Some(cx.ir_version.into()),
            opset_import: cx.imports(),
            producer_name: Some(model.producer.as_deref().unwrap_or("pt2onnx").to_owned()),
            // The version of pt2onnx is not that of another producer.
            producer_version: match &model.producer {
                Some(_) => model.producer_version.clone(),
                None => Some(env!("CARGO_PKG_VERSION").to_owned()),
            },
            domain: model.domain.clone(),
            model_version: model.model_version,
            doc_string: model.doc_string.clone(),
            metadata_props: metadata(&model.metadata),
            functions,
            ..ModelProto::default()
        };
        Ok(Self { model: proto, graph, initialisers, declared })
    }
}
