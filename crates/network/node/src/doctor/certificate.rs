//! The certificate for clients of Postgres and HTTP: whether it can be used, until when, and for which names.

use super::finding::Findings;
use super::subject::Subject;
use crate::access;
use std::net::IpAddr;
use std::time::SystemTime;
use types::GatewayAddress;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

const CERTIFICATE: &str = "certificate";
/// A certificate that ends within so many days is warned of.
const WARNED_DAYS: i64 = 30;
const DAY_SECONDS: i64 = 24 * 60 * 60;
/// How to get another one.
const ANOTHER: &str = "write another certificate and its key into the files that node.toml names, and send the node SIGHUP (docs/doctor.md)";

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    let Ok(config) = &subject.config else { return };
    if let Err(error) = access::open(&subject.folder, config, None) {
        return findings.problem(CERTIFICATE, error.to_string(), ANOTHER);
    }
    let Some(path) = &config.tls_certificate else {
        return findings.warning(
            CERTIFICATE,
            "node.toml names no certificate: only Postgres clients on this machine can connect",
            "name tls_certificate and tls_key in node.toml, if others are to connect (docs/access.md)",
        );
    };
    let path = subject.folder.join(path);
    let hosts = own_hosts(subject);
    let now = now_seconds();
    match std::fs::read(&path).map_err(|error| error.to_string()).and_then(|pem| Facts::read(&pem)) {
        Ok(facts) => facts.judge(now, &hosts, findings),
        Err(reason) => findings.problem(CERTIFICATE, format!("{}: {reason}", path.display()), ANOTHER),
    }
}

/// The hosts under which the charter says that the node is.
fn own_hosts(subject: &Subject) -> Vec<String> {
    let (Some(charters), Ok(key)) = (subject.charters(), &subject.node_key) else { return Vec::new() };
    let newest = &charters.newest().charter;
    let own = newest.member(&key.public_key()).and_then(|position| newest.organisations.get(position));
    let host = |address: &String| {
        let place = GatewayAddress::of(address).place;
        Some(place.rsplit_once(':')?.0.trim_matches(['[', ']']).to_string())
    };
    let mut hosts: Vec<String> =
        own.iter().flat_map(|own| [&own.address, &own.gateway]).filter_map(host).collect();
    hosts.dedup();
    hosts
}

/// What a certificate says.
#[derive(Debug)]
struct Facts {
    /// Seconds since 1970.
    not_before: i64,
    not_after: i64,
    names: Vec<String>,
}

impl Facts {
    /// Of the first certificate in a file.
    fn read(pem: &[u8]) -> Result<Facts, String> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem).map_err(|error| error.to_string())?;
        Facts::of(&pem.contents)
    }

    /// Of a certificate in DER.
    fn of(der: &[u8]) -> Result<Facts, String> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        let named = certificate.subject_alternative_name().map_err(|error| error.to_string())?;
        let names = named
            .map_or_else(Vec::new, |names| names.value.general_names.iter().filter_map(name_of).collect());
        let validity = certificate.validity();
        Ok(Facts {
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
            names,
        })
    }

    fn judge(&self, now: i64, hosts: &[String], findings: &mut Findings) {
        let days = (self.not_after - now).div_euclid(DAY_SECONDS);
        let names = self.names.join(", ");
        if now < self.not_before {
            let ahead = (self.not_before - now).div_euclid(DAY_SECONDS);
            let found = format!("the certificate is not valid yet: it will be in {ahead} days");
            return findings.problem(
                CERTIFICATE,
                found,
                "set this machine's clock, or make another certificate",
            );
        }
        if days < 0 {
            let found =
                format!("the certificate has expired {} days ago: clients that look refuse it", -days);
            return findings.problem(CERTIFICATE, found, ANOTHER);
        }
        if days <= WARNED_DAYS {
            findings.warning(CERTIFICATE, format!("the certificate expires in {days} days"), ANOTHER);
        }
        let missing: Vec<&str> = hosts.iter().filter(|host| !self.covers(host)).map(String::as_str).collect();
        if !missing.is_empty() {
            findings.warning(
                CERTIFICATE,
                format!(
                    "the certificate is for {names}, and not for {}, where the charter says that the node is",
                    missing.join(", ")
                ),
                format!("clients with sslmode=verify-full do not connect to those names; {ANOTHER}"),
            );
        }
        if findings.is_well(CERTIFICATE) {
            findings
                .ok(CERTIFICATE, format!("belongs to its key, is for {names}, and expires in {days} days"));
        }
    }

    fn covers(&self, host: &str) -> bool {
        self.names.iter().any(|name| {
            let wildcard = name.strip_prefix('*').filter(|rest| rest.starts_with('.'));
            let below = wildcard
                .zip(host.find('.'))
                .is_some_and(|(rest, dot)| host[dot..].eq_ignore_ascii_case(rest));
            name.eq_ignore_ascii_case(host) || below
        })
    }
}

/// Why whoever looks at a certificate now refuses it, or will before long; nothing where all is well.
pub(super) fn wrong_now(der: &[u8]) -> Option<String> {
    let facts = match Facts::of(der) {
        Ok(facts) => facts,
        Err(reason) => return Some(format!("cannot be read: {reason}")),
    };
    let now = now_seconds();
    match (facts.not_after - now).div_euclid(DAY_SECONDS) {
        _ if now < facts.not_before => Some("is not valid yet".to_string()),
        days if days < 0 => Some(format!("has expired {} days ago", -days)),
        days if days <= WARNED_DAYS => Some(format!("expires in {days} days")),
        _ => None,
    }
}

fn now_seconds() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64)
}

fn name_of(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_string()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string()),
            16 => Some(IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    fn judged(facts: &Facts, now: i64, hosts: &[&str]) -> (Level, String) {
        let (mut findings, hosts) =
            (Findings::default(), hosts.iter().map(|host| host.to_string()).collect::<Vec<_>>());
        facts.judge(now, &hosts, &mut findings);
        let finding = findings.0.pop().expect("one");
        (finding.level, finding.found)
    }

    #[test]
    fn a_certificate_is_judged_by_its_days_and_names() {
        let names = ["localhost".to_string(), "127.0.0.1".to_string(), "*.example.org".to_string()];
        let (pem, _) = access::own_certificate("org1", &names);
        let facts = Facts::read(pem.as_bytes()).expect("a certificate");
        assert_eq!(facts.names, names);
        let end = facts.not_after;
        let hosts = ["127.0.0.1", "LOCALHOST", "a.example.org"];
        let (level, text) = judged(&facts, end - 100 * DAY_SECONDS, &hosts);
        assert_eq!(level, Level::Ok, "{text}");
        assert!(text.contains("expires in 100 days"), "{text}");
        let (level, text) = judged(&facts, end - 29 * DAY_SECONDS, &hosts);
        assert_eq!((level, text.as_str()), (Level::Warning, "the certificate expires in 29 days"));
        let (level, text) = judged(&facts, end + 2 * DAY_SECONDS, &hosts);
        assert_eq!(level, Level::Problem);
        assert!(text.contains("has expired 2 days ago"), "{text}");
        assert_eq!(judged(&facts, facts.not_before - 1, &hosts).0, Level::Problem);
        let (level, text) = judged(&facts, end - 100 * DAY_SECONDS, &["a.b.example.org", "10.0.0.1"]);
        assert_eq!(level, Level::Warning);
        assert!(text.contains("not for a.b.example.org, 10.0.0.1"), "{text}");
        assert!(Facts::read(b"nothing").is_err());
        assert!(wrong_now(b"nothing").is_some_and(|wrong| wrong.starts_with("cannot be read")));
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).expect("PEM");
        assert_eq!(wrong_now(&pem.contents), None);
    }
}
