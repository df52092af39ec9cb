//! Reads the JSON of a program and gives away each node, and the type of each tensor, as soon as it
//! is read.
//!
//! All of them together would take more memory than the program that is built of them.

use crate::schema as s;
use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error, MapAccess, SeqAccess, Visitor,
        value::{CowStrDeserializer, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::value::RawValue;
use std::{fmt, iter};

/// Takes what the program's graph holds. Bodies of higher-order ops are parts of nodes.
pub(super) trait Sink<'de> {
    fn node(&mut self, node: s::Node<'de>);
    /// The type is JSON that is not read yet: most programs repeat a few types.
    fn tensor(&mut self, name: s::Text<'de>, json: &'de str) -> serde_json::Result<()>;
}

/// Reads a program. Its graph has no nodes and no types of tensors then: the sink has them, in
/// their order.
pub(super) fn read<'de, D: Deserializer<'de>>(
    json: D,
    sink: &mut impl Sink<'de>,
) -> Result<s::ExportedProgram<'de>, D::Error> {
    s::ExportedProgram::deserialize(At { inner: json, place: Place::Program, sink })
}

/// Objects and lists on the way to what the sink takes.
#[derive(Clone, Copy)]
enum Place {
    Program,
    Module,
    Graph,
    Nodes,
    Tensors,
}

impl Place {
    fn field(self, name: &str) -> Option<Place> {
        match (self, name) {
            (Place::Program, "graph_module") => Some(Place::Module),
            (Place::Module, "graph") => Some(Place::Graph),
            (Place::Graph, "nodes") => Some(Place::Nodes),
            (Place::Graph, "tensor_values") => Some(Place::Tensors),
            _ => None,
        }
    }
}

/// A deserializer, seed or visitor of serde's for the value at a place.
struct At<'s, T, S> {
    inner: T,
    place: Place,
    sink: &'s mut S,
}

impl<'de, T: DeserializeSeed<'de>, S: Sink<'de>> DeserializeSeed<'de> for At<'_, T, S> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T::Value, D::Error> {
        let Self { inner, place, sink } = self;
        inner.deserialize(At { inner: from, place, sink })
    }
}

impl<'de, D: Deserializer<'de>, S: Sink<'de>> Deserializer<'de> for At<'_, D, S> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let Self { inner, place, sink } = self;
        inner.deserialize_any(At { inner: visitor, place, sink })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>, S: Sink<'de>> Visitor<'de> for At<'_, V, S> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<V::Value, A::Error> {
        let Place::Nodes = self.place else {
            return self.inner.visit_seq(seq);
        };
        while let Some(node) = seq.next_element()? {
            self.sink.node(node);
        }
        self.inner.visit_seq(SeqDeserializer::new(iter::empty::<()>()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<V::Value, A::Error> {
        let Place::Tensors = self.place else {
            let Self { inner, place, sink } = self;
            return inner.visit_map(Fields { map, of: place, field: None, sink });
        };
        while let Some((name, meta)) = map.next_entry::<_, &RawValue>()? {
            self.sink.tensor(name, meta.get()).map_err(without_place)?;
        }
        self.inner.visit_map(MapDeserializer::new(iter::empty::<((), ())>()))
    }
}

/// The error without line and column, which count from the start of the part.
fn without_place<E: Error>(of_part: serde_json::Error) -> E {
    let text = of_part.to_string();
    E::custom(text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what))
}

/// The fields of the object at a place.
struct Fields<'s, M, S> {
    map: M,
    of: Place,
    /// The place of the value that comes next, if it is one.
    field: Option<Place>,
    sink: &'s mut S,
}

impl<'de, M: MapAccess<'de>, S: Sink<'de>> MapAccess<'de> for Fields<'_, M, S> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        let Some(s::Text(name)) = self.map.next_key()? else {
            return Ok(None);
        };
        self.field = self.of.field(&name);
        seed.deserialize(CowStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        match self.field.take() {
            Some(place) => self.map.next_value_seed(At { inner: seed, place, sink: self.sink }),
            None => self.map.next_value_seed(seed),
        }
    }
}
