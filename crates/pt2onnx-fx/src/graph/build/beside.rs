//! Builds the graph of a long program while its JSON is read on another thread.

use super::stream::Sink;
use crate::{schema as s, threads::STACK};
use std::{
    mem,
    sync::mpsc::{self, SyncSender},
    thread,
};

/// So many nodes or types are handed over at once.
const BATCH: usize = 256;

/// As many batches may wait to be taken, which bounds memory.
const WAITING: usize = 8;

/// Runs `read` on another thread, with a sink that hands on to `sink`. `None` if no thread can be
/// started or anything is wrong: reading on one thread reports it.
///
/// The graph is built on the thread that continues with it: memory freed on others is reused late.
pub(super) fn read<'de, S: Sink<'de>, T: Send, E: Send>(
    mut sink: S,
    read: impl FnOnce(&mut Batches<'de>) -> Result<T, E> + Send,
) -> Option<(T, S)> {
    let (sender, batches) = mpsc::sync_channel::<Batch>(WAITING);
    let read = move || {
        let mut batches = Batches { sender, batch: Batch::default() };
        let read = read(&mut batches);
        batches.hand_over();
        read
    };
    let mut fill = |Batch { nodes, tensors }: Batch<'de>| {
        nodes.into_iter().for_each(|node| sink.node(node));
        tensors.into_iter().try_for_each(|(name, json)| sink.tensor(name, json))
    };
    let read = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read).ok()?;
        batches.into_iter().try_for_each(&mut fill).ok()?;
        thread.join().ok()?.ok()
    })?;
    Some((read, sink))
}

/// Parsed parts in order: the nodes of a graph come before the types of its tensors.
#[derive(Default)]
struct Batch<'de> {
    nodes: Vec<s::Node<'de>>,
    tensors: Vec<(s::Text<'de>, &'de str)>,
}

/// Hands over what it takes, in batches.
pub(super) struct Batches<'de> {
    sender: SyncSender<Batch<'de>>,
    batch: Batch<'de>,
}

impl Batches<'_> {
    fn hand_over(&mut self) {
        // After an error, the receiver is gone and needs nothing.
        let _ = self.sender.send(mem::take(&mut self.batch));
    }
}

impl<'de> Sink<'de> for Batches<'de> {
    fn node(&mut self, node: s::Node<'de>) {
        self.batch.nodes.push(node);
        if self.batch.nodes.len() == BATCH {
            self.hand_over();
        }
    }

    fn tensor(&mut self, name: s::Text<'de>, json: &'de str) -> serde_json::Result<()> {
        self.batch.tensors.push((name, json));
        if self.batch.tensors.len() == BATCH {
            self.hand_over();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::Error;

    /// Notes what it is given, up to `most` types.
    struct Notes {
        most: usize,
        taken: Vec<String>,
    }

    impl<'de> Sink<'de> for Notes {
        fn node(&mut self, node: s::Node<'de>) {
            self.taken.push(node.target.to_string());
        }

        fn tensor(&mut self, name: s::Text<'de>, _: &'de str) -> serde_json::Result<()> {
            self.taken.push(name.to_string());
            if self.taken.len() <= self.most {
                Ok(())
            } else {
                Err(serde_json::Error::custom("too many"))
            }
        }
    }

    #[test]
    fn all_is_handed_over_in_order_or_it_fails() {
        let names: Vec<String> = (0..WAITING * BATCH * 2 + 1).map(|i| format!("t{i}")).collect();
        let read_with = |most: usize, result: Result<(), ()>| {
            let give = |batches: &mut Batches<'_>| {
                for name in &names {
                    batches.tensor(s::Text(name.clone().into()), "").map_err(drop)?;
                }
                result
            };
            read(Notes { most, taken: Vec::new() }, give).map(|((), notes)| notes.taken)
        };
        assert_eq!(read_with(usize::MAX, Ok(())).as_ref(), Some(&names));
        assert_eq!(read_with(usize::MAX, Err(())), None);
        assert_eq!(read_with(BATCH, Ok(())), None);
    }
}
