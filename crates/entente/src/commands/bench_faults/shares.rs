//! A fixed share of the machine's processors for every process of a measurement, so that a node has no more of them while
//! another one is down: with control groups where this user may make some, else by the processors that a process may use.

use crate::CommandError;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Share of the machine that all nodes have together; the load generator has [`LOAD_SHARE`], this system the rest.
const NODES_SHARE: f64 = 0.7;
const LOAD_SHARE: f64 = 0.28;
/// A group that has used its share of this time waits for the next: short, so that latencies hardly show it.
const PERIOD: Duration = Duration::from_millis(20);
/// Begins the names of our groups.
const PREFIX: &str = "entente-faults-";

/// How shares are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Means {
    /// `cpu.max` of control groups, version 2.
    Cgroup2,
    /// `cpu.cfs_quota_us` of control groups, version 1.
    Cgroup1,
    /// Every node is bound to one processor (`taskset`), as many nodes to each; while a node is down a busy loop takes its
    /// place. The load generator is bound to none.
    Affinity,
}

/// The shares, which end with this value.
pub(super) struct Shares {
    pub(super) means: Means,
    /// Processors of a node: 0.35 is 35 % of one.
    pub(super) node: f64,
    /// Processors of the load generator; nothing where it is not bound.
    pub(super) load: Option<f64>,
    /// Of every node, and last of the load generator; none with [`Means::Affinity`].
    groups: Vec<PathBuf>,
    /// The group in which this program was.
    home: PathBuf,
    /// What takes the place of nodes that are down.
    placeholders: Vec<Option<Child>>,
}

impl Shares {
    /// For so many nodes; this program is the load generator and has its share from now on.
    ///
    /// # Errors
    /// No groups can be made, and processes cannot be bound to processors in equal numbers.
    pub(super) fn new(nodes: usize) -> Result<Shares, CommandError> {
        let processors = std::thread::available_parallelism()?.get();
        let (node, load) = (processors as f64 * NODES_SHARE / nodes as f64, processors as f64 * LOAD_SHARE);
        let mut reasons = Vec::new();
        for means in [Means::Cgroup2, Means::Cgroup1] {
            match Shares::groups(means, &vec![node; nodes], load) {
                Ok(shares) => return Ok(shares),
                Err(reason) => reasons.push(reason.to_string()),
            }
        }
        // One busy loop more or less must not change what a node has.
        if !nodes.is_multiple_of(processors) {
            return Err(format!(
                "expected control groups that may be made, or processors of which each takes as many of the {nodes} nodes; \
                 found {processors} processors, and {}; run it as root, or with `taskset -c 0,1`",
                reasons.join("; ")
            )
            .into());
        }
        let placeholders = (0..nodes).map(|_| None).collect();
        let shares = Shares {
            means: Means::Affinity,
            node: processors as f64 / nodes as f64,
            load: None,
            groups: Vec::new(),
            home: PathBuf::new(),
            placeholders,
        };
        Ok(shares)
    }

    fn groups(means: Means, nodes: &[f64], load: f64) -> Result<Shares, CommandError> {
        let home = own_group(means)?;
        remove_leftovers(&home);
        let mut shares = Shares {
            means,
            node: nodes.first().copied().unwrap_or_default(),
            load: Some(load),
            groups: Vec::new(),
            home,
            placeholders: (0..nodes.len()).map(|_| None).collect(),
        };
        for (number, processors) in nodes.iter().chain([&load]).enumerate() {
            let group = shares.home.join(format!("{PREFIX}{}-{number}", std::process::id()));
            std::fs::create_dir(&group)
                .map_err(|error| format!("cannot create {}: {error}", group.display()))?;
            shares.groups.push(group);
            limit(means, &shares.groups[number], *processors)?;
        }
        enter(&shares.groups[nodes.len()], std::process::id())?;
        Ok(shares)
    }

    /// A node's process has the node's share from now on.
    pub(super) fn bind(&mut self, node: usize, process: u32) -> Result<(), CommandError> {
        match self.groups.get(node) {
            Some(group) => enter(group, process),
            None => {
                // What took its place ends.
                end(&mut self.placeholders[node]);
                bind_to_processor(processor_of(node), process)
            }
        }
    }

    /// The node is down, and nobody gets its share.
    pub(super) fn keep_free(&mut self, node: usize) -> Result<(), CommandError> {
        if self.means != Means::Affinity || self.placeholders[node].is_some() {
            return Ok(());
        }
        // Ends also where this program ends without a chance to end it.
        let busy = format!("while kill -0 {} 2>/dev/null; do :; done", std::process::id());
        let loop_ = Command::new("sh").args(["-c", &busy]).stdin(Stdio::null()).spawn()?;
        let process = loop_.id();
        self.placeholders[node] = Some(loop_);
        bind_to_processor(processor_of(node), process)
    }

    /// For people.
    pub(super) fn describe(&self) -> String {
        let node = self.node;
        match (self.means, self.load) {
            (Means::Affinity, _) => format!(
                "every node has {node:.2} of a processor: bound to one with taskset, and a busy loop takes the place of a \
                 node that is down; the load generator is bound to none"
            ),
            (means, load) => format!(
                "every node has {node:.2} of a processor, the load generator {:.2} ({} of control groups, version {})",
                load.unwrap_or_default(),
                if means == Means::Cgroup2 { "cpu.max" } else { "cpu.cfs_quota_us" },
                if means == Means::Cgroup2 { 2 } else { 1 },
            ),
        }
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        self.placeholders.iter_mut().for_each(end);
        if self.groups.is_empty() {
            return;
        }
        // Groups that stay behind are empty, and the next run removes them.
        let _ = enter(&self.home, std::process::id());
        for group in &self.groups {
            let _ = std::fs::remove_dir(group);
        }
    }
}

/// Ends a process that we started.
fn end(process: &mut Option<Child>) {
    if let Some(mut process) = process.take() {
        // It may have ended already.
        let _ = process.kill();
        let _ = process.wait();
    }
}

fn processor_of(node: usize) -> usize {
    node % std::thread::available_parallelism().map_or(1, usize::from)
}

fn bind_to_processor(processor: usize, process: u32) -> Result<(), CommandError> {
    let arguments = ["-a", "-c", "-p", &processor.to_string(), &process.to_string()];
    let output = Command::new("taskset")
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot start taskset, which binds processes to processors: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(format!("cannot bind process {process} to processor {processor}: {reason}").into())
}

/// The folder of the group in which this program is.
fn own_group(means: Means) -> Result<PathBuf, CommandError> {
    let (mounts, groups) =
        (std::fs::read_to_string("/proc/mounts")?, std::fs::read_to_string("/proc/self/cgroup")?);
    let found = mount(means, &mounts).zip(place(means, &groups));
    let (mount, place) = found.ok_or_else(|| format!("no control groups as {means:?} are mounted"))?;
    Ok(Path::new(mount).join(place.trim_start_matches('/')))
}

/// Where control groups for processors are mounted, in the words of `/proc/mounts`.
fn mount(means: Means, mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        let is_it = match means {
            Means::Cgroup2 => kind == "cgroup2",
            Means::Cgroup1 => kind == "cgroup" && options.split(',').any(|option| option == "cpu"),
            Means::Affinity => false,
        };
        is_it.then_some(folder)
    })
}

/// The group of a process, in the words of `/proc/self/cgroup`.
fn place(means: Means, groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut words = line.splitn(3, ':');
        let (_, controllers, place) = (words.next()?, words.next()?, words.next()?);
        let is_it = match means {
            Means::Cgroup2 => controllers.is_empty(),
            Means::Cgroup1 => controllers.split(',').any(|controller| controller == "cpu"),
            Means::Affinity => false,
        };
        is_it.then_some(place)
    })
}

/// Gives a group so many processors, before everything outside of our groups that wants them: with the greatest weight that
/// there is, so that what else runs on the machine shows as little as possible.
fn limit(means: Means, group: &Path, processors: f64) -> Result<(), CommandError> {
    let period = PERIOD.as_micros();
    let quota = (period as f64 * processors) as u64;
    let files = match means {
        Means::Cgroup2 => vec![("cpu.max", format!("{quota} {period}")), ("cpu.weight", "10000".to_string())],
        _ => vec![
            ("cpu.cfs_period_us", period.to_string()),
            ("cpu.cfs_quota_us", quota.to_string()),
            ("cpu.shares", "262144".to_string()),
        ],
    };
    for (name, value) in files {
        let path = group.join(name);
        // Without `create`: a group that has no such file cannot limit anything.
        let mut file = std::fs::File::options()
            .write(true)
            .open(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        std::io::Write::write_all(&mut file, value.as_bytes())
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Moves a process with all its threads.
fn enter(group: &Path, process: u32) -> Result<(), CommandError> {
    std::fs::write(group.join("cgroup.procs"), process.to_string())
        .map_err(|error| format!("cannot move process {process} into {}: {error}", group.display()).into())
}

/// Groups of runs that were killed; those of others that run now are not empty, and stay.
fn remove_leftovers(home: &Path) {
    let Ok(entries) = std::fs::read_dir(home) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_where_the_system_says() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount(Means::Cgroup1, mounts), Some("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(mount(Means::Cgroup2, mounts), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount(Means::Cgroup2, "proc /proc proc rw 0 0\n"), None);
        let groups = "3:cpuset:/\n2:cpu,cpuacct:/user:1\n0::/user.slice\n";
        assert_eq!(place(Means::Cgroup1, groups), Some("/user:1"));
        assert_eq!(place(Means::Cgroup2, groups), Some("/user.slice"));
        assert_eq!(place(Means::Cgroup1, "0::/\n"), None);
    }

    #[test]
    fn a_folder_that_is_no_control_group_limits_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        for means in [Means::Cgroup1, Means::Cgroup2] {
            let error = limit(means, folder.path(), 0.5).expect_err("there is no such file");
            assert!(error.to_string().contains("cpu."), "{error}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 0);
    }
}
