//! The founding of a network between organisations that share no machine: every line of `docs/founding.md`, typed as it stands
//! there, in a folder per machine. Only what the lines copy goes from one to the other.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::apart::Apart;
use support::{ENTENTE, free_port_base};

/// The first port in the page.
const PAGE_PORT_BASE: u16 = 7000;

/// A line that is typed, and what the page shows of its output.
#[derive(Debug)]
struct Typed {
    /// `mail`: between the machines.
    machine: String,
    line: String,
    shown: Vec<String>,
}

impl Typed {
    /// The page shows that it is refused.
    fn is_refused(&self) -> bool {
        self.shown.iter().any(|line| {
            ["verify failed", "certificate problem"].iter().any(|why| line.contains(why))
                || line.starts_with("entente: ")
        })
    }
}

/// The lines of the page's consoles.
fn typed(text: &str) -> Vec<Typed> {
    let mut typed: Vec<Typed> = Vec::new();
    let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("console\n"));
    for line in blocks.flat_map(str::lines) {
        let prompt = line
            .split_once("$ ")
            .filter(|(machine, _)| machine.chars().all(|one| one.is_ascii_lowercase() || one == '_'));
        match prompt {
            Some((machine, line)) => {
                let (machine, line) = (machine.to_string(), line.to_string());
                typed.push(Typed { machine, line, shown: Vec::new() });
            }
            None => typed.last_mut().expect("a line that is typed").shown.push(line.to_string()),
        }
    }
    typed
}

/// A line with the ports of this test in the place of the page's.
fn on_ports(line: &str, base: u16) -> String {
    let (mut moved, mut number) = (String::new(), String::new());
    for character in line.chars().chain(['\n']) {
        if character.is_ascii_digit() {
            number.push(character);
            continue;
        }
        match number.parse::<u16>() {
            Ok(port) if (PAGE_PORT_BASE..PAGE_PORT_BASE + 300).contains(&port) => {
                moved += &(port - PAGE_PORT_BASE + base).to_string();
            }
            _ => moved += &number,
        }
        number.clear();
        moved.push(character);
    }
    moved.trim_end_matches('\n').to_string()
}

/// A line with the addresses of machines that are apart: each node listens for others where they reach it.
fn on_addresses(line: &str) -> String {
    let mut line = line.to_string();
    for place in 0..MACHINES.len() as u16 - 1 {
        for port in [PAGE_PORT_BASE + place, PAGE_PORT_BASE + 200 + place] {
            for host in ["127.0.0.1", "localhost"] {
                let there = format!("{}:{port}", Apart::address(place.into()));
                line = line.replace(&format!("{host}:{port}"), &there);
            }
        }
    }
    line
}

/// Whether a line is as the page shows it; `…` stands for anything.
fn is_as_shown(line: &str, shown: &str) -> bool {
    let parts: Vec<&str> = shown.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return line == shown };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// All machines of the page. The last one has no network.
const MACHINES: [&str; 6] = ["bank_a", "bank_b", "bank_c", "bank_d", "bank_e", "vault_d"];

/// The machines, each with a folder of its own, and the nodes that run.
struct Machines {
    folder: tempfile::TempDir,
    port_base: u16,
    nodes: Vec<(String, Child)>,
    /// What else holds them apart.
    apart: Option<Apart>,
}

impl Drop for Machines {
    fn drop(&mut self) {
        for (_, child) in &mut self.nodes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Machines {
    fn new() -> Machines {
        Machines::in_folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn in_folder(folder: tempfile::TempDir) -> Machines {
        for machine in MACHINES {
            std::fs::create_dir(folder.path().join(machine)).expect("created");
        }
        Machines { folder, port_base: free_port_base(), nodes: Vec::new(), apart: None }
    }

    /// The same, each with a user and a network of its own.
    fn apart(apart: Apart, folder: tempfile::TempDir) -> Machines {
        let mut machines = Machines::in_folder(folder);
        (machines.port_base, machines.apart) = (PAGE_PORT_BASE, Some(apart));
        machines.give();
        machines
    }

    /// What was mailed belongs to whoever got it.
    fn give(&self) {
        for (place, machine) in MACHINES.iter().enumerate() {
            Apart::gives(&self.place(machine), place as u32);
        }
    }

    /// A line as it is typed here.
    fn typed_here(&self, line: &str) -> String {
        match self.apart {
            Some(_) => on_addresses(line),
            None => on_ports(line, self.port_base),
        }
    }

    /// What starts programs on a machine.
    fn on(&self, machine: &str, program: &str) -> Command {
        let place = MACHINES.iter().position(|one| *one == machine);
        match (&self.apart, place) {
            (Some(apart), Some(place)) => {
                let mut command = apart.on(place as u32);
                command.arg(program).env("HOME", self.place(machine));
                command
            }
            _ => Command::new(program),
        }
    }

    fn place(&self, machine: &str) -> PathBuf {
        match machine {
            "mail" => self.folder.path().to_path_buf(),
            machine => self.folder.path().join(machine),
        }
    }

    /// Runs a line in a shell. Gives whether it went well, and the lines that it printed.
    fn run(&self, machine: &str, line: &str) -> (bool, Vec<String>) {
        let programs = Path::new(ENTENTE).parent().expect("a folder").display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let output = self
            .on(machine, "sh")
            .args(["-c", &self.typed_here(line)])
            .current_dir(self.place(machine))
            .env("PATH", path)
            .env("PSQLRC", "/dev/null")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        if self.apart.is_some() && machine == "mail" {
            self.give();
        }
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).to_string();
        (output.status.success(), said.lines().map(str::to_string).collect())
    }

    /// Runs a line that goes well; gives what it printed.
    fn done(&self, line: &str) -> String {
        let (good, said) = self.run("mail", line);
        assert!(good, "{line}: {}", said.join("\n"));
        said.join("\n")
    }

    /// Runs a line that is refused; gives what it printed.
    fn refused(&self, line: &str) -> String {
        let (good, said) = self.run("mail", line);
        assert!(!good, "{line}: {}", said.join("\n"));
        said.join("\n")
    }

    /// Runs a line until it does what the page shows. Nodes tell one another what happened, so it may take a moment.
    fn does(&self, typed: &Typed, patience: Duration) {
        let begin = Instant::now();
        loop {
            let (good, said) = self.run(&typed.machine, &typed.line);
            let shown: Vec<String> = typed.shown.iter().map(|line| self.typed_here(line)).collect();
            let mut lines = said.iter();
            let missing = shown.iter().find(|shown| !lines.any(|line| is_as_shown(line, shown)));
            if good != typed.is_refused() && missing.is_none() {
                return;
            }
            assert!(
                begin.elapsed() < patience,
                "{}$ {}\nnot as the page shows it: {missing:?}\n{}",
                typed.machine,
                typed.line,
                said.join("\n")
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Starts a node, which ends with the test.
    fn start(&mut self, machine: &str) {
        let place = self.place(machine);
        let log = std::fs::File::create(place.join("node.log")).expect("a log file");
        let child = self
            .on(machine, ENTENTE)
            .args(["node", "--stop-with-input", "--dir", "node"])
            .current_dir(&place)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("the program starts");
        self.nodes.push((machine.to_string(), child));
    }

    /// Waits until all nodes that were started serve.
    fn wait_for_nodes(&self) {
        let begin = Instant::now();
        for (machine, _) in &self.nodes {
            let log = self.place(machine).join("node.log");
            loop {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                if said.contains(" at height ") {
                    break;
                }
                assert!(begin.elapsed() < Duration::from_secs(90), "{machine}: {said}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

#[test]
fn the_page_about_founding_does_what_it_says() {
    if !test_machine::required("psql") || !test_machine::required("curl") {
        return;
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/founding.md");
    let typed = typed(&std::fs::read_to_string(page).expect("the page"));
    assert!(typed.len() > 40, "only {} lines", typed.len());
    let mut machines = Machines::new();
    machines.type_all(&typed);
    assert_eq!(machines.nodes.len(), 4);
    certificates_are_for_their_hosts_alone(&machines);
    nothing_secret_was_mailed(&machines);
}

/// The same where nobody has but his own user, files and network. `make apart` runs it: what it needs is not there on every machine.
#[test]
fn the_page_works_between_users_and_networks_of_their_own() {
    if std::env::var_os("ENTENTE_APART").is_none() {
        println!("left out: it needs root and network namespaces; `make apart` runs it");
        return;
    }
    let apart = Apart::new(MACHINES.len() as u32).expect("root, and network namespaces by `ip netns`");
    assert!(apart.may_run(ENTENTE), "expected a program that other users may run, at {ENTENTE}");
    let folder = apart.folder().expect("a folder for temporary files that other users get to");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/founding.md");
    let mut typed = typed(&std::fs::read_to_string(page).expect("the page"));
    // The Postgres port is for each bank's own machine here, where nobody needs a password.
    typed.retain(|one| !one.shown.iter().any(|line| line.contains("verify failed")));
    let mut machines = Machines::apart(apart, folder);
    machines.type_all(&typed);
    assert_eq!(machines.nodes.len(), 4);
    nothing_secret_was_mailed(&machines);
    let refused = |machine: &str, line: &str, why: &str| {
        let (_, said) = machines.run(machine, line);
        let said = said.join("\n");
        assert!(said.contains(why), "{machine}$ {line}\n{said}");
    };
    refused("bank_b", "cat ../bank_a/node/node.key", "Permission denied");
    refused("bank_d", "curl --silent http://127.0.0.1:7201/health", "answers other machines over TLS alone");
    refused("bank_d", "curl --silent --max-time 2 --show-error http://127.0.0.1:7101/", "curl: (7)");
}

impl Machines {
    /// Types all lines, and starts what they start.
    fn type_all(&mut self, typed: &[Typed]) {
        for one in typed {
            self.type_one(one);
        }
    }

    fn type_one(&mut self, one: &Typed) {
        if one.line.starts_with("entente node") && !one.is_refused() {
            self.start(&one.machine);
            return;
        }
        let asks_nodes =
            ["psql", "curl", "entente approve", "entente status"].iter().any(|how| one.line.starts_with(how));
        if asks_nodes {
            self.wait_for_nodes();
        }
        self.does(one, Duration::from_secs(if asks_nodes { 30 } else { 0 }));
    }
}

/// `verify-full` is about the host, too.
fn certificates_are_for_their_hosts_alone(machines: &Machines) {
    let connect = |host: &str, authority: &str| {
        let line = format!(
            "psql \"{host} port=7100 sslmode=verify-full sslrootcert={authority}/node/tls.crt user=bank_a dbname=entente\" -c \
             \"SELECT 1\""
        );
        let (good, said) = machines.run("mail", &line);
        (good, said.join("\n"))
    };
    for host in ["host=localhost", "host=127.0.0.1"] {
        let (good, said) = connect(host, "bank_a");
        assert!(good, "{host}: {said}");
    }
    let (good, said) = connect("host=bank-a.example hostaddr=127.0.0.1", "bank_a");
    assert!(!good && said.contains("does not match host name"), "{said}");
    // Whoever trusts all members has all certificates in one file.
    machines.done("mkdir -p all/node && cat bank_d/node/tls.crt bank_b/node/tls.crt bank_a/node/tls.crt > all/node/tls.crt");
    let (good, said) = connect("host=localhost", "all");
    assert!(good, "{said}");
}

#[test]
fn a_node_that_init_has_made_proves_to_clients_who_it_is() {
    if !test_machine::required("psql") {
        return;
    }
    let mut machines = Machines::new();
    machines.done("entente init --dir clearing --port-base 7000");
    std::fs::rename(machines.folder.path().join("clearing/org1"), machines.place("bank_a").join("node"))
        .expect("moved");
    machines.start("bank_a");
    machines.wait_for_nodes();
    let line = "psql \"host=localhost port=7100 sslmode=verify-full sslrootcert=node/tls.crt user=org1 dbname=entente\" -c \"SELECT 1\"";
    let (good, said) = machines.run("bank_a", line);
    assert!(good, "{said:?}");
}

/// What one machine has of another one shows none of that one's secrets.
fn nothing_secret_was_mailed(machines: &Machines) {
    let secrets: Vec<(&str, String)> = ["bank_a", "bank_b", "bank_c", "bank_d"]
        .iter()
        .flat_map(|machine| ["node.key", "session.key", "client.key"].map(|file| (*machine, file)))
        .map(|(machine, file)| {
            let path = machines.place(machine).join("node").join(file);
            (machine, std::fs::read_to_string(path).expect("a key"))
        })
        .chain([(
            "vault_d",
            std::fs::read_to_string(machines.place("vault_d").join("vault/root.key")).expect("a key"),
        )])
        .collect();
    assert!(!machines.place("bank_d").join("node/root.key").exists());
    for machine in ["bank_a", "bank_b", "bank_c", "bank_d", "bank_e", "vault_d"] {
        for folder in ["", "node", "vault"] {
            let Ok(entries) = std::fs::read_dir(machines.place(machine).join(folder)) else { continue };
            for path in entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()) {
                let content = std::fs::read(&path).expect("a file");
                let content = String::from_utf8_lossy(&content);
                let stranger =
                    secrets.iter().find(|(owner, secret)| *owner != machine && content.contains(secret));
                assert!(stranger.is_none(), "{} has a secret of {stranger:?}", path.display());
            }
        }
    }
}

/// Makes keys of an organisation in a folder of its name.
fn keys(network: &str, name: &str, place: u16) -> String {
    let port = |offset: u16| PAGE_PORT_BASE + offset + place;
    format!(
        "entente keys --dir {name}/{network} --network {network} --name {name} --listen 127.0.0.1:{} --postgres \
         127.0.0.1:{} --http 127.0.0.1:{}",
        port(0),
        port(100),
        port(200)
    )
}

/// Four members' keys in folders, and a draft of their charter.
fn drafted() -> Machines {
    let machines = Machines::new();
    for (place, name) in ["bank_a", "bank_b", "bank_c", "bank_d"].iter().enumerate() {
        machines.done(&keys("clearing", name, place as u16));
    }
    machines.done(&draft("", "draft.toml"));
    machines
}

/// Drafts a charter of four cards; `more` comes behind them.
fn draft(more: &str, out: &str) -> String {
    let cards: Vec<String> =
        ["a", "b", "c", "d"].iter().map(|bank| format!("--card bank_{bank}/clearing/card.toml")).collect();
    format!("entente charter draft --name clearing {} {more} --out {out}", cards.join(" "))
}

#[test]
fn mistakes_of_founders_are_explained() {
    let machines = drafted();
    // What stands there is kept.
    assert!(machines.refused(&draft("", "draft.toml")).contains("draft.toml exists"));
    assert!(machines.refused(&draft("--governance most", "x.toml")).contains("governance"));
    assert!(machines.refused(&draft("--protocol magic", "x.toml")).contains("harmony"));
    assert!(
        machines
            .refused(&draft("--card bank_a/clearing/card.toml", "x.toml"))
            .contains("an organisation bank_a")
    );
    assert!(
        machines
            .refused(&draft("--card draft.toml", "x.toml"))
            .contains("draft.toml: expected a member card")
    );
    machines.done(&keys("other", "bank_e", 4));
    let other = machines.refused(&draft("--card bank_e/other/card.toml", "x.toml"));
    assert!(other.contains("bank_e is for the network `other`, expected one for `clearing`"), "{other}");
    // A node that was copied, with the keys in it.
    machines
        .done("cp -r bank_a/clearing bank_e/clearing && sed -i 's/bank_a/bank_e/' bank_e/clearing/card.toml");
    assert!(
        machines
            .refused(&draft("--card bank_e/clearing/card.toml", "x.toml"))
            .contains("a value in it was altered")
    );
    assert!(!machines.place("mail").join("x.toml").exists());
}

#[test]
fn signatures_over_two_drafts_do_not_mix() {
    let machines = drafted();
    machines.done(&draft("--governance any", "other.toml"));
    let shown = machines.done("entente charter show draft.toml --against other.toml");
    assert!(shown.contains("governance: this has \"majority\", the other \"any\""), "{shown}");
    machines.done("entente charter sign --dir bank_a/clearing draft.toml --card bank_b/clearing/card.toml");
    let again = machines.refused("entente charter sign --dir bank_a/clearing other.toml");
    assert!(
        again.contains("governance: signed was \"majority\", this has \"any\"")
            && again.contains("--replace")
    );
    machines.done("cp bank_a/clearing/bank_a.signature.toml old.toml");
    machines.done("entente charter sign --dir bank_a/clearing other.toml --replace");
    let mixed =
        machines.refused("entente charter assemble other.toml --signature old.toml --out charter.toml");
    assert!(mixed.contains("bank_a has signed another draft") && mixed.contains("--against"), "{mixed}");
    let (card, signature) = ("bank_a/clearing/card.toml", "bank_a/clearing/bank_a.signature.toml");
    let swapped = machines
        .refused(&format!("entente charter assemble other.toml --signature {card} --out charter.toml"));
    assert!(swapped.contains("expected a signature over a charter"), "{swapped}");
    assert!(machines.refused(&format!("entente charter show {signature}")).contains("expected the charter"));
    assert!(
        machines
            .refused(&format!("entente charter show draft.toml --card {signature}"))
            .contains("expected a member card")
    );
    machines.done(&format!("entente charter assemble other.toml --signature {signature} --out charter.toml"));
    machines.done("sed 's/idle_ms = 500/idle_ms = 600/' charter.toml > changed.toml");
    let shown = machines.refused("entente charter show changed.toml");
    assert!(shown.contains("not signed by bank_a") && shown.contains("--against"), "{shown}");
    let shown = machines.done("entente charter show other.toml --against changed.toml");
    assert!(shown.contains("block.idle_ms: this has 500, the other 600"), "{shown}");
    let shown = machines.done("entente charter show charter.toml");
    assert!(shown.contains("Signed by bank_a; missing signatures: bank_b, bank_c, bank_d."), "{shown}");
    assert!(
        machines
            .refused("entente charter install --dir bank_a/clearing charter.toml")
            .contains("missing: bank_b, bank_c, bank_d")
    );
    assert!(machines.refused("entente node --dir bank_a/clearing").contains("has keys and no charter yet"));
    machines.done("cp charter.toml bank_a/clearing/charter.toml");
    assert!(
        machines.refused("entente node --dir bank_a/clearing").contains("missing: bank_b, bank_c, bank_d")
    );
}

#[test]
fn keys_that_would_be_of_no_use_are_not_made() {
    let machines = Machines::new();
    let unspecified = "entente keys --dir x --network clearing --name x --listen 0.0.0.0:1 --postgres 0.0.0.0:2 --http 0.0.0.0:3";
    assert!(machines.refused(unspecified).contains("--public-address"));
    assert!(machines.refused(&format!("{unspecified} --public-address a:1")).contains("without a port"));
    assert!(
        machines
            .refused(&format!("{unspecified} --public-address a --kafka-topic t"))
            .contains("--kafka-brokers")
    );
    assert!(
        machines
            .refused(&format!("{unspecified} --public-address a --memory-megabytes 64"))
            .contains("store = \"disk\"")
    );
    assert!(!machines.place("mail").join("x").exists());
    machines.done(&format!("{unspecified} --public-address a.example --kafka-brokers k:9092"));
    assert!(machines.done("cat x/node.toml").contains("brokers = \"k:9092\""));
    assert!(machines.done("cat x/card.toml").contains("address = \"a.example:1\""));
}
