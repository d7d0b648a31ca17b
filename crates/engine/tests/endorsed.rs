//! Execute–order–validate through the whole core: proposals are simulated and signed, verified, ordered and validated.

use crypto::{Digest, SecretKey, Signature};
use engine::{EndorsementBasis, Engine, ExecutedBlock, VerifiedBlock, Verifier};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use types::{
    BlockHeader, Charter, Charters, Credential, EndorsedSimulation, EndorsementFault, ExecutionModel,
    Organisation, Outcome, Payload, Pipeline, Place, RejectReason, RequestId, RowWrite, SignedTransaction,
    SqlError, SqlState, Transaction, Value, endorse,
};

const ORGANISATIONS: u8 = 4;

/// A network of four organisations in one process.
struct Network {
    charter: Arc<Charter>,
    engine: Engine,
    verifier: Verifier,
    client: SecretKey,
    requests: u64,
    /// Everything ordered so far.
    ordered: Vec<(BlockHeader, Vec<bytes::Bytes>)>,
}

fn root(organisation: u8) -> SecretKey {
    SecretKey::from_bytes([10 + organisation; 32])
}

fn node(organisation: u8) -> SecretKey {
    SecretKey::from_bytes([20 + organisation; 32])
}

impl Network {
    fn new(protocol: &str, change: impl FnOnce(&mut Charter)) -> Network {
        let mut charter = Charter::with_defaults("endorsed", 1);
        charter.governance = "any".to_string();
        charter.execution = ExecutionModel::ExecuteOrderValidate;
        charter.protocol = protocol.to_string();
        for organisation in 0..ORGANISATIONS {
            charter.organisations.push(Organisation {
                name: ["anna", "bert", "carl", "dora"][usize::from(organisation)].to_string(),
                root_key: root(organisation).public_key(),
                node_key: node(organisation).public_key(),
                address: format!("127.0.0.1:{}", 7_000 + u16::from(organisation)),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            });
        }
        change(&mut charter);
        let members = charter.organisations.len() as u8;
        (0..members).for_each(|organisation| charter.sign(usize::from(organisation), &root(organisation)));
        charter.check().expect("a good charter");
        let charter = Arc::new(charter);
        let engine = Engine::new(charter.clone()).expect("a known protocol");
        let verifier = Verifier::new(&charter);
        let client = SecretKey::from_bytes([9; 32]);
        let mut network = Network { charter, engine, verifier, client, requests: 0, ordered: Vec::new() };
        let schema = [
            "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))",
            "CREATE TABLE log (line text)",
            "CREATE PROCEDURE open(k bigint, b bigint) LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO account VALUES (k, b); END $$",
            "CREATE PROCEDURE pay(a bigint, b bigint, x bigint, OUT rest bigint) LANGUAGE plpgsql AS $$ BEGIN
                 UPDATE account SET balance = balance - x WHERE id = a RETURNING balance INTO rest;
                 UPDATE account SET balance = balance + x WHERE id = b;
                 INSERT INTO log VALUES (a || ' to ' || b); END $$",
            "CREATE PROCEDURE total(OUT sum numeric) LANGUAGE plpgsql AS $$ BEGIN
                 SELECT sum(balance) INTO sum FROM account; END $$",
        ];
        for sql in schema {
            let change = network.proposal(Payload::Script { sql: sql.to_string(), parameters: vec![] });
            let executed = network.order(vec![change]);
            assert!(matches!(executed.receipts[0].outcome, Outcome::Committed(_)), "{:?}", executed.receipts);
        }
        let open = |id| call("open", &[id, 100]);
        let opened = (1..=4).map(open).map(|payload| network.endorsed(payload, &[0, 1])).collect();
        let executed = network.order(opened);
        assert!(executed.receipts.iter().all(|one| matches!(one.outcome, Outcome::Committed(_))));
        network
    }

    fn proposal(&mut self, payload: Payload) -> SignedTransaction {
        self.requests += 1;
        let mut request = [0; 16];
        request[..8].copy_from_slice(&self.requests.to_be_bytes());
        let (ledger, client) = (self.charter.ledger(), self.client.public_key());
        let expires_at = self.engine.height() + 50;
        Transaction { ledger, client, request: RequestId(request), expires_at, role: String::new(), payload }
            .sign(&self.client, Credential::issue(&root(0), 0, &ledger, &client))
    }

    /// What endorsers know now.
    fn basis(&self) -> EndorsementBasis {
        self.engine.endorsement_basis(1_800_000_000_000)
    }

    fn endorse(
        &self,
        basis: &EndorsementBasis,
        proposal: SignedTransaction,
        endorsers: &[u8],
    ) -> Result<SignedTransaction, SqlError> {
        let id = proposal.transaction.id();
        let effects = basis.simulate(
            id,
            &types::Principal::default(),
            &Arc::new(proposal.transaction.payload.clone()),
        )?;
        let one = [(id, effects.digest())];
        let endorsements = endorsers.iter().flat_map(|organisation| {
            endorse(
                &node(*organisation),
                u16::from(*organisation),
                &self.charter.ledger(),
                basis.height,
                &one,
            )
        });
        let simulation = EndorsedSimulation { endorsements: endorsements.collect(), effects };
        Ok(SignedTransaction { endorsed: Some(Box::new(simulation)), ..proposal })
    }

    fn endorsed(&mut self, payload: Payload, endorsers: &[u8]) -> SignedTransaction {
        let proposal = self.proposal(payload);
        self.endorse(&self.basis(), proposal, endorsers).expect("it can be simulated")
    }

    fn check(&self, height: u64, transactions: &[bytes::Bytes]) -> Vec<engine::Judged> {
        let charters = Charters::of(&self.engine.state().catalog().governance);
        let charters = charters.unwrap_or_else(|| Charters::new(self.charter.clone()));
        self.verifier.check(Place { charters: &charters, height }, transactions)
    }

    fn order(&mut self, transactions: Vec<SignedTransaction>) -> ExecutedBlock {
        let header = BlockHeader {
            ledger: self.charter.ledger(),
            height: self.engine.height() + 1,
            timestamp_ms: 1_800_000_000_000,
            previous: Digest::ZERO,
            transactions_root: Digest::ZERO,
            transactions: transactions.len() as u32,
            proposer: 0,
            certified_height: 0,
            attested: Digest::ZERO,
            charters: self.charter.ledger(),
        };
        let bytes: Vec<bytes::Bytes> = transactions.iter().map(|one| one.to_bytes().into()).collect();
        let transactions = self.check(header.height, &bytes);
        self.ordered.push((header.clone(), bytes));
        self.engine
            .execute(&VerifiedBlock { digest: header.digest(), header, transactions })
            .expect("the next block")
    }

    /// Executes everything ordered so far on a fresh engine that foresees some blocks; receipts and digests, and how
    /// many blocks it foresaw.
    fn replay_on_the_graph(
        &self,
        pool: &rayon::ThreadPool,
        rng: &mut StdRng,
    ) -> (Vec<(Digest, Digest)>, usize) {
        let engine = Engine::new(self.charter.clone()).expect("a known protocol");
        let mut engine = engine.with_pipeline(Pipeline::Graph).expect("a known protocol");
        let verified = |(header, bytes): &(BlockHeader, Vec<bytes::Bytes>)| VerifiedBlock {
            digest: header.digest(),
            header: header.clone(),
            transactions: self.check(header.height, bytes),
        };
        let blocks: Vec<VerifiedBlock> = self.ordered.iter().map(verified).collect();
        let (mut found, mut foreseen) = (Vec::new(), 0);
        for (number, block) in blocks.iter().enumerate() {
            foreseen = foreseen.max(number);
            let most = number + rng.random_range(0..5);
            let executed = pool.install(|| {
                while foreseen < most.min(blocks.len()) && engine.foresee(&blocks[foreseen]) {
                    foreseen += 1;
                }
                engine.execute(block).expect("the next block")
            });
            found.push((executed.outcome.receipts_root, executed.outcome.state_digest));
        }
        (found, foreseen)
    }

    fn outcomes(&mut self, transactions: Vec<SignedTransaction>) -> Vec<Outcome> {
        self.order(transactions).receipts.into_iter().map(|receipt| receipt.outcome).collect()
    }

    fn balance(&self, id: i64) -> i64 {
        let table = self.engine.library().catalog().tables["account"].id;
        let key = types::Key::encode([&Value::BigInt(id)]).expect("a key");
        let row =
            state::Snapshot::get(self.engine.state().snapshot().as_ref(), table, &key).expect("an account");
        match row[1] {
            Value::BigInt(balance) => balance,
            ref other => panic!("{other:?}"),
        }
    }
}

fn call(procedure: &str, arguments: &[i64]) -> Payload {
    let arguments = arguments.iter().map(|argument| Value::BigInt(*argument)).collect();
    Payload::Call { procedure: procedure.to_string(), arguments }
}

fn fault(outcome: &Outcome) -> &EndorsementFault {
    match outcome {
        Outcome::Rejected(RejectReason::Endorsement(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_endorsed_and_fresh_commits_with_the_results_that_endorsers_saw() {
    for protocol in concurrency::VALIDATION_IDS {
        let mut network = Network::new(protocol, |_| {});
        let payments = vec![
            network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]),
            network.endorsed(call("pay", &[3, 4, 5]), &[2, 3]),
        ];
        let outcomes = network.outcomes(payments);
        let Outcome::Committed(results) = &outcomes[0] else { panic!("{protocol}: {outcomes:?}") };
        assert_eq!(results[0].rows, [[Value::BigInt(70)]]);
        assert!(matches!(outcomes[1], Outcome::Committed(_)));
        assert_eq!([1, 2, 3, 4].map(|id| network.balance(id)), [70, 130, 95, 105], "{protocol}");
    }
}

#[test]
fn a_stale_payment_is_given_up_or_runs_again() {
    let stale = |protocol: &str, change: fn(&mut Charter)| {
        let mut network = Network::new(protocol, change);
        let pay = vec![
            network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]),
            network.endorsed(call("pay", &[1, 3, 30]), &[0, 1]),
        ];
        let outcomes = network.outcomes(pay);
        (network.balance(1), outcomes[1].clone())
    };
    assert_eq!(stale("occ", |_| {}), (70, Outcome::Conflict));
    let (balance, outcome) = stale("xox", |_| {});
    assert_eq!(balance, 40);
    let Outcome::Committed(results) = outcome else { panic!("{outcome:?}") };
    assert_eq!(results[0].rows, [[Value::BigInt(40)]], "it tells what it saw when it ran again");
    assert_eq!(stale("xox", |charter| charter.endorsement.run_again = false), (70, Outcome::Conflict));
}

/// Says another number each time it is asked.
struct Counter(std::sync::atomic::AtomicU64);

impl sql::Oracles for Counter {
    fn value(&self, name: &str) -> Result<String, SqlError> {
        match name {
            "huge" => Ok("x".repeat(5_000)),
            "silent" => Err(SqlError::new(SqlState::EXTERNAL_ROUTINE_EXCEPTION, "silent")),
            _ => Ok((self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 7).to_string()),
        }
    }
}

#[test]
fn what_an_oracle_said_is_endorsed_and_said_again_when_the_transaction_runs_again() {
    let mut network = Network::new("xox", |_| {});
    for sql in [
        "CREATE PROCEDURE ask(k bigint, OUT rate bigint, OUT balance_now bigint) LANGUAGE plpgsql AS $$ BEGIN
             rate := entente.oracle('rate')::bigint + 0 * entente.oracle('rate')::bigint;
             UPDATE account SET balance = balance + rate WHERE id = k RETURNING balance INTO balance_now; END $$",
        "CREATE PROCEDURE ask_for(name text) LANGUAGE plpgsql AS $$ DECLARE x text; BEGIN
             x := entente.oracle(name); INSERT INTO log VALUES (x); END $$",
        "CREATE PROCEDURE ask_many() LANGUAGE plpgsql AS $$ DECLARE x text; BEGIN
             FOR i IN 1..17 LOOP x := entente.oracle('o' || i); END LOOP; END $$",
        "CREATE PROCEDURE ask_when_poor(k bigint) LANGUAGE plpgsql AS $$ DECLARE b bigint; x text; BEGIN
             SELECT balance INTO b FROM account WHERE id = k;
             IF b < 100 THEN x := entente.oracle('rate'); END IF;
             UPDATE account SET balance = b + 1 WHERE id = k; END $$",
    ] {
        let change = network.proposal(script(sql));
        let outcomes = network.outcomes(vec![change]);
        assert!(matches!(outcomes[0], Outcome::Committed(_)), "{outcomes:?}");
    }
    let mut basis = network.basis();
    basis.oracles = Some(Arc::new(Counter(0.into())));
    let endorsed = |network: &mut Network, payload| {
        let proposal = network.proposal(payload);
        network.endorse(&basis, proposal, &[0, 1])
    };
    // Both meet in one row: the second is stale and runs again, with the value that it was endorsed with.
    let pair = vec![
        endorsed(&mut network, call("ask", &[1])).expect("it says 7"),
        endorsed(&mut network, call("ask", &[1])).expect("it says 8"),
    ];
    let said = &pair[1].endorsed.as_ref().expect("endorsed").effects.oracles;
    assert_eq!((said.len(), said[0].name.as_str(), said[0].value.as_str()), (1, "rate", "8"), "asked once");
    let executed = network.order(pair);
    assert_eq!(executed.statistics.reexecuted, 1);
    let Outcome::Committed(results) = &executed.receipts[1].outcome else {
        panic!("{:?}", executed.receipts)
    };
    assert_eq!(results[0].rows, [[Value::BigInt(8), Value::BigInt(115)]]);
    assert_eq!(network.balance(1), 115);

    let text = |name: &str| Payload::Call { procedure: "ask_for".into(), arguments: vec![Value::text(name)] };
    let fails = |error: SqlError, state: SqlState, says: &str| {
        assert!(error.state == state && error.message.contains(says), "{error:?}");
    };
    let mut refused = |payload| endorsed(&mut network, payload).expect_err("refused");
    fails(refused(text("huge")), SqlState::PROGRAM_LIMIT_EXCEEDED, "ORACLE_BYTES_MAX");
    fails(refused(text("silent")), SqlState::EXTERNAL_ROUTINE_EXCEPTION, "silent");
    fails(refused(call("ask_many", &[])), SqlState::PROGRAM_LIMIT_EXCEEDED, "ORACLES_MAX");
    let null = Payload::Call { procedure: "ask_for".into(), arguments: vec![Value::Null] };
    fails(refused(null), SqlState::NULL_VALUE_NOT_ALLOWED, "NULL");
    let proposal = network.proposal(text("rate"));
    let unknown = network.endorse(&network.basis(), proposal, &[0, 1]).expect_err("no oracles here");
    fails(unknown, SqlState::UNDEFINED_OBJECT, "knows no oracles");

    // Who runs again and takes a way on which the endorsers did not go asks nobody either.
    let change = vec![
        network.endorsed(call("pay", &[2, 3, 50]), &[0, 1]),
        network.endorsed(call("ask_when_poor", &[2]), &[0, 1]),
    ];
    let outcomes = network.outcomes(change);
    let Outcome::Aborted(error) = &outcomes[1] else { panic!("{outcomes:?}") };
    fails(
        error.clone(),
        SqlState::UNDEFINED_OBJECT,
        "\"rate\" was not asked when the transaction was endorsed",
    );
}

#[test]
fn endorsed_commands_let_everybody_into_a_hot_row() {
    let committed = |commands: bool| {
        let mut network = Network::new("occ", |charter| charter.endorsement.commands = commands);
        for sql in [
            "CREATE TABLE pot (id bigint PRIMARY KEY, coins bigint NOT NULL)",
            "CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO pot VALUES (1, 0); END $$",
            "CREATE PROCEDURE give(x bigint) LANGUAGE plpgsql AS $$ BEGIN
                 UPDATE pot SET coins = coins + x WHERE id = 1; END $$",
        ] {
            let change = network.proposal(script(sql));
            network.outcomes(vec![change]);
        }
        let fill = network.endorsed(call("fill", &[]), &[0, 1]);
        network.outcomes(vec![fill]);
        let gifts = (0..6).map(|_| network.endorsed(call("give", &[2]), &[0, 1])).collect();
        let outcomes = network.outcomes(gifts);
        outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Committed(_))).count()
    };
    assert_eq!((committed(false), committed(true)), (1, 6));
}

#[test]
fn a_check_on_a_hot_row_is_held_against_the_sum_at_the_place_of_the_command() {
    let mut network = Network::new("occ", |charter| charter.endorsement.commands = true);
    let sql = "CREATE PROCEDURE take(k bigint, x bigint) LANGUAGE plpgsql AS $$ BEGIN
                   UPDATE account SET balance = balance - x WHERE id = k; END $$";
    let change = network.proposal(script(sql));
    network.outcomes(vec![change]);
    let takers = (0..4).map(|_| network.endorsed(call("take", &[1, 30]), &[0, 1])).collect();
    let outcomes = network.outcomes(takers);
    assert!(outcomes[..3].iter().all(|outcome| matches!(outcome, Outcome::Committed(_))), "{outcomes:?}");
    let Outcome::Aborted(error) = &outcomes[3] else { panic!("{outcomes:?}") };
    assert_eq!((error.state, network.balance(1)), (SqlState::CHECK_VIOLATION, 10));
    let proposal = network.proposal(call("take", &[1, 30]));
    let refused = network.endorse(&network.basis(), proposal, &[0, 1]).expect_err("endorsers see it too");
    assert_eq!(refused.state, SqlState::CHECK_VIOLATION);
}

#[test]
fn endorsements_that_are_not_enough_leave_the_request_to_those_that_are() {
    let mut network = Network::new("occ", |charter| {
        charter.endorsement.policy = "anna AND (bert OR carl)".to_string();
    });
    let proposal = network.proposal(call("pay", &[1, 2, 30]));
    let basis = network.basis();
    let with = |network: &Network, endorsers: &[u8]| {
        network.endorse(&basis, proposal.clone(), endorsers).expect("it runs")
    };
    let (few, none, enough) = (with(&network, &[1, 2, 3]), with(&network, &[]), with(&network, &[0, 2]));
    let outcomes = network.outcomes(vec![few, none, proposal.clone(), enough.clone(), enough]);
    assert_eq!(
        fault(&outcomes[0]).to_string(),
        "the policy `anna AND (bert OR carl)` of procedure \"pay\" is not satisfied by endorsements of bert, carl, dora; \
         ask the others as well"
    );
    assert!(fault(&outcomes[1]).to_string().contains("endorsements of nobody"));
    assert!(matches!(fault(&outcomes[2]), EndorsementFault::Unasked(_)));
    assert!(matches!(outcomes[3], Outcome::Committed(_)), "{outcomes:?}");
    assert!(matches!(outcomes[4], Outcome::Rejected(RejectReason::Duplicate { .. })));
    assert_eq!(network.balance(1), 70);
}

/// Something that is wrong with an endorsed transaction, and whether a fault is what comes of it.
type Wrong = (&'static str, fn(&mut EndorsedSimulation), fn(&EndorsementFault) -> bool);

#[test]
fn whatever_is_wrong_with_endorsements_is_said_and_changes_nothing() {
    let wrong: [Wrong; 9] = [
        (
            "a forged signature",
            |simulation| simulation.endorsements[1].signature.0[5] ^= 1,
            |fault| matches!(fault, EndorsementFault::Forged { organisation: 1, .. }),
        ),
        (
            "a signature of nobody",
            |simulation| simulation.endorsements[0].signature = Signature([0; 64]),
            |fault| matches!(fault, EndorsementFault::Forged { organisation: 0, .. }),
        ),
        (
            "another's name",
            |simulation| simulation.endorsements[1].organisation = 2,
            |fault| matches!(fault, EndorsementFault::Forged { organisation: 2, .. }),
        ),
        (
            "a newer snapshot than was signed",
            |simulation| simulation.endorsements[0].snapshot += 1,
            |fault| matches!(fault, EndorsementFault::Forged { organisation: 0, .. }),
        ),
        (
            "a broken proof",
            |simulation| simulation.endorsements[0].proof.index = 7,
            |fault| matches!(fault, EndorsementFault::Forged { organisation: 0, .. }),
        ),
        (
            "one twice",
            |simulation| simulation.endorsements[1] = simulation.endorsements[0].clone(),
            |fault| matches!(fault, EndorsementFault::Repeated { organisation: 0 }),
        ),
        (
            "nobody of the charter",
            |simulation| simulation.endorsements[0].organisation = 4,
            |fault| matches!(fault, EndorsementFault::Stranger { found: 4, last: 3 }),
        ),
        (
            "other effects than were signed",
            |simulation| {
                simulation.effects.writes[0].write = RowWrite::Assign(vec![(1, Value::BigInt(1_000))])
            },
            |fault| matches!(fault, EndorsementFault::Forged { .. }),
        ),
        (
            "a read less",
            |simulation| drop(simulation.effects.reads.remove(0)),
            |fault| matches!(fault, EndorsementFault::Forged { .. }),
        ),
    ];
    let mut network = Network::new("occ", |_| {});
    for (what, change, expected) in wrong {
        let mut transaction = network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]);
        change(transaction.endorsed.as_mut().expect("it is endorsed"));
        let outcomes = network.outcomes(vec![transaction]);
        assert!(expected(fault(&outcomes[0])), "{what}: {outcomes:?}");
    }
    assert_eq!(network.balance(1), 100);
}

/// Replaces the last organisation's signature by that of another key, for a height.
fn endorsed_by_key(network: &Network, transaction: &mut SignedTransaction, key: u8, height: u64) {
    let id = transaction.transaction.id();
    let simulation = transaction.endorsed.as_mut().expect("it is endorsed");
    let one = [(id, simulation.effects.digest())];
    let organisation = simulation.endorsements.pop().expect("somebody").organisation;
    simulation.endorsements.extend(endorse(
        &node(key),
        organisation,
        &network.charter.ledger(),
        height,
        &one,
    ));
}

/// Endorsements are good where their organisations sign, by the charter of the block: whoever has left, or has a key that
/// was replaced or has expired, could otherwise endorse on old states for ever.
#[test]
fn who_has_left_or_another_key_endorses_nothing_any_more() {
    let mut network = Network::new("occ", |charter| {
        charter.organisations.push(Organisation {
            name: "emma".to_string(),
            root_key: root(4).public_key(),
            node_key: node(4).public_key(),
            address: "127.0.0.1:7004".to_string(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
        charter.outcome_lag_blocks = 2;
        // Who is named in a policy cannot leave.
        charter.endorsement.policy = "2 of (anna, bert, carl, dora)".to_string();
    });
    let script = |sql: String| Payload::Script { sql, parameters: vec![] };
    let last = network.engine.height() + 20;
    let replace = format!("SELECT entente.replace_node_key('bert', '{}', {last})", node(9).public_key());
    for change in [replace, "SELECT entente.remove_organisation('emma')".to_string()] {
        let change = network.proposal(script(change));
        let outcomes = network.outcomes(vec![change]);
        assert!(matches!(outcomes[0], Outcome::Committed(_)), "{outcomes:?}");
    }
    let effective = network.engine.amended_charter().expect("two of them").effective_height;
    let before = network.engine.height();
    let by = |network: &mut Network, endorsers: &[u8], key: Option<(u8, u64)>| {
        let mut transaction = network.endorsed(call("pay", &[1, 2, 0]), endorsers);
        if let Some((key, height)) = key {
            endorsed_by_key(network, &mut transaction, key, height);
        }
        network.outcomes(vec![transaction]).remove(0)
    };
    let committed = |outcome: &Outcome| matches!(outcome, Outcome::Committed(_));
    assert!(committed(&by(&mut network, &[0, 1], None)));
    assert!(committed(&by(&mut network, &[0, 2, 4], None)));
    while network.engine.height() < effective {
        network.order(vec![]);
    }
    // Also for states behind which they were members and had these keys.
    for (organisation, endorsers) in [(1, &[0, 1][..]), (4, &[0, 2, 4])] {
        let outcome = by(&mut network, endorsers, Some((organisation, before)));
        let expected = matches!(
            fault(&outcome),
            EndorsementFault::Outdated { organisation: found, snapshot, .. }
                if (*found, *snapshot) == (u16::from(organisation), before)
        );
        assert!(expected, "{outcome:?}");
    }
    let forged = by(&mut network, &[0, 1], None);
    assert!(matches!(fault(&forged), EndorsementFault::Forged { organisation: 1, .. }), "{forged:?}");
    let left = by(&mut network, &[0, 2, 4], None);
    assert!(matches!(fault(&left), EndorsementFault::Outdated { organisation: 4, .. }), "{left:?}");
    let height = network.engine.height();
    assert!(committed(&by(&mut network, &[0, 1], Some((9, height)))));
    while network.engine.height() < last {
        network.order(vec![]);
    }
    for height in [height, last] {
        let expired = by(&mut network, &[0, 1], Some((9, height)));
        assert!(
            matches!(fault(&expired), EndorsementFault::Outdated { organisation: 1, .. }),
            "{height}: {expired:?}"
        );
    }
    assert!(committed(&by(&mut network, &[0, 2], None)));
}

#[test]
fn what_endorsers_agree_on_is_still_held_against_the_schema() {
    let mut network = Network::new("occ", |_| {});
    let mut sign = |change: fn(&mut types::EndorsedEffects)| {
        let mut transaction = network.endorsed(call("pay", &[1, 2, 30]), &[0]);
        let simulation = transaction.endorsed.as_mut().expect("it is endorsed");
        change(&mut simulation.effects);
        let one = [(transaction.transaction.id(), simulation.effects.digest())];
        let ledger = network.charter.ledger();
        let height = network.engine.height();
        simulation.endorsements = [0u8, 1]
            .iter()
            .flat_map(|by| endorse(&node(*by), u16::from(*by), &ledger, height, &one))
            .collect();
        network.outcomes(vec![transaction]).remove(0)
    };
    let text = sign(|effects| effects.writes[0].write = RowWrite::Assign(vec![(1, Value::text("rich"))]));
    assert!(
        matches!(fault(&text), EndorsementFault::Effects(what) if what.contains("is of type bigint")),
        "{text:?}"
    );
    let debt = sign(|effects| effects.writes[0].write = RowWrite::Assign(vec![(1, Value::BigInt(-1))]));
    assert!(matches!(&debt, Outcome::Aborted(error) if error.state == SqlState::CHECK_VIOLATION), "{debt:?}");
    assert_eq!(network.balance(1), 100);
}

#[test]
fn intervals_that_hold_nothing_are_searched_by_nobody() {
    for protocol in concurrency::VALIDATION_IDS {
        let mut network = Network::new(protocol, |_| {});
        let mut transaction = network.endorsed(call("pay", &[1, 2, 30]), &[0]);
        let simulation = transaction.endorsed.as_mut().expect("it is endorsed");
        let table = simulation.effects.writes[0].table;
        let key = |id| types::Key::encode([&Value::BigInt(id)]).expect("a key");
        let ends = [
            (types::KeyBound::Included(key(9)), types::KeyBound::Included(key(1))),
            (types::KeyBound::Excluded(key(1)), types::KeyBound::Excluded(key(1))),
        ];
        simulation.effects.scans = ends
            .map(|(start, end)| {
                let (columns, predicate_columns) = (types::ColumnSet::ALL, types::ColumnSet::ALL);
                types::EndorsedScan { table, start, end, columns, predicate_columns, result: vec![] }
            })
            .to_vec();
        let one = [(transaction.transaction.id(), simulation.effects.digest())];
        let (ledger, height) = (network.charter.ledger(), network.engine.height());
        simulation.endorsements = [0u8, 1]
            .iter()
            .flat_map(|by| endorse(&node(*by), u16::from(*by), &ledger, height, &one))
            .collect();
        let writer = network.endorsed(call("pay", &[3, 4, 5]), &[0, 1]);
        let outcomes = network.outcomes(vec![writer, transaction]);
        assert!(
            outcomes.iter().all(|outcome| matches!(outcome, Outcome::Committed(_))),
            "{protocol}: {outcomes:?}"
        );
    }
}

#[test]
fn a_simulation_before_a_schema_change_does_not_count_after_it() {
    let mut network = Network::new("occ", |_| {});
    let before = network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]);
    let same_block = network.endorsed(call("pay", &[3, 4, 30]), &[0, 1]);
    let change = Payload::Script { sql: "CREATE TABLE other (id int)".into(), parameters: vec![] };
    let change = network.proposal(change);
    let outcomes = network.outcomes(vec![change, same_block]);
    assert_eq!(outcomes[1], Outcome::Conflict);
    assert_eq!(network.outcomes(vec![before]), [Outcome::Conflict]);
    let after = network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]);
    assert!(matches!(network.outcomes(vec![after])[0], Outcome::Committed(_)));
}

#[test]
fn a_schema_change_among_changes_of_rows_needs_a_ledger_that_orders_first() {
    let mut network = Network::new("occ", |_| {});
    let mut run = |sql: &str| {
        let change = network.proposal(script(sql));
        network.outcomes(vec![change]).remove(0)
    };
    let filled = run("CREATE TABLE other (id int PRIMARY KEY); INSERT INTO other VALUES (1)");
    assert!(matches!(filled, Outcome::Committed(_)), "{filled:?}");
    let Outcome::Aborted(error) = run("CREATE TABLE more (id int); DELETE FROM other") else {
        panic!("nobody has endorsed that rows of a table go which there was before")
    };
    assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
    assert!(error.message.contains("changes of other tables' rows"), "{error:?}");
}

#[test]
fn an_error_is_the_clients_at_once_and_is_not_ordered() {
    let mut network = Network::new("occ", |_| {});
    let basis = network.basis();
    let proposal = network.proposal(call("pay", &[1, 2, 101]));
    let error = network.endorse(&basis, proposal, &[0, 1]).expect_err("not covered");
    assert_eq!(error.state, SqlState::CHECK_VIOLATION);
    let change = Payload::Script { sql: "DROP TABLE log".into(), parameters: vec![] };
    let proposal = network.proposal(change);
    assert!(network.endorse(&basis, proposal, &[0, 1]).is_err());
}

#[test]
fn a_ledger_that_executes_after_ordering_asks_for_no_endorsements() {
    let mut network = Network::new("occ", |_| {});
    let endorsed = network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]);
    let mut charter = network.charter.as_ref().clone();
    charter.execution = ExecutionModel::OrderExecute;
    // The ledger's name follows from its charter, so the client signs anew.
    network.verifier = Verifier::new(&charter);
    network.charter = Arc::new(charter);
    let proposal = network.proposal(call("pay", &[1, 2, 30]));
    let mixed = SignedTransaction { endorsed: endorsed.endorsed, ..proposal };
    let bytes: bytes::Bytes = mixed.to_bytes().into();
    let verdict = &network.check(1, &[bytes])[0];
    assert!(
        matches!(verdict, Err((_, RejectReason::Endorsement(EndorsementFault::Unasked(_))))),
        "{verdict:?}"
    );
}

fn script(sql: &str) -> Payload {
    Payload::Script { sql: sql.to_string(), parameters: vec![] }
}

#[test]
fn policies_of_procedures_and_tables_are_kept_in_the_ledger_and_changed_by_transactions() {
    let mut network = Network::new("occ", |charter| charter.endorsement.policy = "anna".to_string());
    let set_up = [
        "CREATE TABLE gold (id bigint PRIMARY KEY, grams bigint NOT NULL) WITH (endorsement_policy = 'carl OR dora')",
        "CREATE PROCEDURE melt(k bigint) LANGUAGE plpgsql SET entente.endorsement = '2 of (anna, bert, carl)' AS $$
         BEGIN INSERT INTO gold VALUES (k, 1); END $$",
        "CREATE PROCEDURE outer_one(k bigint) LANGUAGE plpgsql AS $$ BEGIN CALL melt(k); END $$",
        "CREATE PROCEDURE peaceful() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$",
    ];
    for sql in set_up {
        let change = network.proposal(script(sql));
        let outcomes = network.outcomes(vec![change]);
        assert!(matches!(outcomes[0], Outcome::Committed(_)), "{sql}: {outcomes:?}");
    }
    let mut refusal = |payload: Payload, endorsers: &[u8]| -> Option<String> {
        let transaction = network.endorsed(payload, endorsers);
        let outcome = network.outcomes(vec![transaction]).remove(0);
        match &outcome {
            Outcome::Committed(_) => None,
            _ => Some(fault(&outcome).to_string()),
        }
    };
    let says = |refusal: Option<String>, what: &str| {
        let refusal = refusal.expect(what);
        assert!(refusal.contains(what), "{refusal}");
    };
    assert_eq!(refusal(call("peaceful", &[]), &[0]), None, "the charter's policy");
    says(refusal(call("peaceful", &[]), &[1]), "`anna` of procedure \"peaceful\"");
    says(refusal(call("melt", &[1]), &[0, 3]), "`2 of (anna, bert, carl)` of procedure \"melt\"");
    says(refusal(call("melt", &[1]), &[0, 1]), "`carl OR dora` of table \"gold\"");
    assert_eq!(refusal(call("melt", &[1]), &[1, 2]), None);
    // Every procedure that is involved: the outer one has the charter's policy.
    says(refusal(call("outer_one", &[2]), &[1, 2]), "`anna` of procedure \"outer_one\"");
    says(refusal(call("outer_one", &[2]), &[0, 3]), "of procedure \"melt\"");
    assert_eq!(refusal(call("outer_one", &[2]), &[0, 2]), None);
    says(refusal(script("CALL outer_one(3)"), &[0, 3]), "of procedure \"melt\"");
    says(refusal(script("INSERT INTO log VALUES ('a'); CALL melt(3)"), &[0, 3]), "of procedure \"melt\"");
    assert_eq!(refusal(script("CALL melt(3)"), &[1, 2]), None);
    says(refusal(script("CALL melt(5); DELETE FROM account WHERE id = 1"), &[1, 2]), "`anna` of the ledger");

    for (sql, expected) in [
        ("ALTER TABLE gold SET (endorsement_policy = '')", ""),
        (
            "ALTER TABLE gold SET (endorsement_policy = 'anna AND emil')",
            "the endorsement policy of \"gold\" cannot be",
        ),
        (
            "ALTER TABLE gold SET (endorsement_policy = '3 of (anna, bert)')",
            "the endorsement policy cannot be",
        ),
        ("ALTER TABLE silver SET (endorsement_policy = 'anna')", "relation \"silver\" does not exist"),
        ("ALTER TABLE gold SET (colour = 70)", "the option colour of a table is not supported"),
        ("ALTER TABLE gold VALIDATE CONSTRAINT x", "ALTER TABLE is not supported"),
        // Rows of another shape follow from those that there are: nobody has to endorse them.
        ("ALTER TABLE gold ADD COLUMN x int", ""),
    ] {
        let change = network.proposal(script(sql));
        match network.outcomes(vec![change]).remove(0) {
            Outcome::Committed(_) => assert_eq!(expected, "", "{sql}"),
            Outcome::Aborted(error) => assert!(error.message.contains(expected), "{sql}: {error:?}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    let transaction = network.endorsed(call("melt", &[4]), &[0, 1]);
    assert!(
        matches!(network.outcomes(vec![transaction])[0], Outcome::Committed(_)),
        "gold asks nobody any more"
    );
}

#[test]
fn a_policy_that_a_block_changes_holds_behind_the_change_and_not_before_it() {
    let mut network = Network::new("xox", |_| {});
    let block = vec![
        network.endorsed(call("pay", &[1, 2, 1]), &[0, 1]),
        network.proposal(script("ALTER TABLE account SET (endorsement_policy = 'dora')")),
        network.endorsed(call("pay", &[3, 4, 1]), &[0, 1]),
    ];
    let outcomes = network.outcomes(block);
    assert!(matches!(outcomes[0], Outcome::Committed(_)), "{outcomes:?}");
    assert!(matches!(outcomes[1], Outcome::Committed(_)), "{outcomes:?}");
    let text = fault(&outcomes[2]).to_string();
    assert!(text.contains("the policy `dora` of table \"account\""), "{text}");
    assert_eq!([1, 2, 3, 4].map(|id| network.balance(id)), [99, 101, 100, 100]);
}

#[test]
fn a_call_that_may_involve_too_many_procedures_is_refused() {
    let mut network = Network::new("occ", |_| {});
    let mut last = "BEGIN NULL; END".to_string();
    for number in 0..=256 {
        let sql = format!("CREATE PROCEDURE p{number}(n int) LANGUAGE plpgsql AS $$ {last} $$");
        let change = network.proposal(script(&sql));
        assert!(matches!(network.outcomes(vec![change])[0], Outcome::Committed(_)));
        last = format!("BEGIN IF n < 0 THEN CALL p{number}(n); END IF; END");
    }
    let argument =
        |name: &str| Payload::Call { procedure: name.to_string(), arguments: vec![Value::Integer(1)] };
    let (fits, too_many) =
        (network.endorsed(argument("p255"), &[0, 1]), network.endorsed(argument("p256"), &[0, 1]));
    let outcomes = network.outcomes(vec![fits, too_many]);
    assert!(matches!(outcomes[0], Outcome::Committed(_)), "{outcomes:?}");
    assert!(
        fault(&outcomes[1]).to_string().contains("the transaction may involve more than 256 procedures"),
        "{outcomes:?}"
    );
}

#[test]
fn an_engine_restored_from_a_checkpoint_validates_as_one_that_went_on() {
    for protocol in concurrency::VALIDATION_IDS {
        let mut network = Network::new(protocol, |charter| charter.checkpoint_blocks = 3);
        let before = network.endorsed(call("pay", &[1, 2, 30]), &[0, 1]);
        let writer = network.endorsed(call("pay", &[3, 4, 5]), &[0, 1]);
        network.outcomes(vec![writer]);
        while !network.engine.height().is_multiple_of(3) {
            network.outcomes(vec![]);
        }
        let header = network.engine.checkpoint_header();
        let (mut bytes, live) = (Vec::new(), network.engine.live().content());
        let snapshot = network.engine.state().snapshot();
        state::write_checkpoint(&header, snapshot.as_ref(), &live, &mut bytes).expect("memory");
        let read = state::read_checkpoint(bytes.as_slice()).expect("what was written");
        let (charter, restored_state) = (network.charter.clone(), Arc::new(read.state));
        let restored = Engine::at(charter, &read.header, restored_state, read.live);
        let mut restored = restored.expect("a good checkpoint");

        let fresh: Vec<SignedTransaction> =
            [[1, 2, 1], [1, 3, 1], [4, 3, 1]].map(|one| network.endorsed(call("pay", &one), &[0, 1])).into();
        let blocks = [[vec![before], fresh[..2].to_vec()].concat(), fresh[2..].to_vec()];
        let mut outcomes = Vec::new();
        for block in blocks {
            let executed = network.order(block.clone());
            let header = BlockHeader {
                ledger: network.charter.ledger(),
                height: restored.height() + 1,
                timestamp_ms: 1_800_000_000_000,
                previous: Digest::ZERO,
                transactions_root: Digest::ZERO,
                transactions: block.len() as u32,
                proposer: 0,
                certified_height: 0,
                attested: Digest::ZERO,
                charters: network.charter.ledger(),
            };
            let bytes: Vec<bytes::Bytes> = block.iter().map(|one| one.to_bytes().into()).collect();
            let transactions = network.check(header.height, &bytes);
            let again = VerifiedBlock { digest: header.digest(), header, transactions };
            let again = restored.execute(&again).expect("the next block");
            assert_eq!(
                (again.receipts, again.outcome.state_digest),
                (executed.receipts.clone(), executed.outcome.state_digest)
            );
            outcomes.extend(executed.receipts.into_iter().map(|receipt| receipt.outcome));
        }
        if protocol == "occ" {
            assert_eq!(outcomes[0], Outcome::Conflict, "endorsed before the checkpoint");
            assert!(matches!(outcomes[1], Outcome::Committed(_)) && outcomes[2] == Outcome::Conflict);
        }
    }
}

/// A random ledger: stale and fresh payments, some not endorsed enough, some twice, schema changes in between. What every
/// block came to.
fn random_ledger(protocol: &str, rng: &mut StdRng) -> (Network, Vec<(Digest, Digest)>) {
    let mut network = Network::new(protocol, |charter| {
        charter.checkpoint_blocks = 5;
        charter.block.batch_transactions = rng.random_range(1..6);
        charter.endorsement.commands = rng.random_bool(0.5);
    });
    let mut bases = vec![network.basis()];
    let mut earlier: Vec<SignedTransaction> = Vec::new();
    let mut found = Vec::new();
    for number in 0..24 {
        let mut block = Vec::new();
        for _ in 0..rng.random_range(0..9) {
            let payload = match rng.random_range(0..12) {
                0 => call("total", &[]),
                _ => call("pay", &[rng.random_range(1..5), rng.random_range(1..5), rng.random_range(0..9)]),
            };
            let proposal = network.proposal(payload);
            let basis = &bases[bases.len() - rng.random_range(1..=bases.len().min(4))];
            let endorsers: &[u8] = if rng.random_bool(0.1) { &[2] } else { &[0, 1] };
            block.extend(network.endorse(basis, proposal, endorsers).ok());
        }
        if rng.random_bool(0.2) {
            block.extend(earlier.last().cloned());
        }
        if rng.random_bool(0.12) {
            let change = network.proposal(script(&format!("CREATE TABLE t{number} (id bigint PRIMARY KEY)")));
            block.insert(rng.random_range(0..=block.len()), change);
        }
        earlier.extend(block.iter().cloned());
        let executed = network.order(block);
        found.push((executed.outcome.receipts_root, executed.outcome.state_digest));
        bases.push(network.basis());
    }
    (network, found)
}

#[test]
fn blocks_that_are_foreseen_come_to_the_same() {
    let pools = [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for seed in 0..12 {
        for protocol in concurrency::VALIDATION_IDS {
            let mut rng = StdRng::seed_from_u64(seed);
            let (network, expected) = random_ledger(protocol, &mut rng);
            for pool in &pools {
                let (found, foreseen) = network.replay_on_the_graph(pool, &mut rng);
                let set_up = found.len() - expected.len();
                assert_eq!(found[set_up..], expected, "{protocol}, seed {seed}");
                assert!(protocol == "fabric-sharp" || foreseen > 10, "{protocol}, seed {seed}: {foreseen}");
            }
        }
    }
}

#[test]
fn what_was_foreseen_is_what_is_executed() {
    let network = Network::new("occ", |_| {});
    let engine = Engine::new(network.charter.clone()).expect("a known protocol");
    let mut engine = engine.with_pipeline(Pipeline::Graph).expect("a known protocol");
    let block = |height: u64, timestamp_ms: u64| {
        let header = BlockHeader { height, timestamp_ms, ..network.ordered[0].0.clone() };
        VerifiedBlock { digest: header.digest(), header, transactions: vec![] }
    };
    assert!(!engine.foresee(&block(2, 5)), "one comes before it");
    assert!(engine.foresee(&block(1, 5)) && engine.foresee(&block(2, 5)));
    assert_eq!(
        engine.execute(&block(1, 6)).err().map(|error| error.to_string()).as_deref(),
        Some("the block of height 1 is not the one that was foreseen")
    );
    assert!(engine.execute(&block(1, 5)).is_ok() && engine.execute(&block(2, 5)).is_ok());
}
