use super::trust::TrustArguments;
use crate::CommandError;
use clap::Args;
use client::{HolderStatus, OwnDatabaseStatus};
use comfy_table::{Table, presets};
use std::collections::BTreeSet;

/// Show height, state and health of nodes.
///
/// Examples: entente status 127.0.0.1:7200 127.0.0.1:7201
///           entente status --charter charter.toml bank-a.example:7200
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct StatusArguments {
    /// HTTP addresses of the nodes: host:port, or https://host:port
    #[arg(required = true)]
    addresses: Vec<String>,
    /// End with an error unless every node serves, as a container's health check asks
    #[arg(long)]
    serving: bool,
    #[command(flatten)]
    trust: TrustArguments,
}

pub(crate) fn run(arguments: &StatusArguments) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "address",
        "organisation",
        "height",
        "certified",
        "state digest",
        "memory MB",
        "health",
    ]);
    let (mut silent, mut not_serving, mut warnings, mut databases) = (0, 0, BTreeSet::new(), Vec::new());
    let mut holders = Vec::new();
    for address in &arguments.addresses {
        let client = arguments.trust.client(address)?;
        match runtime.block_on(client.status()) {
            Ok(status) => {
                not_serving += usize::from(status.not_serving.is_some());
                warnings.extend(status.warnings);
                databases.extend(status.database.map(|database| (status.organisation.clone(), database)));
                holders
                    .extend(status.holders.into_iter().map(|holder| (status.organisation.clone(), holder)));
                table.add_row([
                    address.clone(),
                    status.organisation,
                    status.height.to_string(),
                    status.certified_height.to_string(),
                    status.state_digest.chars().take(16).collect(),
                    (status.resident_bytes / 1_000_000).to_string(),
                    status.not_serving.unwrap_or_else(|| "serving".to_string()),
                ])
            }
            Err(error) => {
                silent += 1;
                table.add_row([
                    address.clone(),
                    String::new(),
                    String::new(),
                    String::new(),
                    String::new(),
                    String::new(),
                    error.to_string(),
                ])
            }
        };
    }
    println!("{table}");
    for (organisation, database) in databases {
        let OwnDatabaseStatus { kind, height, lag_blocks, state, problem, strange_rows } = database;
        let problem = problem.map_or(String::new(), |problem| format!(": {problem}"));
        println!(
            "{organisation}'s {kind} is at height {height}, {lag_blocks} blocks behind, {strange_rows} strange rows; {state}{problem}"
        );
    }
    for (organisation, HolderStatus { name, address, schemas, rows }) in holders {
        let rows = rows.map_or(String::new(), |rows| format!("; {rows} rows"));
        println!("{organisation}'s {name} at {address} holds {}{rows}", schemas.join(", "));
    }
    for warning in warnings {
        println!("warning: {warning}");
    }
    if silent == arguments.addresses.len() {
        return Err("no node answers; start them with `entente node --dir FOLDER`".into());
    }
    if arguments.serving && silent + not_serving > 0 {
        return Err(format!(
            "expected every node to serve: {silent} do not answer, {not_serving} do not serve"
        )
        .into());
    }
    Ok(())
}
