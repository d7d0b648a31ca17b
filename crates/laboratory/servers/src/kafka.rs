//! Kafka.

use crate::error::system;
use crate::process::{self, Account, Process, last_lines};
use crate::{ServerError, install};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// Users that a root process may run brokers as, the first that exists.
const USERS: [&str; 2] = ["kafka", "nobody"];
const JAVA: &str = "Java 17 or newer in PATH";
const HOW_JAVA: &str = "apt-get install default-jre-headless";
const MAVEN: &str = "Maven in PATH";
const HOW_MAVEN: &str = "apt-get install maven";
const JARS: &str = "Kafka's programs";
const HOW_JARS: &str =
    "run `entente demo --ordering kafka` or a test of it once where Maven reaches its repository";
/// What Maven is told to fetch.
const POM: &str = include_str!("../kafka.pom.xml");
/// Names the folder of what Maven has fetched; another one for another list.
const VERSION: &str = "4.1.1-2";
/// The name of every cluster, which nobody else reads.
const CLUSTER: &str = "ZW50ZW50ZS1icm9rZXJzMQ";
/// Ports that brokers may have.
const PORT_MIN: u16 = 30_000;
const PORTS: u16 = 2_700;
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Brokers of Kafka without ZooKeeper: each is a broker and votes for who leads the cluster. They listen on free ports of the loopback
/// interface and have a temporary folder.
///
/// They are stopped when this is dropped, and by the kernel if this process ends in any other way, so they must be started on a thread
/// that lives as long as they do.
pub struct KafkaServers {
    brokers: Vec<Broker>,
    account: Option<Account>,
    programs: PathBuf,
    /// The others' ports for votes.
    voters: String,
    settings: Vec<String>,
    folder: TempDir,
}

struct Broker {
    process: Option<Process>,
    port: u16,
    voting_port: u16,
}

impl KafkaServers {
    /// Installs what is missing, and starts so many brokers with settings such as `log.retention.ms=1000`, which go behind those that
    /// they need.
    ///
    /// # Errors
    /// What is missing or does not work.
    pub fn start(brokers: usize, settings: &[&str]) -> Result<KafkaServers, ServerError> {
        let programs = programs()?;
        let account = process::account(&USERS)?;
        let folder = process::folder("entente-kafka-", account)?;
        let broker = |_| Ok(Broker { process: None, port: kept_port()?, voting_port: kept_port()? });
        let brokers: Vec<Broker> = (0..brokers).map(broker).collect::<Result<_, ServerError>>()?;
        let voter =
            |(number, broker): (usize, &Broker)| format!("{}@127.0.0.1:{}", number + 1, broker.voting_port);
        let voters = brokers.iter().enumerate().map(voter).collect::<Vec<_>>().join(",");
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut servers = KafkaServers { brokers, account, programs, voters, settings, folder };
        for number in 0..servers.brokers.len() {
            servers.prepare(number)?;
        }
        // All at once: none is ready before a majority votes.
        for number in 0..servers.brokers.len() {
            servers.launch(number)?;
        }
        for number in 0..servers.brokers.len() {
            servers.wait(number)?;
        }
        Ok(servers)
    }

    /// Where they are: `host:port`, with commas between.
    pub fn addresses(&self) -> String {
        let address = |broker: &Broker| format!("127.0.0.1:{}", broker.port);
        self.brokers.iter().map(address).collect::<Vec<_>>().join(",")
    }

    /// How many there are, whether they run or not.
    pub fn count(&self) -> usize {
        self.brokers.len()
    }

    /// The port of a broker.
    pub fn port(&self, number: usize) -> u16 {
        self.brokers[number].port
    }

    /// Ends a broker at once; what it has written stays.
    pub fn kill(&mut self, number: usize) {
        if let Some(mut process) = self.brokers[number].process.take() {
            process.kill();
        }
    }

    /// Stops all of them at once; what they have written stays.
    pub fn kill_all(&mut self) {
        (0..self.brokers.len()).for_each(|number| self.kill(number));
    }

    /// Starts a broker where it was killed, without waiting for it.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&mut self, number: usize) -> Result<(), ServerError> {
        self.launch(number)
    }

    /// Waits until a broker answers.
    ///
    /// # Errors
    /// It does not.
    pub fn wait(&mut self, number: usize) -> Result<(), ServerError> {
        let (port, log) = (self.brokers[number].port, self.log_of(number));
        match &mut self.brokers[number].process {
            // It listens once it has joined the cluster.
            Some(process) => process.wait(&log, || TcpStream::connect(("127.0.0.1", port)).is_ok()),
            None => Ok(()),
        }
    }

    /// The newest lines of a broker's log.
    pub fn log(&self, number: usize) -> String {
        last_lines(&self.log_of(number))
    }

    fn folder_of(&self, number: usize) -> PathBuf {
        self.folder.path().join((number + 1).to_string())
    }

    fn log_of(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", number + 1))
    }

    fn settings_of(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("{}.properties", number + 1))
    }

    /// Writes a broker's settings and makes its folder one of the cluster.
    fn prepare(&self, number: usize) -> Result<(), ServerError> {
        let (broker, count) = (&self.brokers[number], self.brokers.len());
        let (id, kept) = (number + 1, count.min(3));
        let own = [
            "process.roles=broker,controller".to_string(),
            format!("node.id={id}"),
            format!("controller.quorum.voters={}", self.voters),
            format!(
                "listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}",
                broker.port, broker.voting_port
            ),
            format!("advertised.listeners=PLAINTEXT://127.0.0.1:{}", broker.port),
            "controller.listener.names=CONTROLLER".to_string(),
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT".to_string(),
            format!("log.dirs={}", self.folder_of(number).display()),
            "auto.create.topics.enable=false".to_string(),
            format!("offsets.topic.replication.factor={kept}"),
            format!("transaction.state.log.replication.factor={kept}"),
            "group.initial.rebalance.delay.ms=0".to_string(),
            "num.network.threads=2".to_string(),
            "num.io.threads=2".to_string(),
            // A broker that is killed is missed after so long, and comes back sooner.
            "broker.session.timeout.ms=3000".to_string(),
            "broker.heartbeat.interval.ms=500".to_string(),
            "controller.quorum.election.timeout.ms=500".to_string(),
            "controller.quorum.fetch.timeout.ms=1000".to_string(),
            "replica.lag.time.max.ms=5000".to_string(),
        ];
        let text = own.iter().chain(&self.settings).map(|line| format!("{line}\n")).collect::<String>();
        let path = self.settings_of(number);
        fs::write(&path, text).map_err(system("write a broker's settings"))?;
        let output = self
            .java("kafka.tools.StorageTool", "TERM", "-Xmx128m")
            .args(["format", "--cluster-id", CLUSTER, "--config"])
            .arg(&path)
            .output()
            .map_err(system("run Kafka's storage tool"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(ServerError::Start {
                server: "Kafka",
                what: "its folder cannot be prepared".to_string(),
                log: String::from_utf8_lossy(&output.stderr).into_owned()
                    + &String::from_utf8_lossy(&output.stdout),
            }),
        }
    }

    fn launch(&mut self, number: usize) -> Result<(), ServerError> {
        let mut command = self.java("kafka.Kafka", "KILL", "-Xmx256m");
        command.arg(self.settings_of(number));
        let log = self.log_of(number);
        self.brokers[number].process = Some(Process::launch("Kafka", "TERM", command, &log)?);
        Ok(())
    }

    fn java(&self, main: &str, signal: &str, memory: &str) -> Command {
        let mut command = process::command(self.account, signal, Path::new("java"));
        command
            .args([memory, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"])
            .arg(format!("{}/*", self.programs.display()))
            .arg(main)
            .current_dir(self.folder.path());
        command
    }
}

impl Drop for KafkaServers {
    /// What they have goes with their folder, so nothing is lost; a broker whose cluster is gone takes long to stop in good order.
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// A port that nobody uses now, below those that the system gives to whoever connects: a broker that is down finds it free when it
/// comes back.
fn kept_port() -> Result<u16, ServerError> {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Processes that start side by side look in different places.
    let begin = (std::process::id() % 337 * 8) as u16;
    let place = |_| PORT_MIN + (begin + TAKEN.fetch_add(1, Ordering::Relaxed) % PORTS) % PORTS;
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..PORTS).map(place).find(free).ok_or_else(|| ServerError::Missing {
        what: "a free port from 30000 to 32699",
        why: "all are in use".to_string(),
        how: "stop what uses them",
    })
}

/// The folder of Kafka's programs, fetched if need be.
fn programs() -> Result<PathBuf, ServerError> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !has("java") {
        install::install(JAVA, "default-jre-headless", HOW_JAVA)?;
    }
    // Whoever runs brokers has to be able to read it.
    let folder = std::env::temp_dir().join(format!("entente-kafka-{VERSION}-{}", process::user()));
    let programs = folder.join("programs");
    if programs.exists() {
        return is_own(&folder).map(|()| programs);
    }
    if !has("mvn") {
        install::install(MAVEN, "maven", HOW_MAVEN)?;
    }
    let unfinished = tempfile::Builder::new()
        .prefix("entente-kafka-")
        .tempdir()
        .map_err(system("create a temporary folder"))?;
    fs::write(unfinished.path().join("pom.xml"), POM).map_err(system("write what Maven is to fetch"))?;
    let output = Command::new("mvn")
        .args([
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=programs",
        ])
        .current_dir(unfinished.path())
        .stdin(Stdio::null())
        .output()
        .map_err(system("run Maven"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        return Err(ServerError::Missing { what: JARS, why: said.trim().to_string(), how: HOW_JARS });
    }
    open_to_all(unfinished.path())?;
    fs::create_dir_all(&folder).map_err(system("create the folder of Kafka's programs"))?;
    open_to_all(&folder)?;
    // Another process may have been faster.
    match fs::rename(unfinished.path().join("programs"), &programs) {
        Err(_) if programs.exists() => Ok(programs),
        renamed => renamed.map(|()| programs).map_err(system("keep Kafka's programs")),
    }
}

/// Refuses programs that another user has put there.
fn is_own(folder: &Path) -> Result<(), ServerError> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(folder).map_err(system("look at Kafka's programs"))?.uid().to_string();
    let user = process::user();
    if found == user {
        return Ok(());
    }
    let why = format!("{} belongs to user {found}, and this is user {user}", folder.display());
    Err(ServerError::Missing { what: JARS, why, how: "remove that folder" })
}

fn has(program: &str) -> bool {
    process::find([], &[program]).is_some()
}

/// Lets everybody read a folder and what lies in the folders in it.
fn open_to_all(folder: &Path) -> Result<(), ServerError> {
    use std::os::unix::fs::PermissionsExt;
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(system("let brokers read Kafka's programs"))
    };
    open(folder, 0o755)?;
    for entry in fs::read_dir(folder).map_err(system("look at Kafka's programs"))?.flatten() {
        match entry.path().is_dir() {
            true => open_to_all(&entry.path())?,
            false => open(&entry.path(), 0o644)?,
        }
    }
    Ok(())
}
