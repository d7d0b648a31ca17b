//! Triggers that write down what scripts do to rows, and the tables where that stands: what organisations agree on is made of it
//! (ChainifyDB, paper 002, section 4.5.2).
//!
//! ```text
//!  script ─▶ row of a shared table ─▶ trigger ─▶ changes    height, table, the row before, the row behind
//!        └─▶ executed                                       height, position in the block, rows met or why it failed
//! ```
//!
//! A row is written in the canonical encoding of `oracle/chainify/canon.py`, field by field, and not as its hash alone as in the
//! paper: whoever has the rows can hash them, compare them with the ones of the state, and put them right.

use crate::DatabaseError;
use crate::dialect::Dialect;
use crate::guard;
use crate::session::Session;
use crate::shared_table::SharedTable;

const TRIGGER: &str = "entente_record";

pub(crate) fn changes_table(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "entente.changes",
        Dialect::MariaDb => "entente_changes",
    }
}

pub(crate) fn executed_table(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "entente.executed",
        Dialect::MariaDb => "entente_executed",
    }
}

/// Makes the tables that are missing. The schema is there.
pub(crate) fn create_tables(session: &mut dyn Session, dialect: Dialect) -> Result<(), DatabaseError> {
    let (changes, executed) = (changes_table(dialect), executed_table(dialect));
    let statements = match dialect {
        Dialect::Postgres => vec![
            format!(
                "CREATE TABLE IF NOT EXISTS {changes} (number bigint GENERATED ALWAYS AS IDENTITY, height bigint NOT NULL, \
                 table_id bigint NOT NULL, old text COLLATE \"C\", new text COLLATE \"C\", PRIMARY KEY (height, number))"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS {executed} (height bigint NOT NULL, place bigint NOT NULL, met text, failed text, \
                 PRIMARY KEY (height, place))"
            ),
        ],
        Dialect::MariaDb => {
            let text = "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin";
            vec![
                format!(
                    "CREATE TABLE IF NOT EXISTS {changes} (number bigint AUTO_INCREMENT, height bigint NOT NULL, \
                     table_id bigint NOT NULL, old {text}, new {text}, PRIMARY KEY (height, number), KEY (number)) ENGINE=InnoDB"
                ),
                format!(
                    "CREATE TABLE IF NOT EXISTS {executed} (height bigint NOT NULL, place bigint NOT NULL, met {text}, \
                     failed {text}, PRIMARY KEY (height, place)) ENGINE=InnoDB"
                ),
            ]
        }
    };
    statements.iter().try_for_each(|statement| session.execute(statement).map(drop))
}

/// What the trigger writes of a row: all fields, in the ledger's order.
fn row(table: &SharedTable, of: &str) -> String {
    let field = |(ordinal, (name, kind)): (usize, &(String, _))| {
        let not_null = table.key.contains(&ordinal) || table.table.columns[ordinal].not_null;
        table.dialect.field(kind, &format!("{of}.{name}"), not_null)
    };
    let fields: Vec<String> = table.columns.iter().enumerate().map(field).collect();
    table.dialect.concatenated(&fields)
}

/// Makes the triggers of a table anew.
pub(crate) fn create(session: &mut dyn Session, table: &SharedTable) -> Result<(), DatabaseError> {
    let (name, id, changes) = (&table.name, table.table.id.0, changes_table(table.dialect));
    let (old, new) = (row(table, "OLD"), row(table, "NEW"));
    let events = [
        ("i", "INSERT", "NULL".to_string(), new.clone()),
        ("u", "UPDATE", old.clone(), new),
        ("d", "DELETE", old, "NULL".to_string()),
    ];
    let mut statements = Vec::new();
    match table.dialect {
        Dialect::Postgres => {
            let record = events.map(|(_, event, old, new)| {
                format!(
                    "IF TG_OP = '{event}' THEN INSERT INTO {changes} (height, table_id, old, new) \
                     VALUES (at::bigint, {id}, {old}, {new}); RETURN NULL; END IF;\n  "
                )
            });
            statements.push(format!(
                "CREATE OR REPLACE FUNCTION entente.record_{id}() RETURNS trigger LANGUAGE plpgsql AS $$\n\
                 DECLARE at text := pg_catalog.current_setting('entente.height', true);\n\
                 BEGIN\n  IF coalesce(at, '') = '' THEN RETURN NULL; END IF;\n  {}RETURN NULL;\nEND $$",
                record.concat()
            ));
            statements.push(format!("DROP TRIGGER IF EXISTS {TRIGGER} ON {name}"));
            statements.push(format!(
                "CREATE TRIGGER {TRIGGER} AFTER INSERT OR UPDATE OR DELETE ON {name} FOR EACH ROW \
                 EXECUTE FUNCTION entente.record_{id}()"
            ));
            statements.push(format!("ALTER TABLE {name} ENABLE ALWAYS TRIGGER {TRIGGER}"));
        }
        Dialect::MariaDb => {
            for (letter, event, old, new) in events {
                let trigger = trigger_name(table, letter);
                statements.push(format!("DROP TRIGGER IF EXISTS {trigger}"));
                statements.push(format!(
                    "CREATE TRIGGER {trigger} AFTER {event} ON {name} FOR EACH ROW IF @entente_height IS NOT NULL THEN \
                     INSERT INTO {changes} (height, table_id, old, new) VALUES (@entente_height, {id}, {old}, {new}); END IF"
                ));
            }
        }
    }
    statements.iter().try_for_each(|statement| session.execute(statement).map(drop))
}

/// Takes the triggers of a table away. `name`: in the ledger.
pub(crate) fn remove(session: &mut dyn Session, dialect: Dialect, name: &str) -> Result<(), DatabaseError> {
    guard::remove_trigger(session, dialect, TRIGGER, name)
}

fn trigger_name(table: &SharedTable, letter: &str) -> String {
    table.dialect.quoted(&guard::trigger_name(TRIGGER, &table.table.name, letter))
}

/// The fields of a row as a trigger has written it; nothing where it is none.
pub(crate) fn fields(text: &str) -> Option<Vec<Option<&str>>> {
    let (mut rest, mut fields) = (text, Vec::new());
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('N') {
            fields.push(None);
            rest = behind;
            continue;
        }
        let (length, behind) = rest.strip_prefix('V')?.split_once(':')?;
        let length: usize = length.parse().ok()?;
        fields.push(Some(behind.get(..length)?));
        rest = behind.get(length..)?;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_field_by_field_and_nothing_else_is_a_row() {
        assert_eq!(fields("V1:5NV0:V3:aé"), Some(vec![Some("5"), None, Some(""), Some("aé")]));
        assert_eq!(fields("V4:V1:5"), Some(vec![Some("V1:5")]));
        assert_eq!(fields(""), Some(Vec::new()));
        for broken in ["X", "V", "V1", "V1:", "V2:é1x", "V1:é", "V-1:a", "V99999999999999999999:a", "Nx"] {
            assert_eq!(fields(broken), None, "{broken}");
        }
    }
}
