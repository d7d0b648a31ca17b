//! Triggers that refuse writes by anybody but the ledger, and whether they still stand.
//!
//! They stop mistakes, not people who mean it: whoever may drop a trigger may write. That is found out, too: the triggers'
//! fingerprint is compared in every transaction of the writer.

use crate::DatabaseError;
use crate::dialect::Dialect;
use crate::session::Session;
use crate::shared_table::SharedTable;
use std::collections::BTreeMap;

const TRIGGER: &str = "entente_refuse";
const HINT: &str = "Write through Entente: every organisation then gets the same rows.";

/// Lets this connection write.
pub(crate) fn let_write(session: &mut dyn Session, dialect: Dialect) -> Result<(), DatabaseError> {
    let sql = match dialect {
        Dialect::Postgres => "SET entente.writer = 'on'",
        Dialect::MariaDb => "SET @entente_writer = 1",
    };
    session.execute(sql).map(drop)
}

/// Makes the triggers of a table anew.
pub(crate) fn create(session: &mut dyn Session, table: &SharedTable) -> Result<(), DatabaseError> {
    let name = &table.name;
    let statements = match table.dialect {
        Dialect::Postgres => vec![
            format!(
                "CREATE OR REPLACE FUNCTION entente.refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$\n\
                 BEGIN\n  IF coalesce(current_setting('entente.writer', true), '') <> 'on' THEN\n    \
                 RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = \
                 format('table %I.%I is written by the ledger alone', TG_TABLE_SCHEMA, TG_TABLE_NAME), HINT = '{HINT}';\n  \
                 END IF;\n  RETURN NULL;\nEND $$"
            ),
            format!("DROP TRIGGER IF EXISTS {TRIGGER} ON {name}"),
            format!(
                "CREATE TRIGGER {TRIGGER} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {name} \
                 FOR EACH STATEMENT EXECUTE FUNCTION entente.refuse()"
            ),
            // Also in sessions that pretend to be a replica.
            format!("ALTER TABLE {name} ENABLE ALWAYS TRIGGER {TRIGGER}"),
        ],
        Dialect::MariaDb => {
            let mut statements = Vec::new();
            for (letter, event) in [("i", "INSERT"), ("u", "UPDATE"), ("d", "DELETE")] {
                let trigger = table.dialect.quoted(&trigger_name(table, letter));
                statements.push(format!("DROP TRIGGER IF EXISTS {trigger}"));
                let message = table.dialect.text_literal(&format!(
                    "table {} is written by the ledger alone; write through Entente",
                    short(&table.parts.1)
                ));
                statements.push(format!(
                    "CREATE TRIGGER {trigger} BEFORE {event} ON {name} FOR EACH ROW \
                     IF @entente_writer IS NULL THEN SIGNAL SQLSTATE '42000' SET MESSAGE_TEXT = {message}; END IF"
                ));
            }
            statements
        }
    };
    statements.iter().try_for_each(|statement| session.execute(statement).map(drop))
}

/// Names have 64 characters there.
fn trigger_name(table: &SharedTable, letter: &str) -> String {
    format!("{TRIGGER}_{letter}_{}", table.table.id.0)
}

fn short(name: &str) -> String {
    name.chars().take(60).collect()
}

/// What the triggers of all tables are, by table: whether one was switched off, replaced, renamed or dropped shows in it.
pub(crate) type Fingerprint = BTreeMap<String, String>;

/// Reads it.
pub(crate) fn fingerprint(
    session: &mut dyn Session,
    dialect: Dialect,
    tables: &[SharedTable],
) -> Result<Fingerprint, DatabaseError> {
    let sql = match dialect {
        Dialect::Postgres => format!(
            "SELECT c.relnamespace::regnamespace::text || '.' || c.relname, \
             md5(t.tgenabled::text || t.tgtype::text || p.prosrc || coalesce(p.proconfig::text, '') || c.oid::text) \
             FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid \
             WHERE t.tgname = '{TRIGGER}'"
        ),
        Dialect::MariaDb => {
            let names: Vec<String> = tables
                .iter()
                .flat_map(|table| {
                    ["i", "u", "d"].map(|letter| dialect.text_literal(&trigger_name(table, letter)))
                })
                .collect();
            if names.is_empty() {
                return Ok(Fingerprint::new());
            }
            format!(
                "SELECT CONCAT(EVENT_OBJECT_TABLE, ' ', EVENT_MANIPULATION), \
                 MD5(CONCAT(TRIGGER_NAME, ACTION_TIMING, ACTION_STATEMENT, CREATED)) \
                 FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() AND TRIGGER_NAME IN ({})",
                names.join(",")
            )
        }
    };
    let rows = session.query(&sql)?;
    let pair = |row: Vec<Option<String>>| {
        let mut values = row.into_iter();
        Some((values.next()??, values.next()??))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}
