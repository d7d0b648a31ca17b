//! Changes that need the consent of several organisations: proposals, approvals, and charters that change.

mod support;

use crypto::{SecretKey, Signature};
use engine::{Engine, ExecutedBlock};
use state::{read_checkpoint, write_checkpoint};
use support::{Chain, at, charter, script};
use types::{
    Charter, Credential, ExecutionModel, Organisation, Outcome, Payload, ProposalState, RejectReason,
    SessionResults, SessionStep, SqlState, Value, accept_membership, limits,
};

const NAMES: [&str; 4] = ["anna", "bert", "carl", "dora"];

fn organisation(number: u8, name: &str) -> Organisation {
    Organisation {
        name: name.to_string(),
        root_key: SecretKey::from_bytes([10 + number; 32]).public_key(),
        node_key: SecretKey::from_bytes([20 + number; 32]).public_key(),
        address: format!("127.0.0.1:{}", 7_000 + u16::from(number)),
        gateway: String::new(),
        removed: false,
        node_key_expires: None,
    }
}

/// Four organisations of which the majority governs.
fn governed(change: impl FnOnce(&mut Charter)) -> Chain {
    let mut charter = charter();
    charter.ordering = "bft".to_string();
    charter.governance = "majority".to_string();
    charter.outcome_lag_blocks = 2;
    charter.organisations = (0..4).map(|number| organisation(number, NAMES[usize::from(number)])).collect();
    change(&mut charter);
    for number in 0..4_u8 {
        charter.sign(usize::from(number), &SecretKey::from_bytes([10 + number; 32]));
    }
    charter.check().expect("a good charter");
    Chain::new(charter)
}

/// Every protocol of both models.
fn everywhere() -> Vec<Chain> {
    let of = |execution, ids: &[&str]| -> Vec<Chain> {
        let chain = |id: &&str| {
            governed(|charter| {
                charter.execution = execution;
                charter.protocol = id.to_string();
            })
        };
        ids.iter().map(chain).collect()
    };
    let mut all = of(ExecutionModel::OrderExecute, &concurrency::IDS);
    all.extend(of(ExecutionModel::ExecuteOrderValidate, &concurrency::VALIDATION_IDS));
    all
}

/// Executes a block with one payload of each of these organisations' administrators.
fn block(chain: &mut Chain, payloads: Vec<(u16, Payload)>) -> ExecutedBlock {
    let signed = payloads.into_iter().map(|(organisation, payload)| {
        let mut signed = chain.transaction(payload);
        signed.credential = Credential { organisation, signature: Signature([0; 64]) };
        signed
    });
    let signed = signed.collect();
    let block = chain.block(signed);
    chain.engine.execute(&block).expect("the next height")
}

fn by(chain: &mut Chain, organisation: u16, sql: &str) -> Outcome {
    block(chain, vec![(organisation, script(sql))]).receipts.remove(0).outcome
}

/// The tag of its last statement, what its first column says, and its last notice.
fn answer(outcome: &Outcome) -> (String, String, String) {
    let Outcome::Committed(results) = outcome else { panic!("{outcome:?}") };
    let last = results.last().expect("a result");
    let text = match last.rows.first().and_then(|row| row.first()) {
        Some(Value::Text(text)) => text.to_string(),
        _ => String::new(),
    };
    let notice = last.notices.last().map(|notice| notice.report.message.clone());
    (last.tag.clone(), text, notice.unwrap_or_default())
}

fn error(outcome: Outcome) -> (SqlState, String) {
    match outcome {
        Outcome::Aborted(error) => (error.state, error.message),
        other => panic!("{other:?}"),
    }
}

fn state(chain: &Chain, number: u64) -> ProposalState {
    let catalog = chain.engine.state().catalog();
    catalog.governance.proposals[&number].state_at(chain.engine.height()).clone()
}

fn has_table(chain: &Chain, name: &str) -> bool {
    chain.engine.state().catalog().tables.contains_key(name)
}

#[test]
fn a_refresh_waits_for_nobody_and_what_makes_a_materialized_view_does() {
    for mut chain in everywhere() {
        let made = "CREATE TABLE t (a bigint PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT a FROM t WITH NO DATA; \
                    CREATE UNIQUE INDEX v_once ON v (a)";
        assert_eq!(answer(&by(&mut chain, 1, made)).0, "PROPOSE");
        by(&mut chain, 2, "SELECT entente.approve(1)");
        by(&mut chain, 3, "SELECT entente.approve(1)");
        assert!(has_table(&chain, "v"));
        assert_eq!(answer(&by(&mut chain, 0, "REFRESH MATERIALIZED VIEW v")).0, "REFRESH MATERIALIZED VIEW");
        assert_eq!(answer(&by(&mut chain, 2, "REFRESH MATERIALIZED VIEW v")).0, "REFRESH MATERIALIZED VIEW");
        for other in
            ["ALTER MATERIALIZED VIEW v RENAME TO w", "DROP MATERIALIZED VIEW v", "DROP INDEX v_once"]
        {
            assert_eq!(answer(&by(&mut chain, 0, other)).0, "PROPOSE", "{other}");
        }
        let both = "REFRESH MATERIALIZED VIEW v; CREATE INDEX v_more ON v (a)";
        assert_eq!(answer(&by(&mut chain, 0, both)).0, "PROPOSE");
        let database = error(by(&mut chain, 0, "CREATE DATABASE other"));
        assert_eq!(database.0, SqlState::FEATURE_NOT_SUPPORTED, "{}", database.1);
    }
}

#[test]
fn a_change_waits_for_the_majority_under_every_protocol() {
    for mut chain in everywhere() {
        let mut other = Chain::new(Charter::clone(&chain.charter));
        let blocks: [Vec<(u16, Payload)>; 4] = [
            vec![(1, script("CREATE TABLE t (id bigint PRIMARY KEY); CREATE INDEX i ON t (id)"))],
            vec![(2, script("SELECT entente.approve(1)"))],
            // The table is there for what comes behind in the same block.
            vec![
                (2, script("SELECT entente.approve(1)")),
                (0, script("select ENTENTE.Approve ( 1 );")),
                (3, script("SELECT entente.approve(1)")),
            ],
            vec![(0, script("DROP TABLE t"))],
        ];
        let mut outcomes = Vec::new();
        for payloads in blocks {
            let executed = block(&mut chain, payloads.clone());
            let again = block(&mut other, payloads);
            assert_eq!(executed.outcome, again.outcome, "{}", chain.charter.protocol);
            outcomes.push(executed.receipts.into_iter().map(|one| one.outcome).collect::<Vec<_>>());
            if outcomes.len() < 3 {
                assert!(!has_table(&chain, "t"));
            }
        }
        let (tag, _, notice) = answer(&outcomes[0][0]);
        assert_eq!(tag, "PROPOSE");
        assert!(
            notice.starts_with("proposal 1 waits for the consent of 2 of (anna, carl, dora)"),
            "{notice}"
        );
        let expected =
            ("SELECT 1".to_string(), "waits for the consent of anna OR dora".to_string(), String::new());
        assert_eq!(answer(&outcomes[1][0]), expected);
        assert_eq!(answer(&outcomes[2][0]), expected, "who approves twice has approved once");
        assert_eq!(answer(&outcomes[2][1]).1, "done");
        let closed = error(outcomes[2][2].clone());
        assert_eq!(closed, (SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "proposal 1 is closed: done".into()));
        assert_eq!(answer(&outcomes[3][0]).0, "PROPOSE");
        assert!(has_table(&chain, "t") && state(&chain, 2) == ProposalState::Open);
    }
}

#[test]
fn a_checkpoint_has_what_waits() {
    let mut chain = governed(|_| {});
    by(&mut chain, 0, "CREATE TABLE t (id bigint)");
    by(&mut chain, 1, "SELECT entente.approve(1)");
    let header = chain.engine.checkpoint_header();
    let (mut bytes, live) = (Vec::new(), chain.engine.live().content());
    let snapshot = chain.engine.state().snapshot();
    write_checkpoint(&header, snapshot.as_ref(), &live, &mut bytes).expect("memory");
    let read = read_checkpoint(bytes.as_slice(), &memory::Memory).expect("what was written");
    let restored = Engine::at(chain.charter.clone(), at(&read.header), read.state, read.live);
    let approve = |engine: Engine| {
        let mut chain = Chain { engine, charter: chain.charter.clone(), requests: 9 };
        let executed = block(&mut chain, vec![(2, script("SELECT entente.approve(1)"))]);
        assert!(has_table(&chain, "t"));
        executed.outcome
    };
    let restored = approve(restored.expect("a good checkpoint"));
    let mut chain = Chain { requests: 9, engine: chain.engine, charter: chain.charter.clone() };
    assert_eq!(block(&mut chain, vec![(2, script("SELECT entente.approve(1)"))]).outcome, restored);
}

#[test]
fn who_proposes_may_take_back_and_others_may_refuse() {
    let mut chain = governed(|charter| charter.governance = "anna AND 2 of (bert, carl, dora)".to_string());
    by(&mut chain, 1, "CREATE TABLE t (id bigint)");
    let (state_, _) = error(by(&mut chain, 2, "SELECT entente.withdraw(1)"));
    assert_eq!(state_, SqlState::INSUFFICIENT_PRIVILEGE);
    assert_eq!(answer(&by(&mut chain, 1, "SELECT entente.withdraw(1)")).1, "withdrawn");
    assert_eq!(state(&chain, 1), ProposalState::Withdrawn);

    by(&mut chain, 1, "CREATE TABLE t (id bigint)");
    assert_eq!(
        answer(&by(&mut chain, 2, "SELECT entente.reject(2)")).1,
        "waits for the consent of anna AND (carl OR dora)"
    );
    // Who has rejected may change its mind, and who has approved as well.
    assert_eq!(answer(&by(&mut chain, 2, "SELECT entente.approve(2)")).1, "waits for the consent of anna");
    assert_eq!(answer(&by(&mut chain, 0, "SELECT entente.reject(2)")).1, "rejected");
    assert_eq!(state(&chain, 2), ProposalState::Rejected);
    let unknown = error(by(&mut chain, 0, "SELECT entente.approve(9)"));
    assert_eq!(unknown, (SqlState::UNDEFINED_OBJECT, "proposal 9 does not exist".into()));
}

#[test]
fn a_change_that_fails_when_it_is_approved_is_closed_with_its_error() {
    let mut chain = governed(|_| {});
    by(&mut chain, 0, "CREATE TABLE t (id bigint)");
    by(&mut chain, 1, "CREATE TABLE t (name text)");
    for number in 1..=2 {
        by(&mut chain, 2, &format!("SELECT entente.approve({number})"));
    }
    assert_eq!(answer(&by(&mut chain, 3, "SELECT entente.approve(1)")).1, "done");
    let (_, text, notice) = answer(&by(&mut chain, 3, "SELECT entente.approve(2)"));
    assert_eq!(text, "failed: relation \"t\" already exists");
    assert_eq!(notice, "proposal 2 was approved and has failed: relation \"t\" already exists");
    assert!(
        matches!(state(&chain, 2), ProposalState::Failed(error) if error.state == SqlState::DUPLICATE_TABLE)
    );
    // What cannot be made already is no proposal.
    assert_eq!(error(by(&mut chain, 0, "CREATE TABLE t (id bigint)")).0, SqlState::DUPLICATE_TABLE);
    assert_eq!(answer(&by(&mut chain, 0, "CREATE TABLE IF NOT EXISTS t (id bigint)")).0, "CREATE TABLE");
    assert_eq!(chain.engine.state().catalog().governance.last_proposal, 2);
}

#[test]
fn administrators_decide_and_their_own_roles_are_their_own_affair() {
    let mut chain = governed(|_| {});
    assert_eq!(answer(&by(&mut chain, 0, "CREATE ROLE clerk LOGIN")).0, "CREATE ROLE");
    by(&mut chain, 0, "CREATE TABLE t (id bigint); CREATE TABLE u (id bigint)");
    by(&mut chain, 1, "SELECT entente.approve(1)");
    let as_clerk = |chain: &mut Chain, sql: &str| {
        let mut transaction = chain.transaction(script(sql));
        transaction.transaction.role = "clerk".to_string();
        let block = chain.block(vec![transaction]);
        chain.engine.execute(&block).expect("the next height").receipts.remove(0).outcome
    };
    let refused = as_clerk(&mut chain, "SELECT entente.approve(1)");
    assert_eq!(error(refused).0, SqlState::INSUFFICIENT_PRIVILEGE);
    by(&mut chain, 2, "SELECT entente.approve(1)");
    assert_eq!(answer(&by(&mut chain, 0, "GRANT SELECT ON t TO clerk")).0, "GRANT");
    assert_eq!(answer(&by(&mut chain, 0, "REVOKE SELECT ON t FROM clerk")).0, "REVOKE");
    // What others' roles may do, and everybody, needs consent; so does a role together with something else.
    assert_eq!(answer(&by(&mut chain, 1, "GRANT SELECT ON t TO clerk")).0, "PROPOSE");
    assert_eq!(answer(&by(&mut chain, 0, "GRANT SELECT ON t TO PUBLIC")).0, "PROPOSE");
    assert_eq!(answer(&by(&mut chain, 0, "CREATE ROLE other; DROP TABLE u")).0, "PROPOSE");
    // What a role grants is its organisation's affair, too, and no role proposes anything.
    by(&mut chain, 0, "CREATE ROLE reader; GRANT SELECT ON t TO clerk WITH GRANT OPTION");
    assert_eq!(answer(&as_clerk(&mut chain, "GRANT SELECT ON t TO reader")).0, "GRANT");
    let refused = error(as_clerk(&mut chain, "GRANT SELECT ON t TO PUBLIC"));
    assert_eq!(refused.0, SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert!(
        refused.1.starts_with("a GRANT or REVOKE of a role cannot wait for the consent of"),
        "{}",
        refused.1
    );
}

#[test]
fn what_cannot_wait_is_refused() {
    let mut chain = governed(|_| {});
    let mixed = error(by(&mut chain, 0, "CREATE TABLE t (id bigint); INSERT INTO t VALUES (1)"));
    assert_eq!(mixed.0, SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert!(mixed.1.ends_with("cannot wait for the consent of 2 of (bert, carl, dora)"), "{}", mixed.1);
    let steps = vec![SessionStep::Run { sql: "CREATE TABLE t (id bigint)".into(), parameters: vec![] }];
    let session = Payload::Session { steps, now_ms: 0, results: SessionResults::default().digest() };
    assert_eq!(
        error(block(&mut chain, vec![(0, session)]).receipts.remove(0).outcome).0,
        SqlState::SERIALIZATION_FAILURE
    );
    for sql in [
        "SELECT entente.approve(1), 2",
        "SELECT entente.approve(1 + 1)",
        "SELECT entente.approve()",
        "SELECT entente.approve(1); SELECT entente.approve(2)",
        "SELECT entente.approve('x')",
        "SELECT entente.add_organisation('x', 'y', 'z', '', '', '')",
        "SELECT entente.set_charter('block.fill_ms', 5000)",
    ] {
        error(by(&mut chain, 0, sql));
    }
    assert_eq!(chain.engine.state().catalog().version, 0);
    for _ in 0..limits::PROPOSALS_OPEN_MAX {
        assert_eq!(answer(&by(&mut chain, 0, "CREATE TABLE t (id bigint)")).0, "PROPOSE");
    }
    assert_eq!(error(by(&mut chain, 0, "CREATE TABLE t (id bigint)")).0, SqlState::PROGRAM_LIMIT_EXCEEDED);
    assert_eq!(answer(&by(&mut chain, 1, "CREATE TABLE t (id bigint)")).0, "PROPOSE");
}

#[test]
fn members_come_and_go_at_heights_that_everybody_knows() {
    let mut chain = governed(|_| {});
    let fifth = organisation(4, "emma");
    let acceptance = accept_membership(&chain.charter.ledger(), &fifth, &SecretKey::from_bytes([14; 32]));
    let add = format!(
        "SELECT entente.add_organisation('emma', '{}', '{}', '{}', '', '{acceptance}')",
        fifth.root_key, fifth.node_key, fifth.address
    );
    assert_eq!(answer(&by(&mut chain, 0, &add)).1, "proposal 1");
    assert!(chain.engine.amended_charter().is_none());
    by(&mut chain, 1, "SELECT entente.approve(1)");
    let text = answer(&by(&mut chain, 2, "SELECT entente.approve(1)")).1;
    assert_eq!(text, "version 1 of the charter holds from height 15 on");
    let amended = chain.engine.amended_charter().expect("a fifth member");
    assert_eq!((amended.effective_height, amended.charter.members().count()), (15, 5));
    // Before that height its clients are nobody's.
    let early = by(&mut chain, 4, "SELECT entente.approve(1)");
    assert!(matches!(early, Outcome::Rejected(RejectReason::NoMember { organisation: 4, .. })), "{early:?}");
    while chain.engine.height() < 14 {
        block(&mut chain, vec![]);
    }
    let (tag, _, notice) = answer(&by(&mut chain, 4, "CREATE TABLE t (id bigint)"));
    assert_eq!(tag, "PROPOSE");
    assert!(notice.contains("2 of (anna, bert, carl, dora)"), "three of five: {notice}");
    by(&mut chain, 0, "SELECT entente.remove_organisation('emma')");
    by(&mut chain, 1, "SELECT entente.approve(3)");
    by(&mut chain, 2, "SELECT entente.approve(3)");
    let left = chain.engine.amended_charter().expect("without it").effective_height;
    assert_eq!(left, chain.engine.height() + 12);
    while chain.engine.height() + 1 < left {
        block(&mut chain, vec![]);
    }
    let late = by(&mut chain, 4, "SELECT entente.approve(2)");
    assert!(matches!(late, Outcome::Rejected(RejectReason::NoMember { organisation: 4, .. })), "{late:?}");
    // What it has approved does not count any more.
    by(&mut chain, 0, "SELECT entente.approve(2)");
    assert_eq!(
        answer(&by(&mut chain, 1, "SELECT entente.approve(2)")).1,
        "waits for the consent of carl OR dora"
    );
}

#[test]
fn a_role_and_an_organisation_do_not_have_one_name() {
    let mut chain = governed(|charter| charter.governance = "any".to_string());
    let reserved = error(by(&mut chain, 0, "CREATE ROLE bert LOGIN"));
    assert_eq!(reserved.1, "role name \"bert\" is reserved");
    by(&mut chain, 0, "CREATE ROLE emma LOGIN");
    let fifth = organisation(4, "emma");
    let acceptance = accept_membership(&chain.charter.ledger(), &fifth, &SecretKey::from_bytes([14; 32]));
    let add = format!(
        "SELECT entente.add_organisation('emma', '{}', '{}', '{}', '', '{acceptance}')",
        fifth.root_key, fifth.node_key, fifth.address
    );
    assert_eq!(error(by(&mut chain, 0, &add)).1, "a role is called \"emma\", as an organisation is");
    by(&mut chain, 0, "DROP ROLE emma");
    assert!(matches!(by(&mut chain, 0, &add), Outcome::Committed(_)));
    // Nor that of one that has left: policies may still name it.
    answer(&by(&mut chain, 0, "SELECT entente.remove_organisation('dora')"));
    assert_eq!(error(by(&mut chain, 0, "CREATE ROLE dora LOGIN")).1, "role name \"dora\" is reserved");

    // Version 7 let a role have such a name, and does not become version 8 with it.
    let mut chain = governed(|charter| {
        charter.governance = "any".to_string();
        charter.found_with_version(7);
    });
    assert!(matches!(by(&mut chain, 0, "CREATE ROLE bert LOGIN"), Outcome::Committed(_)));
    let switch = "SELECT entente.set_charter('execution_version', '8')";
    assert_eq!(error(by(&mut chain, 0, switch)).1, "a role is called \"bert\", as an organisation is");
    by(&mut chain, 0, "DROP ROLE bert");
    assert!(matches!(by(&mut chain, 0, switch), Outcome::Committed(_)));
}

#[test]
fn parameters_hold_from_their_height_on_also_behind_a_checkpoint() {
    let mut chain = governed(|charter| charter.governance = "any".to_string());
    let text = answer(&by(&mut chain, 0, "SELECT entente.set_charter('expiry_blocks_max', 5)")).1;
    assert_eq!(text, "version 1 of the charter holds from height 13 on");
    let text =
        answer(&by(&mut chain, 0, "SELECT entente.set_charter('governance', 'ALL of (anna, bert)')")).1;
    assert_eq!(text, "version 2 of the charter holds from height 14 on");
    while chain.engine.height() < 12 {
        assert!(matches!(by(&mut chain, 0, "SELECT 1"), Outcome::Committed(_)));
    }
    // Transactions of the chain expire ten blocks ahead.
    assert!(matches!(by(&mut chain, 0, "SELECT 1"), Outcome::Rejected(RejectReason::Expired { .. })));
    let header = chain.engine.checkpoint_header();
    assert_eq!(header.ledger, chain.charter.ledger());
}

#[test]
fn a_proposal_is_made_with_the_search_path_that_it_came_with() {
    let mut chain = governed(|_| {});
    by(&mut chain, 0, "CREATE SCHEMA app");
    by(&mut chain, 1, "SELECT entente.approve(1)");
    by(&mut chain, 2, "SELECT entente.approve(1)");
    let search_path = types::SearchPath::new(["app".to_string(), "public".to_string()]).expect("two schemas");
    let settings = types::ScriptSettings { search_path, ..Default::default() };
    let in_app = |sql: &str| settings.in_front_of(sql).into_owned();
    assert_eq!(answer(&by(&mut chain, 0, &in_app("CREATE TABLE t (id bigint)"))).0, "PROPOSE");
    // Who approves may look elsewhere, and write the call as it likes.
    assert_eq!(answer(&by(&mut chain, 1, &in_app("/* yes */ SELECT Entente . approve(2) ;"))).0, "SELECT 1");
    assert_eq!(answer(&by(&mut chain, 2, "SELECT entente.approve(2) -- agreed")).1, "done");
    assert!(has_table(&chain, "app.t"));
}

#[test]
fn redactions_are_agreed_to_once_and_known_for_ever() {
    let id = |number: u8| crypto::sha256(&[&[number]]).to_string();
    let call = |number: u8, why: &str| format!("SELECT entente.redact('{}', '{why}')", id(number));
    for mut chain in everywhere() {
        let (_, text, notice) = answer(&by(&mut chain, 0, &call(1, "it''s the law")));
        assert_eq!(text, "proposal 1");
        assert!(notice.contains("waits for the consent of 2 of (bert, carl, dora)"), "{notice}");
        let twice = error(by(&mut chain, 1, &call(1, "another reason")));
        assert_eq!(twice.0, SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
        assert!(twice.1.starts_with("proposal 1 is to redact transaction"), "{}", twice.1);
        let shown = |chain: &Chain, number: u64| {
            let governance = &chain.engine.state().catalog().governance;
            sql::describe_change(&governance.proposals[&number].change)
        };
        assert_eq!(shown(&chain, 1), call(1, "it''s the law"));
        by(&mut chain, 1, "SELECT entente.approve(1)");
        assert_eq!(chain.engine.state().catalog().governance.redactions().count(), 0, "two of four");
        assert_eq!(answer(&by(&mut chain, 2, "SELECT entente.approve(1)")).1, "done");
        let again = error(by(&mut chain, 3, &call(1, "again")));
        assert!(again.1.ends_with("is redacted already, by proposal 1"), "{}", again.1);
        // What is withdrawn can be proposed again.
        by(&mut chain, 0, &call(2, "a mistake"));
        assert_eq!(answer(&by(&mut chain, 0, "SELECT entente.withdraw(2)")).1, "withdrawn");
        assert_eq!(answer(&by(&mut chain, 3, &call(2, "no mistake"))).1, "proposal 3");
        for wrong in ["SELECT entente.redact('4711', 'x')", "SELECT entente.redact(4711, 'x')"] {
            error(by(&mut chain, 0, wrong));
        }
        assert_eq!(error(by(&mut chain, 0, &call(4, "  "))).0, SqlState::INVALID_PARAMETER_VALUE);
        let long = "x".repeat(limits::REDACTION_REASON_BYTES_MAX + 1);
        assert_eq!(error(by(&mut chain, 0, &call(4, &long))).0, SqlState::INVALID_PARAMETER_VALUE);
    }
    let mut chain = governed(|charter| charter.governance = "any".to_string());
    assert_eq!(answer(&by(&mut chain, 0, &call(1, "alone"))).1, "done: proposal 1");
    // Others are forgotten when many have been closed; a checkpoint has what was redacted.
    let mut governance = chain.engine.state().catalog().governance.clone();
    for number in 0..=limits::PROPOSALS_CLOSED_MAX as u64 {
        let mut closed = types::ChangeProposal::clone(&governance.proposals[&1]);
        (closed.number, closed.state) = (number + 2, ProposalState::Withdrawn);
        governance.proposals.insert(number + 2, closed.into());
    }
    governance.tidy(chain.engine.height());
    assert!(!governance.proposals.contains_key(&2) && governance.proposals.contains_key(&3));
    let kept: Vec<(u64, String)> =
        governance.redactions().map(|(proposal, of)| (proposal.number, of.transaction.to_string())).collect();
    assert_eq!(kept, [(1, id(1))]);
    let encoded = types::encode(&governance);
    assert_eq!(types::decode_exactly::<types::Governance>(&encoded).expect("decodes"), governance);
}

#[test]
fn versions_before_the_fourteenth_know_no_redaction() {
    let call = format!("SELECT entente.redact('{}', 'a reason')", crypto::sha256(&[b"x"]));
    let mut chain = governed(|charter| charter.execution_version = 13);
    let (state, message) = error(by(&mut chain, 0, &call));
    let (_, other) = error(by(&mut chain, 0, "SELECT entente.nothing('x', 'a reason')"));
    assert_eq!(message.replace("redact", "nothing"), other, "as any function that there is not");
    assert_ne!(state, SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert_eq!(chain.engine.state().catalog().version, 0);
}
