//! Where a database is: `postgres://user@host:port/database`, `mariadb://…` or `mysql://…`.

use crate::DatabaseError;
use crate::error::ErrorKind;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use url::Url;

/// Which kind of database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL 13 or newer.
    Postgres,
    /// MariaDB 10.6 or newer; MySQL by the same driver, untested.
    MariaDb,
}

impl Kind {
    /// Its name in JSON and in options.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Postgres => "postgres",
            Kind::MariaDb => "mariadb",
        }
    }
}

/// Whether the connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// It is not.
    Off,
    /// It is, and the server's certificate is checked: against this file, or against those that the system trusts (of MariaDB: those
    /// that Mozilla does).
    On(Option<PathBuf>),
}

/// Where a database is, and as whom to connect.
///
/// ```
/// let address: chainify::Address = "postgres://clearing:secret@db.example/shop".parse()?;
/// assert_eq!(address.to_string(), "postgres://clearing@db.example:5432/shop");
/// assert_eq!(address.password.as_deref(), Some("secret"));
/// # Ok::<(), chainify::DatabaseError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Which kind.
    pub kind: Kind,
    /// The machine.
    pub host: String,
    /// The port.
    pub port: u16,
    /// A local socket in place of machine and port: a folder for PostgreSQL, a file for MariaDB.
    pub socket: Option<PathBuf>,
    /// As whom.
    pub user: String,
    /// The password, if there is one.
    pub password: Option<String>,
    /// The database's name.
    pub database: String,
    /// Whether the connection is encrypted.
    pub tls: Tls,
}

const EXPECTED: &str =
    "expected postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE, or the same with mariadb:// or mysql://";

impl FromStr for Address {
    type Err = DatabaseError;

    fn from_str(text: &str) -> Result<Address, DatabaseError> {
        let wrong = |what: String| DatabaseError::new(ErrorKind::Access, format!("{what}; {EXPECTED}"));
        let url =
            Url::parse(text).map_err(|error| wrong(format!("{:?}: {error}", without_password(text))))?;
        let kind = match url.scheme() {
            "postgres" | "postgresql" => Kind::Postgres,
            "mariadb" | "mysql" => Kind::MariaDb,
            other => return Err(wrong(format!("{other}:// is no database that tables can be kept in"))),
        };
        let decoded = |text: &str| {
            percent_decoded(text).ok_or_else(|| wrong("a part of the address is no UTF-8".to_string()))
        };
        let database = decoded(url.path().trim_start_matches('/'))?;
        if database.is_empty() || database.contains('/') {
            return Err(wrong("the name of the database is missing".to_string()));
        }
        if url.username().is_empty() {
            return Err(wrong("the user is missing".to_string()));
        }
        let (host, default_port) = match kind {
            Kind::Postgres => (url.host_str().unwrap_or("localhost"), 5432),
            Kind::MariaDb => (url.host_str().unwrap_or("localhost"), 3306),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let (mut socket, mut tls, mut authority) = (None, None, None);
        for (name, value) in url.query_pairs() {
            match (&*name, &*value) {
                ("socket", path) => socket = Some(PathBuf::from(path)),
                ("tls", "off") => tls = Some(false),
                ("tls", "on") => tls = Some(true),
                ("tls", other) => return Err(wrong(format!("tls={other}: expected on or off"))),
                ("ca", path) => authority = Some(PathBuf::from(path)),
                (other, _) => {
                    return Err(wrong(format!("{other}= is not known: there are socket, tls and ca")));
                }
            }
        }
        // A password does not travel over a network that others read, unless somebody says so.
        let is_near = socket.is_some() || matches!(&*host, "localhost" | "127.0.0.1" | "::1");
        let tls = match tls.unwrap_or(!is_near || authority.is_some()) {
            true => Tls::On(authority),
            false => Tls::Off,
        };
        Ok(Address {
            kind,
            host,
            port: url.port().unwrap_or(default_port),
            socket,
            user: decoded(url.username())?,
            password: url.password().map(decoded).transpose()?,
            database,
            tls,
        })
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = &behind[if byte.is_some() { 2 } else { 0 }..];
    }
    String::from_utf8(bytes).ok()
}

/// What may be shown of a text that should have been an address.
fn without_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            let who = &text[scheme + 3..at];
            let user = who.split(':').next().unwrap_or_default();
            format!("{}{user}{}", &text[..scheme + 3], &text[at..])
        }
        _ => text.to_string(),
    }
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { kind, host, port, socket, user, database, tls, .. } = self;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        write!(f, "{}://{user}@{host}:{port}/{database}", kind.name())?;
        let mut separator = '?';
        let mut option = |name: &str, value: &str| -> fmt::Result {
            write!(f, "{separator}{name}={value}")?;
            separator = '&';
            Ok(())
        };
        if let Some(socket) = socket {
            option("socket", &socket.display().to_string())?;
        }
        let is_near = socket.is_some() || matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        match tls {
            Tls::On(Some(authority)) => option("ca", &authority.display().to_string()),
            Tls::On(None) if is_near => option("tls", "on"),
            Tls::Off if !is_near => option("tls", "off"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<Address, String> {
        text.parse().map_err(|error: DatabaseError| error.to_string())
    }

    #[test]
    fn what_is_not_said_has_defaults_and_what_is_shown_has_no_password() {
        let shown = |text| address(text).map(|address| address.to_string());
        assert_eq!(shown("postgres://a:b%40c@h/d").as_deref(), Ok("postgres://a@h:5432/d"));
        assert_eq!(shown("mysql://a@h:7/d").as_deref(), Ok("mariadb://a@h:7/d"));
        assert_eq!(shown("mariadb://a@[::1]/d").as_deref(), Ok("mariadb://a@[::1]:3306/d"));
        assert_eq!(address("postgres://a:b%40c@h/d").map(|a| a.password), Ok(Some("b@c".to_string())));
        for text in
            ["postgres://a@h:5432/d?socket=/tmp/x", "mariadb://a@h:1/d?ca=/x/y", "postgres://a@h:1/d?tls=off"]
        {
            assert_eq!(shown(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn passwords_travel_encrypted_unless_the_server_is_near() {
        let tls = |text| address(text).map(|address| address.tls);
        assert_eq!(tls("postgres://a@localhost/d"), Ok(Tls::Off));
        assert_eq!(tls("postgres://a@localhost/d?tls=on"), Ok(Tls::On(None)));
        assert_eq!(tls("postgres://a@example.org/d"), Ok(Tls::On(None)));
        assert_eq!(tls("postgres://a@example.org/d?tls=off"), Ok(Tls::Off));
        assert_eq!(tls("mariadb://a@example.org/d?ca=x.pem"), Ok(Tls::On(Some("x.pem".into()))));
    }

    #[test]
    fn mistakes_are_named_and_passwords_are_not_repeated() {
        for (text, expected) in [
            ("oracle://a@h/d", "oracle:// is no database"),
            ("postgres://h/d", "the user is missing"),
            ("postgres://a@h", "the name of the database is missing"),
            ("postgres://a@h/d?tls=maybe", "expected on or off"),
            ("postgres://a@h/d?sslmode=x", "sslmode= is not known"),
            ("postgres://a:secret@h:x/d", "invalid port"),
        ] {
            let error = address(text).expect_err("a mistake");
            assert!(error.contains(expected) && error.contains("expected postgres://"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
