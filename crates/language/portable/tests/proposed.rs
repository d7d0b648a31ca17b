//! What the text of a script says alone: what somebody can agree to before it is ordered.

mod samples;

use portable::ProposedChange;
use samples::script;
use types::{Value, format_value};

fn changes(sql: &str) -> Vec<String> {
    let said = |value: &Option<Value>| match value {
        None => "?".to_string(),
        Some(value) => format_value(value).unwrap_or_else(|| "NULL".to_string()),
    };
    let change = |change: &ProposedChange| {
        let values: Vec<String> = change.values.iter().map(said).collect();
        format!("{} {} ({})", change.kind, change.table.name, values.join(", "))
    };
    let script = script(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    script.proposed_changes().iter().map(change).collect()
}

#[test]
fn inserted_rows_are_said_whole_with_their_defaults() {
    assert_eq!(
        changes("INSERT INTO s.entry (ledger, number) VALUES ('a', 1), ('b', 2)"),
        [
            "insert s.entry (a, 1, NULL, new, 2026-01-01 00:00:00+00, -7)",
            "insert s.entry (b, 2, NULL, new, 2026-01-01 00:00:00+00, -7)"
        ]
    );
}

#[test]
fn of_changed_rows_the_key_and_constants_are_said() {
    assert_eq!(
        changes("UPDATE s.entry SET draw = 7, note = NULL WHERE ledger = 'a' AND number = 1 AND draw = 3"),
        ["update s.entry (a, 1, NULL, ?, ?, 7)"]
    );
    assert_eq!(
        changes("UPDATE s.entry SET draw = draw + 7 WHERE number = 1 AND ledger = 'a'"),
        ["update s.entry (a, 1, ?, ?, ?, ?)"],
        "what it comes to depends on the row that there will be"
    );
    assert_eq!(
        changes("UPDATE s.entry SET draw = 7 WHERE ledger = 'a'"),
        ["update s.entry (?, ?, ?, ?, ?, 7)"],
        "half a key names no row"
    );
    assert_eq!(
        changes("UPDATE s.entry SET draw = 7 WHERE note = 'x'"),
        ["update s.entry (?, ?, ?, ?, ?, 7)"]
    );
    assert_eq!(changes("UPDATE s.entry SET draw = 7"), ["update s.entry (?, ?, ?, ?, ?, 7)"]);
}

#[test]
fn every_row_that_is_named_is_a_change() {
    let one = |id: u32| format!("delete account ({id}{})", ", ?".repeat(13));
    assert_eq!(
        changes("DELETE FROM account WHERE id IN (1, 2); DELETE FROM account WHERE 3 = id AND small > 1"),
        [one(1), one(2), one(3)]
    );
    let any = format!("delete account ({})", ["?"; 14].join(", "));
    assert_eq!(changes("DELETE FROM account WHERE id = 1 OR id = 2"), [any.as_str()]);
    assert_eq!(changes("DELETE FROM account"), [any.as_str()]);
}
