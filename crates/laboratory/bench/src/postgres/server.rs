use super::PostgresError;
use crate::machine::process_seconds;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where Debian keeps its versions.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Users that a root process may run the server as, the first that exists.
const USERS: [&str; 2] = ["postgres", "nobody"];
const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(10);
/// Settings of the server; everything else is PostgreSQL's default.
const SETTINGS: [&str; 5] = [
    "listen_addresses=",
    "max_connections=64",
    "shared_buffers=256MB",
    "default_transaction_isolation=serializable",
    "synchronous_commit=on",
];

/// A server of our own: a temporary folder, no port (clients come through a socket in the folder), never root.
///
/// It is stopped when this is dropped, and by the kernel if this process ends in any other way (`--pdeathsig`), so it
/// must be started on a thread that lives as long as it.
pub struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    /// Installs PostgreSQL if it is missing, and starts it.
    ///
    /// # Errors
    /// What is missing or does not work.
    pub fn start() -> Result<Server, PostgresError> {
        Server::start_with(&[])
    }

    /// The same with settings such as `work_mem=1GB`, which go before those that all servers have.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub(crate) fn start_with(settings: &[String]) -> Result<Server, PostgresError> {
        let programs = programs()?;
        let folder = tempfile::Builder::new()
            .prefix("entente-postgres-")
            .tempdir()
            .map_err(|error| system("create a temporary folder", error))?;
        let user = user()?;
        if let Some((user, group)) = user {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group))
                .map_err(|error| system("give the folder to the server's user", error))?;
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))
            .map_err(|error| system("close the server's folder", error))?;
        let data = folder.path().join("data");
        let log = folder.path().join("log");
        let initdb = command(user, &programs.join("initdb"))
            .args([OsStr::new("--pgdata"), data.as_os_str()])
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .current_dir(folder.path())
            .output()
            .map_err(|error| system("run initdb", error))?;
        if !initdb.status.success() {
            let log = String::from_utf8_lossy(&initdb.stderr).into_owned();
            return Err(PostgresError::Start { what: "initdb failed".to_string(), log });
        }
        let output = fs::File::create(&log).map_err(|error| system("create the server's log", error))?;
        let errors = output.try_clone().map_err(|error| system("share the server's log", error))?;
        let mut postgres = command(user, &programs.join("postgres"));
        postgres.arg("-D").arg(&data).arg("-k").arg(folder.path());
        for setting in SETTINGS.into_iter().chain(settings.iter().map(String::as_str)) {
            postgres.args(["-c", setting]);
        }
        let child = postgres
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| system("run postgres", error))?;
        let mut server = Server { child, folder };
        server.await_start(&programs, &log)?;
        Ok(server)
    }

    /// Where the socket is, while this lives.
    pub fn socket_folder(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    /// What the server's processes have used so far; those that have ended are left out.
    pub(super) fn processor_seconds(&self) -> f64 {
        let parent = self.child.id().to_string();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
        let of_server = names.filter(|name| {
            let Ok(text) = fs::read_to_string(format!("/proc/{name}/stat")) else { return false };
            let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
            after_name.split_whitespace().nth(1) == Some(&parent)
        });
        of_server.filter_map(|name| process_seconds(&name)).sum()
    }

    fn await_start(&mut self, programs: &Path, log: &Path) -> Result<(), PostgresError> {
        let start = Instant::now();
        let failed = |what: &str| {
            let text = fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let log = lines[lines.len().saturating_sub(20)..].join("\n");
            Err(PostgresError::Start { what: what.to_string(), log })
        };
        loop {
            let ready = Command::new(programs.join("pg_isready"))
                .arg("-q")
                .arg("-h")
                .arg(self.folder.path())
                .status()
                .map_err(|error| system("run pg_isready", error))?;
            if ready.success() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return failed(&format!("it ended with {status}"));
            }
            if start.elapsed() > START_MAX {
                return failed("it is not ready after 30 seconds");
            }
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT is PostgreSQL's fast shutdown: connections are closed, nothing is left in shared memory.
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-INT", &id]).status();
        let start = Instant::now();
        while told.is_ok() && start.elapsed() < STOP_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn system(action: &str, error: std::io::Error) -> PostgresError {
    PostgresError::System { action: action.to_string(), error }
}

/// Runs a program as the server's user; the kernel stops it when the thread that starts it ends.
fn command(user: Option<(u32, u32)>, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if let Some((user, group)) = user {
        command.args([format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_string()]);
    }
    command.args(["--pdeathsig", "INT"]).arg(program);
    command.env_remove("PGDATA").env_remove("PGHOST").env_remove("PGPORT");
    command
}

/// The user and group to become: none unless this is root.
fn user() -> Result<Option<(u32, u32)>, PostgresError> {
    if !is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| system("read /etc/passwd", error))?;
    let found = USERS.iter().find_map(|name| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    match found {
        Some(found) => Ok(Some(found)),
        None => Err(PostgresError::Missing(
            "root may not run it, and there is no user postgres or nobody".to_string(),
        )),
    }
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    line.split_whitespace().nth(1) == Some("0")
}

/// The folder of PostgreSQL's programs, installed if need be.
fn programs() -> Result<PathBuf, PostgresError> {
    if let Some(found) = find() {
        return Ok(found);
    }
    if !is_root() {
        return Err(PostgresError::Missing("and only root may install it".to_string()));
    }
    install()?;
    find().ok_or_else(|| PostgresError::Missing("not even after apt-get install postgresql".to_string()))
}

fn find() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let newest_first = versions.into_iter().rev().map(|(_, folder)| folder);
    let complete = |folder: &PathBuf| folder.join("postgres").exists() && folder.join("initdb").exists();
    newest_first.chain(std::env::split_paths(&in_path)).find(complete)
}

/// Installs Debian's package, without the server that it would start.
fn install() -> Result<(), PostgresError> {
    let folder = Path::new("/etc/postgresql-common");
    let settings = folder.join("createcluster.conf");
    fs::create_dir_all(folder).map_err(|error| system("create /etc/postgresql-common", error))?;
    if !settings.exists() {
        fs::write(&settings, "create_main_cluster = false\n")
            .map_err(|error| system("write createcluster.conf", error))?;
    }
    let apt = || {
        Command::new("apt-get")
            .args(["install", "-y", "-q", "--no-install-recommends", "postgresql"])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .output()
            .map_err(|error| system("run apt-get", error))
    };
    let mut output = apt()?;
    if !output.status.success() {
        let _ = Command::new("apt-get").arg("update").output();
        output = apt()?;
    }
    match output.status.success() {
        true => Ok(()),
        false => Err(PostgresError::Missing(String::from_utf8_lossy(&output.stderr).trim().to_string())),
    }
}
