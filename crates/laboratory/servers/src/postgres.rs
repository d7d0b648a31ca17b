//! PostgreSQL.

use crate::error::system;
use crate::process::{self, Account, Process, last_lines};
use crate::{ServerError, install};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Where Debian keeps its versions.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Users that a root process may run the server as, the first that exists.
const USERS: [&str; 2] = ["postgres", "nobody"];
const MISSING: &str = "PostgreSQL in /usr/lib/postgresql/*/bin or in PATH";
const HOW: &str = "apt-get install postgresql";

/// A server of PostgreSQL: a temporary folder, a socket in the folder and, where it is wanted, a free port of the loopback interface.
/// Its superuser is `postgres`, who needs no password.
///
/// It is stopped when this is dropped, and by the kernel if this process ends in any other way, so it must be started on a thread
/// that lives as long as it.
pub struct PostgresServer {
    process: Option<Process>,
    programs: PathBuf,
    account: Option<Account>,
    settings: Vec<String>,
    port: Option<u16>,
    folder: TempDir,
}

impl PostgresServer {
    /// Installs PostgreSQL if it is missing, and starts it with settings such as `work_mem=1GB`, which go before its defaults.
    ///
    /// # Errors
    /// What is missing or does not work.
    pub fn start(settings: &[&str], with_port: bool) -> Result<PostgresServer, ServerError> {
        PostgresServer::start_with(settings, with_port, &[])
    }

    /// As [`PostgresServer::start`], with files in its data: names and contents.
    ///
    /// # Errors
    /// As [`PostgresServer::start`].
    pub fn start_with(
        settings: &[&str],
        with_port: bool,
        files: &[(&str, &str)],
    ) -> Result<PostgresServer, ServerError> {
        let programs = programs()?;
        let account = process::account(&USERS)?;
        let folder = process::folder("entente-postgres-", account)?;
        let initdb = process::command(account, "INT", &programs.join("initdb"))
            .args([OsStr::new("--pgdata"), folder.path().join("data").as_os_str()])
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .current_dir(folder.path())
            .output()
            .map_err(system("run initdb"))?;
        if !initdb.status.success() {
            let log = String::from_utf8_lossy(&initdb.stderr).into_owned();
            return Err(ServerError::Start { server: "PostgreSQL", what: "initdb failed".to_string(), log });
        }
        process::write_files(&folder.path().join("data"), files, account)?;
        let port = if with_port { Some(process::free_port()?) } else { None };
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut server = PostgresServer { process: None, programs, account, settings, port, folder };
        server.start_again()?;
        Ok(server)
    }

    /// Starts it where it was stopped or killed.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&mut self) -> Result<(), ServerError> {
        let folder = self.folder.path();
        let mut command = process::command(self.account, "INT", &self.programs.join("postgres"));
        command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).current_dir(folder);
        let addresses = if self.port.is_some() { "127.0.0.1" } else { "" };
        command.args(["-c", &format!("listen_addresses={addresses}")]);
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let (programs, port) = (self.programs.clone(), self.port.unwrap_or(5432).to_string());
        let is_ready = || {
            let asked = Command::new(programs.join("pg_isready"))
                .args(["-q", "-p", &port, "-h"])
                .arg(folder)
                .status();
            asked.is_ok_and(|status| status.success())
        };
        // SIGINT is PostgreSQL's fast shutdown: connections are closed, nothing is left in shared memory.
        self.process = Some(Process::start("PostgreSQL", "INT", command, &folder.join("log"), is_ready)?);
        Ok(())
    }

    /// Where the socket is, while this lives.
    pub fn socket_folder(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    /// The port, where there is one; the socket has its number, or 5432.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(5432)
    }

    /// Number of its first process, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Stops it in good order; its rows stay.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.stop();
        }
    }

    /// Ends it at once; its rows stay as a crash leaves them.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
        // Its children end when they see that it is gone; a lock file with its number would be taken for theirs.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }

    /// The newest lines of its log.
    pub fn log(&self) -> String {
        last_lines(&self.folder.path().join("log"))
    }

    /// Where its programs are, `psql` among them.
    pub fn programs(&self) -> &Path {
        &self.programs
    }
}

/// The folder of PostgreSQL's programs, installed if need be.
fn programs() -> Result<PathBuf, ServerError> {
    if let Some(found) = find() {
        return Ok(found);
    }
    // Debian's package would make a cluster of its own.
    let folder = Path::new("/etc/postgresql-common");
    let settings = folder.join("createcluster.conf");
    if process::is_root() && !settings.exists() {
        fs::create_dir_all(folder).map_err(system("create /etc/postgresql-common"))?;
        fs::write(&settings, "create_main_cluster = false\n").map_err(system("write createcluster.conf"))?;
    }
    install::install(MISSING, "postgresql", HOW)?;
    let why = "not even after apt-get install".to_string();
    find().ok_or(ServerError::Missing { what: MISSING, why, how: HOW })
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
    let newest_first = versions.into_iter().rev().map(|(_, folder)| folder);
    process::find(newest_first, &["postgres", "initdb"])
}
