//! Which schemas with members a transaction of a session concerns, and what it does in each, told from the names in it.

use std::collections::{BTreeMap, BTreeSet};
use types::{
    Catalog, ExecutionVersion, Payload, ScriptSettings, SessionStep, SqlError, SqlState, Value,
    schema_of as schema_of_name, split_settings,
};

/// What a transaction does in schemas with members.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Routed {
    /// In each schema.
    pub(crate) payloads: BTreeMap<String, Payload>,
    /// The schema of each statement, where there are several schemas: a result comes for each.
    pub(super) statements: Vec<String>,
}

/// What a transaction does in schemas with members; `None`: it concerns what everybody sees. `catalog`: the ledger's, with what stands
/// in this organisation's schemas.
///
/// # Errors
/// `0A000` where one statement concerns several schemas, or some concern none, or it is a transaction block.
pub(crate) fn route(catalog: &Catalog, payload: &Payload) -> Result<Option<Routed>, SqlError> {
    if catalog.schemas.values().all(|schema| schema.members.is_none()) {
        return Ok(None);
    }
    let mut schemas = BTreeSet::new();
    match payload {
        Payload::Call { procedure, .. } => mention(catalog, procedure, &mut schemas),
        Payload::Insert { table, .. } => mention(catalog, table, &mut schemas),
        Payload::Script { sql, parameters } => {
            mentioned(catalog, sql, &mut schemas)?;
            if schemas.len() > 1 {
                return route_statements(catalog, sql, parameters).map(Some);
            }
        }
        Payload::Session { steps, .. } => {
            for step in steps {
                match step {
                    SessionStep::Run { sql, .. } | SessionStep::RunGiven { sql, .. } => {
                        mentioned(catalog, sql, &mut schemas)?;
                    }
                    SessionStep::Insert { table, .. } => mention(catalog, table, &mut schemas),
                    SessionStep::Savepoint(_) | SessionStep::RollbackTo(_) | SessionStep::Release(_) => {}
                }
            }
            if let Some(schema) = schemas.first() {
                return Err(SqlError::unsupported(format_args!(
                    "a transaction block that touches schema \"{schema}\", which has members"
                ))
                .hint("Send the statements without BEGIN and COMMIT: together, they are one transaction."));
            }
        }
        Payload::Parts { .. }
        | Payload::SchemaOutcomes { .. }
        | Payload::MovingOutcomes { .. }
        | Payload::HeldParts { .. }
        | Payload::Agreed(_) => {}
    }
    let payloads: BTreeMap<String, Payload> =
        schemas.into_iter().map(|schema| (schema, payload.clone())).collect();
    Ok((!payloads.is_empty()).then_some(Routed { payloads, statements: Vec::new() }))
}

/// Splits a script at the boundaries of schemas, from statement to statement.
///
/// # Errors
/// `0A000` for a statement that concerns several schemas, or none.
fn route_statements(catalog: &Catalog, sql: &str, parameters: &[Value]) -> Result<Routed, SqlError> {
    let (_, source) = split_settings(sql, ExecutionVersion::NEWEST)?;
    let settings = &sql[..sql.len() - source.len()];
    let (mut scripts, mut statements) = (BTreeMap::<String, String>::new(), Vec::new());
    for text in sql::statement_texts(source)? {
        let mut schemas = BTreeSet::new();
        mentioned(catalog, &format!("{settings}{text}"), &mut schemas)?;
        let mut found = schemas.into_iter();
        let schema = match (found.next(), found.next()) {
            (Some(one), None) => one,
            (Some(one), Some(other)) => {
                return Err(SqlError::unsupported(format_args!(
                    "a statement in the schemas \"{one}\" and \"{other}\", which have members,"
                ))
                .hint("Write one statement for each, and send them together: they are one transaction."));
            }
            (None, _) => {
                return Err(SqlError::unsupported(format_args!(
                    "a transaction in schemas with members and in what everybody sees ({})",
                    shortened(text)
                ))
                .hint("Send one transaction for each."));
            }
        };
        let script = scripts.entry(schema.clone()).or_insert_with(|| settings.to_string());
        script.push_str(text);
        script.push_str(";\n");
        statements.push(schema);
    }
    let script = |(schema, sql)| (schema, Payload::Script { sql, parameters: parameters.to_vec() });
    Ok(Routed { payloads: scripts.into_iter().map(script).collect(), statements })
}

/// The beginning of a statement, for an error.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// A name of the catalog.
fn mention(catalog: &Catalog, name: &str, schemas: &mut BTreeSet<String>) {
    let schema = schema_of_name(name);
    if catalog.members_of(schema).is_some() {
        schemas.insert(schema.to_string());
    }
}

/// The names in a script. What cannot be read says so where it runs, which is not here.
///
/// In doubt it is the schema that is meant: what is taken for everybody's by mistake everybody reads for ever. So whether the
/// object exists does not count, and an alias that has the schema's name is taken for it.
///
/// # Errors
/// `0A000` where a schema with members is looked into only behind another one: which names are its own is not told from the text.
fn mentioned(catalog: &Catalog, sql: &str, schemas: &mut BTreeSet<String>) -> Result<(), SqlError> {
    // Settings that cannot be read hide no names.
    let (settings, source) =
        split_settings(sql, ExecutionVersion::NEWEST).unwrap_or((ScriptSettings::default(), sql));
    if is_about_schemas(source) {
        return Ok(());
    }
    let mut of_path = settings.search_path.schemas().iter();
    if let Some(first) = of_path.next()
        && catalog.members_of(first).is_some()
    {
        schemas.insert(first.clone());
    } else if let Some(behind) = of_path.find(|schema| catalog.members_of(schema).is_some()) {
        let what = format!(
            "a change while schema \"{behind}\", which has members, stands behind another one in search_path"
        );
        return Err(SqlError::unsupported(what).hint(
            "Put it first in search_path, or leave it out and write its name in front of its objects.",
        ));
    }
    let names = sql::qualified_names(source).unwrap_or_default();
    schemas.extend(
        names.into_iter().map(|(schema, _)| schema).filter(|schema| catalog.members_of(schema).is_some()),
    );
    Ok(())
}

/// Whether a script is one statement that makes, changes or drops a schema: who has schemas is everybody's to know, whatever the path.
fn is_about_schemas(source: &str) -> bool {
    let mut words = source.split_whitespace();
    let mut next_is = |known: &[&str]| {
        words.next().is_some_and(|word| known.iter().any(|one| word.eq_ignore_ascii_case(one)))
    };
    next_is(&["create", "drop", "alter"])
        && next_is(&["schema"])
        && sql::statement_texts(source).is_ok_and(|texts| texts.len() == 1)
}

/// An error of a part, for a client who may have thought that it sees more.
pub(super) fn explained(error: SqlError, schema: &str) -> SqlError {
    let unknown = [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_FUNCTION].contains(&error.state);
    match unknown && error.hint.is_none() {
        true => error.hint(format!(
            "A statement that changes schema \"{schema}\" sees what stands in it, and nothing else."
        )),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use types::{Schema, SchemaMembers};

    fn catalog() -> Catalog {
        let members = |number| {
            let members = SchemaMembers { number, since: 1, changed: 1, organisations: vec![0, 1] };
            Schema { owner: None, members: Some(Arc::new(members)) }
        };
        Catalog {
            schemas: [
                ("deal".into(), members(1)),
                ("other".into(), members(2)),
                ("open".into(), Schema::default()),
            ]
            .into(),
            ..Catalog::default()
        }
    }

    fn schema_of(catalog: &Catalog, payload: &Payload) -> Result<Option<String>, SqlError> {
        let routed = route(catalog, payload)?;
        Ok(routed.map(|routed| routed.payloads.into_keys().collect::<Vec<_>>().join(" and ")))
    }

    fn of(sql: &str) -> Result<Option<String>, SqlError> {
        schema_of(&catalog(), &Payload::Script { sql: sql.to_string(), parameters: vec![] })
    }

    #[test]
    fn names_tell_which_schema_a_transaction_concerns() {
        let deal = Ok(Some("deal".to_string()));
        assert_eq!(of("UPDATE deal.trades SET n = 1"), deal);
        assert_eq!(
            of("UPDATE deal.trade SET n = 'secret'"),
            deal,
            "a table that is not there: told to members alone"
        );
        assert_eq!(of("CREATE TABLE deal.more (id int PRIMARY KEY)"), deal);
        assert_eq!(of("DO $$ BEGIN UPDATE deal.trades SET n = 1; END $$"), deal);
        assert_eq!(
            of("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT n FROM deal.trades $$"),
            deal
        );
        assert_eq!(of("SET search_path TO deal, public; INSERT INTO trades VALUES (1)"), deal);
        let behind = of("SET search_path TO public, deal; INSERT INTO trades VALUES ('secret')");
        assert!(
            behind
                .expect_err("it may be meant")
                .message
                .contains("\"deal\", which has members, stands behind")
        );
        assert_eq!(of("UPDATE orders SET n = 1"), Ok(None));
        assert_eq!(of("INSERT INTO orders VALUES ('see deal.trades')"), Ok(None));
        assert_eq!(of("CREATE SCHEMA third MEMBERS (org1)"), Ok(None));
        assert_eq!(of("DROP SCHEMA deal"), Ok(None));
        let zoned = "SET TIME ZONE 'Asia/Tokyo';SET search_path TO deal;INSERT INTO trades VALUES (1)";
        assert_eq!(of(zoned), Ok(Some("deal".to_string())));
        // What cannot be read is still nobody else's.
        for sql in [
            "SET TIME ZONE 'Nowhere';INSERT INTO deal.trades VALUES ('secret')",
            "SET search_path TO a b;INSERT INTO deal.trades VALUES (1)",
        ] {
            assert_ne!(of(sql), Ok(None), "{sql}");
        }
        assert_eq!(of("SET search_path TO deal; CREATE SCHEMA third MEMBERS (org1)"), Ok(None));
        assert_eq!(of("SET search_path TO deal; ALTER SCHEMA deal ADD MEMBER org3;"), Ok(None));
        assert_eq!(of("CREATE TABLE open.t (id int PRIMARY KEY)"), Ok(None));
        let both = of("UPDATE deal.trades SET n = (SELECT n FROM other.t)").expect_err("one statement");
        assert!(both.message.contains("\"deal\" and \"other\""), "{both:?}");
        let mixed = of("UPDATE deal.trades SET n = 1; UPDATE orders SET n = 2; UPDATE other.t SET n = 1");
        assert!(mixed.expect_err("everybody's, too").message.contains("(UPDATE orders SET n = 2)"));
        let steps = vec![SessionStep::Run { sql: "UPDATE deal.trades SET n = 1".into(), parameters: vec![] }];
        let session = Payload::Session { steps, now_ms: 0, results: crypto::Digest::ZERO };
        let error = schema_of(&catalog(), &session).expect_err("a block");
        assert!(error.message.contains("transaction block"), "{error:?}");
        let call = Payload::Call { procedure: "deal.pay".into(), arguments: vec![] };
        assert_eq!(schema_of(&catalog(), &call), deal);
        assert_eq!(schema_of(&Catalog::default(), &call), Ok(None));
    }
    #[test]
    fn a_script_is_split_at_the_boundaries_of_schemas() {
        let sql =
            "SET search_path TO public; UPDATE deal.a SET n = ';'; CALL other.p(1); UPDATE deal.b SET n = 2;";
        let script = Payload::Script { sql: sql.to_string(), parameters: vec![] };
        let routed = route(&catalog(), &script).expect("it can be split").expect("private");
        let of = |schema: &str| match &routed.payloads[schema] {
            Payload::Script { sql, .. } => sql.clone(),
            other => panic!("expected a script, found {other:?}"),
        };
        assert_eq!(
            of("deal"),
            "SET search_path TO public;UPDATE deal.a SET n = ';';\nUPDATE deal.b SET n = 2;\n"
        );
        assert_eq!(of("other"), "SET search_path TO public;CALL other.p(1);\n");
        assert_eq!(routed.statements, ["deal", "other", "deal"]);
    }
}
