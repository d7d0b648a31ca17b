//! `entente bench scale`: networks of four to eighty members, in one room and around the world.

mod kafka;

use crate::CommandError;
use bench::{ScaleNetwork, ScaleOptions, ScaleRecord, scale, scale_report, scale_table};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure networks of up to eighty members, in one machine room, on one continent, on four.
///
/// Consensus and execution are the code that nodes run. Time, lines and processors are simulated: every message is charged with what it
/// costs on this machine, and what its line can carry. Every node is charged for verifying and executing every transaction. Nodes keep
/// their blocks in memory: of eighty that is 4 GB for every simulated second.
///
/// Kafka is not simulated: four nodes and three brokers run on this machine, which stands for a room. Its figures are those of one
/// machine that does everything, and no neighbours of the simulated ones.
///
/// Example: entente bench scale --quick --json scale.json --report scale/
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ScaleArguments {
    /// Numbers of members [default: 4,7,16,40,80, with --quick 4,80]
    #[arg(long, value_delimiter = ',')]
    members: Vec<usize>,
    /// Where the members are [default: room,continent,world, with --quick world]
    #[arg(long, value_delimiter = ',', value_parser = ["room", "continent", "world"])]
    network: Vec<String>,
    /// Who orders [default: bft,raft,kafka; kafka only with 4 members in a room, which --quick measures too]
    #[arg(long, value_delimiter = ',', value_parser = ["bft", "raft", "kafka"])]
    ordering: Vec<String>,
    /// Calls on their way at all nodes together while the clients keep a network busy
    #[arg(long, default_value_t = 24_000)]
    calls: usize,
    /// Simulated seconds for which the clients keep a network busy [default: 3, with --quick 1]
    #[arg(long)]
    seconds: Option<u64>,
    /// Seed of everything that is left to chance in simulations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// First port of the network that Kafka orders for: Postgres is 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7500)]
    port_base: u16,
    /// Four and eighty members, and shorter
    #[arg(long)]
    quick: bool,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder for a page with plots, and the figures as CSV and Markdown
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &ScaleArguments) -> Result<(), CommandError> {
    let quick = arguments.quick;
    let or = |given: &[usize], default: &[usize]| if given.is_empty() { default } else { given }.to_vec();
    let networks = match (arguments.network.as_slice(), quick) {
        ([], true) => vec![ScaleNetwork::World],
        ([], false) => ScaleNetwork::ALL.to_vec(),
        (given, _) => given.iter().filter_map(|name| ScaleNetwork::named(name)).collect(),
    };
    let options = ScaleOptions {
        members: or(&arguments.members, if quick { &[4, 80] } else { &[4, 7, 16, 40, 80] }),
        networks,
        orderings: arguments.simulated(),
        calls: arguments.calls,
        duration: Duration::from_secs(arguments.seconds.unwrap_or(if quick { 1 } else { 3 })),
        seed: arguments.seed,
    };
    let with_kafka = arguments.has_kafka()?;
    let mut records = match options.orderings.is_empty() {
        true => Vec::new(),
        false => scale(&options, &mut |text| eprintln!("{text}"))?,
    };
    if with_kafka {
        eprintln!("four nodes and brokers of Kafka on this machine; the programs are fetched the first time");
        match kafka::measure(arguments.port_base, options.duration) {
            Ok(record) => {
                eprintln!("{record}");
                records.push(record);
            }
            // Who has not asked for it by name goes on without.
            Err(error) if arguments.ordering.is_empty() => eprintln!("kafka was not measured: {error}"),
            Err(error) => return Err(error),
        }
    }
    println!("{}", scale_table(&records));
    if let Some(path) = &arguments.json {
        write(path, &records)?;
    }
    if let Some(folder) = &arguments.report {
        scale_report(&records, folder)?;
        println!("The plots are in {}.", folder.join("report.html").display());
    }
    Ok(())
}

impl ScaleArguments {
    /// The services that are simulated.
    fn simulated(&self) -> Vec<String> {
        let is_asked_for =
            |name: &str| self.ordering.is_empty() || self.ordering.iter().any(|asked| asked == name);
        ScaleOptions::ORDERINGS.into_iter().filter(|name| is_asked_for(name)).map(String::from).collect()
    }

    /// Whether brokers of Kafka are started.
    fn has_kafka(&self) -> Result<bool, CommandError> {
        let fits = (self.members.is_empty() || self.members.contains(&kafka::MEMBERS))
            && (self.network.is_empty() || self.network.iter().any(|name| name == ScaleNetwork::Room.name()));
        match self.ordering.iter().any(|ordering| ordering == "kafka") {
            true if !fits => {
                let found = format!("--members {:?} --network {:?}", self.members, self.network);
                Err(format!(
                    "--ordering kafka: expected 4 among --members and room in --network, found {found}"
                )
                .into())
            }
            named => Ok(named || self.ordering.is_empty() && fits),
        }
    }
}

fn write(path: &Path, records: &[ScaleRecord]) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(records)?;
    std::fs::write(path, text + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
