//! Which tensors share memory, and the newest value of each.

use super::{emit::Emitter, may_alias::MayAlias};
use crate::{
    error::{Error, PassProblem, Result},
    graph::{Name, Node, NodeMeta, Site},
    views::{Alias, View},
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Index of a tensor, which is a storage or a view of one.
pub(super) type Id = usize;

/// All tensors that are views or are written into, and their storages.
///
/// A storage has a version, the number of writes so far. A tensor whose own version is older is
/// stale: when it is read, its view of its base is regenerated. A write is scattered into all bases
/// at once, up to the root; [`Emitter::finish`] removes the nodes whose results are not read.
#[derive(Default)]
pub(super) struct Memory {
    tensors: Vec<Tensor>,
    storages: Vec<Storage>,
    ids: FxHashMap<Name, Id>,
    /// Names that now stand for another tensor, and the node that did this.
    moved: FxHashMap<Name, Writer>,
    may_alias: MayAlias,
}

struct Tensor {
    storage: usize,
    /// The base and how it is viewed; `None` for the root of a storage.
    base: Option<(Id, View)>,
    /// Its first value, which gives its type.
    first: Name,
    newest: Name,
    version: u32,
    /// The values of the base after and before this tensor was last scattered into it.
    scattered: Option<(Name, Name)>,
}

struct Storage {
    root: Id,
    version: u32,
    last: Option<Writer>,
    /// Why a write did not reach the root.
    poisoned_by: Option<(Site, PassProblem)>,
    tensors: usize,
}

/// The node of a write, for messages.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) site: Site,
    pub(super) meta: Arc<NodeMeta>,
    /// Whether it writes the same number into all elements.
    pub(super) fills: bool,
}

impl Writer {
    pub(super) fn by(node: &Node) -> Self {
        let fills = matches!(&*node.target.name, "fill_" | "zero_");
        Self { site: Site::of(node), meta: node.meta.clone(), fills }
    }
}

impl Memory {
    /// The tensor of this name. A new name is the root of a new storage.
    pub(super) fn tensor(&mut self, name: &Name) -> Id {
        match self.ids.get(name) {
            Some(id) => *id,
            None => {
                let root = self.tensors.len();
                self.storages.push(Storage {
                    root,
                    version: 0,
                    last: None,
                    poisoned_by: None,
                    tensors: 0,
                });
                self.push(name, self.storages.len() - 1, None)
            }
        }
    }

    fn push(&mut self, name: &Name, storage: usize, base: Option<(Id, View)>) -> Id {
        let version = match self.storages.get_mut(storage) {
            Some(storage) => {
                storage.tensors += 1;
                storage.version
            }
            None => 0,
        };
        self.tensors.push(Tensor {
            storage,
            base,
            first: name.clone(),
            newest: name.clone(),
            version,
            scattered: None,
        });
        self.ids.insert(name.clone(), self.tensors.len() - 1);
        self.tensors.len() - 1
    }

    /// Gives a tensor another name.
    pub(super) fn bind(&mut self, name: &Name, id: Id) {
        self.ids.insert(name.clone(), id);
    }

    /// Makes a name stand for another tensor from now on.
    pub(super) fn rename(&mut self, name: &Name, id: Id, by: Writer) {
        self.bind(name, id);
        self.moved.insert(name.clone(), by);
    }

    /// The node that made the name stand for another tensor, if there is one.
    pub(super) fn renamed(&self, name: &Name) -> Option<&Writer> {
        self.moved.get(name)
    }

    /// Records a view.
    pub(super) fn share(&mut self, alias: Alias) -> Id {
        let base = self.tensor(&alias.base);
        if matches!(alias.view, View::Itself | View::Same) {
            self.bind(&alias.result, base);
            return base;
        }
        let Some(storage) = self.tensors.get(base).map(|t| t.storage) else {
            return base;
        };
        self.push(&alias.result, storage, Some((base, alias.view)))
    }

    /// The first value of a tensor, which gives its type.
    pub(super) fn first(&self, id: Id) -> Name {
        self.tensors.get(id).map(|t| t.first.clone()).unwrap_or_default()
    }

    /// How the tensor views its base, if it has one.
    pub(super) fn view(&self, id: Id) -> Option<&View> {
        Some(&self.tensors.get(id)?.base.as_ref()?.1)
    }

    /// The storage of a tensor.
    pub(super) fn storage(&self, id: Id) -> usize {
        self.tensors.get(id).map_or(usize::MAX, |tensor| tensor.storage)
    }

    /// Records that a tensor may be one that was there before it.
    pub(super) fn may_be(&mut self, id: Id, earlier: Id) {
        self.may_alias.link(self.storage(id), self.storage(earlier));
    }

    /// Whether the content of a tensor is not known: a write into another one may have reached it.
    pub(super) fn is_unknown(&self, id: Id) -> bool {
        self.may_alias.is_unknown(self.storage(id))
    }

    /// The other storages that may be that of a tensor.
    pub(super) fn related(&self, id: Id) -> Vec<usize> {
        self.may_alias.related(self.storage(id))
    }

    /// The last tensor that all these view, directly or through others.
    pub(super) fn common_base(&self, ids: &[Id]) -> Id {
        let (first, rest) = ids.split_first().map_or((0, ids), |(first, rest)| (*first, rest));
        let mut common = self.chain(first);
        for &id in rest {
            let chain = self.chain(id);
            common.retain(|base| chain.contains(base));
        }
        common.first().copied().unwrap_or(first)
    }

    /// The views that lead from a base to a tensor, with the first value of each.
    pub(super) fn path(&self, base: Id, id: Id) -> Vec<(View, Name)> {
        let chain = self.chain(id);
        let length = chain.iter().take_while(|&&at| at != base).count();
        let mut path = self.views(chain.get(..length).unwrap_or_default());
        path.reverse();
        path
    }

    /// The tensor that is the whole storage.
    pub(super) fn root(&self, mut id: Id) -> Id {
        while let Some((base, _)) = self.tensors.get(id).and_then(|t| t.base.as_ref()) {
            id = *base;
        }
        id
    }

    /// Whether other tensors share its storage.
    pub(super) fn is_shared(&self, id: Id) -> bool {
        let storage = self.tensors.get(id).and_then(|t| self.storages.get(t.storage));
        storage.is_some_and(|s| s.tensors > 1)
    }

    /// The last write to the memory of a tensor.
    pub(super) fn written(&self, id: Id) -> Option<&Writer> {
        let tensor = self.tensors.get(id)?;
        self.storages.get(tensor.storage)?.last.as_ref()
    }

    /// The newest value of the tensor of this name.
    pub(super) fn read(&mut self, name: &Name, emit: &mut Emitter<'_>) -> Result<Name> {
        match self.ids.get(name) {
            // As long as nothing was written, every name is its own value.
            Some(&id) if self.moved.contains_key(name) || self.written(id).is_some() => {
                self.value(id, emit)
            }
            _ => Ok(name.clone()),
        }
    }

    /// The newest value of a tensor.
    pub(super) fn value(&mut self, mut id: Id, emit: &mut Emitter<'_>) -> Result<Name> {
        let mut stale = Vec::new();
        let mut value = loop {
            let Some(tensor) = self.tensors.get(id) else {
                return Ok(Name::default());
            };
            let Some(storage) = self.storages.get(tensor.storage) else {
                return Ok(tensor.newest.clone());
            };
            if tensor.version == storage.version {
                break tensor.newest.clone();
            }
            match (&tensor.base, &storage.poisoned_by) {
                (Some((base, _)), _) => {
                    stale.push(id);
                    id = *base;
                }
                (None, Some((site, problem))) => {
                    return Err(Error::Pass {
                        site: Box::new(site.clone()),
                        problem: problem.clone(),
                    });
                }
                (None, None) => break tensor.newest.clone(),
            }
        };
        while let Some(id) = stale.pop() {
            let Some(tensor) = self.tensors.get(id) else {
                continue;
            };
            let Some(storage) = self.storages.get(tensor.storage) else {
                continue;
            };
            let (Some((_, view)), Some(last)) = (&tensor.base, &storage.last) else {
                continue;
            };
            let shown = emit.regenerate_view(view, &value, &tensor.first, &last.meta);
            value = shown
                .map_err(|problem| Error::Pass { site: Box::new(last.site.clone()), problem })?;
            self.set(id, &value, storage.version);
        }
        Ok(value)
    }

    /// The tensor and its bases, up to the root.
    fn chain(&self, id: Id) -> Vec<Id> {
        let mut chain = vec![id];
        let mut at = id;
        while let Some((base, _)) = self.tensors.get(at).and_then(|t| t.base.as_ref()) {
            at = *base;
            chain.push(at);
        }
        chain
    }

    /// Gives a tensor a new value, and puts it back into its bases. Where one of these shows
    /// elements more than once, a write changes others of its elements, too: the value is put into
    /// the base above it, and those between are taken again when they are read.
    pub(super) fn write(&mut self, id: Id, new: &Name, write: Writer, emit: &mut Emitter<'_>) {
        let chain = self.chain(id);
        // The values of the bases before the write.
        let befores: Vec<Result<Name>> =
            chain.iter().skip(1).map(|&base| self.value(base, emit)).collect();
        let views = self.views(&chain);
        let overlaps = |at: &usize| {
            let base = chain.get(at + 1).map(|&base| self.first(base));
            let shown = views.get(*at).zip(base);
            shown.is_some_and(|((view, shown), base)| emit.overlaps(view, &base, shown))
        };
        // A write into one element may reach others.
        let partly = overlaps(&0) && !write.fills;
        let above = (1..views.len()).rev().find(overlaps).map_or(1, |at| at + 1);
        let Some(version) = self.next_version(id, &write) else {
            return;
        };
        if partly {
            self.bind(new, id)
        } else {
            self.set(id, new, version)
        }
        let (mut new, mut from) = (new.clone(), 0);
        for (at, before) in befores.into_iter().enumerate().skip(above - 1) {
            let (Some(&shown), Some(&base)) = (chain.get(from), chain.get(at + 1)) else {
                return;
            };
            let between = views.get(from..=at).unwrap_or_default();
            let put = before.and_then(|before| {
                let put = self.scatter((shown, between), before, &new, &write, emit);
                put.map_err(|problem| Error::Pass { site: Box::new(write.site.clone()), problem })
            });
            match put {
                Ok(after) => {
                    self.set(base, &after, version);
                    (from, new) = (at + 1, after);
                }
                Err(error) => return self.poison(base, error),
            }
        }
    }

    /// How each tensor of a chain but the root views the next one, and its first value.
    fn views(&self, chain: &[Id]) -> Vec<(View, Name)> {
        let view = |&id: &Id| {
            let tensor = self.tensors.get(id)?;
            Some((tensor.base.as_ref()?.1.clone(), tensor.first.clone()))
        };
        chain.iter().map_while(view).collect()
    }

    /// Counts a write to the storage of a tensor. The content of storages that may be the same one
    /// is unknown afterwards.
    fn next_version(&mut self, id: Id, write: &Writer) -> Option<u32> {
        let written = self.tensors.get(id)?.storage;
        for other in self.may_alias.written(written) {
            let root = self.storages.get(other)?.root;
            let problem =
                PassProblem::WriteThroughView { base: self.first(root), view: self.first(id) };
            let storage = self.storages.get_mut(other)?;
            storage.version = storage.version.saturating_add(1);
            storage.last = Some(write.clone());
            storage.poisoned_by = Some((write.site.clone(), problem));
        }
        let storage = self.storages.get_mut(written)?;
        storage.version = storage.version.saturating_add(1);
        storage.last = Some(write.clone());
        Some(storage.version)
    }

    /// Sets the newest value of a tensor.
    fn set(&mut self, id: Id, newest: &Name, version: u32) {
        if let Some(tensor) = self.tensors.get_mut(id) {
            tensor.newest = newest.clone();
            tensor.version = version;
        }
        self.bind(newest, id);
    }

    /// Notes why a write did not reach a base. It matters only if someone reads the rest later.
    fn poison(&mut self, base: Id, error: Error) {
        let storage = self.tensors.get(base).map(|t| t.storage);
        if let (Error::Pass { site, problem }, Some(storage)) =
            (error, storage.and_then(|s| self.storages.get_mut(s)))
        {
            storage.poisoned_by = Some((*site, problem));
        }
    }

    /// Puts the new value of `shown` into a base, whose value is `before`. `views` say how `shown`
    /// views the next base, that one the next, and so on.
    fn scatter(
        &mut self,
        (shown, views): (Id, &[(View, Name)]),
        mut before: Name,
        new: &Name,
        write: &Writer,
        emit: &mut Emitter<'_>,
    ) -> Result<Name, PassProblem> {
        let last = self.tensors.get_mut(shown).map(|tensor| &mut tensor.scattered);
        // This overwrites what this tensor scattered last.
        if let Some(Some((after, older))) = &last
            && *after == before
        {
            before = older.clone();
        }
        let after = match views {
            [(view, like)] => {
                emit.scatter_back((view, like), &before, new, &write.meta, write.fills)?
            }
            _ => {
                let down: Vec<_> = views.iter().rev().map(|(view, like)| (view, like)).collect();
                emit.scatter_back_through(&down, &before, new, &write.meta, write.fills)?
            }
        };
        if let Some(last) = last {
            *last = Some((after.clone(), before));
        }
        Ok(after)
    }
}
