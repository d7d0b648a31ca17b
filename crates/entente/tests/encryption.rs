//! HTTP between nodes and from outside: over TLS with the keys of the charter or the company's certificate, and who is refused by name.

mod support;

use client::{Client, NodeKey, Trust};
use crypto::SecretKey;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::{TestNetwork, in_between, refuses, says, text};
use types::{Charter, ExecutionModel, Outcome, Payload};

/// Every transaction is endorsed by org1 and org4, so that one of the two asks the other over HTTP.
fn endorsing(charter: &mut Charter) {
    charter.execution = ExecutionModel::ExecuteOrderValidate;
    charter.protocol = "xox".into();
    charter.endorsement.policy = "org1 AND org4".into();
}

/// It is not endorsed: every node executes it.
const SET_UP: &str = "CREATE TABLE entries (id bigint PRIMARY KEY)";
const INSERT: &str = "INSERT INTO entries VALUES (1)";

/// How a statement fails, with its detail.
async fn failure(session: &tokio_postgres::Client, sql: &str) -> String {
    let error = session.batch_execute(sql).await.expect_err("it fails");
    let error = error.as_db_error().expect("the node's error");
    format!("{} {}", error.message(), error.detail().unwrap_or_default())
}

async fn eventually(session: &tokio_postgres::Client, sql: &str) {
    let begin = Instant::now();
    while let Err(error) = session.batch_execute(sql).await {
        assert!(begin.elapsed() < Duration::from_secs(30), "{sql}: {error:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> (bool, String) {
    let Output { status, stdout, stderr } =
        Command::new(program).args(arguments).current_dir(folder).output().expect("it runs");
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn port(network: &TestNetwork, node: usize) -> u16 {
    network.port_base + 200 + node as u16
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_commands_know_a_node_by_its_key_and_outsiders_by_its_file() {
    let mut network = TestNetwork::create(endorsing);
    network.start_all().await;
    let session = network.session(0).await;
    session.batch_execute(SET_UP).await.expect("it is not endorsed");
    eventually(&session, INSERT).await;
    tokio::task::block_in_place(|| {
        commands_make_sure_who_answers(&network);
        outsiders_use_the_file_that_keys_writes(&network);
        an_expired_certificate_of_its_own_is_named(&network);
    });
    a_client_of_the_sdk_pins(&network).await;
}

fn commands_make_sure_who_answers(network: &TestNetwork) {
    let (charter, file) =
        (network.node_folder(0).join("charter.toml"), network.node_folder(1).join("tls.crt"));
    let (place, url) =
        (format!("127.0.0.1:{}", port(network, 1)), format!("https://127.0.0.1:{}", port(network, 1)));
    let key = network.node_key(1).public_key().to_string();
    for trust in [["--charter", text(&charter)], ["--ca", text(&file)], ["--node-key", &key]] {
        for address in [&place, &url] {
            let said = says(&["status", "--serving", trust[0], trust[1], address]);
            assert!(said.contains("org2") && said.contains("serving"), "{said}");
        }
    }
    let said = says(&["status", &place]);
    assert!(said.contains("org2"), "in plain text, on the machine itself: {said}");
    let other = network.node_key(2).public_key().to_string();
    let said =
        run(support::ENTENTE, &["status", "--serving", "--node-key", &other, &place], network.folder());
    assert!(!said.0 && said.1.replace([' ', '\n'], "").contains(&format!("found{key}")), "{}", said.1);
    let said = refuses(&["status", "--charter", text(&charter), "127.0.0.1:1"]);
    assert!(said.contains("the charter names no node at 127.0.0.1:1") && said.contains("(org3)"), "{said}");
    let said = refuses(&["status", "--charter", text(&charter), &format!("http://{place}")]);
    assert!(said.contains("expected https://"), "{said}");
    let said = refuses(&["status", "--ca", text(&charter), &place]);
    assert!(said.contains("charter.toml: expected a certificate in PEM"), "{said}");
    let said = refuses(&["status", "--ca", text(&file), "--node-key", &key, &place]);
    assert!(said.contains("cannot be used with"), "{said}");
}

fn outsiders_use_the_file_that_keys_writes(network: &TestNetwork) {
    if !test_machine::required("curl") || !test_machine::required("openssl") {
        return;
    }
    let (folder, http) = (network.node_folder(1), port(network, 1));
    let curl = |arguments: &[&str]| {
        run("curl", &[&["--silent", "--show-error", "--noproxy", "*"], arguments].concat(), &folder)
    };
    for host in ["localhost", "127.0.0.1"] {
        let (good, said) = curl(&["--cacert", "tls.crt", &format!("https://{host}:{http}/health")]);
        assert!(good && said == "ok\n", "{host}: {said}");
    }
    let other = network.node_folder(2).join("tls.crt");
    let (good, said) = curl(&["--cacert", text(&other), &format!("https://localhost:{http}/health")]);
    assert!(!good && said.contains("certificate"), "{said}");
    let (good, said) = curl(&[&format!("http://127.0.0.1:{http}/health")]);
    assert!(good && said == "ok\n", "the machine itself needs no TLS: {said}");
    // Whoever asks for the node's key sees it in the certificate.
    let connect = format!(
        "echo | openssl s_client -connect 127.0.0.1:{http} -alpn entente-node-key/1 2>/dev/null | \
         openssl x509 -noout -pubkey | openssl pkey -pubin -outform DER | tail -c 32 | od -An -tx1 | tr -d ' \\n'"
    );
    let (good, said) = run("sh", &["-c", &connect], &folder);
    assert!(good && said == network.node_key(1).public_key().to_string(), "{said}");
}

/// Org2's certificate for outsiders has expired: they refuse it, its doctor and those of others say so, and members do not mind.
fn an_expired_certificate_of_its_own_is_named(network: &TestNetwork) {
    let folder = network.node_folder(1);
    let mut expired = rcgen::CertificateParams::new(["127.0.0.1".to_string()]).expect("an address");
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = expired.self_signed(&key).expect("signed");
    std::fs::write(folder.join("tls.crt"), certificate.pem()).expect("written");
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).expect("written");
    run("kill", &["-HUP", &network.process(1).to_string()], &folder);
    let begin = Instant::now();
    while !network.log(1).contains("the certificate for clients from now on") {
        assert!(begin.elapsed() < Duration::from_secs(30), "{}", network.log(1));
        std::thread::sleep(Duration::from_millis(50));
    }
    let place = format!("127.0.0.1:{}", port(network, 1));
    let arguments =
        ["status", "--serving", "--ca", text(&folder.join("tls.crt")), &place].map(str::to_string);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (good, said) = run(support::ENTENTE, &arguments, &folder);
    assert!(!good && said.contains("expired"), "{said}");
    let (good, said) =
        run(support::ENTENTE, &["doctor", "--dir", text(&network.node_folder(0))], network.folder());
    assert!(good, "a warning is no problem: {said}");
    assert!(
        said.contains("warning  encryption: org2: the certificate that") && said.contains("has expired"),
        "{said}"
    );
    assert!(said.contains("ok       encryption: org3:"), "{said}");
}

async fn a_client_of_the_sdk_pins(network: &TestNetwork) {
    let charter = &network.network.charter;
    let address = charter.organisations[1].gateway.clone();
    assert_eq!(address, format!("https://127.0.0.1:{}", port(network, 1)));
    let node = NodeKey::at(charter, &address).expect("org2");
    let identity = network.network.clients[1].clone();
    let client = Client::trusting(&address, &Trust::NodeKey(node), identity).expect("a client");
    let height = client.status().await.expect("it answers").height;
    let payload = Payload::Script { sql: "INSERT INTO entries VALUES (2)".into(), parameters: Vec::new() };
    let receipt = client.execute(&client.identity().sign(payload, height + 1_000)).await.expect("a receipt");
    assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{receipt:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stands_between_with_another_key_learns_nothing_and_is_named() {
    let mut network = TestNetwork::create(endorsing);
    let (place, behind) = (port(&network, 3), network.port_base + 290);
    network.answers_at(3, behind);
    (0..4).for_each(|node| network.start(node));
    for node in 0..3 {
        network.wait_for_height(node, 1).await;
    }
    let session = network.session(0).await;
    session.batch_execute(SET_UP).await.expect("it is not endorsed");
    let address = ([127, 0, 0, 1], behind).into();
    let charter = network.node_folder(0).join("charter.toml");
    for (key, whose) in [(SecretKey::generate(), "that of no member"), (network.node_key(2), "that of org3")]
    {
        let between = in_between::stand(place, &key, address).await;
        let failed = failure(&session, INSERT).await;
        assert!(failed.contains("org4: expected the node key") && failed.contains(whose), "{failed}");
        tokio::task::block_in_place(|| {
            let node = format!("127.0.0.1:{place}");
            let asked = ["status", "--serving", "--charter", text(&charter), &node];
            let (good, said) = run(support::ENTENTE, &asked, network.folder());
            assert!(!good && said.contains("somebody else answers"), "{said}");
            let (good, said) =
                run(support::ENTENTE, &["doctor", "--dir", text(&network.node_folder(0))], network.folder());
            assert!(
                !good
                    && said.contains("problem  encryption: org4: whoever answers at")
                    && said.contains(whose),
                "{said}"
            );
        });
        between.abort();
        let _ = between.await;
    }
    // In plain text nobody is asked either, because the charter says https.
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", place)).await.expect("free");
    let plain = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await;
        }
    });
    let failed = failure(&session, INSERT).await;
    assert!(
        failed.contains("org4: ") && failed.contains("answers in plain text, and TLS was asked for"),
        "{failed}"
    );
    plain.abort();
    let _ = plain.await;
    // With the right key all is well, whatever stands between.
    in_between::stand(place, &network.node_key(3), address).await;
    eventually(&session, INSERT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_an_amendment_replaces_is_expected_from_its_height_on() {
    let mut network = TestNetwork::create(|charter| {
        endorsing(charter);
        // Amendments hold 14 blocks after they are decided.
        charter.outcome_lag_blocks = 4;
    });
    network.start_all().await;
    let session = network.session(0).await;
    session.batch_execute(SET_UP).await.expect("it is not endorsed");
    let key = SecretKey::generate();
    let replace = format!("SELECT entente.replace_node_key('org4', '{}')", key.public_key());
    session.simple_query(&replace).await.expect("a member");
    let height = network.client(0).status().await.expect("it answers").height + 20;
    network.wait_for_height(0, height).await;
    // The old key runs on, and is not asked any more.
    let failed = failure(&session, INSERT).await;
    assert!(
        failed.contains("org4: expected the node key") && failed.contains("that of no member"),
        "{failed}"
    );
    network.kill(3);
    std::fs::write(network.node_folder(3).join("node.key"), key.to_hex()).expect("written");
    network.start(3);
    network.wait_for_height(3, height).await;
    eventually(&session, INSERT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_whose_charter_says_nothing_of_tls_talk_to_nodes_of_before() {
    let mut network = TestNetwork::create(|charter| {
        endorsing(charter);
        charter.outcome_lag_blocks = 4;
    });
    // Node 4 is of a version before there was TLS: what stands at its address answers plain text alone.
    let (place, behind) = (port(&network, 3), network.port_base + 290);
    network.answers_at(3, behind);
    (0..4).for_each(|node| network.start(node));
    for node in 0..3 {
        network.wait_for_height(node, 1).await;
    }
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", place)).await.expect("free");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut first = [0];
                if !matches!(stream.peek(&mut first).await, Ok(1)) {
                    return;
                }
                if first[0] == 0x16 {
                    let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
                    let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await;
                    return;
                }
                let mut node =
                    tokio::net::TcpStream::connect(("127.0.0.1", behind)).await.expect("it listens");
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut node).await;
            });
        }
    });
    let session = network.session(0).await;
    session.batch_execute(SET_UP).await.expect("it is not endorsed");
    assert!(failure(&session, INSERT).await.contains("answers in plain text"));
    // As charters of before say it.
    let listens = network.port_base + 3;
    let address = format!("SELECT entente.set_address('org4', '127.0.0.1:{listens}', '127.0.0.1:{place}')");
    session.simple_query(&address).await.expect("a member");
    eventually(&session, INSERT).await;
    let (good, said) = tokio::task::block_in_place(|| {
        run(support::ENTENTE, &["doctor", "--dir", text(&network.node_folder(0))], network.folder())
    });
    assert!(good && said.contains("answers in plain text: who stands between reads along"), "{said}");
}
