//! A model in the parts in which it is written.

use crate::{
    encoded::{Encoded, Nodes},
    error::Error,
    options::SaveOptions,
    proto::{Cx, Frame},
    strings::metadata,
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

/// With fewer constants than these, all is measured on one thread.
const MANY: usize = 1 << 10;

impl<'a> Parts<'a> {
    /// Converts a model. It needs the options for weights only.
    pub fn new(model: &'a Model, options: &SaveOptions) -> Result<Self, Error> {
        let mut cx = Cx::new(model, options);
        let used = cx.constants(Model::MAIN);
        cx.enter(&used);
        let nodes = || Nodes::measured(cx.for_siblings());
        let constants = || Constants::new(cx.for_siblings(), &used);
        let (nodes, constants) =
            if used.len() < MANY { (nodes(), constants()) } else { rayon::join(nodes, constants) };
        let (nodes, constants) = (nodes?, constants?);
        cx.leave();
        let functions = model.functions.iter().map(|f| cx.function(f)).collect::<Result<_, _>>()?;
        let Constants { frame, declared, initialisers, absent } = constants;
        let absent = [&nodes.absent[..], &cx.absent, &absent].concat();
        if !absent.is_empty() {
            return Err(Error::NoData(absent));
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
        Ok(Self { model: proto, graph: Encoded::new(nodes, frame), initialisers, declared })
    }
}

/// The constants of the main graph, and what is written of it beside nodes.
struct Constants<'a> {
    frame: Frame,
    declared: Vec<String>,
    initialisers: Vec<Initialiser<'a>>,
    /// Initialisers without values that must have some.
    absent: Vec<String>,
}

impl<'a> Constants<'a> {
    fn new(mut cx: Cx<'a>, used: &[(Value, &'a Tensor)]) -> Result<Self, Error> {
        let (frame, declared) = cx.main(used)?;
        let kept = used.iter().copied().filter(|(value, tensor)| !cx.is_left_out(*value, tensor));
        let kept: Vec<_> = kept.chain(cx.defaults()).collect();
        let mut initialisers = Vec::with_capacity(kept.len());
        for (value, tensor) in kept {
            initialisers.push(Initialiser { proto: cx.initialiser(value, tensor)?, tensor });
        }
        Ok(Self { frame, declared, initialisers, absent: cx.absent })
    }
}
