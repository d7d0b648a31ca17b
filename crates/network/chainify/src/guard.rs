//! Triggers that refuse writes by anybody but the ledger, and whether they still stand.
//!
//! They stop mistakes, not people who mean it: whoever may drop a trigger may write. That is found out, too: the triggers'
//! fingerprint is compared in every transaction of the writer.

use crate::DatabaseError;
use crate::dialect::Dialect;
use crate::session::Session;
use crate::shared_table::SharedTable;
use std::collections::BTreeMap;
use types::split_catalog_name;

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
                let trigger = table.dialect.quoted(&trigger_name(TRIGGER, &table.table.name, letter));
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
    // Nobody finds the table without triggers, where the database can do that.
    let begins = table.dialect == Dialect::Postgres;
    if begins {
        session.execute("BEGIN")?;
    }
    let made = statements.iter().try_for_each(|statement| session.execute(statement).map(drop));
    if begins {
        session.execute(if made.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    }
    made
}

/// Takes the triggers of a table away. `name`: in the ledger.
pub(crate) fn remove(session: &mut dyn Session, dialect: Dialect, name: &str) -> Result<(), DatabaseError> {
    remove_trigger(session, dialect, TRIGGER, name)
}

/// Takes triggers of one kind away.
pub(crate) fn remove_trigger(
    session: &mut dyn Session,
    dialect: Dialect,
    trigger: &str,
    name: &str,
) -> Result<(), DatabaseError> {
    let statements = match dialect {
        Dialect::Postgres => {
            let (schema, object) = split_catalog_name(name);
            let table = format!("{}.{}", dialect.quoted(schema), dialect.quoted(object));
            vec![format!("DROP TRIGGER IF EXISTS {trigger} ON {table}")]
        }
        Dialect::MariaDb => ["i", "u", "d"]
            .map(|letter| {
                format!("DROP TRIGGER IF EXISTS {}", dialect.quoted(&trigger_name(trigger, name, letter)))
            })
            .to_vec(),
    };
    statements.iter().try_for_each(|statement| session.execute(statement).map(drop))
}

/// Names have 64 characters there.
pub(crate) fn trigger_name(trigger: &str, table: &str, letter: &str) -> String {
    format!("{trigger}_{letter}_{}", &crypto::sha256(&[table.as_bytes()]).to_string()[..16])
}

fn short(name: &str) -> String {
    name.chars().take(60).collect()
}

/// What all triggers of each table are: whether one was switched off, replaced, renamed, dropped or added shows in it.
pub(crate) type Fingerprint = BTreeMap<String, String>;

/// Reads it, by the tables' names in the ledger.
pub(crate) fn fingerprint(
    session: &mut dyn Session,
    dialect: Dialect,
    tables: &[SharedTable],
) -> Result<Fingerprint, DatabaseError> {
    if tables.is_empty() {
        return Ok(Fingerprint::new());
    }
    let literal = |text: &str| dialect.text_literal(text);
    let sql = match dialect {
        Dialect::Postgres => {
            let names = tables
                .iter()
                .map(|table| format!("({}, {})", literal(&table.parts.0), literal(&table.parts.1)));
            format!(
                "SELECT n.nspname::text, c.relname::text, md5(string_agg(t.tgenabled::text || pg_get_triggerdef(t.oid) || p.prosrc \
                 || coalesce(p.proconfig::text, ''), ' ' ORDER BY t.tgname) || c.oid::text) \
                 FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
                 JOIN pg_proc p ON p.oid = t.tgfoid \
                 WHERE NOT t.tgisinternal AND (n.nspname, c.relname) IN ({}) GROUP BY n.nspname, c.relname, c.oid",
                names.collect::<Vec<_>>().join(", ")
            )
        }
        Dialect::MariaDb => {
            let names = tables.iter().map(|table| literal(&table.parts.1));
            format!(
                "SELECT '', EVENT_OBJECT_TABLE, MD5(GROUP_CONCAT(TRIGGER_NAME, EVENT_MANIPULATION, ACTION_TIMING, ACTION_STATEMENT, \
                 CREATED ORDER BY TRIGGER_NAME SEPARATOR ' ')) FROM information_schema.TRIGGERS \
                 WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE IN ({}) GROUP BY EVENT_OBJECT_TABLE",
                names.collect::<Vec<_>>().join(", ")
            )
        }
    };
    let mut found = Fingerprint::new();
    for row in session.query(&sql)? {
        let [Some(schema), Some(name), Some(digest)] = row.as_slice() else { continue };
        let is_this = |table: &&SharedTable| table.parts.0 == *schema && table.parts.1 == *name;
        if let Some(table) = tables.iter().find(is_this) {
            found.insert(table.table.name.clone(), digest.clone());
        }
    }
    Ok(found)
}
