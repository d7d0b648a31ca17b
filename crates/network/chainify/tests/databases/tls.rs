//! Connections to databases are encrypted, and whoever shows another certificate than the one expected is not believed.

use chainify::{Address, DatabaseError};
use servers::{MariaDbServer, PostgresServer};
use std::path::{Path, PathBuf};

/// A certificate of `localhost` that signs itself, its key, and the file that says to believe it.
fn certificate(folder: &Path, name: &str) -> (String, String, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let path = folder.join(name);
    std::fs::write(&path, &certificate).expect("written");
    (certificate, key, path)
}

fn connect(url: &str) -> Result<(), DatabaseError> {
    let address: Address = url.parse()?;
    chainify::plan(&address, &[]).map(drop)
}

#[test]
fn certificates_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key, right) = self::certificate(folder.path(), "right.pem");
    let (.., wrong) = self::certificate(folder.path(), "wrong.pem");
    let files = [("server.crt", certificate.as_str()), ("server.key", key.as_str())];
    let postgres =
        PostgresServer::start_with(&["ssl=on"], true, &files).unwrap_or_else(|error| panic!("{error}"));
    let settings = ["ssl-cert=server.crt", "ssl-key=server.key"];
    let mariadb =
        MariaDbServer::start_with(&settings, true, &files).unwrap_or_else(|error| panic!("{error}"));
    for url in [
        format!("postgres://postgres@localhost:{}/postgres", postgres.port()),
        format!("mariadb://root@localhost:{}/mysql", mariadb.port().expect("a port")),
    ] {
        connect(&format!("{url}?ca={}", right.display())).unwrap_or_else(|error| panic!("{url}: {error}"));
        connect(&format!("{url}?tls=off")).unwrap_or_else(|error| panic!("{url}: {error}"));
        connect(&format!("{url}?ca={}", wrong.display())).expect_err("another certificate");
        connect(&format!("{url}?tls=on")).expect_err("nobody has signed it");
        connect(&format!("{url}?ca=/nowhere.pem")).expect_err("there is no such file");
    }
}
