//! Which schema with members a transaction of a session concerns, told from the names in it.

use std::collections::BTreeSet;
use types::{
    Catalog, Payload, SessionStep, SqlError, SqlState, schema_of as schema_of_name, split_search_path,
};

/// The schema that a transaction concerns; `None`: what everybody sees. `catalog`: the ledger's, with what stands in this
/// organisation's schemas.
///
/// # Errors
/// `0A000` where it concerns several, or is a transaction block.
pub(crate) fn schema_of(catalog: &Catalog, payload: &Payload) -> Result<Option<String>, SqlError> {
    if catalog.schemas.values().all(|schema| schema.members.is_none()) {
        return Ok(None);
    }
    let mut schemas = BTreeSet::new();
    match payload {
        Payload::Call { procedure, .. } => mention(catalog, procedure, &mut schemas),
        Payload::Insert { table, .. } => mention(catalog, table, &mut schemas),
        Payload::Script { sql, .. } => mentioned(catalog, sql, &mut schemas)?,
        Payload::Session { steps, .. } => {
            for step in steps {
                match step {
                    SessionStep::Run { sql, .. } => mentioned(catalog, sql, &mut schemas)?,
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
        Payload::Parts { .. } => {}
    }
    if let [one, other, ..] = schemas.iter().collect::<Vec<_>>().as_slice() {
        return Err(SqlError::unsupported(format_args!(
            "a transaction in the schemas \"{one}\" and \"{other}\", which have members,"
        ))
        .hint("Send one transaction for each."));
    }
    Ok(schemas.pop_first())
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
    let Ok((path, source)) = split_search_path(sql) else { return Ok(()) };
    let mut of_path = path.schemas().iter();
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
            let members = SchemaMembers { number, since: 1, organisations: vec![0, 1] };
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
        assert_eq!(of("CREATE TABLE open.t (id int PRIMARY KEY)"), Ok(None));
        let both = of("UPDATE deal.trades SET n = 1; UPDATE other.t SET n = 2").expect_err("two schemas");
        assert!(both.message.contains("\"deal\" and \"other\""), "{both:?}");
        let steps = vec![SessionStep::Run { sql: "UPDATE deal.trades SET n = 1".into(), parameters: vec![] }];
        let session = Payload::Session { steps, now_ms: 0, results: crypto::Digest::ZERO };
        let error = schema_of(&catalog(), &session).expect_err("a block");
        assert!(error.message.contains("transaction block"), "{error:?}");
        let call = Payload::Call { procedure: "deal.pay".into(), arguments: vec![] };
        assert_eq!(schema_of(&catalog(), &call), deal);
        assert_eq!(schema_of(&Catalog::default(), &call), Ok(None));
    }
}
