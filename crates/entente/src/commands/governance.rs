use super::sql::{connect, statement};
use crate::CommandError;
use clap::Args;
use crypto::PublicKey;
use node::founding;
use std::path::PathBuf;
use types::{CharterChange, Organisation, ProposedChange};

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

/// Accept, with this organisation's root key, the membership in a ledger that exists, and print what a member proposes then.
///
/// `entente keys` has made the keys before. The charter goes into the node's folder, so that the node can start.
///
/// Example: entente accept-membership --dir emma --charter charter.toml --position 4
/// Example: entente accept-membership --replace-key --dir org4 --charter org4/charter.toml --position 3
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AcceptArguments {
    /// The node's folder, as `entente keys` has made it; or that of the root key, with the card
    #[arg(long)]
    dir: PathBuf,
    /// The ledger's founding charter, from any member
    #[arg(long)]
    charter: PathBuf,
    /// How many organisations the ledger has had before: SELECT count(*) FROM entente.organisations
    #[arg(long)]
    position: u16,
    /// It is a member already, and its node's keys are lost: vouch for the new ones. --position is its own then
    #[arg(long)]
    replace_key: bool,
}

pub(crate) fn accept(arguments: &AcceptArguments) -> Result<(), CommandError> {
    if arguments.replace_key {
        let member = founding::renew(&arguments.dir, &arguments.charter, arguments.position)?;
        println!("{};", replacement(member.name, member.node_key));
        return Ok(());
    }
    let accepted = founding::accept(&arguments.dir, &arguments.charter, arguments.position)?;
    let (organisation, acceptance) = accepted;
    let change = CharterChange::AddOrganisation { organisation, acceptance };
    println!("{};", sql::describe_change(&ProposedChange::Charter(change)));
    Ok(())
}

/// The statement with which a member proposes that another key takes the place of a node's.
pub(super) fn replacement(name: String, node_key: PublicKey) -> String {
    let change = CharterChange::ReplaceNodeKey { name, node_key, expires: None };
    sql::describe_change(&ProposedChange::Charter(change))
}

/// The statement with which a member proposes that a node is elsewhere.
pub(super) fn new_address(member: &Organisation) -> String {
    let Organisation { name, address, gateway, .. } = member.clone();
    sql::describe_change(&ProposedChange::Charter(CharterChange::SetAddress { name, address, gateway }))
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
