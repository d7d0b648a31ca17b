//! How much memory this process has, and how much it may have: a node that needs more says so before the system ends it.

use std::path::{Path, PathBuf};

/// Where control groups are.
const MOUNT: &str = "/sys/fs/cgroup";
/// In which ones a process is.
const GROUPS: &str = "/proc/self/cgroup";

/// Bytes that this process may have at most: the least of what its control groups allow, of either version, and of what the
/// machine has; `None` where the system does not tell.
pub(crate) fn limit_bytes() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    limit_of(&read)
}

/// The same of another process.
pub(crate) fn limit_bytes_of(process: u32) -> Option<u64> {
    let groups = format!("/proc/{process}/cgroup");
    let read = |path: &Path| {
        let path = if path == Path::new(GROUPS) { Path::new(&groups) } else { path };
        std::fs::read_to_string(path).ok()
    };
    limit_of(&read)
}

/// Resident memory of this process; 0 where the system does not tell.
pub(crate) fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.unwrap_or(0) * 4096
}

/// What somebody must hear who gives a process as much memory as `limit`; nothing while there is enough.
pub(crate) fn warning(resident: u64, limit: u64) -> Option<String> {
    (resident > limit / 10 * 9).then(|| {
        let (resident, limit) = (resident >> 20, limit >> 20);
        format!(
            "this process has {resident} MB of the {limit} MB of memory that it may have, and is ended when it needs more: allow it \
             more, or keep the state on the disk (`entente convert-store`)"
        )
    })
}

/// `read` reads a file of the system.
fn limit_of(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| {
        let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        Some(kilobytes.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? << 10)
    });
    let groups = read(Path::new(GROUPS)).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let first_version = controllers.split(',').any(|controller| controller == "memory");
        let (folder, file) = match (controllers, first_version) {
            ("", _) => ("", "memory.max"),
            (_, true) => ("memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        // Also what the groups above allow. In a container its own group is the root.
        let below = Path::new(MOUNT).join(folder).join(path.trim_start_matches('/'));
        let folders: Vec<PathBuf> =
            below.ancestors().take_while(|folder| folder.starts_with(MOUNT)).map(Path::to_path_buf).collect();
        // Without a limit it is `max`, or a number that nobody reaches.
        folders.iter().filter_map(|folder| read(&folder.join(file))?.trim().parse::<u64>().ok()).min()
    });
    limits.chain(machine).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn limit(files: &[(&str, &str)]) -> Option<u64> {
        let files: BTreeMap<&Path, &str> =
            files.iter().map(|(path, text)| (Path::new(path), *text)).collect();
        limit_of(&|path: &Path| files.get(path).map(ToString::to_string))
    }

    #[test]
    fn the_least_limit_holds_in_both_versions_of_control_groups() {
        let machine = ("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\n");
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[machine]), Some(1_024_000));
        let second = ("/proc/self/cgroup", "0::/system/node\n");
        let of_second = |own, above| {
            limit(&[
                machine,
                second,
                ("/sys/fs/cgroup/system/node/memory.max", own),
                ("/sys/fs/cgroup/system/memory.max", above),
            ])
        };
        assert_eq!(of_second("5000\n", "max\n"), Some(5_000));
        assert_eq!(of_second("5000\n", "4000\n"), Some(4_000));
        assert_eq!(of_second("max\n", "max\n"), Some(1_024_000));
        let first = ("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n");
        let of_first = |own| limit(&[machine, first, ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", own)]);
        assert_eq!(of_first("7000\n"), Some(7_000));
        assert_eq!(of_first("9223372036854771712\n"), Some(1_024_000));
        assert_eq!(limit(&[machine, first]), Some(1_024_000), "it is not mounted");
    }

    #[test]
    fn who_has_nearly_all_memory_is_told() {
        assert_eq!(warning(89 << 20, 100 << 20), None);
        let text = warning(95 << 20, 100 << 20).expect("nearly all");
        assert!(text.contains("95 MB of the 100 MB"), "{text}");
    }

    #[test]
    fn this_process_may_have_some_memory() {
        assert!(limit_bytes().is_none_or(|limit| limit > resident_bytes()));
    }
}
