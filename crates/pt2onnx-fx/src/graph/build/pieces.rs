//! Reads a large program in pieces, on all cores: its list of nodes and its object of types of tensors, which are nearly all of it.
//!
//! Where they and their pieces begin and end is guessed, as `torch.export` writes them. A wrong guess is noticed: each piece must be whole
//! items, and the rest, with `false` for the list and the object, must be a program that has `false` there. If not, or if
//! anything else is wrong, there is no program: it is then read in one go, which tells what is wrong.

use super::{
    builder::Builder,
    read::{self, Types},
    stream::{self, Sink},
    values::Begun,
};
use crate::{
    graph::{ExportedProgram, Name, Node, ValueMeta},
    schema as s,
};
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Deserializer, value::RawValue};
use std::{
    sync::{Mutex, PoisonError},
    thread,
};

/// Bytes of JSON that are read in less time than a thread takes to start, or little more.
const PIECE: usize = 256 << 10;

/// Pieces for each thread. Some are read sooner than others.
const PER_THREAD: usize = 4;

/// Size of the threads' stacks in bytes: that of the main thread, as graphs nest.
const STACK: usize = 8 << 20;

/// Reads a program of the newest schema.
pub(super) fn program(json: &[u8]) -> Option<ExportedProgram> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(json.len() / PIECE);
    let length = (json.len() / (threads.max(1) * PER_THREAD)).max(PIECE);
    (threads > 1).then(|| in_pieces(json, threads, length)).flatten()
}

/// Reads pieces of about `length` bytes.
fn in_pieces(json: &[u8], threads: usize, length: usize) -> Option<ExportedProgram> {
    let Parts { nodes, types, rest } = Parts::find(std::str::from_utf8(json).ok()?)?;
    let nodes = pieces(nodes, length, |text| memmem::find(text.as_bytes(), br#"{"target":"#));
    let types = pieces(types, length, |text| {
        let types = memmem::find_iter(text.as_bytes(), br#"{"dtype":"#);
        // The name comes before the type.
        let name = |at| text.get(..at)?.rfind('"').and_then(|end| text.get(..end)?.rfind('"'));
        types.take(2).find_map(name)
    });
    let nodes = nodes?.into_iter().map(Piece::Nodes);
    let pieces: Vec<Piece> = nodes.chain(types?.into_iter().map(Piece::Types)).collect();

    let queue = Mutex::new(pieces.iter().enumerate());
    let (rest, mut built) = thread::scope(|scope| {
        let thread =
            || thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || work(&queue));
        // Where no thread can be started, this one does all.
        let others: Vec<_> = (1..threads).filter_map(|_| thread().ok()).collect();
        let rest = Rest::read(&rest);
        let mut built = work(&queue)?;
        for other in others {
            built.extend(other.join().ok()??);
        }
        Some((rest?, built))
    })?;
    built.sort_unstable_by_key(|(place, _)| *place);
    let mut begun = Begun::default();
    begun.nodes.reserve(built.iter().map(|(_, built)| built.nodes.len()).sum());
    begun.values.reserve(built.iter().map(|(_, built)| built.values.len()).sum());
    for (_, mut built) in built {
        begun.nodes.append(&mut built.nodes);
        begun.values.extend(built.values);
    }
    Builder::default().program(&rest, begun).ok()
}

/// The parts of a program.
struct Parts<'a> {
    /// The items of its list of nodes.
    nodes: &'a str,
    /// The entries of its object of types of tensors.
    types: &'a str,
    /// Everything else, with `false` for the list and the object.
    rest: String,
}

impl<'a> Parts<'a> {
    /// In the text of a program, the types come after the nodes, and the integers' after the tensors'.
    fn find(json: &'a str) -> Option<Self> {
        let starts = memmem::find_iter(json.as_bytes(), r#""nodes""#);
        let after_key = |at: usize| json.get(at + r#""nodes""#.len()..);
        let nodes = starts.filter_map(after_key).find_map(|text| opened(text, '['))?;
        let lists = nodes.get(..nodes.rfind(r#""sym_int_values""#)?)?;
        // Bodies are among the nodes, with types of their own.
        let types = memmem::find_iter(lists.as_bytes(), r#""tensor_values""#).last()?;
        let (nodes, types) = lists.split_at_checked(types)?;
        let types = opened(types.strip_prefix(r#""tensor_values""#)?, '{')?;
        let (nodes, types) = (closed(nodes, ']')?, closed(types, '}')?);

        let place = |part: &str| part.as_ptr().addr() - json.as_ptr().addr();
        let (nodes_at, types_at) = (place(nodes), place(types));
        let before = json.get(..nodes_at - 1)?;
        let between = json.get(nodes_at + nodes.len() + 1..types_at - 1)?;
        let after = json.get(types_at + types.len() + 1..)?;
        Some(Self { nodes, types, rest: format!("{before}false{between}false{after}") })
    }
}

/// What comes after a colon and an opening bracket.
fn opened(text: &str, bracket: char) -> Option<&str> {
    trimmed(trimmed(text).strip_prefix(':')?).strip_prefix(bracket)
}

/// What comes before a closing bracket and a comma.
fn closed(text: &str, bracket: char) -> Option<&str> {
    trimmed(trimmed(text).strip_suffix(',')?).strip_suffix(bracket)
}

/// The text without JSON's blanks around it.
fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// The items of a list in pieces of about `length` bytes. `start` finds the start of an item.
fn pieces(
    mut list: &str,
    length: usize,
    start: impl Fn(&str) -> Option<usize>,
) -> Option<Vec<&str>> {
    let mut pieces = Vec::new();
    while let Some(at) = list.get(length..).and_then(&start) {
        let (piece, after) = list.split_at_checked(length + at)?;
        pieces.push(trimmed(piece).strip_suffix(',')?);
        list = after;
    }
    pieces.push(list);
    Some(pieces)
}

enum Piece<'a> {
    Nodes(&'a str),
    Types(&'a str),
}

/// What a piece is of.
#[derive(Default)]
struct Items {
    nodes: Vec<Node>,
    values: Vec<(Name, ValueMeta)>,
}

/// Builds pieces until there are no more. Returns each with its place among all.
fn work<'a>(
    queue: &Mutex<impl Iterator<Item = (usize, &'a Piece<'a>)>>,
) -> Option<Vec<(usize, Items)>> {
    let (mut builder, mut types) = (Builder::default(), Types::default());
    let mut all = Vec::new();
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((place, piece)) = next else {
            return Some(all);
        };
        let mut items = Items::default();
        match piece {
            Piece::Nodes(text) => each(text, |text| {
                items.nodes.push(builder.node(&first::<s::Node>(text)?).ok()?);
                Some(())
            }),
            Piece::Types(text) => each(text, |text| {
                let name: s::Text = first(text)?;
                *text = trimmed(text).strip_prefix(':')?;
                let json: &RawValue = first(text)?;
                let meta = types.read(&mut builder, &name, json.get()).ok()?.ok()?;
                items.values.push((builder.name(&name), meta));
                Some(())
            }),
        }?;
        all.push((place, items));
    }
}

/// Reads the items of a piece; `item` reads one, and leaves what comes after it.
fn each<'a>(mut text: &'a str, mut item: impl FnMut(&mut &'a str) -> Option<()>) -> Option<()> {
    loop {
        item(&mut text)?;
        text = trimmed(text);
        if text.is_empty() {
            return Some(());
        }
        text = text.strip_prefix(',')?;
    }
}

/// Reads the value that a text begins with, and leaves what comes after it.
fn first<'a, T: Deserialize<'a>>(text: &mut &'a str) -> Option<T> {
    let mut values = Deserializer::from_str(text).into_iter();
    let value = values.next()?.ok()?;
    *text = text.get(values.byte_offset()..)?;
    Some(value)
}

/// Takes nothing, and counts the lists that are read elsewhere.
#[derive(Default)]
struct Rest {
    lists: usize,
    items: usize,
}

impl Rest {
    /// Reads a program whose two lists are read elsewhere.
    fn read(json: &str) -> Option<s::ExportedProgram<'_>> {
        let mut rest = Self::default();
        let mut json = Deserializer::from_str(json);
        let program = stream::read(&mut json, &mut rest).ok()?;
        json.end().ok()?;
        let whole = rest.lists == 2 && rest.items == 0;
        (whole && read::is_current(program.schema_version)).then_some(program)
    }
}

impl<'de> Sink<'de> for Rest {
    fn node(&mut self, _: s::Node<'de>) {
        self.items += 1;
    }

    fn tensor(&mut self, _: s::Text<'de>, _: &'de str) -> serde_json::Result<()> {
        self.items += 1;
        Ok(())
    }

    fn elsewhere(&mut self) -> bool {
        self.lists += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{archive::Archive, error::Place};
    use std::{fs, path::Path};

    /// The JSON of each archive of a program.
    fn programs() -> Vec<Vec<u8>> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let paths = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
        let archives = paths.filter(|path| path.extension().is_some_and(|e| e == "pt2"));
        let json = |archive: Archive| {
            let name = format!("models/{}.json", archive.models().next()?);
            Some(archive.record(&name)?.bytes().to_vec())
        };
        archives.filter_map(|path| json(Archive::open(path).ok()?)).collect()
    }

    #[test]
    fn pieces_are_the_same_program() {
        let mut same = 0;
        for json in programs() {
            let whole = read::program(&json, &Place::Memory).unwrap().program;
            for length in [1, 300, 2000] {
                if let Some(read) = in_pieces(&json, 3, length) {
                    assert_eq!(format!("{read:?}"), format!("{whole:?}"));
                    same += 1;
                }
            }
        }
        assert!(same >= 30, "only {same} were read in pieces");
    }

    #[test]
    fn what_is_wrong_is_not_read() {
        let mut tried = 0;
        for json in programs() {
            let text = String::from_utf8(json).unwrap();
            if in_pieces(text.as_bytes(), 2, 300).is_none() {
                continue;
            }
            let Parts { nodes, rest, .. } = Parts::find(&text).unwrap();
            let wrong = [
                rest,
                text.replacen(nodes, &format!("{nodes},"), 1),
                text.replacen(nodes, &format!("{nodes}, 1"), 1),
                text.replacen(r#""nodes""#, r#""nods""#, 1),
                text.replacen(r#""graph""#, r#""graf""#, 1),
                text.replacen(r#"{"target""#, r#",{"target""#, 1),
                format!("{text}}}"),
            ];
            for wrong in wrong {
                assert!(in_pieces(wrong.as_bytes(), 2, 300).is_none(), "{wrong}");
                tried += 1;
            }
        }
        assert!(tried >= 70, "only {tried} were tried");
    }
}
