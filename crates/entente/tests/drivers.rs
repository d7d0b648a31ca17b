//! The usual drivers against four organisations. Their programs (`tests/drivers/`) run on PostgreSQL 15 as well, without a
//! change. A driver's packages come through its own client, once per target folder.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::TestNetwork;
use support::programs::{command, packages, run};

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers")
}

fn python() -> Option<PathBuf> {
    if !test_machine::required("python3") {
        return None;
    }
    let folder = packages("drivers-python3", "python3", |folder| {
        let mut venv = command("python3", &["-m", "venv"]);
        venv.arg(folder);
        let pip = [
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "psycopg[binary]==3.2.13",
            "sqlalchemy==2.0.58",
        ];
        vec![venv, command(folder.join("bin/pip"), &pip)]
    })?;
    Some(folder.join("bin/python"))
}

/// Runs a driver's program against a new network.
async fn drive(command: &mut Command, expected: &str) {
    let mut network = TestNetwork::create(|_| {});
    network.start_all().await;
    let environment = [
        ("PGHOST", "127.0.0.1".to_string()),
        ("PGPORT", (network.port_base + 100).to_string()),
        ("PGUSER", "org1".to_string()),
        ("PGDATABASE", "entente".to_string()),
    ];
    let printed = tokio::task::block_in_place(|| run(command.envs(environment)));
    assert!(printed.contains(expected), "{printed}");
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psycopg() {
    let Some(python) = python() else { return };
    drive(Command::new(&python).arg(scripts().join("psycopg_3.py")), "psycopg: ok").await;
    drive(Command::new(&python).arg(scripts().join("sqlalchemy_2.py")), "sqlalchemy: ok").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_postgres() {
    if !["node", "npm"].into_iter().all(test_machine::required) {
        return;
    }
    let folder = packages("drivers-npm", "npm", |folder| {
        let npm =
            ["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "pg@8.23.1", "--prefix"];
        let mut npm = command("npm", &npm);
        npm.arg(folder);
        vec![npm]
    });
    let Some(folder) = folder else { return };
    let mut command = Command::new("node");
    command.arg(scripts().join("node_postgres.js")).env("NODE_PATH", folder.join("node_modules"));
    drive(&mut command, "node-postgres: ok").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jdbc() {
    if !["java", "mvn"].into_iter().all(test_machine::required) {
        return;
    }
    let folder = packages("drivers-mvn", "mvn", |folder| {
        let artifact = "-Dartifact=org.postgresql:postgresql:42.7.4";
        let output = format!("-DoutputDirectory={}", folder.display());
        vec![command("mvn", &["--quiet", "--batch-mode", "dependency:copy", artifact, &output])]
    });
    let Some(folder) = folder else { return };
    let mut command = Command::new("java");
    command.arg("-cp").arg(folder.join("postgresql-42.7.4.jar")).arg(scripts().join("Jdbc.java"));
    drive(&mut command, "jdbc: ok").await;
}
