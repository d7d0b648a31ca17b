//! Machines of one test as far apart as one kernel allows: each with a Linux user and a network namespace of its own, joined by a bridge in
//! another one. Needs root.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The network in which the machines are.
const NETWORK: &str = "10.77.0";
/// Users that no system has, one per machine from here on.
const FIRST_USER: u32 = 64_200;

/// Namespaces and users, by the place of the machine.
pub struct Apart {
    /// What the names of its namespaces begin with.
    name: String,
    machines: u32,
}

fn ip(arguments: &str) -> bool {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    output.is_ok_and(|output| output.status.success())
}

impl Apart {
    /// So many machines, of which the last one has no network; `None`: this system does not allow it.
    pub fn new(machines: u32) -> Option<Apart> {
        let apart = Apart { name: format!("entente{}", std::process::id()), machines };
        let bridge = format!("{}-bridge", apart.name);
        let made = ip(&format!("netns add {bridge}"))
            && ip(&format!("-n {bridge} link add bridge type bridge"))
            && ip(&format!("-n {bridge} link set bridge up"));
        let joined = made && (0..machines).all(|place| apart.join(place, &bridge));
        // Where it is not all there, what is there is taken away again.
        joined.then_some(apart)
    }

    fn join(&self, place: u32, bridge: &str) -> bool {
        let (space, address) = (self.namespace(place), Apart::address(place));
        let is_last = place + 1 == self.machines;
        if !ip(&format!("netns add {space}")) || is_last {
            return is_last;
        }
        [
            format!("-n {bridge} link add to{place} type veth peer name eth0 netns {space}"),
            format!("-n {bridge} link set to{place} master bridge up"),
            format!("-n {space} addr add {address}/24 dev eth0"),
            format!("-n {space} link set eth0 up"),
            format!("-n {space} link set lo up"),
        ]
        .iter()
        .all(|command| ip(command))
    }

    fn namespace(&self, place: u32) -> String {
        format!("{}-{place}", self.name)
    }

    /// Where the others reach a machine.
    pub fn address(place: u32) -> String {
        format!("{NETWORK}.{}", place + 1)
    }

    /// Whether the users of machines may run a program.
    pub fn may_run(&self, program: &str) -> bool {
        // Setpriv itself may have root's capabilities until it has started something, and so get into folders that its user does not.
        let run = self.on(0).args(["sh", "-c", "\"$0\" --version", program]).output();
        run.is_ok_and(|output| output.status.success())
    }

    /// A folder in which each machine's user gets to its own; `None`: nobody but root gets to any.
    pub fn folder(&self) -> Option<TempDir> {
        // The usual place may be one for its owner alone.
        let places = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
        let folders = places.into_iter().filter_map(|place| tempfile::tempdir_in(place).ok());
        folders.into_iter().find(|folder| {
            let all = folder.path();
            // Whose folder it is decides who may look into it, not that of all.
            let done = Command::new("chmod").arg("711").arg(all).status();
            assert!(done.expect("it runs").success(), "chmod 711 {}", all.display());
            let entered = self.on(0).args(["sh", "-c", "cd \"$0\""]).arg(all).output();
            entered.is_ok_and(|output| output.status.success())
        })
    }

    /// The user of a machine.
    pub fn user(place: u32) -> u32 {
        FIRST_USER + place
    }

    /// What a program is started with on a machine: the program and its arguments follow.
    pub fn on(&self, place: u32) -> Command {
        let user = Apart::user(place).to_string();
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &self.namespace(place),
            "setpriv",
            "--reuid",
            &user,
            "--regid",
            &user,
        ]);
        command.args(["--clear-groups", "--no-new-privs"]);
        command
    }

    /// Gives a machine's folder to its user, and to nobody else.
    pub fn gives(folder: &Path, place: u32) {
        let user = Apart::user(place);
        let owner = format!("{user}:{user}");
        for (program, what) in [("chown", owner.as_str()), ("chmod", "go=")] {
            let recursive: &[&str] = if program == "chown" { &["-R"] } else { &[] };
            let done = Command::new(program).args(recursive).arg(what).arg(folder).status();
            assert!(done.expect("it runs").success(), "{program} {what} {}", folder.display());
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        for place in 0..self.machines {
            ip(&format!("netns del {}", self.namespace(place)));
        }
        ip(&format!("netns del {}-bridge", self.name));
    }
}
