//! A server's process: started as another user than root, watched, stopped, and ended with this process.

use crate::ServerError;
use crate::error::system;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(20);

/// A user and a group, by number.
pub(crate) type Account = (u32, u32);

/// A temporary folder that the server's user owns.
pub(crate) fn folder(prefix: &str, account: Option<Account>) -> Result<TempDir, ServerError> {
    let folder =
        tempfile::Builder::new().prefix(prefix).tempdir().map_err(system("create a temporary folder"))?;
    if let Some((user, group)) = account {
        std::os::unix::fs::chown(folder.path(), Some(user), Some(group))
            .map_err(system("give the folder to the server's user"))?;
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
        .map_err(system("let others reach the server's socket"))?;
    Ok(folder)
}

/// Writes files that the server's user alone may read.
pub(crate) fn write_files(
    folder: &Path,
    files: &[(&str, &str)],
    account: Option<Account>,
) -> Result<(), ServerError> {
    for (name, content) in files {
        let path = folder.join(name);
        fs::write(&path, content).map_err(system(format!("write {name}")))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .map_err(system(format!("close {name}")))?;
        if let Some((user, group)) = account {
            std::os::unix::fs::chown(&path, Some(user), Some(group))
                .map_err(system(format!("give {name} to the server's user")))?;
        }
    }
    Ok(())
}

/// Runs a program as the server's user; the kernel stops it when the thread that starts it ends.
pub(crate) fn command(account: Option<Account>, signal: &str, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if let Some((user, group)) = account {
        command.args([format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_string()]);
    }
    command.args(["--pdeathsig", signal]).arg(program);
    command.env_remove("PGDATA").env_remove("PGHOST").env_remove("PGPORT");
    command
}

/// The first of these users that exists, where this is root; none else.
pub(crate) fn account(names: &[&str]) -> Result<Option<Account>, ServerError> {
    if !is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(system("read /etc/passwd"))?;
    let found = names.iter().find_map(|name| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    found.map(Some).ok_or_else(|| ServerError::Missing {
        what: "a user that is not root",
        why: format!("there is none of {}", names.join(", ")),
        how: "useradd --system nobody",
    })
}

pub(crate) fn is_root() -> bool {
    user() == "0"
}

/// The number of the user that this process acts for.
pub(crate) fn user() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    line.split_whitespace().nth(1).unwrap_or("unknown").to_string()
}

/// Ports below those that Linux gives to outgoing connections, which could take one before a server listens.
const PORTS: Range<u16> = 30_000..32_700;

/// A port of the loopback interface that nobody uses now, and that this process has not given to another server.
pub(crate) fn free_port() -> Result<u16, ServerError> {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    let begin = std::process::id() as u16 % count;
    let mut last = None;
    for _ in 0..count {
        let port = PORTS.start + (begin + GIVEN.fetch_add(1, Ordering::Relaxed) % count) % count;
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(system("find a free port")(last.unwrap_or_else(|| ErrorKind::AddrInUse.into())))
}

/// The last lines of a file.
pub(crate) fn last_lines(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// A running server.
pub(crate) struct Process {
    server: &'static str,
    /// What stops it in good order.
    signal: &'static str,
    child: Child,
}

impl Process {
    /// Starts it, and waits until `is_ready`.
    pub(crate) fn start(
        server: &'static str,
        signal: &'static str,
        command: Command,
        log: &Path,
        is_ready: impl Fn() -> bool,
    ) -> Result<Process, ServerError> {
        let mut process = Process::launch(server, signal, command, log)?;
        process.wait(log, is_ready)?;
        Ok(process)
    }

    /// Starts it.
    pub(crate) fn launch(
        server: &'static str,
        signal: &'static str,
        mut command: Command,
        log: &Path,
    ) -> Result<Process, ServerError> {
        let options = fs::OpenOptions::new().create(true).append(true).open(log);
        let output = options.map_err(system("create the server's log"))?;
        let errors = output.try_clone().map_err(system("share the server's log"))?;
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let child = child.map_err(system(format!("run {server}")))?;
        Ok(Process { server, signal, child })
    }

    /// Waits until `is_ready`.
    pub(crate) fn wait(&mut self, log: &Path, is_ready: impl Fn() -> bool) -> Result<(), ServerError> {
        let (server, start) = (self.server, Instant::now());
        while !is_ready() {
            let ended = self.child.try_wait().ok().flatten();
            let what = match ended {
                Some(status) => format!("it ended with {status}"),
                None if start.elapsed() > START_MAX => format!("it is not ready after {START_MAX:?}"),
                None => {
                    sleep(Duration::from_millis(50));
                    continue;
                }
            };
            return Err(ServerError::Start { server, what, log: last_lines(log) });
        }
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as a loss of power would.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it in good order.
    pub(crate) fn stop(&mut self) {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args([format!("-{}", self.signal), id]).status();
        let start = Instant::now();
        while told.is_ok() && start.elapsed() < STOP_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        eprintln!("{} does not stop and is killed", self.server);
        self.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

/// The first folder that has all of these programs: those of a list, then those of PATH.
pub(crate) fn find(folders: impl IntoIterator<Item = PathBuf>, programs: &[&str]) -> Option<PathBuf> {
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = folders.into_iter().chain(std::env::split_paths(&in_path));
    folders.find(|folder| programs.iter().all(|program| folder.join(program).exists()))
}
