//! Passwords of this node's users, as what verifies them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crypto::sha256;
use parking_lot::Mutex;
use pgwire::api::auth::sasl::scram::{SCRAM_ITERATIONS, ScramSecret, gen_salted_password};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::LazyLock;

/// Bytes of a password; a longer one is refused.
const PASSWORD_BYTES_MAX: usize = 1_000;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// Iterations beyond this would make every login of a client slow.
const ITERATIONS_MAX: usize = 10_000_000;

/// What verifies a password and does not tell it: PostgreSQL's
/// `SCRAM-SHA-256$iterations:salt$stored key:server key` (RFC 5803), with the last three in base 64.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: usize,
    salt: Vec<u8>,
    stored_key: [u8; HASH_BYTES],
    server_key: [u8; HASH_BYTES],
}

// Keys are not for logs.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [self.salt.as_slice(), &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        write!(f, "SCRAM-SHA-256${}:{salt}${stored}:{server}", self.iterations)
    }
}

impl FromStr for Verifier {
    type Err = PasswordError;

    fn from_str(text: &str) -> Result<Verifier, PasswordError> {
        let read = || {
            let (iterations, rest) = text.strip_prefix("SCRAM-SHA-256$")?.split_once(':')?;
            let (salt, keys) = rest.split_once('$')?;
            let (stored, server) = keys.split_once(':')?;
            let iterations = iterations.parse().ok().filter(|count| (1..=ITERATIONS_MAX).contains(count))?;
            let bytes = |text: &str| STANDARD.decode(text).ok();
            let salt = bytes(salt).filter(|salt| !salt.is_empty())?;
            let (stored_key, server_key) = (bytes(stored)?.try_into().ok()?, bytes(server)?.try_into().ok()?);
            Some(Verifier { iterations, salt, stored_key, server_key })
        };
        read().ok_or(PasswordError::Verifier)
    }
}

impl Verifier {
    /// Of a password in plain text, with a salt of its own.
    ///
    /// # Errors
    /// An empty password, or one that is too long.
    pub fn of_password(password: &str) -> Result<Verifier, PasswordError> {
        if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
            return Err(PasswordError::Length(password.len()));
        }
        let salt = crypto::random_bytes::<SALT_BYTES>().to_vec();
        let salted = gen_salted_password(password, &salt, SCRAM_ITERATIONS);
        match ScramSecret::verifier_from_salted_password(salt, salted, SCRAM_ITERATIONS) {
            ScramSecret::Verifier { salt, iterations, stored_key, server_key } => Ok(Verifier {
                iterations,
                salt,
                stored_key: stored_key.try_into().expect("SHA-256"),
                server_key: server_key.try_into().expect("SHA-256"),
            }),
            ScramSecret::SaltedPassword { .. } => unreachable!("a verifier was asked for"),
        }
    }

    /// For a user who has no password: looks like one, and nobody knows the password. The same user gets the same salt
    /// each time, so that asking does not tell who exists.
    fn of_nobody(user: &str) -> Verifier {
        static SECRET: LazyLock<[u8; 32]> = LazyLock::new(crypto::random_bytes);
        let part = |part: u8| sha256(&[SECRET.as_slice(), &[part], user.as_bytes()]).0;
        Verifier {
            iterations: SCRAM_ITERATIONS,
            salt: part(0)[..SALT_BYTES].to_vec(),
            stored_key: part(1),
            server_key: part(2),
        }
    }

    pub(crate) fn secret(self) -> ScramSecret {
        ScramSecret::Verifier {
            salt: self.salt,
            iterations: self.iterations,
            stored_key: self.stored_key.to_vec(),
            server_key: self.server_key.to_vec(),
        }
    }
}

/// Why a password cannot be set or read.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// None, or too much.
    #[error("expected a password of 1 to {PASSWORD_BYTES_MAX} bytes, found {0}")]
    Length(usize),
    /// Not PostgreSQL's form.
    #[error(
        "expected `SCRAM-SHA-256$iterations:salt$stored key:server key`, as `\\password` of psql sends it; \
         other verifiers (md5) are not supported"
    )]
    Verifier,
    /// A line of the file.
    #[error("{path}, line {line}: expected `user = verifier`: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file.
    #[error("cannot {action} {path}: {error}")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        error: io::Error,
    },
}

/// The passwords of a node's users, in a file of its folder that no other organisation gets to see: a verifier on the
/// ledger could be tried out by every member.
///
/// One line per user, `name = verifier`; the file is read at every login, so that what a command writes counts at once.
#[derive(Debug, Default)]
pub struct Passwords {
    path: Option<PathBuf>,
    /// Without a file, for tests and embedded use.
    memory: Mutex<BTreeMap<String, Verifier>>,
}

impl Passwords {
    /// The passwords in `path`; no file means no passwords.
    ///
    /// # Errors
    /// The file cannot be read, or a line is none.
    pub fn open(path: &Path) -> Result<Passwords, PasswordError> {
        let passwords = Passwords { path: Some(path.to_path_buf()), memory: Mutex::default() };
        passwords.read()?;
        Ok(passwords)
    }

    fn read(&self) -> Result<BTreeMap<String, Verifier>, PasswordError> {
        let Some(path) = &self.path else { return Ok(self.memory.lock().clone()) };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(PasswordError::File { action: "read", path: path.clone(), error }),
        };
        let mut verifiers = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |reason: String| PasswordError::Line { path: path.clone(), line: number + 1, reason };
            // A name may hold " = ", a verifier cannot.
            let (user, verifier) =
                line.rsplit_once(" = ").ok_or_else(|| wrong("there is no ` = `".into()))?;
            let verifier =
                verifier.trim().parse().map_err(|error: PasswordError| wrong(error.to_string()))?;
            verifiers.insert(user.to_string(), verifier);
        }
        Ok(verifiers)
    }

    /// Sets or takes away a user's password.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn set(&self, user: &str, verifier: Option<Verifier>) -> Result<(), PasswordError> {
        if user.is_empty() || user.contains(['\n', '\r']) {
            let reason = format!("{user:?} cannot be the name of a user");
            return Err(PasswordError::Line { path: self.path.clone().unwrap_or_default(), line: 0, reason });
        }
        // One change at a time.
        let mut memory = self.memory.lock();
        let change = |verifiers: &mut BTreeMap<String, Verifier>| match verifier {
            Some(verifier) => verifiers.insert(user.to_string(), verifier),
            None => verifiers.remove(user),
        };
        let Some(path) = &self.path else {
            change(&mut memory);
            return Ok(());
        };
        let mut verifiers = self.read()?;
        change(&mut verifiers);
        let text: String =
            verifiers.iter().map(|(user, verifier)| format!("{user} = {verifier}\n")).collect();
        let failed = |error| PasswordError::File { action: "write", path: path.clone(), error };
        // Whole or not at all: a node that stops half-way keeps the old passwords.
        let new = path.with_extension("new");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, path).map_err(failed)
    }

    /// Whether the user has a password.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn has(&self, user: &str) -> Result<bool, PasswordError> {
        Ok(self.read()?.contains_key(user))
    }

    /// What verifies the user's password; for one without, something that nothing passes.
    pub(crate) fn verifier(&self, user: &str) -> Verifier {
        let known = self.read().unwrap_or_else(|error| {
            tracing::error!(%error, "nobody can prove who they are");
            BTreeMap::new()
        });
        known.get(user).cloned().unwrap_or_else(|| Verifier::of_nobody(user))
    }
}
