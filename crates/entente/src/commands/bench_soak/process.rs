//! What the system says of a process and of a folder.

use std::path::Path;

/// Resident memory in bytes, open descriptors and threads of a process; nothing of one that does not run.
pub(super) fn figures(process: u32) -> Option<(u64, u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?.count() as u64;
    Some((number("VmRSS:")? * 1024, descriptors, number("Threads:")?))
}

/// Bytes of all files in a folder. What goes while it is looked at does not count.
pub(super) fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = folder.read_dir() else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_a_folder_are_measured() {
        let (resident, descriptors, threads) = figures(std::process::id()).expect("it runs");
        assert!(resident > 100_000 && descriptors > 2 && threads > 0);
        assert_eq!(figures(u32::MAX), None);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("inner")).expect("made");
        std::fs::write(folder.path().join("inner/file"), [0; 100]).expect("written");
        std::fs::write(folder.path().join("file"), [0; 11]).expect("written");
        assert_eq!(folder_bytes(folder.path()), 111);
    }
}
