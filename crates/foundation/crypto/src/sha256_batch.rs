//! SHA-256 (FIPS 180-4) of many short messages at once.
//!
//! Without SHA instructions one message leaves most of a core idle: every step waits for the one before. Sixteen
//! messages side by side fill vector registers, in plain loops that the compiler turns into vector code.

use crate::digest::{Digest, sha256};

const LANES: usize = 16;
/// Below this many messages one by one is as quick.
const LANES_MIN: usize = 6;
const BLOCK: usize = 64;
/// Longest message in blocks: enough for most rows, receipts and transactions, endorsed ones included.
const BLOCKS_MAX: usize = 32;
/// A message ends with a one bit and 64 bits of length.
const PADDING: usize = 9;

type Word = [u32; LANES];

const INITIAL: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

#[rustfmt::skip]
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// Whether side by side is quicker here: a processor with SHA instructions needs no lanes, and without optimisation
/// the loops stay loops.
fn lanes_pay() -> bool {
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    return !std::arch::is_x86_feature_detected!("sha");
    #[cfg(not(all(target_arch = "x86_64", not(debug_assertions))))]
    false
}

/// SHA-256 of each of many messages, in order; the same as [`sha256`], and several times as quick where the processor
/// has no SHA instructions and the messages are short (up to 2,039 bytes).
pub struct Sha256Batch {
    digests: Vec<Digest>,
    in_lanes: bool,
    /// Those that wait, by their number of blocks.
    waiting: [Option<Box<Lanes>>; BLOCKS_MAX],
}

impl Default for Sha256Batch {
    fn default() -> Sha256Batch {
        Sha256Batch::new()
    }
}

impl Sha256Batch {
    /// No messages yet.
    pub fn new() -> Sha256Batch {
        Sha256Batch::with_lanes(lanes_pay())
    }

    fn with_lanes(in_lanes: bool) -> Sha256Batch {
        Sha256Batch { digests: Vec::new(), in_lanes, waiting: [const { None }; BLOCKS_MAX] }
    }

    /// Adds the message that `parts` make one behind the other.
    pub fn push(&mut self, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let blocks = (length + PADDING).div_ceil(BLOCK);
        if !self.in_lanes || blocks > BLOCKS_MAX {
            self.digests.push(sha256(parts));
            return;
        }
        self.digests.push(Digest::ZERO);
        let lanes = self.waiting[blocks - 1].get_or_insert_with(|| Box::new(Lanes::new(blocks)));
        lanes.push(self.digests.len() - 1, parts, &mut self.digests);
    }

    /// Adds a leaf of a Merkle tree with this content: [`leaf_hash`](crate::leaf_hash).
    pub fn push_leaf(&mut self, content: &[u8]) {
        self.push(&[&[0], content]);
    }

    /// The digests.
    pub fn finish(mut self) -> Vec<Digest> {
        for lanes in self.waiting.iter_mut().flatten() {
            lanes.flush(&mut self.digests);
        }
        self.digests
    }
}

/// The levels of a Merkle tree from its leaves upwards, until one is so short that lanes stop paying; that one.
pub(crate) fn upper_level(leaves: &[Digest]) -> Vec<Digest> {
    let mut level = leaves.to_vec();
    if !lanes_pay() {
        return level;
    }
    let mut lanes = Lanes::new(2);
    while level.len() >= 2 * LANES_MIN {
        let mut above = vec![Digest::ZERO; level.len().div_ceil(2)];
        for (position, pair) in level.chunks(2).enumerate() {
            match pair {
                [left, right] => lanes.push(position, &[&[1], &left.0, &right.0], &mut above),
                odd => above[position] = odd[0],
            }
        }
        lanes.flush(&mut above);
        level = above;
    }
    level
}

/// Up to [`LANES`] messages of the same number of blocks.
struct Lanes {
    /// Length of a message with its padding.
    length: usize,
    /// One message behind the other.
    messages: Vec<u8>,
    /// Length of each message, and which digest it gives.
    waiting: [(usize, usize); LANES],
    used: usize,
}

impl Lanes {
    fn new(blocks: usize) -> Lanes {
        let length = blocks * BLOCK;
        Lanes { length, messages: vec![0; LANES * length], waiting: [(0, 0); LANES], used: 0 }
    }

    /// Takes the message that `parts` make; when all lanes are full, their digests go to their positions.
    fn push(&mut self, position: usize, parts: &[&[u8]], digests: &mut [Digest]) {
        let message = &mut self.messages[self.used * self.length..(self.used + 1) * self.length];
        let mut length = 0;
        for part in parts {
            message[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        let bits = message.len() - 8;
        message[length] = 0x80;
        message[length + 1..bits].fill(0);
        message[bits..].copy_from_slice(&(8 * length as u64).to_be_bytes());
        self.waiting[self.used] = (length, position);
        self.used += 1;
        if self.used == LANES {
            self.flush(digests);
        }
    }

    fn flush(&mut self, digests: &mut [Digest]) {
        let waiting = &self.waiting[..self.used];
        if self.used < LANES_MIN {
            for ((length, position), message) in waiting.iter().zip(self.messages.chunks_exact(self.length)) {
                digests[*position] = sha256(&[&message[..*length]]);
            }
        } else {
            let state = hash(&self.messages, self.length);
            for (lane, (_, position)) in waiting.iter().enumerate() {
                for (bytes, word) in digests[*position].0.chunks_exact_mut(4).zip(&state) {
                    bytes.copy_from_slice(&word[lane].to_be_bytes());
                }
            }
        }
        self.used = 0;
    }
}

/// Hashes padded messages of `length` bytes each, with the widest registers that there are.
fn hash(messages: &[u8], length: usize) -> [Word; 8] {
    // SAFETY: the processor has the features that the function is compiled for, and the function is safe code.
    // Measured: see docs/benchmarks.md, "SHA-256 in lanes".
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vl") {
        #[allow(unsafe_code, reason = "calling a function compiled for AVX-512 after asking for it")]
        return unsafe { hash_with_avx512(messages, length) };
    } else if std::arch::is_x86_feature_detected!("avx2") {
        #[allow(unsafe_code, reason = "calling a function compiled for AVX2 after asking for it")]
        return unsafe { hash_with_avx2(messages, length) };
    }
    hash_here(messages, length)
}

/// Rotations and functions of three words are one instruction each here.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn hash_with_avx512(messages: &[u8], length: usize) -> [Word; 8] {
    hash_here(messages, length)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn hash_with_avx2(messages: &[u8], length: usize) -> [Word; 8] {
    hash_here(messages, length)
}

#[inline(always)]
fn hash_here(messages: &[u8], length: usize) -> [Word; 8] {
    let mut state = INITIAL.map(|word| [word; LANES]);
    for start in (0..length).step_by(BLOCK) {
        compress(&mut state, messages, length, start);
    }
    state
}

/// Takes in the block that begins at `start` of every message (FIPS 180-4, 6.2.2).
#[inline(always)]
fn compress(state: &mut [Word; 8], messages: &[u8], length: usize, start: usize) {
    let schedule = schedule(messages, length, start);
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for t in (0..64).step_by(8) {
        round(&a, &b, &c, &mut d, &e, &f, &g, &mut h, ROUND[t], &schedule[t]);
        round(&h, &a, &b, &mut c, &d, &e, &f, &mut g, ROUND[t + 1], &schedule[t + 1]);
        round(&g, &h, &a, &mut b, &c, &d, &e, &mut f, ROUND[t + 2], &schedule[t + 2]);
        round(&f, &g, &h, &mut a, &b, &c, &d, &mut e, ROUND[t + 3], &schedule[t + 3]);
        round(&e, &f, &g, &mut h, &a, &b, &c, &mut d, ROUND[t + 4], &schedule[t + 4]);
        round(&d, &e, &f, &mut g, &h, &a, &b, &mut c, ROUND[t + 5], &schedule[t + 5]);
        round(&c, &d, &e, &mut f, &g, &h, &a, &mut b, ROUND[t + 6], &schedule[t + 6]);
        round(&b, &c, &d, &mut e, &f, &g, &h, &mut a, ROUND[t + 7], &schedule[t + 7]);
    }
    for (word, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        for lane in 0..LANES {
            word[lane] = word[lane].wrapping_add(value[lane]);
        }
    }
}

#[inline(always)]
fn schedule(messages: &[u8], length: usize, start: usize) -> [Word; 64] {
    let mut words = [[0; LANES]; 64];
    for (lane, message) in messages.chunks_exact(length).enumerate() {
        for (t, bytes) in message[start..start + BLOCK].chunks_exact(4).enumerate() {
            words[t][lane] = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
    }
    for t in 16..64 {
        let (done, rest) = words.split_at_mut(t);
        let (w16, w15, w7, w2) = (&done[t - 16], &done[t - 15], &done[t - 7], &done[t - 2]);
        for lane in 0..LANES {
            let s0 = w15[lane].rotate_right(7) ^ w15[lane].rotate_right(18) ^ (w15[lane] >> 3);
            let s1 = w2[lane].rotate_right(17) ^ w2[lane].rotate_right(19) ^ (w2[lane] >> 10);
            rest[0][lane] = w16[lane].wrapping_add(s0).wrapping_add(w7[lane]).wrapping_add(s1);
        }
    }
    words
}

/// One round; the caller renames the variables instead of moving their values.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // The eight variables of the standard, its constant and its message word.
fn round(
    a: &Word,
    b: &Word,
    c: &Word,
    d: &mut Word,
    e: &Word,
    f: &Word,
    g: &Word,
    h: &mut Word,
    constant: u32,
    word: &Word,
) {
    for i in 0..LANES {
        let s1 = e[i].rotate_right(6) ^ e[i].rotate_right(11) ^ e[i].rotate_right(25);
        let choice = g[i] ^ (e[i] & (f[i] ^ g[i]));
        let t1 = h[i].wrapping_add(s1).wrapping_add(choice).wrapping_add(constant).wrapping_add(word[i]);
        let s0 = a[i].rotate_right(2) ^ a[i].rotate_right(13) ^ a[i].rotate_right(22);
        let majority = (a[i] & b[i]) ^ (c[i] & (a[i] ^ b[i]));
        d[i] = d[i].wrapping_add(t1);
        h[i] = t1.wrapping_add(s0).wrapping_add(majority);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{leaf_hash, merkle_root, node_hash};

    #[test]
    fn digests_are_those_of_the_standard_whatever_the_lengths() {
        // Lengths around the ends of blocks, mixed, and every number of lanes in use.
        for count in (0..40).chain([200]) {
            let contents: Vec<Vec<u8>> = (0..count).map(|at| vec![at as u8; (at * 37) % 640]).collect();
            let expected: Vec<Digest> = contents.iter().map(|content| leaf_hash(content)).collect();
            for lanes in [false, true] {
                let mut batch = Sha256Batch::with_lanes(lanes);
                contents.iter().for_each(|content| batch.push_leaf(content));
                assert_eq!(batch.finish(), expected, "{count} messages, lanes: {lanes}");
            }
        }
        for length in 0..(BLOCKS_MAX + 1) * BLOCK {
            let content = vec![0xab; length];
            let mut batch = Sha256Batch::with_lanes(true);
            (0..LANES).for_each(|_| batch.push(&[&content[..length / 3], &content[length / 3..]]));
            assert_eq!(batch.finish(), vec![sha256(&[&content]); LANES], "{length} bytes");
        }
    }

    #[test]
    fn plain_and_wide_registers_agree() {
        let messages: Vec<u8> = (0..LANES * 3 * BLOCK).map(|at| at as u8).collect();
        let plain = hash_here(&messages, 3 * BLOCK);
        assert_eq!(hash(&messages, 3 * BLOCK), plain);
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            #[allow(unsafe_code, reason = "calling a function compiled for AVX2 after asking for it")]
            // SAFETY: as in `hash`.
            let narrow = unsafe { hash_with_avx2(&messages, 3 * BLOCK) };
            assert_eq!(narrow, plain);
        }
    }

    #[test]
    fn the_root_is_that_of_the_plain_tree() {
        fn plain(leaves: &[Digest]) -> Digest {
            match leaves {
                [] => sha256(&[]),
                [one] => *one,
                _ => {
                    let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                    node_hash(&plain(left), &plain(right))
                }
            }
        }
        for count in (0..70).chain([255, 256, 257, 1_000]) {
            let leaves: Vec<Digest> = (0..count).map(|at: u32| leaf_hash(&at.to_be_bytes())).collect();
            assert_eq!(merkle_root(&leaves), plain(&leaves), "{count} leaves");
        }
    }
}
