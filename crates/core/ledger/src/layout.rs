//! Fixed-width, little-endian fields of file heads.

use crypto::Digest;

/// Takes fields off the front of bytes whose length the caller has checked.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("heads have a fixed length that was checked");
        self.0 = rest;
        *field
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    pub(crate) fn digest(&mut self) -> Digest {
        Digest(self.bytes())
    }
}

/// CRC-32 (ISO-HDLC, as in zip) over the concatenation of `parts`.
pub(crate) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}
