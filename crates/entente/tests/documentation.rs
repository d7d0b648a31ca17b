//! What README.md, CONTRIBUTING.md, ARCHITECTURE.md and docs/ tell people to do works: commands, statements, links, files.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{ENTENTE, free_port_base};
use tokio_postgres::{Client, NoTls};

/// The first port of README.md's demo.
const README_PORT_BASE: u16 = 7000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page, by its path from the root.
fn pages() -> Vec<(PathBuf, String)> {
    let in_folder = |folder: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
        let paths = entries.map(|entry| Path::new(folder).join(entry.expect("readable").file_name()));
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
        paths.sort();
        paths
    };
    let paths = [in_folder(""), in_folder("docs"), in_folder("docs/decisions")].concat();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root().join(&path)).expect("a readable page");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The lines of a page's blocks of code in a language.
fn code<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}");
    let (mut lines, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside && line == fence;
        } else if inside {
            lines.push(line);
        }
    }
    lines
}

/// The words of a line for a shell, without its comment. Double quotes are all that our pages use.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            '#' if !quoted && word.is_empty() => break,
            ' ' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            other => word.push(other),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[test]
fn commands_are_understood() {
    let mut tried = 0;
    for (path, text) in pages() {
        for line in code(&text, "sh") {
            let words = words(line);
            if words.first().is_none_or(|program| program != "entente") {
                continue;
            }
            // What stands before --help is read first: an option that does not exist is an error, a good line is explained.
            let output = Command::new(ENTENTE).args(&words[1..]).arg("--help").output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {line}\n{said}", path.display());
            tried += 1;
        }
    }
    assert!(tried >= 20, "only {tried} commands found");
}

#[test]
fn targets_of_make_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("a readable file");
    let mut tried = 0;
    for (path, text) in pages() {
        let in_code = code(&text, "sh").into_iter().filter_map(|line| line.strip_prefix("make "));
        for rest in in_code.chain(text.split("`make ").skip(1)) {
            let target: String =
                rest.chars().take_while(|one| one.is_ascii_lowercase() || *one == '-').collect();
            assert!(makefile.contains(&format!("\n{target}:")), "{}: make {target}", path.display());
            tried += 1;
        }
    }
    assert!(tried >= 10, "only {tried} targets found");
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|one| one.is_alphanumeric() || [' ', '-', '_'].contains(one));
    kept.map(|one| if one == ' ' { '-' } else { one }).collect()
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    for (path, text) in &pages {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") || link.contains(char::is_whitespace) {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let folder = path.parent().expect("a page is in a folder");
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            let target = root().join(target);
            assert!(target.exists(), "{}: {link}", path.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).expect("a readable page");
                let there =
                    text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
                assert!(there, "{}: {link}: no such heading", path.display());
            }
        }
    }
}

#[test]
fn files_that_are_named_exist() {
    let mut tried = 0;
    for (path, text) in pages() {
        for part in text.split('`').skip(1).step_by(2) {
            let is_path = part.starts_with("crates/") || part.starts_with("docs/");
            if is_path && part.chars().all(|one| one.is_ascii_alphanumeric() || "/._-".contains(one)) {
                assert!(root().join(part).exists(), "{}: `{part}` is not there any more", path.display());
                tried += 1;
            }
        }
    }
    assert!(tried >= 30, "only {tried} files found");
}

#[test]
fn every_decision_is_in_the_index() {
    let index = fs::read_to_string(root().join("docs/decisions/README.md")).expect("a readable page");
    for (path, _) in pages().into_iter().filter(|(path, _)| path.starts_with("docs/decisions")) {
        let name = path.file_name().expect("a file").to_string_lossy();
        assert!(name == "README.md" || index.contains(&format!("({name})")), "{name} is not in the index");
    }
}

/// A demo that goes on until it is dropped.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        // So that it stops its nodes; a demo that has ended already needs nothing.
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

/// Starts a small demo; gives it once it says that it can be asked.
fn start_demo(port_base: u16, invitation: &str) -> Demo {
    let mut child = Command::new(ENTENTE)
        .args(["demo", "--customers", "500", "--seconds", "1", "--port-base", &port_base.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let output = child.stdout.take().expect("piped");
    let demo = Demo(child);
    let mut lines = BufReader::new(output).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.trim() == invitation), "the demo does not say: {invitation}");
    // Whatever it says from here on must find a reader.
    std::thread::spawn(move || lines.for_each(drop));
    demo
}

async fn session(invitation: &str) -> Client {
    let words = words(invitation);
    let after = |option: &str| {
        let at = words.iter().position(|word| word == option).expect("psql has the option");
        words[at + 1].clone()
    };
    let mut config = tokio_postgres::Config::new();
    config.host(after("-h")).port(after("-p").parse().expect("a port")).user(after("-U"));
    let (client, connection) = config.dbname("entente").connect(NoTls).await.expect("the node answers");
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_five_minutes_of_the_readme_work() {
    let readme = fs::read_to_string(root().join("README.md")).expect("a readable page");
    let port_base = free_port_base();
    // The lines for psql, with the ports of this demo.
    let invitations: Vec<String> = readme
        .split(['`', '\n'])
        .filter(|part| part.starts_with("psql -h"))
        .map(|line| {
            let port = words(line)[4].parse::<u16>().expect("a port");
            line.replace(&port.to_string(), &(port - README_PORT_BASE + port_base).to_string())
        })
        .collect();
    let [second, third] = invitations.as_slice() else { panic!("two lines for psql: {invitations:?}") };
    let _demo = start_demo(port_base, second);
    let session_2 = session(second).await;
    let mut tried = 0;
    for line in code(&readme, "sql").into_iter().filter(|line| !line.starts_with('\\')) {
        let (statement, comment) = line.split_once("--").unwrap_or((line, ""));
        let result = session_2.simple_query(statement).await;
        let refused = comment.trim_start().starts_with("refused");
        assert_eq!(result.is_err(), refused, "{line}\n{:?}", result.err());
        tried += 1;
    }
    assert!(tried >= 9, "only {tried} statements found");
    let query = "SELECT id, goods, weight_kg::text FROM shipments ORDER BY id";
    let height: String = session_2.query_one("SHOW entente.last_height", &[]).await.expect("it says").get(0);
    let session_3 = session(third).await;
    session_3.batch_execute(&format!("SET entente.min_height = {height}")).await.expect("a height");
    let rows = session_3.query(query, &[]).await.expect("the same tables");
    let goods: Vec<String> = rows.iter().map(|row| row.get("goods")).collect();
    assert_eq!(goods, ["copper", "tin"]);
}
