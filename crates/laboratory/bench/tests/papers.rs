//! The lists of experiments and of the papers' tables and figures say the same: every id is defined once, every reference
//! leads somewhere, and every table and figure is accounted for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value};

/// Keys of an entry that says where its experiment is, and has none itself.
const REFERENCE: [&str; 8] = ["id", "paper", "number", "title", "status", "command", "repeats", "note"];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn table(name: &str) -> Table {
    read(name).parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn text<'a>(entry: &'a Table, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The entries of a file by their ids, of which there are no two.
fn by_id(name: &str) -> BTreeMap<String, Table> {
    let mut entries = BTreeMap::new();
    for entry in table(name)["experiment"].as_array().expect("a list of experiments") {
        let entry = entry.as_table().expect("an entry").clone();
        let id = text(&entry, "id").to_string();
        assert!(entries.insert(id.clone(), entry).is_none(), "{name} defines `{id}` twice");
    }
    entries
}

/// Table, figure or section; parts of one have a letter in brackets.
fn whole(number: &str) -> &str {
    number.split(" (").next().unwrap_or(number)
}

/// Every id that some text names as `experiment=id`.
fn named(text: &str) -> BTreeSet<String> {
    let id = |rest: &str| {
        rest.split(|c: char| !(c.is_ascii_alphanumeric() || "+-".contains(c))).next().map(str::to_string)
    };
    text.split("experiment=").skip(1).filter_map(id).collect()
}

#[test]
fn every_experiment_is_defined_once_and_every_table_and_figure_is_accounted_for() {
    let (experiments, endorse) = (by_id("experiments.toml"), by_id("endorse.toml"));
    let mut wrong: Vec<String> = Vec::new();

    // What `bench endorse` runs is defined in endorse.toml alone; experiments.toml says where.
    let mut repeated = BTreeSet::new();
    for (id, entry) in &experiments {
        if (text(entry, "status"), text(entry, "command")) != ("done", "endorse") {
            if endorse.contains_key(id) {
                wrong.push(format!(
                    "`{id}` is defined in endorse.toml, and in experiments.toml as something else"
                ));
            }
            continue;
        }
        if let Some(key) = entry.keys().find(|key| !REFERENCE.contains(&key.as_str())) {
            wrong.push(format!("`{id}` is run by `bench endorse`, and has `{key}` in experiments.toml"));
        }
        let runs = match text(entry, "repeats") {
            "" => id,
            other => other,
        };
        if !endorse.contains_key(runs) {
            wrong.push(format!("`{id}` is said to be run as `{runs}`, which endorse.toml does not define"));
        }
        repeated.insert(runs);
    }
    for (id, entry) in endorse.iter().filter(|(_, entry)| text(entry, "paper") != "entente") {
        let same = experiments.get(id).is_some_and(|one| text(one, "paper") == text(entry, "paper"));
        if !same || !repeated.contains(id.as_str()) {
            wrong.push(format!(
                "`{id}` of endorse.toml is of a paper, and experiments.toml does not say that it is done"
            ));
        }
    }

    // The papers' lists and the entries are the same.
    let mut listed = BTreeSet::new();
    for (paper, lists) in table("papers.toml") {
        let lists = lists.as_table().expect("a paper").clone();
        for (kind, name) in [("tables", "Table"), ("figures", "Figure"), ("sections", "Section")] {
            for number in lists.get(kind).and_then(Value::as_array).into_iter().flatten() {
                let number = format!("{name} {}", number.as_str().expect("a number as text"));
                if !listed.insert((paper.clone(), number.clone())) {
                    wrong.push(format!("papers.toml lists {number} of {paper} twice"));
                }
            }
        }
    }
    let accounted: BTreeSet<(String, String)> = experiments
        .values()
        .filter(|entry| text(entry, "paper") != "entente")
        .map(|entry| (text(entry, "paper").to_string(), whole(text(entry, "number")).to_string()))
        .collect();
    let missing = |what: &str, (paper, number): &(String, String)| format!("{what} {number} of {paper}");
    wrong.extend(
        listed.difference(&accounted).map(|one| missing("experiments.toml does not account for", one)),
    );
    wrong.extend(accounted.difference(&listed).map(|one| missing("papers.toml does not list", one)));
    assert!(listed.len() > 150, "five papers have more than {} tables and figures", listed.len());

    // What the documentation tells people to run is there.
    for page in ["laboratory.md", "benchmarks.md", "endorsement.md", "experiments.toml", "endorse.toml"] {
        for id in named(&read(page)) {
            if !experiments.contains_key(&id) && !endorse.contains_key(&id) {
                wrong.push(format!("{page} names the experiment `{id}`, which nobody defines"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
