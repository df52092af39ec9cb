//! Memory that is used for one tensor after another.

/// Buffers, which grow on demand.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The next bytes to write.
    pub block: Vec<u8>,
    /// A part of a file.
    pub window: Vec<u8>,
}

/// The start of a buffer. One that is too short is replaced.
pub(crate) fn of_length(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if buffer.len() < length {
        *buffer = Vec::new();
        *buffer = vec![0; length];
    }
    buffer.get_mut(..length).unwrap_or_default()
}
