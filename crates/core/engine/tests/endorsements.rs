//! Whose endorsements are enough: policies, keys that endorse no more, and everything that may be wrong with endorsements.

mod support;

use crypto::Signature;
use engine::Verifier;
use std::sync::Arc;
use support::endorsing::{Network, call, fault, node, root, script};
use types::{
    EndorsedSimulation, EndorsementFault, ExecutionModel, Organisation, Outcome, Payload, RejectReason,
    RowWrite, SignedTransaction, Value, endorse,
};

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
        ("ALTER TABLE gold VALIDATE CONSTRAINT x", "constraint \"x\" of relation \"gold\" does not exist"),
        ("ALTER TABLE gold ENABLE RULE x", "ALTER TABLE is not supported"),
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

/// Where databases execute scripts, an endorsement is of no effects, and its organisation agrees to what the script says.
#[test]
fn a_script_that_not_enough_agree_to_is_rejected_and_its_request_is_left() {
    let mut network = Network::founded("serial", |charter| {
        charter.execution = ExecutionModel::WhateverThenAgree;
    });
    let policy =
        "CREATE TABLE gold (id bigint PRIMARY KEY, grams bigint) WITH (endorsement_policy = 'anna AND bert')";
    for sql in [policy, "CREATE TABLE free (id bigint PRIMARY KEY)"] {
        let change = network.proposal(script(sql));
        let outcomes = network.outcomes(vec![change]);
        assert!(matches!(outcomes[0], Outcome::Committed(_)), "{outcomes:?}");
    }
    let basis = network.basis();
    let insert = network.proposal(script("INSERT INTO free VALUES (1); INSERT INTO gold VALUES (1, 5)"));
    let with = |endorsers: &[u8]| network.endorse(&basis, insert.clone(), endorsers).expect("a script");
    let (few, enough, mut effects, mut forged) = (with(&[0, 2]), with(&[0, 1]), with(&[0, 1]), with(&[0, 1]));
    let version = network.engine.state().catalog().version;
    let agreed = enough.endorsed.as_ref().expect("endorsements").effects.agreed_schema();
    assert_eq!(agreed, Some(version));
    effects.endorsed.as_mut().expect("endorsements").effects.now_ms = 1;
    forged.endorsed.as_mut().expect("endorsements").endorsements[1].signature.0[5] ^= 1;
    let free = network.proposal(script("INSERT INTO free VALUES (2)"));
    let mistake = network.proposal(script("UPDATE gold SET id = 2"));
    let schema = network.proposal(script("DROP TABLE free"));
    let schema = network.endorse(&basis, schema, &[0, 1]);
    assert!(schema.is_err(), "who agrees to schema changes the charter says");
    let outcomes =
        network.outcomes(vec![insert, few, effects, forged, enough.clone(), enough, free, mistake]);
    for outcome in &outcomes[..2] {
        assert!(
            fault(outcome)
                .to_string()
                .starts_with("the policy `anna AND bert` of table \"gold\" is not satisfied by")
        );
    }
    assert!(matches!(fault(&outcomes[2]), EndorsementFault::Unasked(_)), "{outcomes:?}");
    assert!(matches!(fault(&outcomes[3]), EndorsementFault::Forged { organisation: 1, .. }), "{outcomes:?}");
    assert!(matches!(outcomes[4], Outcome::Committed(_)), "{outcomes:?}");
    assert!(matches!(outcomes[5], Outcome::Rejected(RejectReason::Duplicate { .. })), "{outcomes:?}");
    assert!(matches!(outcomes[6], Outcome::Committed(_)), "{outcomes:?}");
    assert!(matches!(outcomes[7], Outcome::Aborted(_)), "no script is refused as one: {outcomes:?}");
}

/// Whoever has agreed has judged what a policy asked for then, with the defaults of then; and a schema change is no way around it.
#[test]
fn agreement_does_not_outlive_the_schema_and_schema_changes_carry_no_rows() {
    let mut network = Network::founded("serial", |charter| {
        charter.execution = ExecutionModel::WhateverThenAgree;
    });
    let commit = |network: &mut Network, sql: &str| {
        let change = network.proposal(script(sql));
        let outcomes = network.outcomes(vec![change]);
        assert!(matches!(outcomes[0], Outcome::Committed(_)), "{sql}: {outcomes:?}");
    };
    let gold = "CREATE TABLE gold (id bigint PRIMARY KEY, grams bigint) WITH (endorsement_policy = 'bert')";
    commit(&mut network, gold);
    commit(&mut network, "CREATE TABLE free (id bigint PRIMARY KEY)");
    let both = network.endorsed(script("INSERT INTO free VALUES (1); INSERT INTO gold VALUES (1, 5)"), &[1]);
    let again = network.endorsed(script("INSERT INTO free VALUES (2)"), &[1]);
    commit(&mut network, "ALTER TABLE free SET (endorsement_policy = 'bert')");
    let outcomes = network.outcomes(vec![both, again]);
    for outcome in &outcomes {
        let fault = fault(outcome).to_string();
        assert!(
            fault.contains("agreed to under version") && fault.contains("have it agreed to again"),
            "{fault}"
        );
    }
    let around = network
        .proposal(script("CREATE TABLE other (id bigint PRIMARY KEY); INSERT INTO gold VALUES (9, 9)"));
    match &network.outcomes(vec![around])[0] {
        Outcome::Aborted(error) => assert!(
            error.message.starts_with(
                "a schema change and changes of other tables' rows in one transaction on a ledger whose"
            ),
            "{error:?}"
        ),
        other => panic!("{other:?}"),
    }
    // Rows of a table that there was not before are its maker's.
    commit(&mut network, "CREATE TABLE other (id bigint PRIMARY KEY); INSERT INTO other VALUES (1)");
}
