//! Proofs of whole tables: every row is in them, and none can be left out, moved or changed.
#![allow(missing_docs)]

use crypto::{Digest, SecretKey};
use memory::Memory;
use proofs::state::TreeShape;
use proofs::{Behind, ProofError, TableGroups, TablesProof};
use state::{
    AfterImage, CheckpointHeader, KeptState, LiveRequests, RowId, StateTree, Stores, TableHashing, Version,
};
use std::sync::Arc;
use types::{
    Attestation, Catalog, Certificate, Charter, CheckpointCertificate, CheckpointRoot, Column, Counter,
    DataType, Key, Organisation, Row, Sequence, Table, TableId, Value,
};

const HEIGHT: u64 = 9;

fn node_key(member: usize) -> SecretKey {
    SecretKey::from_bytes([member as u8 + 101; 32])
}

fn charter(shape: TreeShape) -> Charter {
    let mut charter = Charter::with_defaults("test", 1);
    charter.found_with_version(if shape == TreeShape::Ranges { 2 } else { 3 });
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

fn certificate(charter: &Charter, state_root: Digest) -> CheckpointCertificate {
    let statement =
        CheckpointRoot { ledger: charter.ledger(), height: HEIGHT, outcome: Digest([7; 32]), state_root };
    let sign = |member: u16| {
        (member, Attestation::sign(statement.clone(), member, &node_key(member.into())).signature)
    };
    Certificate { signatures: [0, 2, 3].map(sign).to_vec(), statement }
}

fn key(number: u32) -> Key {
    Key::encode([&Value::BigInt(number.into())]).expect("a short key")
}

fn row(number: u32) -> Row {
    Arc::from([Value::BigInt(number.into()), Value::text("seven")])
}

/// Tables 1, 2 (empty), 4 and a sequence with the number 3.
fn catalog() -> Arc<Catalog> {
    let mut catalog = Catalog::default();
    for id in [1, 2, 4] {
        let column = |name: &str, data_type| Column {
            name: name.into(),
            data_type,
            not_null: false,
            default: None,
            generated: false,
        };
        let name = format!("t{id}");
        let table = Table {
            id: TableId(id),
            name: name.clone(),
            columns: vec![column("id", DataType::BigInt), column("value", DataType::Text(None))],
            primary_key: vec![0],
            primary_key_name: format!("t{id}_pkey"),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        };
        catalog.tables.insert(name, Arc::new(table));
    }
    let counter = Counter {
        table: TableId(3),
        data_type: DataType::BigInt,
        start: 1,
        increment: 1,
        smallest: 1,
        largest: i64::MAX,
        cycles: false,
    };
    let sequence = Sequence { name: "s".into(), owner: None, counter: Some(counter), cache: 1 };
    catalog.sequences.insert("s".into(), Arc::new(sequence));
    Arc::new(catalog)
}

/// Tables 1 and 4 have this many rows; the sequence has one.
fn kept(shape: TreeShape, rows: u32) -> KeptState {
    let state = Memory.create(catalog()).expect("memory can be read");
    let image = |table: u32, key: Key, row: Row| AfterImage {
        row: RowId { table: TableId(table), key },
        value: Some(row),
    };
    let mut images: Vec<AfterImage> = (0..rows).map(|number| image(1, key(number), row(number))).collect();
    images.push(image(3, Key::default(), Counter::row(7, true)));
    images.extend((0..rows).map(|number| image(4, key(number), row(number))));
    state.apply(Version::after_batch(1, 0), &images, None).expect("memory can be read");
    let (live, snapshot) = (LiveRequests::new().content(), state.snapshot());
    let tree = StateTree::new(snapshot.as_ref(), &live, shape).expect("memory can be read");
    let header = CheckpointHeader { height: HEIGHT, ..CheckpointHeader::default() };
    KeptState::new(header, snapshot, live, tree)
}

fn prove(charter: &Charter, shape: TreeShape, tables: &[u32]) -> TablesProof {
    let kept = kept(shape, 5_000);
    let tables: Vec<TableId> = tables.iter().copied().map(TableId).collect();
    let certificate = certificate(charter, kept.tree().root());
    kept.prove_tables(&tables, certificate).expect("memory can be read")
}

const SHAPES: [TreeShape; 2] = [TreeShape::Ranges, TreeShape::Groups];

/// Leaves of the groups of a table with rows of these numbers.
fn leaves(shape: TreeShape, table: u32, numbers: impl IntoIterator<Item = u32>) -> Vec<Digest> {
    let mut hashing = TableHashing::new(shape, TableId(table));
    let mut groups = Vec::new();
    for number in numbers {
        groups.extend(hashing.add(key(number), row(number)));
    }
    groups.extend(hashing.finish());
    groups.into_iter().map(|group| group.leaf).collect()
}

#[test]
fn whoever_has_the_rows_comes_to_the_leaves_that_are_proved() {
    for shape in SHAPES {
        let charter = charter(shape);
        let proof = prove(&charter, shape, &[4, 1, 2]);
        let proved = proof.verify(&charter).expect("a good proof");
        assert_eq!(proved.iter().map(|table| table.definition.id.0).collect::<Vec<_>>(), [1, 2, 4]);
        assert!(proved.iter().all(|table| table.shape == shape));
        for (table, count) in [(0, 5_000), (1, 0), (2, 5_000)] {
            let id = proved[table].definition.id.0;
            assert_eq!(proved[table].groups, leaves(shape, id, 0..count), "table {id}");
        }
        assert_ne!(proved[0].groups, leaves(shape, 1, (0..5_000).filter(|number| *number != 77)));
        assert_ne!(proved[0].groups, leaves(shape, 1, 0..5_001));
        assert_eq!(TablesProof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
    }
}

#[test]
fn some_tables_are_proved_without_the_others() {
    for shape in SHAPES {
        let charter = charter(shape);
        let proof = prove(&charter, shape, &[2]);
        assert!(matches!(proof.tables[0].behind, Behind::Group { table: TableId(3), .. }), "the sequence");
        let proved = proof.verify(&charter).expect("a good proof");
        assert_eq!((proved.len(), proved[0].groups.len()), (1, 0));
        let last = prove(&charter, shape, &[4, 99]);
        assert_eq!((last.tables.len(), &last.tables[0].behind), (1, &Behind::Nothing));
        assert!(last.verify(&charter).is_ok());
    }
}

#[test]
fn the_last_rows_of_a_table_cannot_be_left_out() {
    for shape in SHAPES {
        let charter = charter(shape);
        let proof = prove(&charter, shape, &[1]);
        let refused = |change: &dyn Fn(&mut TableGroups)| {
            let mut changed = proof.clone();
            change(&mut changed.tables[0]);
            changed.verify(&charter).expect_err("it is another proof")
        };
        let hides = "something else stands behind the last group of a table";
        assert_eq!(refused(&|table| table.groups -= 1), ProofError::Order(hides));
        // The group that is left out is said to be another table's.
        let kept = kept(shape, 5_000);
        let tree = kept.tree();
        let node = 1 + proof.tables[0].groups as usize - 1;
        let rows = tree.rows(kept.snapshot().as_ref(), node).expect("memory can be read");
        let honest = |table: u32| {
            let (first, leaf) = (rows[0].0.clone(), tree.leaves()[node]);
            move |groups: &mut TableGroups| {
                groups.groups -= 1;
                groups.behind = Behind::Group { table: TableId(table), first: first.clone(), content: leaf };
            }
        };
        assert_eq!(refused(&honest(3)), ProofError::Order(hides), "its leaf is not that of another table");
        let other = |table: &mut TableGroups| table.groups = u64::MAX;
        assert!(matches!(refused(&other), ProofError::Order(_)));
        assert!(matches!(refused(&|table| table.place = 1), ProofError::Path { .. }));
        assert!(matches!(refused(&|table| table.place = u64::MAX), ProofError::Order(_)));
    }
}

#[test]
fn every_byte_of_a_proof_counts() {
    for shape in SHAPES {
        let charter = charter(shape);
        let kept = kept(shape, 40);
        let certificate = certificate(&charter, kept.tree().root());
        let tables = [TableId(1), TableId(2), TableId(4)];
        let proof = kept.prove_tables(&tables, certificate).expect("memory can be read");
        assert!(proof.verify(&charter).is_ok());
        let bytes = proof.to_bytes();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let read = TablesProof::from_bytes(&flipped);
            assert!(read.is_err() || read.expect("read").verify(&charter).is_err(), "byte {at}");
            assert!(TablesProof::from_bytes(&bytes[..at]).is_err(), "{at} bytes");
        }
        let mut twice = proof.clone();
        twice.tables.push(proof.tables[2].clone());
        assert!(matches!(twice.verify(&charter), Err(ProofError::Order(_))));
        let mut forged = proof.clone();
        forged.certificate.signatures.pop();
        assert!(matches!(forged.verify(&charter), Err(ProofError::Certificate(_))));
        let other = Charter { name: "other".into(), ..charter.clone() };
        assert!(matches!(proof.verify(&other), Err(ProofError::Certificate(_))));
    }
}
