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
        Payload::Script { sql, .. } => mentioned(catalog, sql, &mut schemas),
        Payload::Session { steps, .. } => {
            for step in steps {
                match step {
                    SessionStep::Run { sql, .. } => mentioned(catalog, sql, &mut schemas),
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
fn mentioned(catalog: &Catalog, sql: &str, schemas: &mut BTreeSet<String>) {
    let Ok((path, source)) = split_search_path(sql) else { return };
    if let Some(first) = path.schemas().first()
        && catalog.members_of(first).is_some()
    {
        schemas.insert(first.clone());
    }
    let changes_schema =
        sql::is_schema_change(&Payload::Script { sql: source.to_string(), parameters: vec![] });
    let names = sql::qualified_names(source).unwrap_or_default();
    for (schema, object) in names.qualified {
        if catalog.members_of(&schema).is_none() {
            continue;
        }
        // An alias in front of a column looks like a schema, but then it stands alone, too, where it is given. In doubt it is the
        // schema: what is taken for everybody's by mistake everybody reads for ever.
        let name = format!("{schema}.{object}");
        let exists = || catalog.has_relation(&name) || catalog.has_routine(&name);
        if changes_schema || exists() || !names.alone.contains(&schema) {
            schemas.insert(schema);
        }
    }
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
    use types::{Schema, SchemaMembers, Table, TableId};

    fn catalog() -> Catalog {
        let members = |number| {
            let members = SchemaMembers { number, since: 1, organisations: vec![0, 1] };
            Schema { owner: None, members: Some(Arc::new(members)) }
        };
        let table = |name: &str| {
            let table = Table {
                id: TableId(1),
                name: name.to_string(),
                columns: vec![],
                primary_key: vec![],
                primary_key_name: String::new(),
                checks: vec![],
                endorsement: None,
            };
            (name.to_string(), Arc::new(table))
        };
        Catalog {
            schemas: [
                ("deal".into(), members(1)),
                ("other".into(), members(2)),
                ("open".into(), Schema::default()),
            ]
            .into(),
            tables: [table("deal.trades"), table("other.t"), table("orders")].into(),
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
        assert_eq!(of("CREATE TABLE deal.more (id int PRIMARY KEY)"), deal);
        assert_eq!(of("SET search_path TO deal, public; INSERT INTO trades VALUES (1)"), deal);
        assert_eq!(
            of("UPDATE deal.trade SET n = 'secret'"),
            deal,
            "a table that is not there: told to members alone"
        );
        assert_eq!(of("INSERT INTO orders VALUES (1); INSERT INTO deal.tradez VALUES ('deal')"), deal);
        assert_eq!(of("UPDATE orders SET n = 1"), Ok(None));
        assert_eq!(of("UPDATE orders deal SET n = deal.n + 1"), Ok(None), "an alias");
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
