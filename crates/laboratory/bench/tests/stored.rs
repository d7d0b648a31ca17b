//! States in stores: what is loaded and changed is right, and the records say so.

use bench::{DiskOptions, GrowthOptions, RowsIn, StateOptions, StateRecord, growth, state_bench};
use std::path::Path;
use std::time::Duration;

fn options(folder: &Path, rows_in: RowsIn) -> StateOptions {
    StateOptions {
        protocol: "harmony".to_string(),
        customers: 300,
        skew: 0.9,
        threads: 2,
        block: 50,
        batches: 2,
        seed: 5,
        time: Duration::from_millis(300),
        checkpoint_rows: 500,
        store: DiskOptions { rows_in, memory_bytes: 16 << 20 },
        folder: folder.to_path_buf(),
        reopen: true,
        reads: 100,
        counts_money: true,
        control_group: None,
    }
}

fn measured(options: &StateOptions) -> StateRecord {
    state_bench(options, &mut |_| ()).expect("it runs")
}

#[test]
fn both_stores_keep_every_cent_have_the_same_roots_and_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let in_folder = |name: &str, rows_in| measured(&options(&folder.path().join(name), rows_in));
    let (memory, disk) = (in_folder("memory", RowsIn::Memory), in_folder("disk", RowsIn::Disk));
    for record in [&memory, &disk] {
        assert_eq!(record.invariant_holds, Some(true));
        assert_eq!(record.load.rows, 900);
        let run = record.run.as_ref().expect("it has run");
        assert!(run.committed > 0 && run.conflict_aborts == 0, "{run:?}");
        assert!(!run.checkpoints.is_empty() && run.changed_bytes > 0, "{run:?}");
        assert!(run.checkpoints.iter().all(|checkpoint| checkpoint.changed_rows >= 500), "{run:?}");
        assert!(run.batch_ms.quiet.count + run.batch_ms.merging.count > 0, "{run:?}");
        assert_eq!(record.reads.expect("asked for").count, 100);
        let reopen = record.reopen.expect("asked for");
        assert!(reopen.first_block_seconds >= reopen.open_seconds, "{reopen:?}");
        let text = serde_json::to_string(record).expect("plain data");
        assert!(text.contains("\"control_group\":null"), "{text}");
    }
    let first = |record: &StateRecord| {
        let run = record.run.as_ref().expect("it has run");
        (run.checkpoints[0].height, run.checkpoints[0].root.clone())
    };
    assert_eq!(first(&memory), first(&disk));
}

#[test]
fn rows_can_be_loaded_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let alone = StateOptions { time: Duration::ZERO, reads: 0, ..options(folder.path(), RowsIn::Disk) };
    let record = measured(&alone);
    assert!(record.run.is_none() && record.reads.is_none());
    assert_eq!((record.load.rows, record.invariant_holds), (900, Some(true)));
    assert_eq!(record.reopen.expect("asked for").blocks_behind, 0);
}

#[test]
fn growth_has_a_point_per_size_store_and_skew_and_leaves_out_what_does_not_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = |rows_in| DiskOptions { rows_in, memory_bytes: 16 << 20 };
    let each = StateOptions {
        time: Duration::from_millis(20),
        reopen: false,
        ..options(folder.path(), RowsIn::Disk)
    };
    let out = folder.path().join("out");
    let json = folder.path().join("growth.json");
    let options = GrowthOptions {
        each,
        rows_min: 30,
        rows_max: 300,
        skews: vec![0.0, 0.99],
        stores: vec![store(RowsIn::Memory), store(RowsIn::Disk)],
        memory_limit_bytes: 30_000,
        folder: folder.path().to_path_buf(),
        out: out.clone(),
        json: Some(json.clone()),
    };
    let records = growth(&options, &mut |_| ()).expect("it runs");
    let points: Vec<_> =
        records.iter().map(|record| (record.rows, record.state.store, record.state.skew)).collect();
    let expected = [
        (30, "memory", 0.0),
        (30, "memory", 0.99),
        (30, "disk", 0.0),
        (30, "disk", 0.99),
        (300, "disk", 0.0),
        (300, "disk", 0.99),
    ];
    assert_eq!(points, expected);
    let page = std::fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains("rows — logarithmic scale") && page.contains("disk, Zipf 0.99"), "{page}");
    assert!(std::fs::read_to_string(json).expect("records").contains("cpu_us_per_transaction"));
}
