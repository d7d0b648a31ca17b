//! Where a node's oracles are, and how they are asked.

use crate::NodeError;
use client::{Trust, tls_failure};
use parking_lot::Mutex;
use sql::Oracles;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use types::{SqlError, SqlState, limits};

/// How long an oracle may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The oracles of `node.toml`: a name, and `http://…`, `https://…` or the path of a file, from the node's folder.
pub(crate) struct OracleSources {
    sources: BTreeMap<String, Source>,
    http: reqwest::Client,
    runtime: Handle,
}

enum Source {
    Http(String),
    File(PathBuf),
}

impl OracleSources {
    pub(crate) fn new(
        oracles: &BTreeMap<String, String>,
        folder: &Path,
        runtime: Handle,
    ) -> Result<OracleSources, NodeError> {
        let source = |(name, place): (&String, &String)| {
            let source = match place.strip_prefix("file://").unwrap_or(place) {
                http if ["http://", "https://"].iter().any(|scheme| http.starts_with(scheme)) => {
                    Source::Http(http.to_string())
                }
                other if other.is_empty() || other.contains("://") => {
                    let reason =
                        format!("expected http://…, https://… or the path of a file, found `{place}`");
                    return Err(NodeError::Oracle { name: name.clone(), reason });
                }
                path => Source::File(folder.join(path)),
            };
            Ok((name.clone(), source))
        };
        let http = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN);
        let http = match oracles.iter().find(|(_, place)| place.starts_with("https://")) {
            // Where no address begins so, no certificates of the machine are needed.
            None => http.tls_certs_only([]),
            Some((name, _)) => {
                let unusable = |reason: String| NodeError::Oracle { name: name.clone(), reason };
                http.tls_backend_preconfigured(Trust::System.config().map_err(unusable)?)
            }
        };
        let http = http
            .build()
            .map_err(|error| NodeError::Oracle { name: "http".to_string(), reason: error.to_string() })?;
        let sources = oracles.iter().map(source).collect::<Result<_, _>>()?;
        Ok(OracleSources { sources, http, runtime })
    }

    fn ask(&self, name: &str) -> Result<String, SqlError> {
        let Some(source) = self.sources.get(name) else {
            let known: Vec<&str> = self.sources.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            let message = format!("this node knows no oracle \"{name}\"; it knows {known}");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message)
                .hint("Name it and where it is under [oracles] in the node's node.toml."));
        };
        let answer = match source {
            Source::Http(url) => self.runtime.block_on(self.fetch(url)),
            Source::File(path) => read(path),
        };
        let failed = |reason: String| {
            let message = format!("the oracle \"{name}\" does not answer: {reason}");
            SqlError::new(SqlState::EXTERNAL_ROUTINE_EXCEPTION, message)
        };
        let text = String::from_utf8(answer.map_err(failed)?)
            .map_err(|_| failed("expected UTF-8, found other bytes".to_string()))?;
        if text.contains('\0') {
            return Err(failed("expected text, found a zero byte".to_string()));
        }
        Ok(text.trim_end_matches(['\r', '\n']).to_string())
    }

    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        let failed = |error: reqwest::Error| match (error.is_timeout(), tls_failure(&error)) {
            (true, _) => format!("{url} takes more than {} s", ANSWER_WITHIN.as_secs()),
            (false, Some(reason)) => format!("{url} is not believed: {reason}"),
            (false, None) => format!("{url} cannot be reached"),
        };
        let mut response = self.http.get(url).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(format!("{url} answers {}", response.status()));
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            answer.extend_from_slice(&chunk);
            if answer.len() > limits::ORACLE_BYTES_MAX {
                return Err(too_long());
            }
        }
        Ok(answer)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut answer = Vec::new();
    file.take(limits::ORACLE_BYTES_MAX as u64 + 1).read_to_end(&mut answer).map_err(failed)?;
    if answer.len() > limits::ORACLE_BYTES_MAX { Err(too_long()) } else { Ok(answer) }
}

fn too_long() -> String {
    format!("it says more than {} bytes (ORACLE_BYTES_MAX)", limits::ORACLE_BYTES_MAX)
}

/// The oracles as a batch of transactions sees them: each is asked once, so that a batch does not ask a thousand times.
pub(crate) struct AskedOnce {
    sources: Arc<OracleSources>,
    answers: Mutex<BTreeMap<String, Result<String, SqlError>>>,
}

impl AskedOnce {
    pub(crate) fn new(sources: Arc<OracleSources>) -> AskedOnce {
        AskedOnce { sources, answers: Mutex::default() }
    }
}

impl Oracles for AskedOnce {
    fn value(&self, name: &str) -> Result<String, SqlError> {
        // The lock is held while the oracle is asked: others of the batch wait for the same answer.
        let mut answers = self.answers.lock();
        if let Some(answer) = answers.get(name) {
            return answer.clone();
        }
        let answer = self.sources.ask(name);
        if answers.len() < limits::ORACLES_MAX {
            answers.insert(name.to_string(), answer.clone());
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_what_is_wrong_with_an_oracle_is_said() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let place = |name: &str, place: &str| (name.to_string(), place.to_string());
        let unused =
            std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
        let oracles = BTreeMap::from([
            place("rate", "rate.txt"),
            place("gone", "file:///nowhere/at/all"),
            place("long", "long.txt"),
            place("binary", "binary.txt"),
            place("silent", &format!("http://{unused}/rate")),
        ]);
        let sources = OracleSources::new(&oracles, folder.path(), runtime.handle().clone());
        let sources = Arc::new(sources.expect("all are files or http"));
        std::fs::write(folder.path().join("rate.txt"), "1.08\n").expect("written");
        std::fs::write(folder.path().join("long.txt"), "x".repeat(limits::ORACLE_BYTES_MAX + 1))
            .expect("written");
        std::fs::write(folder.path().join("binary.txt"), [0xff, 0xfe]).expect("written");
        let batch = AskedOnce::new(sources.clone());
        assert_eq!(batch.value("rate"), Ok("1.08".to_string()));
        std::fs::write(folder.path().join("rate.txt"), "1.09\n").expect("written");
        assert_eq!(batch.value("rate"), Ok("1.08".to_string()), "a batch asks once");
        assert_eq!(AskedOnce::new(sources).value("rate"), Ok("1.09".to_string()));
        let says = |name: &str, state: SqlState, text: &str| {
            let error = batch.value(name).expect_err("it fails");
            assert!(error.state == state && error.message.contains(text), "{error:?}");
        };
        let failed = SqlState::EXTERNAL_ROUTINE_EXCEPTION;
        says("gone", failed, "the oracle \"gone\" does not answer: /nowhere/at/all: No such file");
        says("long", failed, "more than 4096 bytes");
        says("binary", failed, "expected UTF-8");
        says("silent", failed, "cannot be reached");
        says(
            "weather",
            SqlState::UNDEFINED_OBJECT,
            "no oracle \"weather\"; it knows binary, gone, long, rate",
        );

        // Over TLS, where this machine trusts anybody.
        let encrypted = BTreeMap::from([place("rate", &format!("https://{unused}/rate"))]);
        match OracleSources::new(&encrypted, folder.path(), runtime.handle().clone()) {
            Ok(sources) => {
                let error = AskedOnce::new(Arc::new(sources)).value("rate").expect_err("nobody answers");
                assert!(error.message.contains("cannot be reached"), "{error:?}");
            }
            Err(error) => assert!(error.to_string().contains("no certificate of an authority"), "{error}"),
        }

        let wrong = BTreeMap::from([place("rate", "ftp://somewhere")]);
        let error = OracleSources::new(&wrong, folder.path(), runtime.handle().clone());
        let error = error.err().expect("no such scheme").to_string();
        assert!(error.contains("`ftp://somewhere`") && error.contains("rate"), "{error}");
    }
}
