//! Bytes that come one after the other and are too many for one buffer.

/// How long a piece is at least before another begins. Allocators take as much from the system and give it back at once when
/// it is dropped: a file is written to the pages that held the piece before. Fresh ones take twice as long.
const PIECE: usize = 32 << 20;

/// A buffer of pieces, each dropped when it was taken.
#[derive(Default)]
pub(crate) struct Pieces {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
}

impl Pieces {
    /// Where the next bytes go.
    pub fn end(&mut self) -> &mut Vec<u8> {
        if self.last.len() >= PIECE {
            let next = Vec::with_capacity(self.last.capacity());
            self.full.push(std::mem::replace(&mut self.last, next));
        }
        &mut self.last
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.full.iter().map(Vec::len).sum::<usize>() + self.last.len()
    }

    /// Appends those of another.
    pub fn append(&mut self, other: Self) {
        let last = std::mem::replace(&mut self.last, other.last);
        self.full.push(last);
        self.full.extend(other.full);
    }

    /// The pieces in order.
    pub fn into_pieces(self) -> impl Iterator<Item = Vec<u8>> {
        self.full.into_iter().chain([self.last])
    }
}
