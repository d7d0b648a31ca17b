//! The values that a transaction has drawn from sequences.

/// Values that a transaction has drawn.
#[derive(Default)]
pub struct Drawn {
    pub(super) count: u32,
    /// By sequence, the last one; the sequence drawn from last at the end.
    pub(super) last: Vec<(String, i64)>,
}

impl Drawn {
    /// This value has been drawn last, from this sequence.
    pub(super) fn note(&mut self, name: String, value: i64) {
        self.last.retain(|(known, _)| *known != name);
        self.last.push((name, value));
    }
}
