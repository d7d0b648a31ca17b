//! Our block as the consensus crates see it.
//!
//! ```text
//! +------------------------+--------------+--------------+------------------------------------------------+
//! | length of the rest (4) | header (190) | certificates | per transaction: length (4, little-endian), it |
//! +------------------------+--------------+--------------+------------------------------------------------+
//! ```
//!
//! The digest is the header's. It stands for the content only because decoding recomputes the transactions' root:
//! nobody can pass off other transactions under a certified header.

use bytes::{BufMut, Bytes};
use commonware_codec::{Buf, EncodeSize, Error, FixedSize as _, Read, ReadExt as _, Write};
use commonware_consensus::{BoundedBlock, Heightable, types::Height};
use commonware_cryptography::{Digested, Digestible, sha256};
use crypto::Digest;
use types::{Attested, Block, BlockHeader, encode, limits, transactions_root};

/// Bytes in front of a block's transactions.
const HEAD_BYTES_MAX: usize = BlockHeader::BYTES + Attested::BYTES_MAX;

/// A block, or the genesis that stands for the charter at height 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OrderedBlock(pub Block);

/// What decoding a block checks it against: what any charter may allow, because charters change. Whether a block keeps
/// the limits of its height is asked before a vote ([`crate::cutting::check`]).
#[derive(Clone, Debug)]
pub(crate) struct BlockRules {
    /// Digest of the charter.
    pub ledger: Digest,
    /// Transactions of a block.
    pub transactions_max: u32,
    /// Bytes of a block's transactions.
    pub bytes_max: u32,
}

impl BlockRules {
    pub(crate) fn of(ledger: Digest) -> BlockRules {
        let (transactions_max, bytes_max) = (limits::BLOCK_TRANSACTIONS_MAX, limits::BLOCK_BYTES_MAX);
        BlockRules { ledger, transactions_max, bytes_max }
    }
}

pub(crate) fn consensus_digest(digest: &Digest) -> sha256::Digest {
    sha256::Digest(digest.0)
}

pub(crate) fn plain_digest(digest: &sha256::Digest) -> Digest {
    Digest(digest.0)
}

impl OrderedBlock {
    /// Stands for the charter: block 1 builds on the charter's digest.
    pub(crate) fn genesis(ledger: Digest) -> OrderedBlock {
        let attested = Attested::default();
        let header = BlockHeader {
            ledger,
            height: 0,
            timestamp_ms: 0,
            previous: Digest::ZERO,
            transactions_root: transactions_root(&[]),
            transactions: 0,
            proposer: 0,
            certified_height: 0,
            attested: attested.digest(),
            charters: ledger,
        };
        OrderedBlock(Block { header, attested, transactions: Vec::new() })
    }

    /// With its digest.
    pub(crate) fn digested(self) -> Digested<OrderedBlock> {
        let digest = self.digest();
        Digested::precomputed(self, digest)
    }

    fn body_bytes(&self) -> usize {
        let head = BlockHeader::BYTES + encode(&self.0.attested).len();
        head + self.0.transactions.iter().map(|transaction| 4 + transaction.len()).sum::<usize>()
    }
}

impl Write for OrderedBlock {
    fn write(&self, buffer: &mut impl BufMut) {
        (self.body_bytes() as u32).write(buffer);
        buffer.put_slice(&self.0.head_bytes());
        for transaction in &self.0.transactions {
            buffer.put_u32_le(transaction.len() as u32);
            buffer.put_slice(transaction);
        }
    }
}

impl EncodeSize for OrderedBlock {
    fn encode_size(&self) -> usize {
        u32::SIZE + self.body_bytes()
    }
}

impl Read for OrderedBlock {
    type Cfg = BlockRules;

    fn read_cfg(buffer: &mut impl Buf, rules: &BlockRules) -> Result<Self, Error> {
        let invalid = |what: &'static str| Error::Invalid("block", what);
        let length = u32::read(buffer)? as usize;
        if length > HEAD_BYTES_MAX + rules.bytes_max as usize {
            return Err(Error::InvalidLength(length));
        }
        if buffer.remaining() < length {
            return Err(Error::EndOfBuffer);
        }
        // A copy of its own, so that a block in memory does not keep a network or storage buffer alive.
        let mut bytes = vec![0; length];
        buffer.copy_to_slice(&mut bytes);
        let block =
            Block::from_bytes(&Bytes::from(bytes)).map_err(|_| invalid("not the encoding of a block"))?;
        if block.header.ledger != rules.ledger {
            return Err(invalid("of another ledger"));
        }
        if block.header.transactions > rules.transactions_max {
            return Err(invalid("more transactions than a charter can allow"));
        }
        let bytes: usize = block.transactions.iter().map(|transaction| 4 + transaction.len()).sum();
        if bytes > rules.bytes_max as usize {
            return Err(invalid("more bytes of transactions than a charter can allow"));
        }
        let block = OrderedBlock(block);
        if block.0.header.height == 0 && block != OrderedBlock::genesis(rules.ledger) {
            return Err(invalid("height 0 is the charter's"));
        }
        block
            .0
            .check_content()
            .map_err(|_| invalid("certificates or transactions are not those of the header"))?;
        Ok(block)
    }
}

impl Digestible for OrderedBlock {
    type Digest = sha256::Digest;

    fn digest(&self) -> sha256::Digest {
        match self.0.header.height {
            0 => consensus_digest(&self.0.header.ledger),
            _ => consensus_digest(&self.0.header.digest()),
        }
    }
}

impl Heightable for OrderedBlock {
    fn height(&self) -> Height {
        Height::new(self.0.header.height)
    }
}

impl commonware_consensus::Block for OrderedBlock {
    fn parent(&self) -> sha256::Digest {
        consensus_digest(&self.0.header.previous)
    }
}

impl BoundedBlock for OrderedBlock {
    fn max_encode_size(rules: &BlockRules) -> usize {
        u32::SIZE + HEAD_BYTES_MAX + rules.bytes_max as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cutting::{Parent, assemble};
    use commonware_codec::{Decode as _, Encode as _};
    use crypto::sha256 as hash;

    fn rules() -> BlockRules {
        BlockRules { ledger: hash(&[b"ledger"]), transactions_max: 4, bytes_max: 100 }
    }

    fn block() -> OrderedBlock {
        let transactions = vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")];
        OrderedBlock(assemble(
            rules().ledger,
            &Parent::charter(rules().ledger),
            1,
            5,
            Attested::default(),
            transactions,
        ))
    }

    #[test]
    fn blocks_round_trip_and_the_genesis_is_the_charter() {
        assert_eq!(OrderedBlock::decode_cfg(block().encode(), &rules()).expect("what was encoded"), block());
        assert_eq!(block().encode().len(), block().encode_size());
        let genesis = OrderedBlock::genesis(rules().ledger);
        assert_eq!(OrderedBlock::decode_cfg(genesis.encode(), &rules()).expect("what was encoded"), genesis);
        assert_eq!(plain_digest(&genesis.digest()), rules().ledger);
        assert_eq!(commonware_consensus::Block::parent(&block()), genesis.digest());
    }

    #[test]
    fn nobody_can_send_other_transactions_under_the_same_header() {
        let bytes = block().encode().to_vec();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            if let Ok(read) = OrderedBlock::decode_cfg(Bytes::from(flipped), &rules()) {
                assert_ne!(read.digest(), block().digest(), "byte {at}");
            }
        }
        for length in 0..bytes.len() {
            assert!(OrderedBlock::decode_cfg(Bytes::copy_from_slice(&bytes[..length]), &rules()).is_err());
        }
    }

    #[test]
    fn blocks_beyond_the_limits_and_of_other_ledgers_do_not_decode() {
        let refused = |transactions: Vec<Bytes>, ledger| {
            let block = OrderedBlock(assemble(
                ledger,
                &Parent::charter(ledger),
                0,
                0,
                Attested::default(),
                transactions,
            ));
            OrderedBlock::decode_cfg(block.encode(), &rules()).is_err()
        };
        assert!(refused(vec![Bytes::new(); 5], rules().ledger));
        assert!(refused(vec![Bytes::from(vec![0; 97])], rules().ledger));
        assert!(refused(vec![], hash(&[b"other"])));
        assert!(!refused(vec![Bytes::from(vec![0; 96])], rules().ledger));
    }
}
