//! What the system allows the node's process.

use super::finding::Findings;
use super::subject::Subject;
use nix::sys::resource::{Resource, getrlimit};

const FILES: &str = "open files";
/// What a node has open beside the connections of its Postgres clients: the files of a large state, and connections of other kinds.
const OTHERS: u64 = 1_024;

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    let Ok(config) = &subject.config else { return };
    let allowed = match subject.process() {
        Some(process) => {
            of_process(&std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default())
        }
        // A node raises its limit as far as it may.
        None => getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(_, most)| most),
    };
    let sessions = config.connections_max.unwrap_or(gateway::limits::CONNECTIONS_MAX) as u64;
    judge(allowed, sessions, findings);
}

/// What `/proc/PID/limits` says.
fn of_process(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn judge(allowed: Option<u64>, sessions: u64, findings: &mut Findings) {
    let needed = sessions.saturating_add(OTHERS);
    match allowed {
        None => findings.ok(FILES, "the system does not say how many files the node may have open"),
        Some(allowed) if allowed < needed => findings.warning(
            FILES,
            format!("the node may have {allowed} files open, and {sessions} sessions (connections_max) need {needed}"),
            "allow it more (LimitNOFILE of systemd, `ulimit -Hn`), or set connections_max in node.toml lower",
        ),
        Some(allowed) => findings.ok(FILES, format!("the node may have {allowed} files open, it needs {needed}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn too_few_open_files_are_named() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(of_process(limits), Some(1_024));
        assert_eq!(of_process(&limits.replace("1024", "unlimited")), Some(u64::MAX));
        assert_eq!(of_process(""), None);
        let level = |allowed, sessions| {
            let mut findings = Findings::default();
            judge(allowed, sessions, &mut findings);
            findings.0.pop().expect("one").level
        };
        assert_eq!(level(Some(1_024), 2_000), Level::Warning);
        assert_eq!(level(Some(4_096), 2_000), Level::Ok);
        assert_eq!(level(None, 2_000), Level::Ok);
    }
}
