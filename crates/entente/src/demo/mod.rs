//! `entente demo`: four organisations on one machine, in one command. The demo goes on when nodes end, and starts them again.

pub(crate) mod brokers;
mod chaos;
pub(crate) mod databases;
pub(crate) mod load;
pub(crate) mod nodes;
pub(crate) mod prepare;
mod private;
pub(crate) mod report;
pub(crate) mod screen;
mod supervision;
pub(crate) mod turn;

use crate::model::ModelArguments;
use crate::store::StoreArguments;
use crate::{CommandError, terminal};
use brokers::Brokers;
use clap::Args;
use client::Client;
use databases::{DatabaseKind, Databases};
use node::{Network, NetworkOptions};
use nodes::RunningNodes;
use screen::Screen;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;
use supervision::Supervisor;
use types::Charter;

/// Run a whole network on this machine: keys, charter, four nodes, Smallbank, load, checks, and psql lines to paste.
///
/// Kill any node at any time (`kill -9`): the clients ask the others, and the demo starts it again.
///
/// Example: entente demo --skew 1.0 --seconds 10
/// Example: entente demo --chaos
/// Example: entente demo --ordering kafka --chaos
/// Example: entente demo --private
/// Example: entente demo --database postgres,mariadb,postgres,none
/// Example: entente demo --database postgres,mariadb,postgres,none --execution whatever-then-agree
/// Example: entente demo --database postgres,mariadb --execution whatever-then-agree --agreement "org1 AND org2"
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DemoArguments {
    /// Organisations
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(4..=16))]
    orgs: u64,
    /// Customers of the bank
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    customers: u64,
    /// Seconds of load [default: 20, with --chaos 40]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Zipf exponent of the choice of customers; 0 is uniform
    #[arg(long, default_value_t = 0.0)]
    skew: f64,
    /// Transactions per second, answered or not (open loop); without it as many as get answers (closed loop)
    #[arg(long)]
    rate: Option<f64>,
    /// Submissions of 400 transactions that are under way at each organisation's node, in a closed loop
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64), conflicts_with = "rate")]
    clients: u64,
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// Each organisation's own database, which has a copy of all tables or, with --execution whatever-then-agree, executes the
    /// scripts: `postgres`, `mariadb` or `none`, in their order; those that are left out have none
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    database: Vec<DatabaseKind>,
    /// Who must agree to a script before it is ordered, with --execution whatever-then-agree: each of them asks its own database
    ///
    /// An expression over organisations that have a database, for example "org1 AND org2".
    #[arg(long, value_name = "POLICY")]
    agreement: Option<String>,
    /// No load: two organisations trade in a private schema instead, a third sees that something happened and not what, and a
    /// regulator is added
    #[arg(long, conflicts_with_all = ["rate", "chaos", "database", "agreement"])]
    private: bool,
    /// Folder of the network; a temporary one, removed at the end, by default
    #[arg(long)]
    dir: Option<PathBuf>,
    /// First port: nodes from here, Postgres 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7000)]
    port_base: u16,
    /// Kill nodes one after the other during the load, every other one when its turn to lead comes; with --ordering kafka every
    /// other time the broker that leads
    #[arg(long)]
    chaos: bool,
    /// Start a node that has ended again after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(0..=60))]
    restart_after: u64,
    /// Stop after the run instead of waiting for Ctrl-C
    #[arg(long)]
    exit: bool,
    /// Where to write the result
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Seconds of load; with `--chaos` enough to kill every node of four once.
const SECONDS: u64 = 20;
const SECONDS_OF_CHAOS: u64 = 40;
/// In less time `--chaos` kills nobody.
const SECONDS_OF_CHAOS_MIN: u64 = 5;
/// How often Ctrl-C is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl DemoArguments {
    fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(if self.chaos { SECONDS_OF_CHAOS } else { SECONDS })
    }
}

pub(crate) fn run(arguments: &DemoArguments) -> Result<(), CommandError> {
    let skew = arguments.skew;
    workloads::smallbank::Smallbank::new(arguments.customers, skew)?;
    if arguments.rate.is_some_and(|rate| !(1.0..=1e6).contains(&rate)) {
        return Err("--rate: expected 1 to 1000000 transactions per second".into());
    }
    if arguments.database.len() as u64 > arguments.orgs {
        let (found, orgs) = (arguments.database.len(), arguments.orgs);
        return Err(format!(
            "--database: expected at most one for each of {orgs} organisations, found {found}"
        )
        .into());
    }
    if arguments.agreement.is_some() && !arguments.model.executes_scripts() {
        return Err("--agreement needs --execution whatever-then-agree".into());
    }
    if arguments.private && !arguments.model.executes_after_ordering() {
        return Err("--private needs --execution order-execute: schemas have members there alone".into());
    }
    if arguments.chaos && arguments.seconds() < SECONDS_OF_CHAOS_MIN {
        return Err(format!("--chaos: expected --seconds of {SECONDS_OF_CHAOS_MIN} or more").into());
    }
    let interruptions = terminal::interruptions()?;
    let folder = DemoFolder::new(arguments.dir.as_deref())?;
    let network = create_network(arguments, &folder.path)?;
    let screen = Screen::default();
    let brokers = Brokers::start(&arguments.model.ordering, &network, &screen)?;
    if arguments.chaos && brokers.as_ref().is_some_and(|brokers| !brokers.are_own()) {
        return Err("--chaos kills brokers, and those of --kafka-brokers are not the demo's: leave one of the two out".into());
    }
    let databases = Databases::start(&arguments.database, &network, &screen)?;
    if let Some(policy) = &arguments.agreement {
        databases.agree(&network, policy)?;
    }
    let nodes = RunningNodes::start(&network.folders, None)?;
    let gateways = nodes.postgres_addresses();
    let demo =
        Demo { arguments, network, gateways, brokers, databases, screen, checked: AtomicBool::new(false) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(demo.run(nodes, &interruptions));
    drop(folder);
    outcome
}

/// A network and what is to be done with it.
struct Demo<'a> {
    arguments: &'a DemoArguments,
    network: Network,
    gateways: Vec<SocketAddr>,
    brokers: Option<Brokers>,
    databases: Databases,
    screen: Screen,
    /// The load is over, and all checks have passed.
    checked: AtomicBool,
}

impl Demo<'_> {
    /// From the start of the nodes to their end.
    async fn run(&self, mut nodes: RunningNodes, interruptions: &Receiver<()>) -> Result<(), CommandError> {
        let clients = nodes.clients(&self.network.clients)?;
        let healthy = tokio::select! {
            healthy = nodes.wait_until_healthy(&clients, &self.screen) => healthy,
            () = interrupted(interruptions) => return Err("stopped before the nodes were up".into()),
        };
        if let Err(error) = healthy {
            nodes.print_logs();
            return Err(error);
        }
        let restart_after = Duration::from_secs(self.arguments.restart_after);
        let supervisor = Supervisor::start(nodes, clients.clone(), restart_after, self.screen.clone())?;
        let outcome = tokio::select! {
            outcome = self.exercise(&supervisor, &clients) => outcome,
            error = supervisor.no_quorum_left() => Err(error),
            () = interrupted(interruptions) => {
                self.screen.say("\nstopping the nodes");
                supervisor.stop();
                return match self.checked.load(Ordering::Relaxed) {
                    true => Ok(()),
                    false => Err("stopped before the checks were done".into()),
                };
            }
        };
        if outcome.is_err() {
            supervisor.print_logs();
        }
        supervisor.stop();
        outcome
    }

    /// Everything that happens while the nodes run. Without `--exit` it has no end but failure.
    async fn exercise(&self, supervisor: &Supervisor, clients: &[Client]) -> Result<(), CommandError> {
        let (arguments, gateways, screen) = (self.arguments, &self.gateways, &self.screen);
        screen.say(self.processes(supervisor));
        if arguments.private {
            return self.trade(supervisor).await;
        }
        match arguments.model.executes_scripts() {
            true => prepare::create_tables(gateways, screen).await?,
            false => prepare::create_smallbank(gateways, screen).await?,
        }
        prepare::load_customers(gateways, arguments.customers, screen).await?;
        if let Some(policy) = &arguments.agreement {
            prepare::ask_for_agreement(gateways, policy, screen).await?;
        }
        let brokers = self.brokers.as_ref();
        let load = load::apply(arguments, (supervisor, brokers, screen), clients, gateways).await?;
        let mut result =
            report::check(arguments, &self.network, (supervisor, clients), gateways, load).await?;
        if !arguments.database.is_empty() {
            result.databases = Some(self.databases.check(clients, gateways, result.height()).await?);
        }
        screen.say(report::table(&result));
        if let Some(path) = &arguments.json {
            report::write_json(&result, path)?;
        }
        result.verdict()?;
        self.checked.store(true, Ordering::Relaxed);
        if arguments.exit {
            return Ok(());
        }
        screen.say(report::invitation(&self.network, gateways, supervisor, None));
        screen.say(self.databases.invitation(arguments.agreement.is_some()));
        supervisor.show_height();
        std::future::pending().await
    }

    /// What `--private` shows instead of a load.
    async fn trade(&self, supervisor: &Supervisor) -> Result<(), CommandError> {
        let (arguments, screen) = (self.arguments, &self.screen);
        let result = private::trade(&self.gateways, screen).await?;
        if let Some(path) = &arguments.json {
            report::write_json(&result, path)?;
        }
        if !result.as_promised {
            return Err("somebody saw what it must not see, or did not see what it must".into());
        }
        self.checked.store(true, Ordering::Relaxed);
        if arguments.exit {
            return Ok(());
        }
        let write = Some("CREATE TABLE shipments (id int PRIMARY KEY);");
        screen.say(report::invitation(&self.network, &self.gateways, supervisor, write));
        screen.say(private::invitation());
        supervisor.show_height();
        std::future::pending().await
    }

    /// Which process is whose node.
    fn processes(&self, supervisor: &Supervisor) -> String {
        let nodes = supervisor.processes().into_iter().map(|(name, process)| match process {
            Some(process) => format!("{name} is process {process}"),
            None => format!("{name} is down"),
        });
        let nodes = nodes.collect::<Vec<_>>().join(", ");
        match self.arguments.chaos {
            true => format!("{nodes}; --chaos kills them in turn during the load"),
            false => format!("{nodes}; kill -9 any of them, the others go on"),
        }
    }
}

/// Returns after Ctrl-C or a termination signal.
async fn interrupted(interruptions: &Receiver<()>) {
    while interruptions.try_recv() == Err(TryRecvError::Empty) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn create_network(arguments: &DemoArguments, path: &Path) -> Result<Network, CommandError> {
    let mut charter = Charter::with_defaults("demo", u64::from_be_bytes(crypto::random_bytes()));
    // So that one terminal is enough to try everything; the demo says so.
    charter.governance = "any".to_string();
    arguments.model.apply(&mut charter, arguments.orgs as usize)?;
    let options = NetworkOptions {
        organisations: arguments.orgs as usize,
        port_base: arguments.port_base,
        threads: 2,
        pipeline: arguments.model.pipeline(),
        store: arguments.store.choice(),
        charter,
    };
    let network = Network::create(path, &options)?;
    println!("keys and a charter for {} organisations in {}", arguments.orgs, path.display());
    Ok(network)
}

/// The folder of the network; a temporary one disappears with this value.
struct DemoFolder {
    path: PathBuf,
    temporary: bool,
}

impl DemoFolder {
    fn new(chosen: Option<&Path>) -> Result<DemoFolder, CommandError> {
        if let Some(path) = chosen {
            return Ok(DemoFolder { path: path.to_path_buf(), temporary: false });
        }
        let path = std::env::temp_dir().join(format!("entente-demo-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(DemoFolder { path, temporary: true })
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is in the system's folder for temporary files.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
