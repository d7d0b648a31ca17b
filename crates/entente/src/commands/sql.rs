use crate::CommandError;
use clap::Args;
use comfy_table::{Table, presets};
use std::io::{BufRead, IsTerminal, Write};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Run SQL on a node, from the command line or from standard input; for more comfort use psql.
///
/// Example: entente sql --connect 127.0.0.1:7100 --command "SELECT * FROM entente.nodes"
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SqlArguments {
    /// Postgres address of the node
    #[arg(long, default_value = "127.0.0.1:7100")]
    connect: String,
    /// Statements to run; without it they are read from standard input, each up to a semicolon at a line's end
    #[arg(long, short)]
    command: Option<String>,
}

pub(crate) fn run(arguments: &SqlArguments) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = connect(&arguments.connect).await?;
        match &arguments.command {
            Some(sql) => statement(&client, sql).await.map_err(CommandError::from),
            None => interactive(&client).await,
        }
    })
}

pub(super) async fn connect(address: &str) -> Result<Client, CommandError> {
    let wrong = || format!("expected HOST:PORT, found {address:?}");
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    let mut config = tokio_postgres::Config::new();
    config.host(host).port(port).user("entente").dbname("entente");
    let (client, connection) = config
        .connect(NoTls)
        .await
        .map_err(|error| format!("{address} does not answer: {error}; is the node running?"))?;
    tokio::spawn(connection);
    Ok(client)
}

async fn interactive(client: &Client) -> Result<(), CommandError> {
    let input = std::io::stdin();
    let prompt = input.is_terminal();
    let mut text = String::new();
    let ask = |first: bool| {
        if prompt {
            print!("{}", if first { "entente=> " } else { "entente-> " });
            // A prompt that cannot be shown is no reason to stop.
            let _ = std::io::stdout().flush();
        }
    };
    ask(true);
    for line in input.lock().lines() {
        text.push_str(&line?);
        text.push('\n');
        if text.trim_end().ends_with(';') && text.matches("$$").count().is_multiple_of(2) {
            if let Err(message) = statement(client, &text).await {
                eprintln!("{message}");
                if !prompt {
                    return Err("stopped at the first error".into());
                }
            }
            text.clear();
        }
        ask(text.is_empty());
    }
    if text.trim().is_empty() { Ok(()) } else { statement(client, &text).await.map_err(CommandError::from) }
}

/// Runs and prints; an error as psql shows it.
pub(super) async fn statement(client: &Client, sql: &str) -> Result<(), String> {
    let messages = client.simple_query(sql).await.map_err(|error| match error.as_db_error() {
        Some(error) => {
            let part = |name: &str, text: Option<&str>| {
                text.map_or(String::new(), |text| format!("\n{name}: {text}"))
            };
            format!(
                "ERROR: {} ({}){}{}",
                error.message(),
                error.code().code(),
                part("DETAIL", error.detail()),
                part("HINT", error.hint())
            )
        }
        None => error.to_string(),
    })?;
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    let mut has_columns = false;
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                has_columns = true;
                table = Table::new();
                table.load_style(presets::UTF8_HORIZONTAL_ONLY);
                table.set_header(columns.iter().map(|column| column.name().to_string()));
            }
            SimpleQueryMessage::Row(row) => {
                table.add_row((0..row.len()).map(|column| row.get(column).unwrap_or("").to_string()));
            }
            SimpleQueryMessage::CommandComplete(rows) => {
                if has_columns {
                    println!("{table}");
                }
                println!("({rows} {})", if rows == 1 { "row" } else { "rows" });
                has_columns = false;
            }
            _ => {}
        }
    }
    Ok(())
}
