//! A long sequence of bytes in several buffers.

/// The least length of a piece before the next one begins. Allocators return so large a buffer to the system when it is
/// dropped, and a file is written to these pages. Fresh pages take twice as long.
const PIECE: usize = 32 << 20;

/// A sequence of buffers. Each is dropped after it is taken.
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

    /// Appends the bytes of another.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_order() {
        let (mut pieces, mut other) = (Pieces::default(), Pieces::default());
        for byte in 0..3 {
            pieces.end().resize(PIECE, byte);
        }
        other.end().push(9);
        pieces.append(other);
        assert_eq!(pieces.len(), 3 * PIECE + 1);
        let all = pieces.into_pieces().map(|p| (p[0], p.len()));
        assert_eq!(all.collect::<Vec<_>>(), [(0, PIECE), (1, PIECE), (2, PIECE), (9, 1)]);
    }
}
