//! A ledger's state at certified checkpoints without a node, and an object store that fails when it is told to.
#![allow(missing_docs, dead_code)]

use crypto::{Digest, SecretKey};
use lakehouse::{CertifiedState, Exporter, LakehouseError, Target};
use memory::Memory;
use proofs::state::TreeShape;
use state::{
    AfterImage, CheckpointHeader, KeptState, LiveRequests, RowId, StateTree, Store, Stores, Version,
};
use std::sync::Arc;
pub use targets::failing::{FailingStore, Fault};
use types::{
    Attestation, Catalog, Certificate, Charter, CheckpointRoot, Column, DataType, Key, Numeric, Organisation,
    Row, Table, TableId, Value,
};

pub fn node_key(member: usize) -> SecretKey {
    SecretKey::from_bytes([member as u8 + 101; 32])
}

pub fn charter(name: &str) -> Charter {
    let mut charter = Charter::with_defaults(name, 1);
    for member in 0..4 {
        charter.organisations.push(Organisation {
            name: format!("org{}", member + 1),
            root_key: SecretKey::from_bytes([member as u8 + 1; 32]).public_key(),
            node_key: node_key(member).public_key(),
            address: format!("127.0.0.1:{}", 7_000 + member),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
    }
    charter
}

/// A network whose tables change between checkpoints.
pub struct World {
    pub charter: Charter,
    store: Arc<dyn Store>,
    catalog: Arc<Catalog>,
    batch: u64,
}

pub const ACCOUNTS: TableId = TableId(1);
pub const EVENTS: TableId = TableId(2);

pub fn table(id: TableId, name: &str, columns: &[(&str, DataType)], primary_key: Vec<u16>) -> Table {
    let column = |(name, data_type): &(&str, DataType)| Column {
        name: (*name).to_string(),
        data_type: *data_type,
        not_null: false,
        default: None,
        generated: false,
    };
    Table {
        id,
        name: name.to_string(),
        columns: columns.iter().map(column).collect(),
        primary_key,
        primary_key_name: format!("{name}_pkey"),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    }
}

pub fn key(number: i64) -> Key {
    Key::encode([&Value::BigInt(number)]).expect("a short key")
}

pub fn account(number: i64, cents: i128) -> Row {
    Row::from([
        Value::BigInt(number),
        Value::text(format!("owner {number}")),
        Value::Numeric(Numeric::new(cents, 2)),
    ])
}

impl World {
    /// `accounts` has a primary key; `sales.events` has none.
    pub fn new(name: &str) -> World {
        let mut catalog = Catalog::default();
        let accounts = [
            ("id", DataType::BigInt),
            ("owner", DataType::Text(None)),
            ("balance", DataType::Numeric(Some((12, 2)))),
        ];
        let events = [("what", DataType::Text(None)), ("at", DataType::Timestamp)];
        for table in
            [table(ACCOUNTS, "accounts", &accounts, vec![0]), table(EVENTS, "sales.events", &events, vec![])]
        {
            catalog.tables.insert(table.name.clone(), Arc::new(table));
        }
        let catalog = Arc::new(catalog);
        let store = Memory.create(catalog.clone()).expect("memory can be read");
        World { charter: charter(name), store, catalog, batch: 0 }
    }

    pub fn change(&mut self, table: TableId, rows: impl IntoIterator<Item = (Key, Option<Row>)>) {
        self.batch += 1;
        let image = |(key, value)| AfterImage { row: RowId { table, key }, value };
        let mut images: Vec<AfterImage> = rows.into_iter().map(image).collect();
        images.sort_by(|one, other| one.row.cmp(&other.row));
        let version = Version::after_batch(self.batch, 0);
        self.store.apply(version, &images, None).expect("memory can be read");
    }

    pub fn accounts(&mut self, numbers: impl IntoIterator<Item = i64>, cents: i128) {
        self.change(ACCOUNTS, numbers.into_iter().map(|n| (key(n), Some(account(n, cents + i128::from(n))))));
    }

    /// A column more, and with it another number and other rows, as ALTER TABLE makes them.
    pub fn add_column(&mut self) {
        self.batch += 1;
        let mut catalog = Catalog::clone(&self.catalog);
        let mut accounts = Table::clone(&catalog.tables["accounts"]);
        accounts.id = TableId(3);
        accounts.columns.push(Column {
            name: "since".into(),
            data_type: DataType::Date,
            not_null: false,
            default: None,
            generated: false,
        });
        catalog.tables.insert("accounts".into(), Arc::new(accounts));
        self.catalog = Arc::new(catalog);
        let row = |number: i64| -> Row {
            account(number, 5).iter().cloned().chain([Value::Date(9_000)]).collect::<Vec<_>>().into()
        };
        let images: Vec<AfterImage> = (0..100)
            .map(|number| AfterImage {
                row: RowId { table: TableId(3), key: key(number) },
                value: Some(row(number)),
            })
            .collect();
        let version = Version::after_batch(self.batch, 0);
        self.store.apply(version, &images, Some(self.catalog.clone())).expect("memory can be read");
    }

    pub fn certified(&self, height: u64) -> CertifiedState {
        let (live, snapshot) = (LiveRequests::new().content(), self.store.snapshot());
        let tree = StateTree::new(snapshot.as_ref(), &live, TreeShape::Groups).expect("memory can be read");
        let statement = CheckpointRoot {
            ledger: self.charter.ledger(),
            height,
            outcome: Digest([7; 32]),
            state_root: tree.root(),
        };
        let sign = |member: u16| {
            (member, Attestation::sign(statement.clone(), member, &node_key(member.into())).signature)
        };
        let certificate = Certificate { signatures: [0, 2, 3].map(sign).to_vec(), statement };
        let header =
            CheckpointHeader { ledger: self.charter.ledger(), height, ..CheckpointHeader::default() };
        let kept = KeptState::new(header, snapshot, live, tree);
        CertifiedState::new(kept, certificate, Vec::new()).expect("it is what was certified")
    }

    pub fn exporter(&self, target: &Target) -> Exporter {
        Exporter::new(target.clone(), self.charter.clone(), "writer".into(), Vec::new())
    }

    /// Exports as a new process does.
    pub async fn export(&self, target: &Target, height: u64) -> Tried<lakehouse::Exported> {
        self.exporter(target).export(&self.certified(height)).await
    }
}

pub type Tried<T> = std::result::Result<T, LakehouseError>;
