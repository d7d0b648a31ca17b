use super::sql::{connect, statement};
use crate::CommandError;
use clap::Args;
use node::Newcomer;
use std::net::SocketAddr;
use std::path::PathBuf;
use types::{CharterChange, ProposedChange};

/// Approve a proposal in the name of the node's organisation.
///
/// Example: entente approve 12 --connect 127.0.0.1:7101
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ApproveArguments {
    /// Number of the proposal, as `entente proposals` shows it
    number: u64,
    /// Do not agree instead
    #[arg(long)]
    reject: bool,
    /// Postgres address of the organisation's node
    #[arg(long, default_value = "127.0.0.1:7100")]
    connect: String,
}

/// Show what waits for the consent of organisations, and who is missing.
///
/// Example: entente proposals --connect 127.0.0.1:7101 --all
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ProposalsArguments {
    /// Closed ones too
    #[arg(long)]
    all: bool,
    /// Postgres address of a node
    #[arg(long, default_value = "127.0.0.1:7100")]
    connect: String,
}

/// Make keys and a folder for the node of an organisation that is to become a member, and print what a member proposes then.
///
/// Example: entente accept-membership --charter org1/charter.toml --dir emma --name emma --position 4
///            --listen 127.0.0.1:7004 --postgres 127.0.0.1:7104 --http 127.0.0.1:7204
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AcceptArguments {
    /// The ledger's founding charter, from any member
    #[arg(long)]
    charter: PathBuf,
    /// Folder to write into; must be empty or not exist
    #[arg(long)]
    dir: PathBuf,
    /// Name of the organisation
    #[arg(long)]
    name: String,
    /// How many organisations the ledger has had before: SELECT count(*) FROM entente.organisations
    #[arg(long)]
    position: u16,
    /// Where its node listens for the other nodes
    #[arg(long)]
    listen: SocketAddr,
    /// Where its node listens for Postgres clients
    #[arg(long)]
    postgres: SocketAddr,
    /// Where its node listens for HTTP
    #[arg(long)]
    http: SocketAddr,
    /// Threads of its node's execution
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
}

pub(crate) fn accept(arguments: &AcceptArguments) -> Result<(), CommandError> {
    let newcomer = Newcomer {
        name: arguments.name.clone(),
        position: arguments.position,
        listen: [arguments.listen, arguments.postgres, arguments.http],
        threads: arguments.threads as usize,
    };
    let (organisation, acceptance) = newcomer.create(&arguments.dir, &arguments.charter)?;
    let change = CharterChange::AddOrganisation { organisation, acceptance };
    println!("{};", sql::describe_change(&ProposedChange::Charter(change)));
    Ok(())
}

pub(crate) fn approve(arguments: &ApproveArguments) -> Result<(), CommandError> {
    let function = if arguments.reject { "reject" } else { "approve" };
    run(&arguments.connect, &format!("SELECT entente.{function}({})", arguments.number))
}

pub(crate) fn proposals(arguments: &ProposalsArguments) -> Result<(), CommandError> {
    let condition = if arguments.all { "" } else { " WHERE state = 'open'" };
    let sql = format!(
        "SELECT number, organisation, statement, state, approved_by, missing, message FROM entente.proposals\
         {condition} ORDER BY number"
    );
    run(&arguments.connect, &sql)
}

fn run(address: &str, sql: &str) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = connect(address).await?;
        statement(&client, sql).await.map_err(CommandError::from)
    })
}
