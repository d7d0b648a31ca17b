//! Whether the folder is whole, and who can read its secrets.

use super::finding::Findings;
use super::subject::Subject;
use crate::PASSWORDS_FILE;
use crate::founding::{NODE_KEY_FILE, ROOT_KEY_FILE};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FOLDER: &str = "folder";
const SECRETS: &str = "secrets";

/// What a node's folder needs.
const NEEDED: [&str; 4] = ["charter.toml", "node.toml", NODE_KEY_FILE, "session.toml"];
/// Files that nobody but their owner may read, where they are there.
const SECRET: [&str; 10] = [
    NODE_KEY_FILE,
    ROOT_KEY_FILE,
    "session.toml",
    "client.toml",
    "session.key",
    "client.key",
    PASSWORDS_FILE,
    "database.password",
    "agree.password",
    "holders.key",
];

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    let folder = &subject.folder;
    let missing: Vec<&str> = NEEDED.into_iter().filter(|file| !folder.join(file).exists()).collect();
    let shown = folder.display();
    match (missing.as_slice(), subject.process.as_ref()) {
        ([], Ok(Some(process))) => {
            findings.ok(FOLDER, format!("{shown} has what a node needs; process {process} runs it"));
        }
        ([], Ok(None)) => findings.ok(FOLDER, format!("{shown} has what a node needs; the node is stopped")),
        ([], Err(error)) => {
            findings.problem(FOLDER, error.to_string(), "run this as the user that runs the node");
        }
        (missing, _) if missing.len() == NEEDED.len() => findings.problem(
            FOLDER,
            format!("{shown} is no node's folder: it has none of {}", NEEDED.join(", ")),
            "name the folder that `entente keys` or `entente init` has made",
        ),
        (["charter.toml" | "session.toml", ..], _) if folder.join("card.toml").exists() => findings.problem(
            FOLDER,
            format!("{shown} has keys and no charter yet"),
            format!("when all founders have signed it: entente charter install --dir {shown} CHARTER"),
        ),
        (missing, _) => findings.problem(
            FOLDER,
            format!("{shown} lacks {}", missing.join(", ")),
            "restore them from a copy of this folder; the charter may come from any member",
        ),
    }
    secrets(subject, findings);
}

fn secrets(subject: &Subject, findings: &mut Findings) {
    let own: Option<PathBuf> = subject.config.as_ref().ok().and_then(|config| config.tls_key.clone());
    let files = SECRET.iter().map(PathBuf::from).chain(own);
    let files: Vec<PathBuf> =
        files.map(|file| subject.folder.join(file)).filter(|path| path.exists()).collect();
    for path in &files {
        secret(path, findings);
    }
    if subject.folder.join(ROOT_KEY_FILE).exists() {
        findings.warning(
            SECRETS,
            "root.key lies on the node's machine: who gets into it speaks for the organisation",
            "move root.key to a safe place; the node does not need it (docs/founding.md)",
        );
    }
    if findings.is_well(SECRETS) {
        findings.ok(SECRETS, format!("only their owner can read the {} secret files", files.len()));
    }
}

fn secret(path: &Path, findings: &mut Findings) {
    let shown = path.display();
    let mode = match std::fs::metadata(path) {
        Ok(data) => data.permissions().mode() & 0o777,
        Err(error) => {
            let advice = "run this as the user that runs the node";
            return findings.problem(SECRETS, format!("cannot read {shown}: {error}"), advice);
        }
    };
    let advice = format!("chmod 600 {shown}; if somebody may have read it, make a new key or password");
    if mode & 0o007 != 0 {
        findings.problem(
            SECRETS,
            format!("everybody on this machine can get at {shown} (mode {mode:o})"),
            advice,
        );
    } else if mode & 0o070 != 0 {
        findings.warning(SECRETS, format!("the group of {shown} can get at it (mode {mode:o})"), advice);
    }
}
