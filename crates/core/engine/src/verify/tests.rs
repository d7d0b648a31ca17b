use super::memory::REMEMBERED_TRANSACTIONS_MAX;
use super::*;
use crypto::SecretKey;
use types::{EndorsedEffects, HeldParts, Organisation, RequestId, Transaction};

#[test]
fn what_a_version_does_not_know_is_refused_in_the_words_of_programs_that_do_not_know_it() {
    // As borsh says it of a kind that nobody knows yet.
    let unknown = types::decode_exactly::<Payload>(&[200]).expect_err("there are not so many").to_string();
    let of = |execution_version| Charter { execution_version, ..charter().0 };
    let (ledger, root) = charter();
    let agreed = types::AgreedPart {
        call: Payload::Script { sql: "SELECT 1".into(), parameters: vec![] },
        between: Default::default(),
        others: Default::default(),
        signatures: vec![],
    };
    for (tag, payload, before) in [
        (4, Payload::Parts { parts: vec![] }, Some(3)),
        (5, Payload::SchemaOutcomes { certificates: vec![] }, Some(3)),
        (6, Payload::HeldParts { held: vec![] }, Some(4)),
        (7, Payload::MovingOutcomes { certificates: vec![] }, Some(5)),
        (AGREED, Payload::Agreed(Box::new(agreed)), None),
    ] {
        let mut whole = transaction(&ledger, &root, 1);
        whole.transaction.payload = payload;
        let good = whole.to_bytes();
        // Nobody who does not know a kind reads what stands behind it.
        let at = good.len() - types::encode(&(whole.credential, whole.signature)).len() - 4;
        let kind_at = at - types::encode(&whole.transaction.payload).len();
        let broken = [&good[..=kind_at], &[0xff; 9], &good[at..]].concat();
        let expected = TransactionError::Malformed(unknown.replace("200", &tag.to_string())).to_string();
        for bytes in [good, broken] {
            assert_eq!(SignedTransaction::payload_kind(&bytes), Some(tag));
            if let Some(before) = before {
                assert_eq!(unknown_before(&of(before), &bytes), Some(expected.clone()));
                assert_eq!(unknown_before(&of(before + 1), &bytes), None);
            }
            let judged = check(&Verifier::new(&ledger), &ledger, &[Bytes::from(bytes)]).remove(0);
            let reason = judged.expect_err("not signed, or unknown").1;
            let is_unknown = reason == RejectReason::Malformed(expected.clone());
            assert_eq!(is_unknown, tag == AGREED, "{reason:?}");
        }
    }
}

/// A transaction with one part, and who says that he holds it.
fn parts(charter: &Charter, root: &SecretKey, number: u8) -> SignedTransaction {
    let mut transaction = transaction(charter, root, number).transaction;
    let commitment = types::PartCommitment { schema: "deal".into(), commitment: crypto::sha256(&[]) };
    transaction.payload = Payload::Parts { parts: vec![commitment] };
    sign(charter, root, transaction)
}

fn words(charter: &Charter, root: &SecretKey, held: Vec<HeldParts>) -> Bytes {
    let mut transaction = transaction(charter, root, 99).transaction;
    transaction.payload = Payload::HeldParts { held };
    Bytes::from(sign(charter, root, transaction).to_bytes())
}

fn sign(charter: &Charter, root: &SecretKey, transaction: Transaction) -> SignedTransaction {
    let key = SecretKey::from_bytes([9; 32]);
    let credential = Credential::issue(root, 0, &charter.ledger(), &key.public_key());
    transaction.sign(&key, credential)
}

fn endorsers(judged: &Judged) -> Option<&[u16]> {
    judged.as_ref().ok()?.endorsed.as_ref().map(|endorsed| &*endorsed.endorsers)
}

#[test]
fn members_words_count_for_the_transactions_of_their_block() {
    let (charter, root) = charter();
    let (ledger, node) = (charter.ledger(), SecretKey::from_bytes([2; 32]));
    let signed: Vec<SignedTransaction> = (1..=3).map(|number| parts(&charter, &root, number)).collect();
    let ids: Vec<TransactionId> = signed.iter().map(|one| one.transaction.id()).collect();
    let [a, b, c] = [0, 1, 2].map(|at: usize| Bytes::from(signed[at].to_bytes()));
    let word = HeldParts::sign(ids[..2].to_vec(), (0, 0), (&ledger, &node));
    let said = words(&charter, &root, vec![word.clone()]);
    let verifier = Verifier::new(&charter);
    let unheld = |judged: &Judged| match judged {
        Err((_, RejectReason::Endorsement(fault))) => fault.to_string().contains("nobody says in its block"),
        _ => false,
    };
    // The second time from memory, and in any order.
    for block in [[&said, &a, &b, &c], [&c, &b, &a, &said]] {
        let judged = check(&verifier, &charter, &block.map(Bytes::clone));
        for (bytes, judged) in block.iter().zip(&judged) {
            let expected = if **bytes == a || **bytes == b { Some(&[0][..]) } else { None };
            assert_eq!(endorsers(judged), expected, "{judged:?}");
            assert_eq!(unheld(judged), **bytes == c, "{judged:?}");
        }
    }
    let alone = check(&verifier, &charter, std::slice::from_ref(&a));
    assert!(unheld(&alone[0]), "words in another block count no more: {alone:?}");
    let mut forged = word.clone();
    forged.holders[0].signature.0[3] ^= 1;
    let other = HeldParts { transactions: ids.clone(), ..word.clone() };
    let later = HeldParts::sign(ids[..2].to_vec(), (0, 5), (&ledger, &node));
    let mut repeated = word.clone();
    repeated.holders.extend(later.holders.clone());
    let mut stranger = word.clone();
    stranger.holders[0].organisation = 7;
    for wrong in [forged, other, repeated, stranger] {
        let judged = check(&verifier, &charter, &[words(&charter, &root, vec![wrong]), a.clone()]);
        assert!(matches!(judged[0], Err((_, RejectReason::Endorsement(_)))), "{judged:?}");
        assert!(unheld(&judged[1]), "{judged:?}");
    }
    // Two lists about one transaction: a member's newest word counts, so that nobody harms it with an old one.
    let judged = check(&verifier, &charter, &[words(&charter, &root, vec![word, later]), a.clone()]);
    let endorsed = judged[1].as_ref().expect("held").endorsed.clone().expect("words");
    assert_eq!((&*endorsed.endorsers, &*endorsed.heights), (&[0][..], &[5][..]));
    let fourth = Charter { execution_version: 4, ..charter };
    let judged = check(&Verifier::new(&fourth), &fourth, &[said, a]);
    assert!(judged.iter().all(Result::is_err), "{judged:?}");
}

fn charter() -> (Charter, SecretKey) {
    let root = SecretKey::from_bytes([1; 32]);
    let mut charter = Charter::with_defaults("test", 1);
    charter.ordering = "solo".into();
    charter.organisations.push(Organisation {
        name: "one".into(),
        root_key: root.public_key(),
        node_key: SecretKey::from_bytes([2; 32]).public_key(),
        address: "127.0.0.1:1".into(),
        gateway: String::new(),
        removed: false,
        node_key_expires: None,
    });
    (charter, root)
}

fn transaction(charter: &Charter, root: &SecretKey, number: u8) -> SignedTransaction {
    let key = SecretKey::from_bytes([9; 32]);
    let ledger = charter.ledger();
    let credential = Credential::issue(root, 0, &ledger, &key.public_key());
    let payload = Payload::Call { procedure: "p".into(), arguments: vec![] };
    let request = RequestId([number; 16]);
    Transaction { ledger, client: key.public_key(), request, expires_at: 9, role: String::new(), payload }
        .sign(&key, credential)
}

/// At the first height of a ledger that nobody has amended.
fn check(verifier: &Verifier, charter: &Charter, transactions: &[Bytes]) -> Vec<Judged> {
    let charters = Charters::new(Arc::new(charter.clone()));
    verifier.check(Place { charters: &charters, height: 1 }, transactions)
}

fn check_proposals(verifier: &Verifier, charter: &Charter, transactions: &[Bytes]) -> Vec<Judged> {
    let charters = Charters::new(Arc::new(charter.clone()));
    verifier.check_proposals(Place { charters: &charters, height: 1 }, transactions)
}

#[test]
fn a_remembered_transaction_with_another_signature_is_judged_anew() {
    let (charter, root) = charter();
    let verifier = Verifier::new(&charter);
    let good = transaction(&charter, &root, 1);
    let bytes = Bytes::from(good.to_bytes());
    for _ in 0..2 {
        assert!(check(&verifier, &charter, std::slice::from_ref(&bytes))[0].is_ok());
    }
    let mut forged = good.clone();
    forged.signature.0[3] ^= 1;
    let mut lent = good;
    lent.credential.signature.0[3] ^= 1;
    for wrong in [forged, lent] {
        let verdict = &check(&verifier, &charter, &[Bytes::from(wrong.to_bytes())])[0];
        assert!(matches!(verdict, Err((_, RejectReason::Unsigned(_)))), "{verdict:?}");
    }
    assert!(check(&verifier, &charter, &[bytes])[0].is_ok());
}

#[test]
fn a_transaction_is_as_long_as_the_charter_of_its_place_lets_it() {
    let (mut charter, root) = charter();
    let (ledger, verifier) = (charter.ledger(), Verifier::new(&charter));
    let long = {
        let key = SecretKey::from_bytes([9; 32]);
        let mut long = transaction(&charter, &root, 1);
        long.transaction.payload =
            Payload::Script { sql: format!("SELECT '{}'", "x".repeat(300_000)), parameters: vec![] };
        long.transaction.sign(&key, long.credential)
    };
    let bytes = Bytes::from(long.to_bytes());
    let size = bytes.len() as u32;
    // Amended charters keep the ledger's name.
    (charter.version, charter.founding) = (1, Some(ledger));
    for (version, limit, fits) in [
        (14, 2 << 20, true),
        (14, size, true),
        // Whoever remembers it says the same as whoever does not.
        (14, size - 1, false),
        (14, types::limits::TRANSACTION_BYTES_BEFORE, false),
        (13, types::limits::TRANSACTION_BYTES_BEFORE, false),
        (14, 2 << 20, true),
    ] {
        charter.execution_version = version;
        charter.block.transaction_bytes_max = limit;
        for verifier in [&verifier, &Verifier::new(&charter)] {
            let verdict = &check(verifier, &charter, std::slice::from_ref(&bytes))[0];
            let expected = format!(
                "the transaction has {size} bytes, the limit is {limit} (block.transaction_bytes_max of the charter); split it"
            );
            match verdict {
                Ok(_) => assert!(fits, "{version} {limit}"),
                Err((_, RejectReason::Malformed(why))) => assert_eq!((fits, why), (false, &expected)),
                other => panic!("{version} {limit}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_proposal_is_no_transaction_yet_and_its_signature_is_verified_once() {
    let (mut charter, root) = charter();
    let unasked = |judged: &Judged, says: &str| {
        let Err((_, RejectReason::Endorsement(EndorsementFault::Unasked(text)))) = judged else {
            panic!("{judged:?}")
        };
        assert!(text.contains(says), "{text}");
    };
    let bytes = [Bytes::from(transaction(&charter, &root, 1).to_bytes())];
    unasked(&check_proposals(&Verifier::new(&charter), &charter, &bytes)[0], "executes after ordering");

    charter.execution = ExecutionModel::ExecuteOrderValidate;
    let verifier = Verifier::new(&charter);
    let mut plain = transaction(&charter, &root, 1);
    let bytes = [Bytes::from(plain.to_bytes())];
    assert!(check_proposals(&verifier, &charter, &bytes)[0].is_ok());
    assert_eq!(verifier.memory.lock().proposals.len(), 1);
    unasked(&check(&verifier, &charter, &bytes)[0], "not endorsed");

    let mut forged = plain.clone();
    forged.signature.0[3] ^= 1;
    let judged = &check_proposals(&verifier, &charter, &[Bytes::from(forged.to_bytes())])[0];
    assert!(matches!(judged, Err((_, RejectReason::Unsigned(_)))), "{judged:?}");

    let simulation = EndorsedSimulation { effects: EndorsedEffects::default(), endorsements: vec![] };
    forged.endorsed = Some(Box::new(simulation.clone()));
    let judged = &check(&verifier, &charter, &[Bytes::from(forged.to_bytes())])[0];
    assert!(matches!(judged, Err((_, RejectReason::Unsigned(_)))), "{judged:?}");
    plain.endorsed = Some(Box::new(simulation));
    let bytes = [Bytes::from(plain.to_bytes())];
    assert!(check(&verifier, &charter, &bytes)[0].is_ok());
    unasked(&check_proposals(&verifier, &charter, &bytes)[0], "carries no endorsements");
}

/// Nodes learn of amendments at different times, and see transactions at different heights first.
#[test]
fn a_verdict_depends_on_the_place_and_not_on_what_was_judged_before() {
    let (mut charter, root) = charter();
    charter.execution = ExecutionModel::ExecuteOrderValidate;
    charter.organisations[0].node_key = SecretKey::from_bytes([7; 32]).public_key();
    for number in 2..6_u8 {
        charter.organisations.push(Organisation {
            name: format!("member {number}"),
            root_key: SecretKey::from_bytes([number; 32]).public_key(),
            node_key: SecretKey::from_bytes([number + 10; 32]).public_key(),
            address: format!("127.0.0.1:{number}"),
            ..charter.organisations[0].clone()
        });
    }
    charter.ordering = "bft".into();
    let founding = Arc::new(charter);
    let newcomer = SecretKey::from_bytes([30; 32]);
    let sixth = Organisation {
        name: "late".into(),
        root_key: newcomer.public_key(),
        node_key: SecretKey::from_bytes([31; 32]).public_key(),
        address: "127.0.0.1:9".into(),
        ..founding.organisations[0].clone()
    };
    let acceptance = types::accept_membership(&founding.ledger(), &sixth, &newcomer);
    let replace = types::CharterChange::ReplaceNodeKey {
        name: "one".into(),
        node_key: SecretKey::from_bytes([40; 32]).public_key(),
        expires: None,
    };
    let add = types::CharterChange::AddOrganisation { organisation: sixth, acceptance };
    let mut all = vec![Charters::new(founding.clone())];
    for (change, effective_height) in [(replace, 20), (add, 30)] {
        let mut charters = all.last().expect("one").clone();
        let charter = charters.newest().charter.amended(&change).expect("a good change");
        charters.add(types::AmendedCharter { charter, effective_height }).expect("the next");
        all.push(charters);
    }
    let endorsed = |organisation: u16, key: u8, snapshot: u64, client: (&SecretKey, u16)| {
        let (root, member) = client;
        let mut signed = transaction(&founding, root, 1);
        signed.credential.organisation = member;
        let effects = EndorsedEffects::default();
        let id = SignedTransaction::ids_of(&[Bytes::from(signed.to_bytes())])[0];
        let key = SecretKey::from_bytes([key; 32]);
        let simulations = [(id, effects.digest())];
        let endorsements = types::endorse(&key, organisation, &founding.ledger(), snapshot, &simulations);
        signed.endorsed = Some(Box::new(EndorsedSimulation { effects, endorsements }));
        Bytes::from(signed.to_bytes())
    };
    let mut transactions = Vec::new();
    for snapshot in [10, 19, 20, 25, 35, 1_000_000] {
        for (organisation, key) in [(0, 7), (0, 40), (1, 12), (5, 31)] {
            transactions.push(endorsed(organisation, key, snapshot, (&root, 0)));
            transactions.push(endorsed(organisation, key, snapshot, (&newcomer, 5)));
        }
    }
    let plain = |judged: &Judged| judged.as_ref().map(|one| one.id).map_err(Clone::clone);
    let verifier = Verifier::new(&founding);
    let mut good = 0;
    for height in [35, 5, 19, 20, 29, 30, 35, 20, 5] {
        // All that hold are known; others may be.
        let enough = all.iter().position(|one| one.version_at(height) == all[2].version_at(height));
        for charters in &all[enough.expect("the last at least")..] {
            for one in &transactions {
                let one = std::slice::from_ref(one);
                let place = Place { charters, height };
                let (known, fresh) = (verifier.check(place, one), Verifier::new(&founding).check(place, one));
                assert_eq!(plain(&known[0]), plain(&fresh[0]), "height {height}");
                good += usize::from(fresh[0].is_ok());
            }
        }
    }
    assert!(good > 50, "{good}");
}

#[test]
fn what_is_not_of_this_ledger_is_named() {
    let (charter, root) = charter();
    let verifier = Verifier::new(&charter);
    let mut other = charter.clone();
    other.nonce += 1;
    let foreign = transaction(&other, &root, 1);
    let garbage = Bytes::from_static(b"garbage");
    let judged = check(&verifier, &charter, &[Bytes::from(foreign.to_bytes()), garbage]);
    assert!(matches!(&judged[0], Err((_, RejectReason::Malformed(text))) if text.contains("of ledger")));
    assert!(matches!(&judged[1], Err((_, RejectReason::Malformed(_)))));
}

#[test]
fn memory_stays_bounded() {
    let (charter, root) = charter();
    let verifier = Verifier::new(&charter);
    let good = transaction(&charter, &root, 1);
    let mut memory = verifier.memory.lock();
    for number in 0..REMEMBERED_TRANSACTIONS_MAX + 10 {
        let id = TransactionId(crypto::sha256(&[&number.to_be_bytes()]));
        let transaction = VerifiedTransaction { id, ..VerifiedTransaction::from(good.clone()) };
        memory.remember(Arc::new(transaction), Box::default(), 0);
    }
    assert_eq!(memory.transactions.len(), REMEMBERED_TRANSACTIONS_MAX);
}
