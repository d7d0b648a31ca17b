//! `entente demo` whose nodes are killed: it goes on, starts them again, and loses nothing.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use support::{ENTENTE, free_port_base};

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long a node may take from its start until it has the others' newest blocks and the same digest.
const BACK_SECONDS: f64 = 10.0;

/// A demo that runs, and what it has printed.
struct Demo {
    child: Child,
    lines: Receiver<String>,
    printed: Vec<String>,
    folder: tempfile::TempDir,
}

impl Demo {
    fn start(arguments: &[&str]) -> Demo {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new(ENTENTE)
            .args(["demo", "--port-base", &free_port_base().to_string()])
            .arg("--dir")
            .arg(folder.path().join("network"))
            .arg("--json")
            .arg(folder.path().join("demo.json"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (sender, lines) = channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().expect("a pipe")), Box::new(child.stderr.take().expect("a pipe"))];
        for stream in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(stream).lines().map_while(Result::ok);
                // An error says that the test is over.
                lines.for_each(|line| drop(sender.send(line)));
            });
        }
        Demo { child, lines, printed: Vec::new(), folder }
    }

    /// The next line that has all these parts.
    fn wait_for(&mut self, parts: &[&str]) -> String {
        let start = Instant::now();
        loop {
            match self.lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
                Ok(line) => {
                    self.printed.push(line.clone());
                    if parts.iter().all(|part| line.contains(part)) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {parts:?}: {error}\n{}", self.printed.join("\n")),
            }
        }
    }

    /// Waits for the line that says which process is whose node, and gives them in order.
    fn processes(&mut self) -> Vec<String> {
        let line = self.wait_for(&["org1 is process "]);
        let nodes = line.split(';').next().expect("a part").split(", ");
        nodes.map(|node| node.rsplit(' ').next().expect("a number").to_string()).collect()
    }

    /// Waits until it ends by itself; what it wrote as its record.
    fn finish(mut self) -> (ExitStatus, String, Option<Value>) {
        let start = Instant::now();
        loop {
            match self.lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
                Ok(line) => self.printed.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the demo does not end:\n{}", self.printed.join("\n"))
                }
            }
        }
        let status = self.child.wait().expect("it has ended");
        let record = std::fs::read_to_string(self.folder.path().join("demo.json")).ok();
        let record = record.map(|text| serde_json::from_str(&text).expect("JSON"));
        (status, self.printed.join("\n"), record)
    }

    /// It ends with all checks passed; its record.
    fn succeed(self) -> Value {
        let (status, text, record) = self.finish();
        assert!(status.success(), "{text}");
        let record = record.expect("a record");
        assert_eq!(record["invariant_holds"], true, "{text}");
        assert!(record["committed"].as_u64().is_some_and(|committed| committed > 20), "{text}");
        let digests = record["state_digests"].as_array().expect("a list");
        assert!(digests.len() == 4 && digests.iter().all(|digest| digest == &digests[0]), "{digests:?}");
        record
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Errors: it has ended, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(name: &str, process: &str) {
    let sent = Command::new("kill").args([name, process]).status().expect("kill runs");
    assert!(sent.success(), "kill {name} {process}");
}

fn kill(process: &str) {
    signal("-9", process);
}

/// The nodes of a record that ended, with all of them back in time.
fn ended(record: &Value) -> Vec<&str> {
    let nodes = record["failures"]["nodes"].as_array().expect("a list");
    let organisation = |node: &'_ Value| {
        let back = node["back_seconds"].as_f64();
        assert!(back.is_some_and(|seconds| seconds < BACK_SECONDS), "{node}");
    };
    nodes.iter().for_each(organisation);
    nodes.iter().filter_map(|node| node["organisation"].as_str()).collect()
}

#[test]
fn nodes_that_are_killed_under_load_come_back_and_nothing_is_lost() {
    let load = ["--seconds", "20", "--rate", "300", "--customers", "500", "--restart-after", "1"];
    let mut demo = Demo::start(&[["--exit"].as_slice(), load.as_slice()].concat());
    let nodes = demo.processes();
    demo.wait_for(&["load ", "4 of 4 nodes"]);
    kill(&nodes[1]);
    demo.wait_for(&["org2's node", &nodes[1], "by signal 9", "3 of 4 nodes go on", "starts again in 1 s"]);
    demo.wait_for(&["load ", "3 of 4 nodes, org2 "]);
    demo.wait_for(&["org2's node is back", "4 of 4 nodes", "the same state digest"]);
    kill(&nodes[0]);
    kill(&nodes[2]);
    demo.wait_for(&["2 of 4 nodes are fewer than a quorum of 3, so the network waits"]);
    demo.wait_for(&["is back", "3 of 4 nodes", "The network goes on."]);
    demo.wait_for(&["is back", "4 of 4 nodes"]);
    let record = demo.succeed();
    assert_eq!(ended(&record), ["org1", "org2", "org3"]);
    assert!(record["failures"]["longest_pause_ms"].as_f64().is_some_and(|pause| pause > 0.0), "{record}");
}

#[test]
fn a_node_that_is_killed_while_customers_are_loaded_costs_none() {
    let load = ["--seconds", "2", "--rate", "100", "--customers", "60000", "--restart-after", "0"];
    let mut demo = Demo::start(&[["--exit"].as_slice(), load.as_slice()].concat());
    let nodes = demo.processes();
    demo.wait_for(&["three tables and six procedures"]);
    kill(&nodes[2]);
    demo.wait_for(&["60,000 customers loaded"]);
    // The sum of all balances says that each customer is there once.
    assert_eq!(ended(&demo.succeed()), ["org3"]);
}

#[test]
fn a_demo_that_stays_up_starts_nodes_again_and_ctrl_c_leaves_nothing_behind() {
    let mut demo = Demo::start(&["--seconds", "1", "--rate", "100", "--customers", "500"]);
    let mut nodes = demo.processes();
    demo.wait_for(&["Ctrl-C stops the nodes."]);
    kill(&nodes[3]);
    demo.wait_for(&["org4's node", "3 of 4 nodes go on", "starts again in 3 s"]);
    let again = demo.wait_for(&["org4's node runs again (process "]);
    let process = again.split("(process ").nth(1).and_then(|rest| rest.split(')').next());
    nodes[3] = process.expect("a number").to_string();
    demo.wait_for(&["org4's node is back", "4 of 4 nodes", "the same state digest"]);
    signal("-INT", &demo.child.id().to_string());
    let (status, text, _) = demo.finish();
    assert!(status.success(), "{text}");
    assert!(text.contains("stopping the nodes"), "{text}");
    for node in nodes {
        assert!(!Path::new("/proc").join(&node).exists(), "process {node} still runs");
    }
}

#[test]
fn ctrl_c_under_load_stops_at_once() {
    let mut demo = Demo::start(&["--seconds", "600", "--rate", "100", "--customers", "500"]);
    let nodes = demo.processes();
    demo.wait_for(&["load ", "4 of 4 nodes"]);
    signal("-INT", &demo.child.id().to_string());
    let start = Instant::now();
    let (status, text, _) = demo.finish();
    assert!(start.elapsed() < Duration::from_secs(20), "{text}");
    assert!(!status.success() && text.contains("stopped before the checks were done"), "{text}");
    assert!(!text.contains("has ended"), "the nodes are stopped, they do not end by themselves: {text}");
    for node in nodes {
        assert!(!Path::new("/proc").join(&node).exists(), "process {node} still runs");
    }
}

#[test]
fn a_node_that_ends_again_and_again_is_left_alone_and_its_log_is_named() {
    let load = ["--seconds", "3", "--rate", "100", "--customers", "500", "--restart-after", "0"];
    let mut demo = Demo::start(&[["--exit"].as_slice(), load.as_slice()].concat());
    let nodes = demo.processes();
    demo.wait_for(&["load ", "4 of 4 nodes"]);
    let folder = demo.folder.path().join("network/org2");
    std::fs::write(folder.join("node.toml"), "this is no configuration").expect("written");
    kill(&nodes[1]);
    demo.wait_for(&["org2's node", "with exit code 1"]);
    let log = folder.join("node.log");
    demo.wait_for(&["It is not started again, because it has ended 5 times", log.to_str().expect("a path")]);
    demo.wait_for(&["load ", "3 of 4 nodes, org2 is not started again"]);
    let (status, text, _) = demo.finish();
    assert!(!status.success() && text.contains("entente: org2's node is missing"), "{text}");
}

#[test]
fn chaos_kills_leaders_and_others_and_the_checks_hold() {
    for model in [vec![], vec!["--execution", "execute-order-validate", "--protocol", "fabric-sharp"]] {
        let load = ["--exit", "--chaos", "--seconds", "14", "--customers", "500", "--restart-after", "1"];
        let mut demo = Demo::start(&[load.as_slice(), model.as_slice()].concat());
        demo.wait_for(&["--chaos kills them in turn"]);
        demo.wait_for(&["--chaos killed org1's node"]);
        demo.wait_for(&["org1's node is back", "4 of 4 nodes", "the same state digest"]);
        let record = demo.succeed();
        let nodes = ended(&record);
        assert!(nodes.contains(&"org1"), "{record}");
        let by_chaos = |node: &Value| node["cause"] == "chaos" || node["cause"] == "leader";
        assert!(record["failures"]["nodes"].as_array().expect("a list").iter().all(by_chaos), "{record}");
    }
}
