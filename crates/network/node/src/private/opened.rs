//! What a block came to in a schema, in pieces that can be shown to outsiders one by one: Merkle trees over salted receipts, and over
//! salted rows as the block has left them.
//!
//! ```text
//! salts of a block  SHA-256(domain ‖ secret ‖ height)       the secret: what follows from the salts of all parts so far
//! salt of a leaf    SHA-256(salts of the block ‖ tree ‖ number)
//! ```
//!
//! Only members have the secret. The salt of one leaf says nothing of any other: who has it would have to invert the hash.

use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, Sha256Batch, merkle_root, sha256};
use proofs::Path;
use proofs::salted::{definition_digest, push_row, salted_leaf};
use rustc_hash::FxHashMap;
use state::{AfterImage, RowId};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{
    Catalog, Key, Outcome, Receipt, SchemaBlockOutcome, Table, TableId, TransactionId, decode_exactly,
};

const SALTS_DOMAIN: &[u8] = b"entente schema salts 1\0";

/// Which tree a leaf stands in.
#[derive(Clone, Copy)]
enum Tree {
    Receipts = 0,
    Rows = 1,
}

/// A block of a schema with everything that can be shown of it.
#[derive(Debug, PartialEq, BorshSerialize, BorshDeserialize)]
pub(super) struct OpenedBlock {
    /// What members attest.
    pub(super) outcome: SchemaBlockOutcome,
    salts: Digest,
    receipts: Leaves,
    rows: Leaves,
}

/// What stands behind the salts of a tree's leaves, one behind the other.
#[derive(Debug, Default, PartialEq, BorshSerialize, BorshDeserialize)]
struct Leaves {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
}

/// A leaf that is shown.
#[derive(Debug)]
pub(super) struct ShownLeaf<'a> {
    pub(super) salt: Digest,
    pub(super) path: Path,
    /// What stands behind the salt.
    pub(super) content: &'a [u8],
}

impl Leaves {
    /// Everything behind the last one is the next one.
    fn end(&mut self) {
        self.ends.push(u32::try_from(self.bytes.len()).expect("a block has a bounded number of bytes"));
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends
            .iter()
            .map_while(move |end| self.bytes.get(std::mem::replace(&mut start, *end as usize)..*end as usize))
    }

    /// The tree's leaves: in front of all others one that says nothing, so that no root tells whether there are others.
    fn hashes(&self, salts: &Digest, tree: Tree) -> Vec<Digest> {
        let mut batch = Sha256Batch::new();
        for number in 0..=self.ends.len() {
            batch.push(&[&salts.0, &[tree as u8], &(number as u32).to_le_bytes()]);
        }
        let mut leaves = Sha256Batch::new();
        let contents = std::iter::once(&[][..]).chain(self.iter());
        for (salt, content) in batch.finish().into_iter().zip(contents) {
            leaves.push(&[&[0], &salt.0, content]);
        }
        leaves.finish()
    }

    /// The leaf of a number, with its way to the root.
    fn show(&self, (salts, tree): (&Digest, Tree), number: usize) -> Option<ShownLeaf<'_>> {
        let hashes = self.hashes(salts, tree);
        let content = self.iter().nth(number)?;
        let (leaf, index) = (number + 1, u32::try_from(number + 1).ok()?);
        let salt = sha256(&[&salts.0, &[tree as u8], &index.to_le_bytes()]);
        debug_assert_eq!(hashes.get(leaf), Some(&salted_leaf(&salt, content)));
        Some(ShownLeaf { salt, path: Path::new(&hashes, leaf)?, content })
    }
}

impl OpenedBlock {
    /// `before`: digest of the last block in which something happened. `secret`: of the schema, behind this block. `state`: stands for
    /// everything else, salted.
    pub(super) fn new(
        (height, before, settled): (u64, Digest, u64),
        (secret, state): (&Digest, Digest),
        ended: &[(TransactionId, Outcome)],
        (changes, definitions): (&[AfterImage], &Definitions),
    ) -> OpenedBlock {
        let salts = sha256(&[SALTS_DOMAIN, &secret.0, &height.to_le_bytes()]);
        let (mut receipts, mut rows) = (Leaves::default(), Leaves::default());
        for (index, (transaction, outcome)) in (0..).zip(ended) {
            let receipt = Receipt { transaction: *transaction, height, index, outcome: outcome.clone() };
            receipt.serialize(&mut receipts.bytes).expect("writing to memory cannot fail");
            receipts.end();
        }
        for AfterImage { row, value } in changes {
            if let Some(definition) = definitions.by_table.get(&row.table) {
                push_row(&mut rows.bytes, definition, &row.key, value.as_ref());
                rows.end();
            }
        }
        let root = |leaves: &Leaves, tree| merkle_root(&leaves.hashes(&salts, tree));
        let outcome = SchemaBlockOutcome {
            height,
            previous: before,
            settled,
            receipts: root(&receipts, Tree::Receipts),
            rows: root(&rows, Tree::Rows),
            state,
        };
        OpenedBlock { outcome, salts, receipts, rows }
    }

    /// The receipt of a transaction that has ended in it.
    pub(super) fn receipt_of(&self, transaction: &TransactionId) -> Option<ShownLeaf<'_>> {
        // A receipt's encoding begins with the transaction's id.
        let number = self.receipts.iter().position(|content| content.starts_with(&transaction.0.0))?;
        self.receipts.show((&self.salts, Tree::Receipts), number)
    }

    /// How transactions have ended in it.
    pub(super) fn ended(&self) -> impl Iterator<Item = Receipt> {
        self.receipts.iter().filter_map(|content| decode_exactly(content).ok())
    }

    /// The rows that it has written, of tables with these definitions.
    pub(super) fn written<'a>(&'a self, definitions: &'a Definitions) -> impl Iterator<Item = RowId> + 'a {
        self.rows.iter().filter_map(|content| {
            let (definition, mut rest) = content.split_first_chunk::<32>()?;
            let table = definitions.of(&Digest(*definition))?.id;
            Some(RowId { table, key: Key::deserialize(&mut rest).ok()? })
        })
    }

    /// The row whose content begins so: the digest of its table's definition and its key.
    pub(super) fn row_of(&self, begin: &[u8]) -> Option<ShownLeaf<'_>> {
        let number = self.rows.iter().position(|content| content.starts_with(begin))?;
        self.rows.show((&self.salts, Tree::Rows), number)
    }
}

/// The definitions of a schema's tables, now and before, by what leaves of rows name them by.
#[derive(Default)]
pub(super) struct Definitions {
    /// Of the catalog that they were taken from; `None`: of none.
    version: Option<u64>,
    by_table: FxHashMap<TableId, Digest>,
    /// All that there ever were.
    all: BTreeMap<Digest, Arc<Table>>,
    /// Those that nobody has taken yet.
    new: Vec<Arc<Table>>,
}

impl Definitions {
    /// Takes those of a catalog.
    pub(super) fn follow(&mut self, catalog: &Catalog) {
        if self.version == Some(catalog.version) {
            return;
        }
        self.version = Some(catalog.version);
        self.by_table.clear();
        for table in catalog.tables.values().filter(|table| table.id.is_made()) {
            let digest = definition_digest(table);
            self.by_table.insert(table.id, digest);
            if self.all.insert(digest, table.clone()).is_none() {
                self.new.push(table.clone());
            }
        }
    }

    /// Those that have come since this was asked last.
    pub(super) fn take_new(&mut self) -> Vec<Table> {
        self.new.drain(..).map(|table| Table::clone(&table)).collect()
    }

    /// Takes some that were taken before.
    pub(super) fn remember(&mut self, definitions: Vec<Table>) {
        let named = definitions.into_iter().map(|table| (definition_digest(&table), Arc::new(table)));
        self.all.extend(named);
    }

    /// Whether rows of this table have leaves. What indexes have of rows has none, because it follows from these.
    pub(super) fn has(&self, table: TableId) -> bool {
        self.by_table.contains_key(&table)
    }

    /// The definition of a table that rows name so.
    pub(super) fn of(&self, digest: &Digest) -> Option<&Arc<Table>> {
        self.all.get(digest)
    }

    /// The digests of a table's definitions, now and before.
    pub(super) fn of_table(&self, table: TableId) -> impl Iterator<Item = &Digest> {
        self.all.iter().filter(move |(_, definition)| definition.id == table).map(|(digest, _)| digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofs::salted::salted_leaf;
    use types::{Row, Value, encode};

    fn table(number: u32) -> Arc<Table> {
        let (columns, primary_key, checks) = Default::default();
        let (name, primary_key_name) = (format!("deal.t{number}"), "key".to_string());
        let (id, endorsement, row_security) = (TableId(number), None, types::RowSecurity::default());
        Arc::new(Table {
            id,
            name,
            columns,
            primary_key,
            primary_key_name,
            checks,
            endorsement,
            row_security,
            partitioning: None,
            materialized: None,
        })
    }

    fn definitions() -> Definitions {
        let tables = [table(1), table(2)].map(|table| (table.name.clone(), table));
        let catalog = Catalog { version: 1, tables: tables.into(), ..Catalog::default() };
        let mut definitions = Definitions::default();
        definitions.follow(&catalog);
        definitions
    }

    fn image(table: u32, key: u8, value: Option<i64>) -> AfterImage {
        let row = RowId { table: TableId(table), key: Key::from_bytes(&[key]) };
        AfterImage { row, value: value.map(|value| Row::from([Value::BigInt(value)])) }
    }

    fn id(number: u8) -> TransactionId {
        TransactionId(sha256(&[&[number]]))
    }

    /// Three transactions and four rows, of which one is what an index has of another one, under a secret.
    fn opened(secret: u8, numbers: [i64; 3]) -> OpenedBlock {
        let ended: Vec<(TransactionId, Outcome)> =
            (0..3).map(|number| (id(number), Outcome::Committed(vec![]))).collect();
        let [first, second, third] = numbers;
        let changes = [
            image(1, 1, Some(first)),
            image(1, 2, Some(second)),
            image(2, 1, Some(third)),
            image(2, 2, None),
            image(9, 1, Some(7)),
        ];
        let (secret, state) = (Digest([secret; 32]), Digest([9; 32]));
        OpenedBlock::new((8, Digest::ZERO, 7), (&secret, state), &ended, (&changes, &definitions()))
    }

    fn begin(table: u32, key: u8) -> Vec<u8> {
        [definition_digest(&self::table(table)).0.as_slice(), &encode(&Key::from_bytes(&[key]))].concat()
    }

    #[test]
    fn every_receipt_and_row_can_be_shown_and_nothing_else() {
        let block = opened(1, [5, 6, 7]);
        for number in 0..3 {
            let shown = block.receipt_of(&id(number)).expect("it has ended");
            let receipt: Receipt = types::decode_exactly(shown.content).expect("a receipt");
            assert_eq!((receipt.transaction, receipt.height, receipt.index), (id(number), 8, number.into()));
            let leaf = salted_leaf(&shown.salt, shown.content);
            assert_eq!(shown.path.root(leaf), block.outcome.receipts);
        }
        assert!(block.receipt_of(&id(3)).is_none());
        for (table, key, value) in [(1, 1, Some(5)), (1, 2, Some(6)), (2, 1, Some(7)), (2, 2, None)] {
            let shown = block.row_of(&begin(table, key)).expect("it was written");
            let value: Option<Row> = value.map(|value| Row::from([Value::BigInt(value)]));
            assert_eq!(shown.content, [begin(table, key), encode(&value)].concat());
            assert_eq!(shown.path.root(salted_leaf(&shown.salt, shown.content)), block.outcome.rows);
        }
        assert!(block.row_of(&begin(1, 3)).is_none());
        let bytes = encode(&block);
        assert_eq!(types::decode_exactly::<OpenedBlock>(&bytes).expect("what was encoded"), block);
    }

    #[test]
    fn who_is_shown_a_row_cannot_find_another_one_by_trying() {
        // An outsider is shown the row of key 1, and tries all small numbers for that of key 2, whose leaf stands in the path.
        let block = opened(1, [5, 6, 7]);
        let shown = block.row_of(&begin(1, 1)).expect("it was written");
        let hashes = block.rows.hashes(&block.salts, Tree::Rows);
        let wanted = hashes[2];
        let mut salts = vec![shown.salt, Digest::ZERO, sha256(&[&shown.salt.0]), block.outcome.state];
        salts.extend(shown.path.0.iter().map(|sibling| sibling.digest));
        salts.extend((0..4u32).map(|number| sha256(&[&shown.salt.0, &[1], &number.to_le_bytes()])));
        let found = |salt: &Digest| {
            (0..1_000).any(|number: i64| {
                let row = Some(Row::from([Value::BigInt(number)]));
                salted_leaf(salt, &[begin(1, 2), encode(&row)].concat()) == wanted
            })
        };
        assert!(!salts.iter().any(found));
        let own = sha256(&[&block.salts.0, &[1], &2u32.to_le_bytes()]);
        assert!(found(&own), "with its own salt it would be found: the search is right");
    }

    #[test]
    fn no_root_tells_what_it_stands_for() {
        let (same, other) = (opened(1, [5, 6, 7]), opened(2, [5, 6, 7]));
        assert_eq!(opened(1, [5, 6, 7]), same);
        assert!(same.outcome.receipts != other.outcome.receipts && same.outcome.rows != other.outcome.rows);
        assert_ne!(opened(1, [5, 6, 8]).outcome.rows, same.outcome.rows);
        let (secret, state) = (Digest([1; 32]), Digest([9; 32]));
        let empty = |height| {
            let of = (height, Digest::ZERO, 7);
            OpenedBlock::new(of, (&secret, state), &[], (&[], &Definitions::default())).outcome
        };
        // A block that has written nothing has a root like any other.
        assert!(empty(8).rows != merkle_root(&[]) && empty(8).rows != empty(8).receipts);
        assert_ne!(empty(8).rows, empty(9).rows);
    }

    #[test]
    fn definitions_of_before_are_remembered() {
        let mut definitions = definitions();
        let before = definition_digest(&table(1));
        let renamed = Arc::new(Table { name: "deal.other".into(), ..Table::clone(&table(1)) });
        let tables = BTreeMap::from([(renamed.name.clone(), renamed.clone())]);
        definitions.follow(&Catalog { version: 2, tables, ..Catalog::default() });
        assert_eq!(definitions.of(&before), Some(&table(1)));
        assert_eq!(definitions.of(&definition_digest(&renamed)), Some(&renamed));
        assert_eq!(definitions.of_table(TableId(1)).count(), 2);
        assert_eq!(definitions.by_table.len(), 1, "the second table is gone");
    }
}
