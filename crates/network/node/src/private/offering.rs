//! Transactions in schemas with members that others are to agree to before they are ordered: `entente.offer`, `entente.offered`,
//! `entente.sign` and `entente.submit`. An offer is a text that people send to one another; nodes keep nothing of it.

use super::asking::{AnswerWhen, Asking, results_in_order};
use super::collecting::Bundle;
use super::routing::route;
use sql::{OfferCall, OfferFunction};
use types::{
    Catalog, Charter, DataType, DraftPart, ExecutionVersion, Identity, OutputColumn, PartsDraft, Payload,
    Receipt, SqlError, SqlState, StatementResult, Value, format_value, split_settings,
};

/// What a session asks about an offer.
pub(crate) struct AskedOfOffer {
    function: OfferFunction,
    argument: String,
    /// The name of the column in which the answer comes.
    column: String,
}

impl AskedOfOffer {
    /// What a transaction of a session asks, if that is all that it does.
    ///
    /// # Errors
    /// `22004` for NULL, `42883` for what is no text; `0A000` where something else stands beside it: what is ordered everybody reads, and
    /// an offer says what is done in schemas with members.
    pub(crate) fn of(payload: &Payload) -> Result<Option<AskedOfOffer>, SqlError> {
        let Payload::Script { sql, parameters } = payload else { return Ok(None) };
        const SCHEMA: &[u8] = b"entente";
        // Most statements are about something else, and are not read for this.
        if !sql.as_bytes().windows(SCHEMA.len()).any(|word| word.eq_ignore_ascii_case(SCHEMA)) {
            return Ok(None);
        }
        let Some(OfferCall { function, argument, column }) = sql::offer_call(sql, parameters) else {
            let (_, source) = split_settings(sql, ExecutionVersion::NEWEST).unwrap_or_default();
            let names = sql::qualified_names(source).unwrap_or_default();
            let is_offer = |(schema, name): &(String, String)| {
                schema == "entente" && OfferFunction::named(name).is_some()
            };
            return match names.iter().find(|name| is_offer(name)) {
                Some((_, name)) => {
                    let what = format_args!("entente.{name}() beside something else");
                    Err(SqlError::unsupported(what).hint(format!(
                        "Send it alone, with a text or a parameter: SELECT entente.{name}('…')"
                    )))
                }
                None => Ok(None),
            };
        };
        match argument {
            Value::Text(text) => Ok(Some(AskedOfOffer { function, argument: text.to_string(), column })),
            Value::Null => {
                Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "expected an offer, found NULL"))
            }
            other => {
                let message = format!("expected a text, found a value of type {}", other.data_type());
                Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
            }
        }
    }
}

impl Asking {
    /// Answers what a session asks about an offer. `catalog`: the ledger's, with what stands in this organisation's schemas. Gives the
    /// height at which a transaction has taken effect, if one was submitted.
    ///
    /// # Errors
    /// `22023` for what is no offer, or one that is not this session's to submit; `42501` for a role; those of what is submitted.
    pub(crate) async fn offer(
        &self,
        asked: AskedOfOffer,
        (session, role): (&Identity, &str),
        (catalog, charter): (&Catalog, &Charter),
        height: u64,
        when: AnswerWhen,
        order: impl AsyncFnOnce(Bundle) -> Result<Receipt, SqlError>,
    ) -> Result<(Vec<StatementResult>, Option<u64>), SqlError> {
        if !role.is_empty() {
            let message = "an organisation's administrator makes, signs and submits offers";
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
                .hint("Connect as \"entente\", or under the organisation's name."));
        }
        let AskedOfOffer { function, argument, column } = asked;
        let answer = |text: &str| answer(&column, text);
        Ok(match function {
            OfferFunction::Offer => {
                let expires_at = height + u64::from(charter.expiry_blocks_max);
                (answer(&made(session, catalog, (argument, expires_at))?.to_text()), None)
            }
            OfferFunction::Offered => {
                let draft = PartsDraft::from_text(&argument)?;
                (answer(&shown(&draft, charter)), None)
            }
            OfferFunction::Sign => {
                let mut draft = PartsDraft::from_text(&argument)?;
                session.agree(&mut draft)?;
                (answer(&draft.to_text()), None)
            }
            OfferFunction::Submit => {
                let draft = PartsDraft::from_text(&argument)?;
                let signed = session.sign_draft(&draft)?;
                let ended = self.run_signed(signed, (session, height), when, order).await;
                let ended = ended.map_err(explained)?;
                let schemas: Vec<&str> = draft.parts.keys().map(String::as_str).collect();
                let at = ended.height;
                results_in_order(ended.outcomes, &[])?;
                let text = format!("committed at height {at} in {}", schemas.join(", "));
                (answer(&text), Some(at))
            }
        })
    }
}

/// An offer has one request of its client, so that nobody's signature is used twice.
fn explained(error: SqlError) -> SqlError {
    match error.state == SqlState::UNIQUE_VIOLATION && error.message.contains("used this request id") {
        true => SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "the offer was submitted before")
            .detail(error.message)
            .hint("An offer is executed once, however that ended. Make another one, and have it signed."),
        false => error,
    }
}

/// An offer of statements in schemas with members.
fn made(
    session: &Identity,
    catalog: &Catalog,
    (sql, expires_at): (String, u64),
) -> Result<PartsDraft, SqlError> {
    let routed = route(catalog, &Payload::Script { sql, parameters: Vec::new() })?;
    let routed = routed.ok_or_else(|| {
        let message = "the statements concern no schema with members";
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .hint("Send them as they are: what everybody sees needs nobody's signature.")
    })?;
    Ok(session.draft_parts(routed.payloads, expires_at))
}

/// What an offer does, for whoever is to sign it.
fn shown(draft: &PartsDraft, charter: &Charter) -> String {
    let mut lines = Vec::new();
    for (schema, part) in &draft.parts {
        let what = match part {
            DraftPart::Whole { call, .. } => written(call),
            DraftPart::Core(_) => "not shown".to_string(),
        };
        // Nothing in it looks like the next schema.
        lines.push(format!("in {schema}: {}", what.trim().replace('\n', "\n    ")));
    }
    for signature in &draft.signatures {
        let organisation = signature.organisation(charter, &draft.ledger);
        let who = organisation.map_or("key", |organisation| &organisation.name);
        lines.push(format!("signed by {who} {}", signature.key));
    }
    lines.push(format!("by client {}", draft.client.key));
    lines.push(format!("up to block {}", draft.expires_at));
    if draft.signatures.is_empty() {
        lines.push("signed by nobody yet".to_string());
    }
    lines.join("\n")
}

/// All that a part does.
fn written(call: &Payload) -> String {
    let value = |value: &Value| match format_value(value) {
        Some(text) => format!("'{}'", text.replace('\'', "''")),
        None => "NULL".to_string(),
    };
    let list = |values: &[Value]| values.iter().map(value).collect::<Vec<_>>().join(", ");
    match call {
        Payload::Script { sql, parameters } if parameters.is_empty() => sql.clone(),
        Payload::Script { sql, parameters } => format!("{}\nwith {}", sql.trim(), list(parameters)),
        Payload::Call { procedure, arguments } => format!("CALL {procedure}({})", list(arguments)),
        Payload::Insert { table, columns, rows } => {
            let rows: Vec<String> = rows.iter().map(|row| format!("({})", list(row))).collect();
            format!("COPY {table} ({}): {}", columns.join(", "), rows.join(", "))
        }
        _ => "nothing that can be executed".to_string(),
    }
}

fn answer(column: &str, text: &str) -> Vec<StatementResult> {
    vec![StatementResult {
        tag: "SELECT 1".to_string(),
        columns: vec![OutputColumn { name: column.to_string(), data_type: DataType::Text(None) }],
        rows: vec![vec![Value::text(text)]],
        notices: Vec::new(),
    }]
}
