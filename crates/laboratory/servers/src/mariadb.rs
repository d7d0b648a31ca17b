//! MariaDB.

use crate::error::system;
use crate::process::{self, Account, Process, last_lines};
use crate::{ServerError, install};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Users that a root process may run the server as, the first that exists.
const USERS: [&str; 2] = ["mysql", "nobody"];
const MISSING: &str = "MariaDB in /usr/sbin or in PATH";
const HOW: &str = "apt-get install mariadb-server";

/// A server of MariaDB: a temporary folder, a socket in the folder and, where it is wanted, a free port of the loopback interface.
/// Its superuser is `root`, who needs no password.
///
/// It is stopped when this is dropped, and by the kernel if this process ends in any other way, so it must be started on a thread
/// that lives as long as it.
pub struct MariaDbServer {
    process: Option<Process>,
    account: Option<Account>,
    settings: Vec<String>,
    port: Option<u16>,
    folder: TempDir,
}

impl MariaDbServer {
    /// Installs MariaDB if it is missing, and starts it with settings such as `innodb-buffer-pool-size=1G`, which go before its
    /// defaults.
    ///
    /// # Errors
    /// What is missing or does not work.
    pub fn start(settings: &[&str], with_port: bool) -> Result<MariaDbServer, ServerError> {
        MariaDbServer::start_with(settings, with_port, &[])
    }

    /// As [`MariaDbServer::start`], with files in its data: names and contents.
    ///
    /// # Errors
    /// As [`MariaDbServer::start`].
    pub fn start_with(
        settings: &[&str],
        with_port: bool,
        files: &[(&str, &str)],
    ) -> Result<MariaDbServer, ServerError> {
        if find("mariadbd").is_none() || find("mariadb-install-db").is_none() {
            install::install(MISSING, "mariadb-server", HOW)?;
        }
        let missing = || ServerError::Missing {
            what: MISSING,
            why: "not even after apt-get install".to_string(),
            how: HOW,
        };
        let installer = find("mariadb-install-db").ok_or_else(missing)?;
        find("mariadbd").ok_or_else(missing)?;
        let account = process::account(&USERS)?;
        let folder = process::folder("entente-mariadb-", account)?;
        let installed = process::command(account, "TERM", &installer)
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--datadir={}", folder.path().join("data").display()))
            // A server that starts removes what others have in a folder for temporary files that they share.
            .env("TMPDIR", folder.path())
            .current_dir(folder.path())
            .output()
            .map_err(system("run mariadb-install-db"))?;
        if !installed.status.success() {
            let log = String::from_utf8_lossy(&installed.stderr).into_owned();
            let what = "mariadb-install-db failed".to_string();
            return Err(ServerError::Start { server: "MariaDB", what, log });
        }
        process::write_files(&folder.path().join("data"), files, account)?;
        let port = if with_port { Some(process::free_port()?) } else { None };
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut server = MariaDbServer { process: None, account, settings, port, folder };
        server.start_again()?;
        Ok(server)
    }

    /// Starts it where it was stopped or killed.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&mut self) -> Result<(), ServerError> {
        let why = "it was there before".to_string();
        let program = find("mariadbd").ok_or(ServerError::Missing { what: MISSING, why, how: HOW })?;
        let (folder, socket) = (self.folder.path(), self.socket());
        let mut command = process::command(self.account, "TERM", &program);
        command.current_dir(folder).args(["--no-defaults", "--skip-name-resolve", "--skip-log-bin"]);
        for (option, path) in
            [("datadir", "data"), ("socket", "socket"), ("pid-file", "pid"), ("tmpdir", ".")]
        {
            command.arg(format!("--{option}={}", folder.join(path).display()));
        }
        match self.port {
            Some(port) => command.args(["--bind-address=127.0.0.1".to_string(), format!("--port={port}")]),
            None => command.arg("--skip-networking"),
        };
        command.args(self.settings.iter().map(|setting| format!("--{setting}")));
        // It greets whoever connects once it takes statements.
        let is_ready = || {
            UnixStream::connect(&socket).is_ok_and(|mut stream| {
                let bounded = stream.set_read_timeout(Some(Duration::from_secs(2)));
                bounded.is_ok() && matches!(stream.read(&mut [0; 8]), Ok(read) if read > 4)
            })
        };
        self.process = Some(Process::start("MariaDB", "TERM", command, &folder.join("log"), is_ready)?);
        Ok(())
    }

    /// Makes a database for text of all kinds.
    ///
    /// # Errors
    /// The program `mariadb` is missing, or the server refuses.
    pub fn create_database(&self, name: &str) -> Result<(), ServerError> {
        self.execute("", &format!("CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"))
    }

    /// Runs a statement in a database, as the administrator; in none where the name is empty.
    ///
    /// # Errors
    /// As [`MariaDbServer::create_database`].
    pub fn execute(&self, database: &str, statement: &str) -> Result<(), ServerError> {
        let output = Command::new(find("mariadb").unwrap_or_else(|| "mariadb".into()))
            .arg("--no-defaults")
            .arg(format!("--socket={}", self.socket().display()))
            .args(["--user=root", &format!("--database={database}"), "-e", statement])
            .output()
            .map_err(system("run mariadb"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(ServerError::Start {
                server: "MariaDB",
                what: format!("{statement} failed"),
                log: String::from_utf8_lossy(&output.stderr).into_owned(),
            }),
        }
    }

    /// The socket, while this lives.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The port, where there is one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Number of its process, while it runs.
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
    }

    /// The newest lines of its log.
    pub fn log(&self) -> String {
        last_lines(&self.folder.path().join("log"))
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin"].map(PathBuf::from);
    process::find(folders, &[program]).map(|folder| folder.join(program))
}
