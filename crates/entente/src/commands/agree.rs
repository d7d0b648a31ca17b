//! `entente agree`: to which scripts an organisation agrees before they are ordered.

use super::own_database::own_address;
use super::sql::connect;
use crate::CommandError;
use chainify::{Address, AgreeConfig, AgreeRule, RuleChange};
use clap::Args;
use node::NodeFolder;
use std::path::PathBuf;
use tokio_postgres::SimpleQueryMessage;
use types::{ExecutionModel, Policy};

/// Say to which changes of a shared table your organisation agrees: a query of your own database judges them.
///
/// For ledgers whose databases execute scripts (whatever-then-agree), and tables made WITH (endorsement_policy = '…') that
/// names your organisation. Takes effect at once. Without --table the rules are shown.
///
/// Example: entente agree --network clearing/org1 --table trades --reason "not in stock" --query "SELECT count(*) = 1 FROM stock WHERE part = :part"
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AgreeArguments {
    /// The folder of your node in the network, as `entente init` wrote it; the node must be running
    #[arg(long, value_name = "FOLDER", alias = "dir")]
    network: PathBuf,
    /// The table of the ledger
    #[arg(long)]
    table: Option<String>,
    /// A query that gives true where you agree; :column stands for the value that the script gives a column, :entente.organisation
    /// and :entente.role for its client
    #[arg(long, requires = "table")]
    query: Option<String>,
    /// What the rule is for: insert, update, delete; everything where nothing is said
    #[arg(long, value_delimiter = ',', value_parser = change, requires = "query")]
    on: Vec<RuleChange>,
    /// What everybody is told where you do not agree
    #[arg(long, requires = "query")]
    reason: Option<String>,
    /// Take the table's rules away: then you agree to no change of it
    #[arg(long, requires = "table", conflicts_with = "query")]
    remove: bool,
    /// The database that is asked, where it is not the one of node.toml: postgres://USER:PASSWORD@HOST:PORT/DATABASE or mariadb://…
    #[arg(long)]
    database: Option<String>,
}

fn change(text: &str) -> Result<RuleChange, String> {
    match text {
        "insert" => Ok(RuleChange::Insert),
        "update" => Ok(RuleChange::Update),
        "delete" => Ok(RuleChange::Delete),
        _ => Err("expected insert, update or delete".to_string()),
    }
}

pub(crate) fn run(arguments: &AgreeArguments) -> Result<(), CommandError> {
    let folder = NodeFolder::open(&arguments.network)?;
    if folder.charter.execution != ExecutionModel::WhateverThenAgree {
        let message = "organisations agree to scripts where the charter says execution = \"whatever-then-agree\"; this ledger's does not";
        return Err(message.into());
    }
    let mut config = AgreeConfig::read(&folder.path)?.unwrap_or_default();
    let chosen: Option<Address> = arguments.database.as_deref().map(str::parse).transpose()?;
    // What it replaces counts until everything else was found good.
    let write = |mut config: AgreeConfig| -> Result<AgreeConfig, CommandError> {
        if let Some(address) = &chosen {
            config.choose_database(&folder.path, address)?;
        }
        config.write(&folder.path)?;
        Ok(config)
    };
    let Some(table) = &arguments.table else {
        let config = if chosen.is_some() { write(config)? } else { config };
        return show(&folder, &config);
    };
    if arguments.remove {
        let before = config.rules.len();
        config.rules.retain(|rule| rule.table != *table);
        if config.rules.len() == before {
            return Err(format!("there is no rule for table {table}").into());
        }
        write(config)?;
        println!("{} agrees to no change of {table} any more", folder.organisation_name());
        return Ok(());
    }
    let query =
        arguments.query.clone().ok_or("--query is missing: a query that gives true where you agree")?;
    let (on, reason) = (arguments.on.clone(), arguments.reason.clone());
    let rule = AgreeRule { table: table.clone(), on, query, reason };
    let own = own_address(&folder)?;
    let address = match &chosen {
        Some(address) => address.clone(),
        None => config.address(&folder.path, own.as_ref())?,
    };
    let is_asked = check(&folder, &address, &rule)?;
    // One rule for the same changes of the same table: the newest.
    config.rules.retain(|known| known.table != rule.table || known.on != rule.on);
    println!("{} agrees to changes as {address} says from now on: {rule}", folder.organisation_name());
    if !is_asked {
        println!(
            "nobody asks {0} about table {table} yet: its endorsement_policy does not name {0} (ALTER TABLE {table} SET \
             (endorsement_policy = '…'))",
            folder.organisation_name()
        );
    }
    config.rules.push(rule);
    write(config).map(drop)
}

fn show(folder: &NodeFolder, config: &AgreeConfig) -> Result<(), CommandError> {
    if config.rules.is_empty() {
        println!(
            "{} has no rules: it agrees to no change of a table whose policy names it",
            folder.organisation_name()
        );
        return Ok(());
    }
    println!("asked in {}", config.address(&folder.path, own_address(folder)?.as_ref())?);
    config.rules.iter().for_each(|rule| println!("{rule}"));
    Ok(())
}

/// What stands in front of a table's policy in the catalogue.
const POLICY: &str = "endorsement_policy=";

/// Asks the node for the table, and the database whether it understands the query. Whether the table's policy names the organisation.
fn check(folder: &NodeFolder, address: &Address, rule: &AgreeRule) -> Result<bool, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (columns, policy) = runtime.block_on(async {
        let client = connect(&folder.config.postgres.to_string()).await?;
        let prepared = client.prepare(&format!("SELECT * FROM {}", rule.table)).await.map_err(|error| {
            format!("table {}: {}", rule.table, error.as_db_error().map_or("", |error| error.message()))
        })?;
        let column =
            |column: &tokio_postgres::Column| (column.name().to_string(), column.type_().name().to_string());
        let columns: Vec<(String, String)> = prepared.columns().iter().map(column).collect();
        let name = rule.table.replace('\'', "''");
        let sql = format!("SELECT reloptions[1] FROM pg_class WHERE oid = '{name}'::regclass");
        let policy = client.simple_query(&sql).await?.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0)?.trim_start_matches(POLICY).to_string()),
            _ => None,
        });
        Ok::<_, CommandError>((columns, policy))
    })?;
    chainify::check_rule(address, rule, &columns)?;
    let policy = policy.and_then(|text| text.parse::<Policy>().ok());
    Ok(policy.is_some_and(|policy| policy.organisations().contains(folder.organisation_name())))
}
