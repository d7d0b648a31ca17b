//! How other members' nodes answer HTTP: over TLS, with the node key of the charter, and with which certificate for everybody else.

use super::answer::{Answer, NotAsked};
use super::finding::Findings;
use client::Spoken;
use types::GatewayAddress;

const ENCRYPTION: &str = "encryption";

/// How whoever is at the address of a member answers.
pub(super) fn check((name, gateway): (&str, &str), answer: &Answer, findings: &mut Findings) {
    let place = GatewayAddress::of(gateway).place;
    match (&answer.not_asked, &answer.status, answer.spoken) {
        (Some(NotAsked::OtherKey(other)), ..) => findings.problem(
            ENCRYPTION,
            format!("{name}: whoever answers at {gateway} was not asked: {other}"),
            format!(
                "ask {name} over the phone which key is theirs, and whether something stands before the node; a new key is an amendment \
                 (docs/governance.md)"
            ),
        ),
        (Some(NotAsked::PlainText), ..) => findings.problem(
            ENCRYPTION,
            format!("{name}: {place} answers in plain text, where the charter says https: it was not asked"),
            format!("ask {name} which program listens there: a node of a version with TLS answers it"),
        ),
        (None, Ok(_), Spoken::Plain) => findings.warning(
            ENCRYPTION,
            format!("{name}: {gateway} answers in plain text: who stands between reads along"),
            format!(
                "have {name} install a version with TLS; then SELECT entente.set_address('{name}', …, 'https://{place}') forbids plain text"
            ),
        ),
        (None, Ok(_), Spoken::Tls) => match &answer.shown {
            Some(wrong) => findings.warning(
                ENCRYPTION,
                format!("{name}: the certificate that {place} shows to others than members {wrong}"),
                format!("tell {name}; members know the node by its key and do not mind"),
            ),
            None => findings.ok(ENCRYPTION, format!("{name}: {place} speaks TLS with its node key")),
        },
        (None, Err(_), _) => {}
    }
}
