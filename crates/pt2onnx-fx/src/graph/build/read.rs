//! Reads the JSON of a program, of any version of the schema.

use super::{
    beside,
    builder::Builder,
    stream::{self, Sink},
    values::Begun,
};
use crate::{
    error::{Error, Invalid, Place, Result},
    graph::{ExportedProgram, ValueMeta},
    schema::{self as s, upgrade},
    threads::LONG,
};
use rustc_hash::FxHashMap;
use serde_json::{Deserializer, de};
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
    match from_json(json) {
        Ok(read) if is_current(read.program.schema_version) => read.build(Vec::new(), place),
        _ => upgraded(json, place),
    }
}

/// Reads a program of any older schema, or reports the fault of one of the newest.
fn upgraded(json: &[u8], place: &Place) -> Result<Parsed> {
    let in_json = |error| Error::Json { place: place.clone(), error };
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
    let mut read = from_json(&upgraded.json).map_err(in_json)?;
    read.program.schema_version = version;
    read.build(upgraded.constants, place)
}

/// The deepest nesting of objects and lists, about that of readers of ONNX models: they take 100
/// nested messages, which are 32 graphs.
const MAX_NESTING: usize = 360;

/// Stack for reading [`MAX_NESTING`] levels.
const STACK: usize = 64 << 20;

/// The bytes of JSON that a node takes, with its type, are seldom fewer.
const NODE: usize = 1 << 10;

/// The program that `json` is of. Deeper graphs within graphs than serde_json reads are read on a
/// stack that is large enough.
fn from_json(json: &[u8]) -> serde_json::Result<Read<'_>> {
    // Texts that are known to be UTF-8 are not checked one by one.
    let nodes = json.len() / NODE;
    let text = std::str::from_utf8(json);
    if json.len() >= LONG
        && let Ok(text) = text
        && let Some(read) = Read::parse_beside(text, nodes)
    {
        return Ok(read);
    }
    let read = match text {
        Ok(text) => Read::parse(Deserializer::from_str(text), nodes),
        Err(_) => Read::parse(Deserializer::from_slice(json), nodes),
    };
    match read {
        Err(error) if is_deep(&error) && nesting(json) <= MAX_NESTING => {
            let reader = std::thread::Builder::new().stack_size(STACK);
            std::thread::scope(|scope| {
                let read = reader.spawn_scoped(scope, || {
                    let mut json = Deserializer::from_slice(json);
                    json.disable_recursion_limit();
                    Read::parse(json, nodes)
                });
                read.ok().and_then(|read| read.join().ok()).unwrap_or(Err(error))
            })
        }
        read => read,
    }
}

/// A program that was read. Most of its graph was built meanwhile.
struct Read<'a> {
    program: s::ExportedProgram<'a>,
    graph: GraphBuilder<'a>,
}

impl<'a> Read<'a> {
    /// Reads JSON of about so many nodes.
    fn parse(json: Deserializer<impl de::Read<'a>>, nodes: usize) -> serde_json::Result<Self> {
        let mut graph = GraphBuilder::of(nodes);
        Ok(Self { program: whole(json, &mut graph)?, graph })
    }

    /// The same on two threads; `None` if anything is wrong.
    fn parse_beside(json: &'a str, nodes: usize) -> Option<Self> {
        let read = |sink: &mut _| whole(Deserializer::from_str(json), sink);
        let (program, graph) = beside::read(GraphBuilder::of(nodes), read)?;
        Some(Self { program, graph })
    }

    fn build(self, constants: Vec<(String, String)>, place: &Place) -> Result<Parsed> {
        let Self { program, graph: GraphBuilder { mut builder, begun, wrong, .. } } = self;
        let built = wrong.map_or(Ok(()), Err).and_then(|()| builder.program(&program, begun));
        let invalid = |problem| Error::Invalid { place: place.clone(), invalid: Box::new(problem) };
        Ok(Parsed { program: built.map_err(invalid)?, constants })
    }
}

/// Reads a program, and nothing after it.
fn whole<'a>(
    mut json: Deserializer<impl de::Read<'a>>,
    sink: &mut impl Sink<'a>,
) -> serde_json::Result<s::ExportedProgram<'a>> {
    let program = stream::read(&mut json, sink)?;
    json.end().map(|()| program)
}

/// Builds the graph of a program, node by node.
#[derive(Default)]
struct GraphBuilder<'a> {
    builder: Builder,
    begun: Begun,
    /// Types of tensors by their JSON.
    metas: FxHashMap<&'a str, ValueMeta>,
    /// The first fault. Nothing after it is built.
    wrong: Option<Invalid>,
}

impl GraphBuilder<'_> {
    /// One for about so many nodes.
    fn of(nodes: usize) -> Self {
        let mut graph = Self::default();
        graph.begun.nodes.reserve(nodes);
        graph
    }
}

impl<'de> Sink<'de> for GraphBuilder<'de> {
    fn node(&mut self, node: s::Node<'de>) {
        if self.wrong.is_none() {
            match self.builder.node(&node) {
                Ok(node) => self.begun.nodes.push(node.into()),
                Err(wrong) => self.wrong = Some(wrong),
            }
        }
    }

    fn tensor(&mut self, name: s::Text<'de>, json: &'de str) -> serde_json::Result<()> {
        let known = match self.metas.get(json) {
            Some(known) => known.clone(),
            None => match self.builder.tensor_meta(&name, &serde_json::from_str(json)?) {
                Ok(meta) => self.metas.entry(json).or_insert(meta.into()).clone(),
                Err(wrong) => {
                    self.wrong.get_or_insert(wrong);
                    return Ok(());
                }
            },
        };
        if self.begun.values.is_empty() {
            self.begun.values.reserve(self.begun.nodes.len());
        }
        self.begun.values.insert(self.builder.name(&name), known);
        Ok(())
    }
}

fn is_deep(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit exceeded")
}

/// How many objects and lists are within each other.
fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut most, mut in_text, mut escaped) = (0usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Torch 2.7, which writes schema 8.7, was the first to write infinities and NaN as strings, so
/// that the JSON is valid.
const BARE_FLOATS_UNTIL: s::SchemaVersion = s::SchemaVersion { major: 8, minor: 7 };

fn is_current(version: s::SchemaVersion) -> bool {
    version >= BARE_FLOATS_UNTIL && version.major == s::MAJOR
}
