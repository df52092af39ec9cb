//! Transposes matrices of elements of any width, in tiles that stay in the cache.

/// Bytes of a cache line.
pub const CACHE_LINE: usize = 64;

/// Cache lines, in which elements form a square.
type Tile = [[u8; CACHE_LINE]; CACHE_LINE];

/// Transposes a matrix: element `(i, j)` of `to`, which has `rows` times `columns` elements of `W`
/// bytes, is element `(j, i)` of `from`. A row starts `from_step` or `to_step` bytes after the one
/// before. Elements that lie outside of `from` or `to` are left out.
///
/// ```
/// let mut to = [0; 6];
/// pt2onnx_tensor::transpose::<1>(&[1, 2, 3, 4, 5, 6], 3, &mut to, 2, [3, 2]);
/// assert_eq!(to, [1, 4, 2, 5, 3, 6]);
/// ```
pub fn transpose<const W: usize>(
    from: &[u8],
    from_step: usize,
    to: &mut [u8],
    to_step: usize,
    [rows, columns]: [usize; 2],
) {
    let side = CACHE_LINE / W;
    let (mut tile, mut turned) = ([[0; CACHE_LINE]; CACHE_LINE], [[0; CACHE_LINE]; CACHE_LINE]);
    for i0 in (0..rows).step_by(side) {
        let width = side.min(rows - i0);
        for j0 in (0..columns).step_by(side) {
            let height = side.min(columns - j0);
            // Each line is read and written once.
            for (k, line) in tile.iter_mut().take(height).enumerate() {
                let start = (j0 + k) * from_step + i0 * W;
                match from.get(start..).and_then(<[u8]>::first_chunk) {
                    Some(whole) if width == side => *line = *whole,
                    _ => {
                        let part = from.get(start..start + width * W).unwrap_or_default();
                        line.iter_mut().zip(part).for_each(|(to, x)| *to = *x);
                    }
                }
            }
            turn::<W>(&tile, &mut turned);
            for (i, column) in turned.iter().take(width).enumerate() {
                let start = (i0 + i) * to_step + j0 * W;
                match to.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
                    Some(whole) if height == side => *whole = *column,
                    _ => {
                        let part = to.get_mut(start..start + height * W).unwrap_or_default();
                        part.iter_mut().zip(column).for_each(|(to, x)| *to = *x);
                    }
                }
            }
        }
    }
}

/// Makes the columns of a tile the rows of another.
#[inline]
fn turn<const W: usize>(tile: &Tile, out: &mut Tile) {
    if W == 2 {
        return turn_halves(tile, out);
    }
    for (i, to) in out.iter_mut().take(CACHE_LINE / W).enumerate() {
        for (to, line) in to.as_chunks_mut::<W>().0.iter_mut().zip(tile) {
            if let Some(element) = line.as_chunks::<W>().0.get(i) {
                *to = *element;
            }
        }
    }
}

/// The same for elements of two bytes: four by four, where a row is a word.
fn turn_halves(tile: &Tile, out: &mut Tile) {
    const EVEN: u64 = 0x0000_ffff_0000_ffff;
    const LOW: u64 = 0x0000_0000_ffff_ffff;
    let (fours, _) = tile.as_chunks::<4>();
    for (k, four) in fours.iter().take(CACHE_LINE / 8).enumerate() {
        let words = |line: &[u8; CACHE_LINE]| {
            let (words, _) = line.as_chunks::<8>();
            std::array::from_fn(|i| u64::from_le_bytes(words.get(i).copied().unwrap_or_default()))
        };
        let rows: [[u64; CACHE_LINE / 8]; 4] = four.each_ref().map(words);
        for (i, to) in out.as_chunks_mut::<4>().0.iter_mut().take(CACHE_LINE / 8).enumerate() {
            let [a, b, c, d] = rows.map(|row| row[i]);
            // Pairs of two rows, and then of four.
            let (ab, cd) = ((a & EVEN) | (b & EVEN) << 16, (c & EVEN) | (d & EVEN) << 16);
            let (ba, dc) = ((a >> 16 & EVEN) | (b & !EVEN), (c >> 16 & EVEN) | (d & !EVEN));
            let turned = [
                (ab & LOW) | cd << 32,
                (ba & LOW) | dc << 32,
                ab >> 32 | (cd & !LOW),
                ba >> 32 | (dc & !LOW),
            ];
            for (line, word) in to.iter_mut().zip(turned) {
                if let Some(place) = line.as_chunks_mut::<8>().0.get_mut(k) {
                    *place = word.to_le_bytes();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_transposed<const W: usize>(rows: usize, columns: usize) {
        let (from_step, to_step) = ((rows + 1) * W, (columns + 2) * W);
        let from: Vec<u8> = (1..=250).cycle().step_by(7).take(columns * from_step).collect();
        let mut to = vec![0; rows * to_step];
        transpose::<W>(&from, from_step, &mut to, to_step, [rows, columns]);
        for (i, row) in to.chunks_exact(to_step).enumerate() {
            for (j, element) in row.chunks_exact(W).enumerate() {
                let at = j * from_step + i * W;
                let expected = from.get(at..at + W).filter(|_| j < columns);
                assert_eq!(element, expected.unwrap_or(&[0; W]), "{W} {rows} {columns} {i} {j}");
            }
        }
    }

    #[test]
    fn of_all_widths_and_sizes() {
        for (rows, columns) in [(0, 3), (1, 1), (1, 130), (130, 1), (32, 64), (33, 65), (70, 130)] {
            is_transposed::<1>(rows, columns);
            is_transposed::<2>(rows, columns);
            is_transposed::<4>(rows, columns);
            is_transposed::<8>(rows, columns);
            is_transposed::<16>(rows, columns);
        }
    }
}
