//! The disks of ledger and state: whether they keep what is written, can be written, and have room for what comes.

use super::finding::Findings;
use super::subject::Subject;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const DISK: &str = "disk";
const MIB: u64 = 1 << 20;
/// With less a node stops soon.
const NEEDED_BYTES: u64 = 256 * MIB;
/// With less somebody should see to it.
const WARNED_BYTES: u64 = 2_048 * MIB;
/// Room for fewer days than this is warned of.
const WARNED_DAYS: u64 = 14;

/// Where what a node keeps lies, from its folder.
const PARTS: [&str; 5] = ["ledger", "state", "ordering", "checkpoints", "history"];
/// File systems that forget everything when the machine ends.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];
/// File systems of other machines.
const REMOTE: [&str; 11] =
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "fuse.sshfs", "afs"];

/// What is known of where a file system is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Mount {
    point: PathBuf,
    kind: String,
}

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let per_day = match &subject.past {
        Some(Ok(past)) => past.bytes_per_day,
        _ => None,
    };
    // What does not lie there yet will lie in the folder.
    let place = |part: &str| subject.folder.join(part).canonicalize().ok();
    let folder = subject.folder.canonicalize().unwrap_or_else(|_| subject.folder.clone());
    let mut places: BTreeMap<Option<Mount>, (PathBuf, Vec<&str>)> = BTreeMap::new();
    for part in PARTS {
        let path = place(part).unwrap_or_else(|| folder.clone());
        let mount = mount_of(&path, &mounts);
        places.entry(mount).or_insert_with(|| (path, Vec::new())).1.push(part);
    }
    for (mount, (path, parts)) in places {
        let parts = parts.join(", ");
        kind(mount.as_ref(), &parts, findings);
        if let Err(error) = nix::unistd::access(&path, nix::unistd::AccessFlags::W_OK) {
            findings.problem(
                DISK,
                format!("{} cannot be written: {}", path.display(), error.desc()),
                "run the node as the user that owns the folder, and mount its disk for writing",
            );
        }
        match nix::sys::statvfs::statvfs(&path) {
            Ok(room) => {
                let free = room.blocks_available() * room.fragment_size();
                let has_ledger = parts.contains("ledger");
                enough(free, per_day.filter(|_| has_ledger), &parts, findings);
            }
            Err(error) => findings.warning(
                DISK,
                format!("the room of {} is not known: {}", path.display(), error.desc()),
                "look with df",
            ),
        }
    }
}

/// The file system that a path lies in, as `/proc/self/mountinfo` names it.
fn mount_of(path: &Path, mounts: &str) -> Option<Mount> {
    let mount = |line: &str| {
        let (before, behind) = line.split_once(" - ")?;
        // Spaces in names stand as \040.
        let point = PathBuf::from(before.split(' ').nth(4)?.replace("\\040", " "));
        let kind = behind.split(' ').next()?.to_string();
        path.starts_with(&point).then_some(Mount { point, kind })
    };
    // Of two at one point the later one counts.
    mounts.lines().filter_map(mount).max_by_key(|mount| mount.point.components().count())
}

fn kind(mount: Option<&Mount>, parts: &str, findings: &mut Findings) {
    let Some(Mount { point, kind }) = mount else { return };
    let shown = point.display();
    if IN_MEMORY.contains(&kind.as_str()) {
        findings.warning(
            DISK,
            format!("{parts} lie in the machine's memory ({kind} at {shown}): they are gone when it ends, and so are this node's votes"),
            "move the node's folder to a disk while the node is stopped",
        );
    } else if REMOTE.contains(&kind.as_str()) {
        findings.warning(
            DISK,
            format!("{parts} lie on a file system of another machine ({kind} at {shown}): each block waits for it, and locks may not hold"),
            "move the node's folder to a disk of this machine while the node is stopped",
        );
    } else if kind == "overlay" {
        findings.warning(
            DISK,
            format!("{parts} lie in a container ({kind} at {shown}): they are gone when it is removed, and so are this node's votes"),
            "give the container a volume for the node's folder",
        );
    }
}

/// `per_day`: how much the ledger grows.
fn enough(free: u64, per_day: Option<u64>, parts: &str, findings: &mut Findings) {
    let megabytes = free / MIB;
    let days = per_day.and_then(|per_day| free.checked_div(per_day));
    let growth = match (per_day, days) {
        (Some(per_day), Some(days)) => {
            format!(", the ledger grows by {} MB in a day: room for {days} days", per_day / MIB)
        }
        _ => ", how fast the ledger grows is not known yet".to_string(),
    };
    let growth = if parts.contains("ledger") { growth } else { String::new() };
    let found = format!("{megabytes} MB are free for {parts}{growth}");
    let advice = "make room: a larger disk, or fewer other files (docs/operating-disk.md); never remove files of the node";
    if free < NEEDED_BYTES {
        findings.problem(DISK, found, advice);
    } else if free < WARNED_BYTES || days.is_some_and(|days| days < WARNED_DAYS) {
        findings.warning(DISK, found, advice);
    } else {
        findings.ok(DISK, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    fn level(check: impl FnOnce(&mut Findings)) -> Option<(Level, String)> {
        let mut findings = Findings::default();
        check(&mut findings);
        findings.0.pop().map(|finding| (finding.level, finding.found))
    }

    #[test]
    fn little_room_is_named_also_against_growth() {
        let of =
            |free: u64, per_day| level(|findings| enough(free, per_day, "ledger", findings)).expect("one");
        assert_eq!(of(100_000 * MIB, Some(1_000 * MIB)).0, Level::Ok);
        let (found, text) = of(100_000 * MIB, Some(10_000 * MIB));
        assert_eq!(found, Level::Warning);
        assert!(text.contains("grows by 10000 MB in a day: room for 10 days"), "{text}");
        assert_eq!(of(1_000 * MIB, None).0, Level::Warning);
        assert_eq!(of(100 * MIB, None).0, Level::Problem);
        assert_eq!(of(100_000 * MIB, Some(0)).0, Level::Ok);
    }

    #[test]
    fn file_systems_that_forget_or_are_far_away_are_named() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      30 22 0:25 / /run rw - tmpfs tmpfs rw\n\
                      31 22 0:26 / /srv/my\\040node rw shared:1 - nfs4 server:/ rw\n";
        let of = |path: &str| mount_of(Path::new(path), mounts).map(|mount| mount.kind);
        assert_eq!(of("/home/node").as_deref(), Some("ext4"));
        assert_eq!(of("/run/node").as_deref(), Some("tmpfs"));
        assert_eq!(of("/srv/my node/org1").as_deref(), Some("nfs4"));
        assert_eq!(mount_of(Path::new("/"), ""), None);
        for (path, expected) in [("/run", "memory"), ("/srv/my node", "another machine")] {
            let mount = mount_of(Path::new(path), mounts);
            let (found, text) = level(|findings| kind(mount.as_ref(), "ledger", findings)).expect("one");
            assert_eq!(found, Level::Warning);
            assert!(text.contains(expected), "{text}");
        }
        assert!(
            level(|findings| kind(mount_of(Path::new("/"), mounts).as_ref(), "ledger", findings)).is_none()
        );
    }
}
