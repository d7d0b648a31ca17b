//! Schema and customers over the Postgres protocol, as any client would make them.

use crate::CommandError;
use futures::SinkExt;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Instant;
use tokio_postgres::{Client, NoTls};
use types::format_value;
use workloads::smallbank::Smallbank;

/// Customers of one COPY.
const CUSTOMERS_PER_COPY: u64 = 10_000;

pub(crate) async fn connect(address: SocketAddr) -> Result<Client, CommandError> {
    let mut config = tokio_postgres::Config::new();
    config.host(address.ip().to_string()).port(address.port()).user("entente").dbname("entente");
    let (client, connection) = config.connect(NoTls).await?;
    // A broken connection shows at the next statement.
    tokio::spawn(connection);
    Ok(client)
}

/// The error of a statement with its SQLSTATE and hint, which the driver's own text leaves out.
pub(crate) fn explain(statement: &str, error: &tokio_postgres::Error) -> CommandError {
    let first = statement.lines().find(|line| !line.starts_with("--")).unwrap_or_default();
    match error.as_db_error() {
        Some(error) => {
            format!("{first}: {error} ({}) {}", error.code().code(), error.hint().unwrap_or_default()).into()
        }
        None => format!("{first}: {error}").into(),
    }
}

/// Creates Smallbank's three tables and six procedures.
pub(crate) async fn create_smallbank(gateways: &[SocketAddr]) -> Result<(), CommandError> {
    let client = connect(gateways[0]).await?;
    for statement in Smallbank::statements() {
        client.batch_execute(statement).await.map_err(|error| explain(statement, &error))?;
    }
    println!("three tables and six procedures created through organisation 1");
    Ok(())
}

/// Loads the customers with COPY, a part through each gateway.
pub(crate) async fn load_customers(gateways: &[SocketAddr], customers: u64) -> Result<(), CommandError> {
    let start = Instant::now();
    let bar = ProgressBar::new(customers);
    bar.set_style(ProgressStyle::with_template("  customers  {bar:40} {pos}/{len}  {per_sec}")?);
    let mut tasks = tokio::task::JoinSet::new();
    for (gateway, address) in gateways.iter().copied().enumerate() {
        let (bar, gateways) = (bar.clone(), gateways.len() as u64);
        tasks.spawn(async move {
            let client = connect(address).await?;
            let smallbank = Smallbank::new(customers, 0.0)?;
            let mut first = 1 + gateway as u64 * CUSTOMERS_PER_COPY;
            while first <= customers {
                let count = CUSTOMERS_PER_COPY.min(customers + 1 - first);
                copy(&client, &smallbank, first, count).await?;
                bar.inc(count);
                first += gateways * CUSTOMERS_PER_COPY;
            }
            Ok::<_, CommandError>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    bar.finish();
    println!("{} customers loaded in {:.1} s", bench::grouped(customers), start.elapsed().as_secs_f64());
    Ok(())
}

async fn copy(client: &Client, smallbank: &Smallbank, first: u64, count: u64) -> Result<(), CommandError> {
    for rows in smallbank.rows(first, count) {
        let statement = format!("COPY {} ({}) FROM STDIN", rows.table, rows.columns.join(", "));
        let mut text = String::new();
        for row in &rows.rows {
            let values: Vec<String> =
                row.iter().map(|value| format_value(value).unwrap_or_else(|| "\\N".to_string())).collect();
            writeln!(text, "{}", values.join("\t"))?;
        }
        let sink = client.copy_in(&statement).await.map_err(|error| explain(&statement, &error))?;
        let mut sink = std::pin::pin!(sink);
        sink.send(bytes::Bytes::from(text)).await.map_err(|error| explain(&statement, &error))?;
        sink.finish().await.map_err(|error| explain(&statement, &error))?;
    }
    Ok(())
}
