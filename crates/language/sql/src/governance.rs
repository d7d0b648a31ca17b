//! Consent: a change of the schema or the charter that its organisation cannot make alone becomes a proposal, and is made
//! when enough have approved it, at the place of the last approval.
//!
//! ```text
//!  a script ─▶ run_script ─▶ a changed catalog ─┬▶ the organisation alone is enough, or it is its own affair: made
//!                                               └▶ else: the catalog as it was, with a proposal
//!  entente.approve ─▶ the rule is met ─▶ run_script again, on the catalog of now: done, or failed and closed
//! ```
//!
//! What needs consent is what a script comes to, not how it is written: the changed catalog is held against the one
//! before it. Where the changed catalog has only roles of the script's own organisation changed, nobody else is
//! asked. An approval that changes the charter makes an `AmendedCharter` with the height at which it takes effect;
//! the engine looks the charter up by height (`Governance::charter_at`).

use crate::consent::{check_policies, needs_consent, needs_others};
use crate::ddl::bind_schema_change;
use crate::ddl::change::{SchemaChange, call_columns};
use crate::library::Library;
use crate::script::{Script, is_schema_change};
use crate::session::place::Place;
use crate::session::stage::{COMPILE_STEPS, run_script};
use execute::Suspended;
use state::Effects;
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::parse::ParsedStatement;
use syntax::parse::governance::{GovernanceCall, GovernanceRequest};
use types::{
    Catalog, ChangeProposal, CharterChange, ExecutionVersion, Governance, Notice, Notifications, Payload,
    Principal, ProposalState, ProposedChange, Redaction, ScriptSettings, SearchPath, Severity, SqlError,
    SqlState, StatementResult, Value, limits, split_settings,
};

/// The call that is all of a script.
fn only_call(library: &Library, script: &Script<'_>) -> Option<GovernanceCall> {
    let [statement] = script.statements.as_slice() else { return None };
    match bind_schema_change(library.tables().routines().types(), statement) {
        Ok(Some(SchemaChange::Governance(call))) => Some(*call),
        _ => None,
    }
}

/// Runs a script of which some statements change the schema: changes, or proposes.
pub(crate) fn run_governed(
    library: &Arc<Library>,
    place: &Place<'_>,
    sql: &str,
    script: Script<'_>,
) -> Effects {
    if let Some(call) = only_call(library, &script) {
        return run_call(library, place, &call);
    }
    let types = library.tables().routines().types().with_search_path(&script.settings.search_path);
    // One that names a type of an earlier one cannot be bound yet, and is no plain statement either.
    // SET CONSTRAINTS, as migrations send it behind a change, changes nothing by itself.
    let changes_schema = |statement: &ParsedStatement| {
        matches!(statement, ParsedStatement::SetConstraints(_))
            || !matches!(bind_schema_change(&types, statement), Ok(None))
    };
    let only_changes = script.statements.iter().all(changes_schema);
    let mut effects = run_script(library, place, script);
    // A proposal has said nothing yet.
    let said = effects.result.as_mut().ok().and_then(Notifications::take_from);
    let before = place.snapshot.catalog();
    let needs_consent = effects.catalog.as_ref().is_some_and(|after| needs_consent(before, after, place));
    let results = match &mut effects.result {
        Ok(results) if needs_consent => results,
        Ok(results) => {
            results.extend(said);
            return effects;
        }
        Err(_) => return effects,
    };
    let statements = results.len();
    let warnings: Vec<Notice> = results.iter().flat_map(|result| result.notices.clone()).collect();
    let proposed = match only_changes {
        // A proposal is made in the name of the organisation's administrator, who may grant more than a role.
        _ if !place.principal.is_administrator() => {
            Err(needs_others(before, place, "a GRANT or REVOKE of a role")
                .hint("A role grants to roles of its own organisation. An administrator proposes the rest."))
        }
        true => propose(before, place, ProposedChange::Script(sql.to_string())),
        false => Err(needs_others(before, place, "a schema change among other statements")
            .hint("Send CREATE, ALTER and DROP in a script of their own: it becomes a proposal.")),
    };
    effects.commands.clear();
    effects.catalog = None;
    effects.result = proposed.map(|(catalog, notice)| {
        effects.catalog = Some(catalog);
        let mut results = vec![
            StatementResult { tag: "PROPOSE".to_string(), ..StatementResult::default() };
            statements.max(1)
        ];
        let told = warnings.iter().chain([&notice]).cloned();
        results.last_mut().into_iter().for_each(|last| last.notices.extend(told.clone()));
        results
    });
    effects
}

/// The catalog with one more proposal, and what its client is told.
///
/// # Errors
/// `54000` where its organisation has too many.
fn propose(
    before: &Catalog,
    place: &Place<'_>,
    change: ProposedChange,
) -> Result<(Arc<Catalog>, Notice), SqlError> {
    let (height, organisation) = (place.context.height, place.principal.organisation);
    let mut governance = before.governance.clone();
    governance.tidy(height);
    let number = governance.last_proposal + 1;
    let proposal = ChangeProposal {
        number,
        organisation,
        transaction: place.context.transaction,
        change,
        height,
        expires_at: height.saturating_add(limits::PROPOSAL_BLOCKS_MAX),
        approved_by: BTreeSet::from([organisation]),
        rejected_by: BTreeSet::new(),
        state: ProposalState::Open,
        decided_height: None,
    };
    governance.last_proposal = number;
    governance.proposals.insert(number, Arc::new(proposal));
    let (open, bytes) = governance.open_of(organisation, height);
    if open > limits::PROPOSALS_OPEN_MAX || bytes > limits::PROPOSALS_OPEN_BYTES_MAX {
        let message = format!(
            "an organisation has at most {} open proposals (PROPOSALS_OPEN_MAX) of {} bytes together \
             (PROPOSALS_OPEN_BYTES_MAX), with this one it has {open} of {bytes} bytes",
            limits::PROPOSALS_OPEN_MAX,
            limits::PROPOSALS_OPEN_BYTES_MAX
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("Have some of them approved, or take them back with entente.withdraw."));
    }
    let missing = governance.missing(height, &BTreeSet::from([organisation]));
    let message = format!("proposal {number} waits for the consent of {missing}: nothing has changed yet");
    let hint = format!("Their administrators approve it with SELECT entente.approve({number}).");
    let report = SqlError::new(Severity::Warning.state(), message).hint(hint);
    Ok((governed(before, governance), Notice { severity: Severity::Warning, report }))
}

/// The next catalog after `before`, with this governance.
fn governed(before: &Catalog, governance: Governance) -> Arc<Catalog> {
    Arc::new(Catalog { version: before.version + 1, governance, ..before.clone() })
}

/// What a call comes to, before it is made into effects.
struct Answer {
    catalog: Option<Arc<Catalog>>,
    text: String,
    notices: Vec<Notice>,
    /// What a script did that was approved.
    script: Option<Effects>,
}

impl Answer {
    fn of(catalog: Option<Arc<Catalog>>, text: impl Into<String>) -> Answer {
        Answer { catalog, text: text.into(), notices: Vec::new(), script: None }
    }
}

/// Runs `entente.approve` and its kind.
fn run_call(library: &Arc<Library>, place: &Place<'_>, call: &GovernanceCall) -> Effects {
    let before = place.snapshot.catalog();
    let compiled = (before.tables.len() + before.views.len() + before.procedures.len()) as u64;
    let mut suspended = Suspended::default();
    let mut execution = place.resume(library, place.snapshot, &mut suspended);
    let charged = execution.charge(1 + COMPILE_STEPS * compiled);
    suspended = execution.suspend();
    let (_, mut steps) = suspended.into_commands();
    let answer = charged.and_then(|()| check_voice(before, place)).and_then(|()| match &call.request {
        GovernanceRequest::Approve(number) => approve(library, place, *number),
        GovernanceRequest::Reject(number) => reject(place, *number),
        GovernanceRequest::Withdraw(number) => withdraw(place, *number),
        GovernanceRequest::Amend(change) => amend(place, change),
        GovernanceRequest::Redact(redaction) => redact(place, redaction),
    });
    let (mut catalog, mut commands, mut said) = (None, Vec::new(), None);
    let result = answer.map(|answer| {
        if let Some(script) = answer.script {
            commands = script.commands;
            steps += script.steps;
            said = script.result.ok().and_then(|mut results| Notifications::take_from(&mut results));
        }
        catalog = answer.catalog;
        let told = StatementResult {
            tag: "SELECT 1".to_string(),
            columns: call_columns(call),
            rows: vec![vec![Value::text(answer.text)]],
            notices: answer.notices,
        };
        [told].into_iter().chain(said).collect()
    });
    Effects { reads: Vec::new(), scans: Vec::new(), commands, result, steps, catalog }
}

/// Whether the principal speaks for a member.
///
/// # Errors
/// `42501` where not.
fn check_voice(catalog: &Catalog, place: &Place<'_>) -> Result<(), SqlError> {
    let refused = |message: &str| Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    if !place.principal.is_administrator() {
        return refused("permission denied for the organisation's consent").map_err(|error| {
            error.hint("Its administrator decides, who connects under the organisation's name.")
        });
    }
    match catalog.governance.charter_at(place.context.height) {
        None => refused("nobody governs here: there is no charter"),
        Some(charter) if charter.members().all(|(position, _)| position != place.principal.organisation) => {
            refused("the organisation is no member of the ledger")
        }
        Some(_) => Ok(()),
    }
}

/// The proposal with this number, if it can be decided.
///
/// # Errors
/// `42704` where there is none, `55000` where it is closed.
fn open_proposal(
    governance: &mut Governance,
    number: u64,
    height: u64,
) -> Result<&mut ChangeProposal, SqlError> {
    let last = governance.last_proposal;
    let Some(proposal) = governance.proposals.get_mut(&number) else {
        let message = format!("proposal {number} does not exist");
        let hint = match number {
            0 => "Proposals are numbered from 1.".to_string(),
            number if number <= last => {
                "It was closed long ago, and is in entente.transactions alone.".to_string()
            }
            _ => format!("The last one is {last}; entente.proposals shows them."),
        };
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).hint(hint));
    };
    if *proposal.state_at(height) != ProposalState::Open {
        let (state, _) = describe_state(proposal.state_at(height));
        let message = format!("proposal {number} is closed: {state}");
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .hint("Propose the change again if it is still wanted."));
    }
    Ok(Arc::make_mut(proposal))
}

/// The amendment of the charter, or the redaction, that a transaction agrees to by proposing it or by approving of the proposal.
pub fn agreed_change(library: &Library, payload: &Payload) -> Option<ProposedChange> {
    let Payload::Script { sql, .. } = payload else { return None };
    let script = is_schema_change(payload, library.version())
        .then(|| Script::parse(sql, library.version()).ok())
        .flatten()?;
    match only_call(library, &script)?.request {
        GovernanceRequest::Amend(change) => Some(ProposedChange::Charter(*change)),
        GovernanceRequest::Redact(redaction) => Some(ProposedChange::Redaction(redaction)),
        GovernanceRequest::Approve(number) => {
            let catalog = library.catalog();
            let proposal = catalog.governance.proposals.get(&number)?;
            match &proposal.change {
                ProposedChange::Script(_) => None,
                ProposedChange::Redaction(_) if proposal.state != ProposalState::Open => None,
                change => Some(change.clone()),
            }
        }
        GovernanceRequest::Reject(_) | GovernanceRequest::Withdraw(_) => None,
    }
}

/// A state in a word, and the error that a failed change ended with.
pub fn describe_state(state: &ProposalState) -> (&'static str, Option<&SqlError>) {
    match state {
        ProposalState::Open => ("open", None),
        ProposalState::Done => ("done", None),
        ProposalState::Failed(error) => ("failed", Some(error)),
        ProposalState::Rejected => ("rejected", None),
        ProposalState::Withdrawn => ("withdrawn", None),
        ProposalState::Expired => ("expired", None),
    }
}

/// What is to be changed, as the statement that has proposed it.
pub fn describe_change(change: &ProposedChange) -> String {
    let change = match change {
        ProposedChange::Script(sql) => {
            // Whoever consents sees in which zone it reads; names are told by the search path, which says nothing to others.
            let shown = |(settings, source): (ScriptSettings, &str)| {
                ScriptSettings { search_path: SearchPath::default(), ..settings }
                    .in_front_of(source)
                    .into_owned()
            };
            return split_settings(sql, ExecutionVersion::NEWEST).map_or_else(|_| sql.clone(), shown);
        }
        ProposedChange::Charter(change) => change,
        ProposedChange::Redaction(Redaction { transaction, reason }) => {
            return format!("SELECT entente.redact('{transaction}', '{}')", reason.replace('\'', "''"));
        }
    };
    let call = |function: &str, arguments: &[&str]| {
        let arguments: Vec<String> =
            arguments.iter().map(|text| format!("'{}'", text.replace('\'', "''"))).collect();
        format!("SELECT entente.{function}({})", arguments.join(", "))
    };
    match change {
        CharterChange::AddOrganisation { organisation, acceptance } => {
            let (root, node) = (organisation.root_key.to_string(), organisation.node_key.to_string());
            let (address, gateway) = (&organisation.address, &organisation.gateway);
            let acceptance = acceptance.to_string();
            call("add_organisation", &[&organisation.name, &root, &node, address, gateway, &acceptance])
        }
        CharterChange::RemoveOrganisation { name } => call("remove_organisation", &[name]),
        CharterChange::ReplaceNodeKey { name, node_key, expires } => {
            let plain = call("replace_node_key", &[name, &node_key.to_string()]);
            match expires {
                None => plain,
                Some(height) => format!("{}, {height})", &plain[..plain.len() - 1]),
            }
        }
        CharterChange::SetAddress { name, address, gateway } => {
            call("set_address", &[name, address, gateway])
        }
        CharterChange::SetParameter { parameter, value } => call("set_charter", &[parameter, value]),
    }
}

fn close(governance: &mut Governance, number: u64, height: u64, state: ProposalState) {
    if let Some(proposal) = governance.proposals.get_mut(&number) {
        let proposal = Arc::make_mut(proposal);
        proposal.state = state;
        proposal.decided_height = Some(height);
    }
    governance.tidy(height);
}

/// An organisation agrees; with enough others the change is made, here and now.
fn approve(library: &Arc<Library>, place: &Place<'_>, number: u64) -> Result<Answer, SqlError> {
    let (before, height) = (place.snapshot.catalog(), place.context.height);
    let mut governance = before.governance.clone();
    let proposal = open_proposal(&mut governance, number, height)?;
    let organisation = place.principal.organisation;
    let is_new = proposal.approved_by.insert(organisation) | proposal.rejected_by.remove(&organisation);
    let proposal = proposal.clone();
    if !governance.is_agreed(height, &|position| proposal.approved_by.contains(&position)) {
        let text = format!("waits for the consent of {}", governance.missing(height, &proposal.approved_by));
        return Ok(Answer::of(is_new.then(|| governed(before, governance)), text));
    }
    let mut script = None;
    let made = match &proposal.change {
        ProposedChange::Script(sql) => {
            let principal = Principal::new(proposal.organisation, "");
            let place = Place { principal: &principal, row_locks: None, ..*place };
            Script::parse(sql, library.version()).and_then(|parsed| {
                let effects = run_script(library, &place, parsed);
                let made = effects.result.clone().map(|_| effects.catalog.clone());
                script = Some(effects);
                made.map(|catalog| {
                    let catalog = catalog.map_or_else(|| Catalog::clone(before), Arc::unwrap_or_clone);
                    // The change knows nothing of the approvals that it was made with.
                    let version = catalog.version.max(before.version + 1);
                    (Catalog { version, governance: governance.clone(), ..catalog }, "done".to_string())
                })
            })
        }
        ProposedChange::Charter(change) => amended(before, governance.clone(), change, height)
            .map(|(governance, text)| (Catalog::clone(&governed(before, governance)), text)),
        // Each node carries it out once it needs the transaction no more.
        ProposedChange::Redaction(_) => check_redactions(&governance)
            .map(|()| (Catalog::clone(&governed(before, governance.clone())), "done".to_string())),
    };
    match made {
        Ok((mut catalog, text)) => {
            close(&mut catalog.governance, number, height, ProposalState::Done);
            Ok(Answer { script, ..Answer::of(Some(Arc::new(catalog)), text) })
        }
        Err(error) => {
            let message = format!("proposal {number} was approved and has failed: {}", error.message);
            let report = SqlError { message, ..error.clone() };
            let text = format!("failed: {}", error.message);
            close(&mut governance, number, height, ProposalState::Failed(error));
            let notices = vec![Notice { severity: Severity::Warning, report }];
            Ok(Answer { notices, script, ..Answer::of(Some(governed(before, governance)), text) })
        }
    }
}

/// An organisation does not agree; where the others are too few, the proposal is closed.
fn reject(place: &Place<'_>, number: u64) -> Result<Answer, SqlError> {
    let (before, height) = (place.snapshot.catalog(), place.context.height);
    let mut governance = before.governance.clone();
    let proposal = open_proposal(&mut governance, number, height)?;
    let organisation = place.principal.organisation;
    let is_new = proposal.rejected_by.insert(organisation) | proposal.approved_by.remove(&organisation);
    let proposal = proposal.clone();
    let text = match governance.is_agreed(height, &|position| !proposal.rejected_by.contains(&position)) {
        true => format!("waits for the consent of {}", governance.missing(height, &proposal.approved_by)),
        false => {
            close(&mut governance, number, height, ProposalState::Rejected);
            "rejected".to_string()
        }
    };
    Ok(Answer::of(is_new.then(|| governed(before, governance)), text))
}

/// The organisation that has made a proposal takes it back.
fn withdraw(place: &Place<'_>, number: u64) -> Result<Answer, SqlError> {
    let (before, height) = (place.snapshot.catalog(), place.context.height);
    let mut governance = before.governance.clone();
    let proposal = open_proposal(&mut governance, number, height)?;
    if proposal.organisation != place.principal.organisation {
        let message = format!("permission denied for proposal {number}");
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            .hint("It is another organisation's: reject it with entente.reject."));
    }
    close(&mut governance, number, height, ProposalState::Withdrawn);
    Ok(Answer::of(Some(governed(before, governance)), "withdrawn"))
}

/// Amends the charter, or proposes that.
fn amend(place: &Place<'_>, change: &CharterChange) -> Result<Answer, SqlError> {
    let (before, height) = (place.snapshot.catalog(), place.context.height);
    // What cannot be is refused before anybody is asked.
    let (governance, text) = amended(before, before.governance.clone(), change, height)?;
    let organisation = place.principal.organisation;
    if before.governance.is_agreed(height, &|position| position == organisation) {
        return Ok(Answer::of(Some(governed(before, governance)), text));
    }
    let (catalog, notice) = propose(before, place, ProposedChange::Charter(change.clone()))?;
    let text = format!("proposal {}", catalog.governance.last_proposal);
    Ok(Answer { notices: vec![notice], ..Answer::of(Some(catalog), text) })
}

/// Has a transaction redacted, or proposes that. Whether the ledger has such a transaction, and whether it may be redacted, nodes
/// say before they order this: the state does not have it.
fn redact(place: &Place<'_>, redaction: &Redaction) -> Result<Answer, SqlError> {
    let (before, height) = (place.snapshot.catalog(), place.context.height);
    if let Some(known) = before.governance.redaction_of(&redaction.transaction, height) {
        let (number, done) = (known.number, known.state == ProposalState::Done);
        let message = match done {
            true => {
                format!("transaction {} is redacted already, by proposal {number}", redaction.transaction)
            }
            false => format!("proposal {number} is to redact transaction {} already", redaction.transaction),
        };
        let error = SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
        return Err(match done {
            true => error.hint("Nodes carry it out as soon as they do not need the transaction any more."),
            false => error.hint(format!("Administrators approve it with SELECT entente.approve({number}).")),
        });
    }
    check_redactions(&before.governance)?;
    let (change, organisation) = (ProposedChange::Redaction(redaction.clone()), place.principal.organisation);
    let (catalog, notice) = propose(before, place, change)?;
    let number = catalog.governance.last_proposal;
    if before.governance.is_agreed(height, &|position| position == organisation) {
        let mut governance = catalog.governance.clone();
        close(&mut governance, number, height, ProposalState::Done);
        return Ok(Answer::of(Some(governed(before, governance)), format!("done: proposal {number}")));
    }
    Ok(Answer { notices: vec![notice], ..Answer::of(Some(catalog), format!("proposal {number}")) })
}

/// Whether there may be one more.
///
/// # Errors
/// `54000`.
fn check_redactions(governance: &Governance) -> Result<(), SqlError> {
    let (done, most) = (governance.redactions().count(), limits::REDACTIONS_MAX);
    if done < most {
        return Ok(());
    }
    let message = format!("a ledger has at most {most} redactions (REDACTIONS_MAX)");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("Found a new ledger."))
}

/// The governance with an amendment of the newest charter, and what that is told as.
fn amended(
    catalog: &Catalog,
    mut governance: Governance,
    change: &CharterChange,
    height: u64,
) -> Result<(Governance, String), SqlError> {
    let wrong = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if governance.amendments.len() >= limits::AMENDMENTS_MAX {
        let message =
            format!("a charter is amended at most {} times (AMENDMENTS_MAX)", limits::AMENDMENTS_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("Found a new ledger."));
    }
    let (pending, most) = (governance.pending_at(height).count(), limits::AMENDMENTS_PENDING_MAX);
    if pending >= most {
        let message =
            format!("{pending} amendments do not hold yet, the limit is {most} (AMENDMENTS_PENDING_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("Propose it again once some of them hold."));
    }
    let newest = governance.newest_charter().ok_or_else(|| wrong("there is no charter".to_string()))?;
    let charter = newest.amended(change).map_err(|error| wrong(error.to_string()))?;
    // A role of an organisation's name would act as the administrator of that where policies of rows name it.
    let mut names = charter.organisations.iter().map(|organisation| &organisation.name);
    if charter.execution_version >= ExecutionVersion::V8.number()
        && let Some(name) = names.find(|name| catalog.roles.by_name.contains_key(*name))
    {
        let message = format!("a role is called \"{name}\", as an organisation is");
        return Err(wrong(message).hint("Its organisation drops the role, or takes another name for it."));
    }
    check_policies(catalog, &charter)?;
    let version = charter.version;
    let effective = governance.amend(charter, height);
    Ok((governance, format!("version {version} of the charter holds from height {effective} on")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_has_only_so_many_redactions() {
        let mut governance = Governance::default();
        let proposal = |number: u64| ChangeProposal {
            number,
            organisation: 0,
            transaction: types::TransactionId::default(),
            change: ProposedChange::Redaction(Redaction {
                transaction: types::TransactionId::default(),
                reason: "the law".to_string(),
            }),
            height: number,
            expires_at: number + 1,
            approved_by: BTreeSet::new(),
            rejected_by: BTreeSet::new(),
            state: ProposalState::Done,
            decided_height: Some(number),
        };
        for number in 1..=limits::REDACTIONS_MAX as u64 {
            check_redactions(&governance).expect("there is room");
            governance.proposals.insert(number, Arc::new(proposal(number)));
        }
        governance.tidy(u64::MAX);
        assert_eq!(governance.redactions().count(), limits::REDACTIONS_MAX, "none is forgotten");
        let error = check_redactions(&governance).expect_err("one too many");
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(error.message.contains("REDACTIONS_MAX"), "{}", error.message);
    }
}
