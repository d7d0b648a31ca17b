//! What operators watch: alert rules, the dashboard and docs/operating.md say the same, of metrics that a node has.

mod support;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::TestNetwork;

/// Metrics of Prometheus itself.
const OTHERS: [&str; 1] = ["up"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The values of a field in the rules: one line each.
fn fields<'a>(rules: &'a str, field: &str) -> Vec<&'a str> {
    let field = format!("{field}: ");
    rules.lines().filter_map(|line| line.trim_start_matches([' ', '-']).strip_prefix(&field)).collect()
}

/// Names of our metrics in a text; of packages, too, names begin so.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let begins = |word: &&str| {
        word.strip_prefix("entente_")
            .is_some_and(|rest| rest.starts_with(|one: char| one.is_ascii_lowercase()))
    };
    words.filter(begins).map(String::from).collect()
}

fn promtool(arguments: &[&str], folder: &Path) -> Output {
    Command::new("promtool").args(arguments).current_dir(folder).output().expect("promtool runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn each_alert_fires_where_it_must_and_nowhere_else() {
    if !test_machine::required("promtool") {
        return;
    }
    let (rules, tests) =
        (text("packaging/prometheus/alerts.yaml"), text("packaging/prometheus/alerts_test.yaml"));
    assert_eq!(
        fields(&rules, "alert"),
        fields(&tests, "alertname"),
        "an alert without a test, or a test without one"
    );
    let place = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, content: &str| fs::write(place.path().join(name), content).expect("written");
    write("alerts.yaml", &rules);
    write("alerts_test.yaml", &tests);
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]] {
        let output = promtool(&arguments, place.path());
        assert!(output.status.success(), "{}", said(&output));
    }
    // A rule that never fires is found, and so is one that always does.
    for (rule, broken) in [
        ("entente_node_serves == 0", "entente_node_serves == 2"),
        ("entente_node_warnings > 0", "entente_node_warnings > -1"),
    ] {
        assert!(rules.contains(rule), "{rule}");
        write("alerts.yaml", &rules.replace(rule, broken));
        let output = promtool(&["test", "rules", "alerts_test.yaml"], place.path());
        assert!(!output.status.success(), "{broken} is taken for good");
    }
    write("alerts.yaml", &rules);
    let page = text("docs/operating.md");
    let config =
        page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a configuration");
    write("prometheus.yml", config);
    let output = promtool(&["check", "config", "prometheus.yml"], place.path());
    assert!(output.status.success(), "{}", said(&output));
    assert!(config.contains("job_name: entente"), "rules ask for this job");
}

#[test]
fn each_alert_has_a_section_that_says_what_to_do() {
    let (rules, page) = (text("packaging/prometheus/alerts.yaml"), text("docs/operating.md"));
    let alerts = fields(&rules, "alert");
    let section = |line: &'static str| page.split(line).skip(1).filter(|rest| rest.starts_with("Entente"));
    let sections: Vec<&str> = section("\n### ").collect();
    let named: Vec<&str> = sections.iter().map(|section| section.lines().next().expect("a name")).collect();
    assert_eq!(named, alerts, "in the same order");
    for section in sections {
        let mut rest = section.split("\n## ").next().expect("a section");
        for part in ["- **Means:** ", "- **Look at:** ", "- **Do:** "] {
            rest = rest.split_once(part).unwrap_or_else(|| panic!("{part}is missing: {section}")).1;
        }
    }
    let runbooks: Vec<String> =
        alerts.iter().map(|alert| format!("docs/operating.md#{}", alert.to_lowercase())).collect();
    assert_eq!(fields(&rules, "runbook"), runbooks);
    let severities = fields(&rules, "severity");
    assert!(severities.len() == alerts.len() && fields(&rules, "summary").len() == alerts.len());
    assert!(severities.iter().all(|severity| ["critical", "warning"].contains(severity)), "{severities:?}");
}

/// The panels that show something.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().expect("panels");
    panels.iter().filter(|panel| panel["type"] != "row").collect()
}

#[test]
fn each_panel_says_what_it_shows_in_which_unit() {
    let dashboard: Value = serde_json::from_str(&text("packaging/grafana/entente.json")).expect("JSON");
    let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{}", panel["title"]);
        let place = &panel["gridPos"];
        let [x, y, w] = ["x", "y", "w"].map(|field| place[field].as_u64().expect("a number"));
        assert!(places.insert((x, y)) && x + w <= 24, "{}: {place}", panel["title"]);
    }
    let panels = panels(&dashboard);
    assert!(panels.len() >= 20, "{}", panels.len());
    for panel in panels {
        let filled = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        for field in [&panel["title"], &panel["description"], &panel["fieldConfig"]["defaults"]["unit"]] {
            assert!(filled(field), "{panel}");
        }
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{panel}");
        for target in targets {
            let query = target["expr"].as_str().expect("a query");
            let asked = metrics(query).len();
            assert!(asked > 0 && filled(&target["legendFormat"]), "{target}");
            assert!(query.matches("{job=\"entente\",instance=~\"$instance\"}").count() >= asked, "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_has_every_metric_that_somebody_looks_at() {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let url = format!("http://127.0.0.1:{}/metrics", network.port_base + 200);
    let ask = async || reqwest::get(&url).await.expect("it answers").text().await.expect("text");
    let begin = Instant::now();
    // Members are heard one after the other.
    let shown = loop {
        let shown = ask().await;
        if !shown.contains("entente_order_connected_members 0\n") || begin.elapsed() > Duration::from_secs(20)
        {
            break shown;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let samples = shown.lines().filter(|line| !line.starts_with('#'));
    let has: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
    for page in ["packaging/prometheus/alerts.yaml", "packaging/grafana/entente.json", "docs/operating.md"] {
        let asked = metrics(&text(page));
        assert!(asked.len() >= 5, "{page}: {asked:?}");
        for name in asked {
            assert!(
                has.contains(name.as_str()) || OTHERS.contains(&name.as_str()),
                "{page}: {name} is no metric"
            );
        }
    }
    for (name, at_least, at_most) in [
        ("entente_node_serves", 1.0, 1.0),
        ("entente_node_resident_bytes", 1e6, 1e11),
        ("entente_node_disk_bytes", 1e6, 1e18),
        ("entente_record_height", 1.0, 1e4),
        ("entente_order_connected_members", 1.0, 3.0),
        ("entente_record_clock_difference_seconds", -1.0, 30.0),
        ("entente_attest_member_height{organisation=\"org3\"}", 0.0, 1e4),
        ("entente_scrub_found_total{what=\"state\"}", 0.0, 0.0),
    ] {
        let line = shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value: f64 =
            line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {shown}"));
        assert!((at_least..=at_most).contains(&value), "{name} {value}");
    }
}

/// A collector's address, and what it is sent.
async fn collector() -> (String, tokio::sync::mpsc::UnboundedReceiver<ExportTraceServiceRequest>) {
    let (sender, requests) = tokio::sync::mpsc::unbounded_channel();
    let take = move |body: Bytes| {
        let request = ExportTraceServiceRequest::decode(body);
        let status = request.map_or(StatusCode::BAD_REQUEST, |request| {
            let _ = sender.send(request);
            StatusCode::OK
        });
        async move { status }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/v1/traces", post(take))).await });
    (format!("http://{address}/v1/traces"), requests)
}

/// An attribute that is a text.
fn attribute<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_are_traced_from_the_gateway_to_the_receipt() {
    let (endpoint, mut requests) = collector().await;
    let mut network = TestNetwork::create(|_| {});
    let config = network.node_folder(0).join("node.toml");
    let text = fs::read_to_string(&config).expect("written");
    fs::write(&config, format!("trace_endpoint = \"{endpoint}\"\n{text}")).expect("written");
    network.start_all().await;
    let session = network.session(0).await;
    session.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY)").await.expect("created");
    session.batch_execute("INSERT INTO t VALUES (1)").await.expect("inserted");
    session.batch_execute("INSERT INTO t VALUES (1)").await.expect_err("it is there");
    drop(session);
    // A node that is told to stop sends what is left.
    tokio::task::block_in_place(|| network.interrupt(0));
    let (mut spans, mut names) = (Vec::<Span>::new(), BTreeSet::new());
    while let Ok(request) = requests.try_recv() {
        for sent in request.resource_spans {
            let resource = sent.resource.expect("it says who it is");
            names.insert(attribute(&resource.attributes, "service.instance.id").map(String::from));
            spans.extend(sent.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    assert_eq!(names, BTreeSet::from([Some("org1".to_string())]));
    let roots: Vec<&Span> = spans.iter().filter(|span| span.name == "transaction").collect();
    let outcomes: Vec<Option<&str>> =
        roots.iter().map(|root| attribute(&root.attributes, "entente.outcome")).collect();
    assert_eq!(outcomes, [Some("committed"), Some("committed"), Some("business_abort")]);
    assert_eq!(roots[2].status.as_ref().map(|status| status.message.as_str()), Some("23505"));
    for root in roots {
        assert!(root.parent_span_id.is_empty());
        let mut parts: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id == root.span_id).collect();
        parts.sort_by_key(|part| part.start_time_unix_nano);
        let named: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(named, ["admit", "order", "verify", "execute", "record", "attest"]);
        let mut before = root.start_time_unix_nano;
        for part in parts {
            assert_eq!(part.trace_id, root.trace_id);
            assert!(before <= part.start_time_unix_nano, "{} begins before what leads to it ends", part.name);
            before = part.end_time_unix_nano;
        }
        assert!(before <= root.end_time_unix_nano);
    }
}
