//! Who may connect: passwords by SCRAM-SHA-256 and TLS, tried by drivers, by psql, and by what is no client.

mod fake;

use fake::{Fake, serve_with};
use gateway::{Access, Authentication, Certificate, Passwords, Verifier};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls};

/// Ada's password; its accents are what SASLprep is for.
const PASSWORD: &str = "corrèct ho\u{00ad}rse";

/// A gateway that asks everybody for a password, and writes its certificate to `folder`.
async fn started(folder: &Path) -> u16 {
    let names = ["localhost".to_string(), "127.0.0.1".to_string()];
    let own = rcgen::generate_simple_self_signed(names).expect("a certificate");
    std::fs::write(folder.join("tls.crt"), own.cert.pem()).expect("written");
    let certificate =
        Certificate::from_pem(own.cert.pem().as_bytes(), own.signing_key.serialize_pem().as_bytes())
            .expect("fits");
    let passwords = Passwords::open(&folder.join("passwords")).expect("no file yet");
    passwords.set("ada", Some(Verifier::of_password(PASSWORD).expect("a password"))).expect("written");
    let access = Access {
        authentication: Authentication::ScramSha256,
        passwords: Arc::new(passwords),
        certificate: Some(certificate),
        ..Access::default()
    };
    serve_with(Arc::new(Fake::default()), access).await.0
}

async fn connect(port: u16, user: &str, password: Option<&str>) -> Result<Client, tokio_postgres::Error> {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user(user);
    if let Some(password) = password {
        config.password(password);
    }
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn code(error: &tokio_postgres::Error) -> String {
    error.code().map_or_else(|| error.to_string(), |state| state.code().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_proved_and_who_has_none_is_not_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let port = started(folder.path()).await;
    // SASLprep leaves the soft hyphen out.
    for password in [PASSWORD, "corrèct horse"] {
        let client = connect(port, "ada", Some(password)).await.expect("the password");
        assert_eq!(client.simple_query("select series 2").await.expect("rows").len(), 4);
    }
    let mut texts = Vec::new();
    for (user, password) in [("ada", "correct horse"), ("ada", "x"), ("bob", PASSWORD)] {
        let error = connect(port, user, Some(password)).await.map(drop).expect_err("not the password");
        assert_eq!(code(&error), "28P01");
        texts.push(error.as_db_error().expect("told").message().replace(user, "…"));
    }
    texts.dedup();
    assert_eq!(texts, ["password authentication failed for user \"…\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_counts_from_the_next_login_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let port = started(folder.path()).await;
    let client = connect(port, "ada", Some(PASSWORD)).await.expect("the password");
    let other = Passwords::open(&folder.path().join("passwords")).expect("the same file");
    other.set("ada", Some(Verifier::of_password("new").expect("a password"))).expect("written");
    assert_eq!(
        code(&connect(port, "ada", Some(PASSWORD)).await.map(drop).expect_err("the old one")),
        "28P01"
    );
    connect(port, "ada", Some("new")).await.expect("the new one");
    other.set("ada", None).expect("written");
    assert_eq!(code(&connect(port, "ada", Some("new")).await.map(drop).expect_err("none")), "28P01");
    client.simple_query("select 1").await.expect("a session goes on");
}

/// What psql prints, or says is wrong.
async fn psql(connection: String, password: &'static str, folder: &Path) -> Result<String, String> {
    let home = folder.to_path_buf();
    let run = move || {
        let mut command = Command::new("psql");
        command.args(["-X", "-A", "-t", "-c", "\\conninfo", "-c", "select 1", &connection]);
        command.env("PGPASSWORD", password).env("HOME", home).output()
    };
    let output = tokio::task::spawn_blocking(run).await.expect("no panic").expect("psql runs");
    let [out, error] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() { Ok(out) } else { Err(error) }
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_encrypts_verifies_and_binds_the_channel() {
    if !test_machine::required("psql") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let port = started(folder.path()).await;
    let certificate = folder.path().join("tls.crt").display().to_string();
    let base = format!("host=localhost hostaddr=127.0.0.1 port={port} user=ada dbname=entente");
    for options in [
        "sslmode=require".to_string(),
        format!("sslmode=verify-full sslrootcert={certificate}"),
        "sslmode=require channel_binding=require".to_string(),
        "sslmode=require channel_binding=disable".to_string(),
        "sslmode=require ssl_min_protocol_version=TLSv1.2 ssl_max_protocol_version=TLSv1.2".to_string(),
    ] {
        let shown = psql(format!("{base} {options}"), PASSWORD, folder.path()).await;
        let shown = shown.unwrap_or_else(|error| panic!("{options}: {error}"));
        assert!(shown.contains("SSL connection") && shown.ends_with("1\n"), "{options}: {shown}");
    }
    let plain =
        psql(format!("{base} sslmode=disable"), PASSWORD, folder.path()).await.expect("not asked for");
    assert!(!plain.contains("SSL"), "{plain}");
    let unbound =
        psql(format!("{base} sslmode=disable channel_binding=require"), PASSWORD, folder.path()).await;
    assert!(unbound.expect_err("nothing to bind").contains("channel binding"));
    let wrong = psql(format!("{base} sslmode=require"), "wrong", folder.path()).await.expect_err("wrong");
    assert!(wrong.contains("password authentication failed for user \"ada\""), "{wrong}");
    let other = rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate");
    std::fs::write(folder.path().join("other.crt"), other.cert.pem()).expect("written");
    let other = folder.path().join("other.crt").display().to_string();
    let stranger =
        psql(format!("{base} sslmode=verify-full sslrootcert={other}"), PASSWORD, folder.path()).await;
    assert!(stranger.expect_err("another's certificate").contains("certificate verify failed"));
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
}

/// The first answer of SASL.
fn sasl(mechanism: &str, data: &[u8]) -> Vec<u8> {
    message(b'p', &[mechanism.as_bytes(), b"\0", &(data.len() as u32).to_be_bytes(), data].concat())
}

/// Sends the parts one by one, reads what comes between them, and at last until the server closes.
async fn exchange(port: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let (mut answer, mut buffer) = (Vec::new(), [0; 8192]);
    for (number, part) in (1..).zip(parts) {
        // The server may have closed already.
        let _ = stream.write_all(part).await;
        let silence = Duration::from_millis(if number == parts.len() { 30_000 } else { 150 });
        while let Ok(Ok(length @ 1..)) = tokio::time::timeout(silence, stream.read(&mut buffer)).await {
            answer.extend_from_slice(&buffer[..length]);
        }
    }
    answer
}

fn contains(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_proves_nothing_lets_nobody_in() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let port = started(folder.path()).await;
    let body = b"\0\x03\0\0user\0ada\0\0";
    let startup = [&(body.len() as u32 + 4).to_be_bytes(), body.as_slice()].concat();
    let first = sasl("SCRAM-SHA-256", b"n,,n=,r=abc");
    let cases: Vec<(Vec<Vec<u8>>, &str)> = vec![
        (vec![message(b'Q', b"select 1\0")], "C08P01"),
        (vec![message(b'p', b"password\0")], "C08P01"),
        (vec![[b"p".as_slice(), &u32::MAX.to_be_bytes()].concat()], "C08P01"),
        (vec![[b"p".as_slice(), &100_000_u32.to_be_bytes()].concat()], "C08P01"),
        (vec![sasl("OAUTHBEARER", b"n,,")], "C08P01"),
        (vec![sasl("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=abc")], "C08P01"),
        (vec![sasl("SCRAM-SHA-256", b"p=tls-server-end-point,,n=,r=abc")], "C08P01"),
        (vec![sasl("SCRAM-SHA-256", b"")], "C08P01"),
        (vec![sasl("SCRAM-SHA-256", b"\xff\xfe")], "C08P01"),
        (vec![sasl("SCRAM-SHA-256", b"n,,n=")], "C08P01"),
        (vec![first.clone(), message(b'p', b"")], "C08P01"),
        (vec![first.clone(), message(b'p', b"c=biws,r=abc,p=AAAA")], "C08P01"),
        (vec![first.clone(), message(b'p', b",p=")], "C08P01"),
        (vec![first.clone(), message(b'X', b"")], "C08P01"),
        (vec![first, message(b'Q', b"select 1\0")], "C08P01"),
    ];
    for (parts, code) in cases {
        let all: Vec<Vec<u8>> = [vec![startup.clone()], parts.clone()].concat();
        let answer = exchange(port, &all).await;
        let shown = String::from_utf8_lossy(&answer);
        assert!(contains(&answer, code), "{parts:?}: {shown}");
        assert!(!contains(&answer, "server_version"), "{parts:?}: {shown}");
    }
    // Something in plain text right behind the request for TLS must not be taken for encrypted.
    let ssl = [8_u32.to_be_bytes(), 80_877_103_u32.to_be_bytes()].concat();
    let answer = exchange(port, &[[ssl.clone(), startup.clone()].concat()]).await;
    assert!(!contains(&answer, "SCRAM") && !contains(&answer, "server_version"));
    let answer = exchange(port, &[ssl, b"no handshake".to_vec()]).await;
    assert!(!contains(&answer, "server_version"));
    connect(port, "ada", Some(PASSWORD)).await.expect("others are not disturbed");
}

#[test]
fn verifiers_are_postgresqls_and_files_are_read_whole() {
    let text = "SCRAM-SHA-256$4096:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:\
                AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    assert_eq!(text.parse::<Verifier>().expect("a verifier").to_string(), text);
    for length in 0..text.len() {
        // What is cut off inside of the last key is too short, and everything before it is no verifier.
        assert!(text[..length].parse::<Verifier>().is_err(), "{length}");
    }
    for wrong in
        ["md5e10adc3949ba59abbe56e057f20f883e", &text.replace("4096", "0"), &text.replace("c2FsdA==", "*")]
    {
        assert!(wrong.parse::<Verifier>().is_err(), "{wrong}");
    }
    assert!(Verifier::of_password("").is_err() && Verifier::of_password(&"x".repeat(1_001)).is_err());

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("passwords");
    let passwords = Passwords::open(&path).expect("no file yet");
    for user in ["bob", "a = b", "Ünï"] {
        passwords.set(user, Some(text.parse().expect("a verifier"))).expect("written");
        assert!(Passwords::open(&path).expect("what was written").has(user).expect("read"));
    }
    assert!(passwords.set("two\nlines = x", None).is_err());
    std::fs::write(&path, "bob SCRAM\n").expect("written");
    let error = Passwords::open(&path).expect_err("no verifier").to_string();
    assert!(error.contains("line 1") && error.contains("user = verifier"), "{error}");
}
