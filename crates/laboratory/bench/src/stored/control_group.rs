//! A memory control group for a measurement: all memory of its processes counts, that of the page cache for their files
//! included.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are.
const MOUNT: &str = "/sys/fs/cgroup";

/// A control group that goes with this value.
#[derive(Debug)]
pub struct ControlGroup {
    folder: PathBuf,
}

/// The group in which this process measures.
#[derive(Clone, Debug)]
pub struct JoinedControlGroup {
    folder: PathBuf,
    megabytes: u64,
}

impl ControlGroup {
    /// Makes one below that of this process, or beside it, which may use so many units of 1,048,576 bytes.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub fn make(megabytes: u64) -> Result<ControlGroup, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let parent = parent(&groups).ok_or("no group of this process takes a limit of memory")?;
        let folder = parent.join(format!("entente-bench-{}", std::process::id()));
        let refused = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir(&folder).map_err(refused)?;
        let made = ControlGroup { folder: folder.clone() };
        let limit = if is_first_version(&folder) { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(folder.join(limit), (megabytes << 20).to_string()).map_err(refused)?;
        // Where there is no swap there are no such files.
        let _ = fs::write(folder.join("memory.swappiness"), "0");
        let _ = fs::write(folder.join("memory.swap.max"), "0");
        Ok(made)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A group goes once its last process has.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        eprintln!("the control group {} cannot be removed", self.folder.display());
    }
}

/// Where a group of this process may have a child that takes a limit.
fn parent(groups: &str) -> Option<PathBuf> {
    let below = |folder: &str, path: &str| Path::new(MOUNT).join(folder).join(path.trim_start_matches('/'));
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        if controllers.split(',').any(|controller| controller == "memory") {
            return Some(below("memory", path)).filter(|folder| folder.exists());
        }
    }
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    // In version 2 only a group without processes hands its controllers on, unless it is the root.
    let hands_on = |folder: &&Path| {
        let handed = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        folder.starts_with(MOUNT) && handed.split_whitespace().any(|controller| controller == "memory")
    };
    below("", path).ancestors().find(hands_on).map(Path::to_path_buf)
}

fn is_first_version(folder: &Path) -> bool {
    folder.join("memory.limit_in_bytes").exists()
}

impl JoinedControlGroup {
    /// This process, with all its threads, is in that group from now on.
    ///
    /// # Errors
    /// Why it cannot be, for people.
    pub fn join(folder: &Path, megabytes: u64) -> Result<JoinedControlGroup, String> {
        fs::write(folder.join("cgroup.procs"), std::process::id().to_string())
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(JoinedControlGroup { folder: folder.to_path_buf(), megabytes })
    }

    /// Its limit.
    pub(super) fn megabytes(&self) -> u64 {
        self.megabytes
    }

    /// Bytes that its processes have used at most, page cache included.
    pub(super) fn peak_bytes(&self) -> u64 {
        self.number("memory.max_usage_in_bytes").or_else(|| self.number("memory.peak")).unwrap_or(0)
    }

    /// Bytes of the page cache at the moment.
    pub(super) fn page_cache_bytes(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let name = if is_first_version(&self.folder) { "cache " } else { "file " };
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
    }

    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_cannot_be_is_explained_and_one_that_can_goes_again() {
        assert_eq!(parent("no groups"), None);
        assert_eq!(parent("4:memory:/there/is/none\n"), None);
        match ControlGroup::make(64) {
            Ok(group) => {
                let folder = group.folder().to_path_buf();
                assert!(folder.exists());
                drop(group);
                assert!(!folder.exists());
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }
}
