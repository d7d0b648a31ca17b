//! Schema and customers over the Postgres protocol, as any client would make them: where a gateway ends, at another one.

use super::screen::Screen;
use crate::CommandError;
use futures::SinkExt;
use std::collections::HashSet;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use types::format_value;
use workloads::Rows;
use workloads::smallbank::Smallbank;

/// Customers of one COPY.
const CUSTOMERS_PER_COPY: u64 = 10_000;
/// How long some gateway may take to answer, when one has ended, and until it knows what that one was told.
const ANOTHER_WITHIN: Duration = Duration::from_secs(60);
const TRY_AGAIN: Duration = Duration::from_millis(200);

pub(crate) async fn connect(address: SocketAddr) -> Result<Client, CommandError> {
    Ok(open(address).await?)
}

async fn open(address: SocketAddr) -> Result<Client, tokio_postgres::Error> {
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

/// The first value of a row, as text.
pub(crate) fn first_column(message: &SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
        _ => None,
    }
}

/// A session at one gateway, and where that ends at the next one.
struct Session<'a> {
    gateways: &'a [SocketAddr],
    at: usize,
    client: Client,
    /// When a gateway ended with a statement under way: nobody knows what has become of that one.
    lost: Option<Instant>,
}

/// What to do after an error.
#[derive(PartialEq)]
enum Next {
    /// The same again: a gateway has ended, or the one that is asked instead does not know yet what that one was told.
    Again,
    /// The statement is wrong.
    Fail,
}

impl<'a> Session<'a> {
    async fn open(gateways: &'a [SocketAddr], at: usize) -> Result<Session<'a>, CommandError> {
        let start = Instant::now();
        for turn in at.. {
            match open(gateways[turn % gateways.len()]).await {
                Ok(client) => return Ok(Session { gateways, at: turn, client, lost: None }),
                Err(error) if start.elapsed() > ANOTHER_WITHIN => return Err(error.into()),
                Err(_) => tokio::time::sleep(TRY_AGAIN).await,
            }
        }
        unreachable!("turns have no end")
    }

    /// Goes on to the next gateway where this one has ended.
    async fn after(&mut self, error: &tokio_postgres::Error) -> Result<Next, CommandError> {
        if error.as_db_error().is_none() {
            *self =
                Session { lost: Some(Instant::now()), ..Session::open(self.gateways, self.at + 1).await? };
            return Ok(Next::Again);
        }
        if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) {
            // A protocol that gives up one of two transactions in conflict; what of this COPY is there is not copied again.
            self.lost = Some(Instant::now());
            return Ok(Next::Again);
        }
        if self.lost.is_none_or(|lost| lost.elapsed() > ANOTHER_WITHIN) {
            return Ok(Next::Fail);
        }
        tokio::time::sleep(TRY_AGAIN).await;
        Ok(Next::Again)
    }
}

/// Creates Smallbank's three tables and six procedures.
pub(crate) async fn create_smallbank(gateways: &[SocketAddr], screen: &Screen) -> Result<(), CommandError> {
    create(gateways, Smallbank::statements()).await?;
    screen.say("three tables and six procedures created through organisation 1");
    Ok(())
}

/// Creates Smallbank's three tables, for scripts.
pub(crate) async fn create_tables(gateways: &[SocketAddr], screen: &Screen) -> Result<(), CommandError> {
    create(gateways, Smallbank::tables()).await?;
    screen.say("three tables created through organisation 1");
    Ok(())
}

/// Whoever changes an account needs these organisations' agreement from now on.
pub(crate) async fn ask_for_agreement(
    gateways: &[SocketAddr],
    policy: &str,
    screen: &Screen,
) -> Result<(), CommandError> {
    let policy = policy.replace('\'', "''");
    let change = |table| format!("ALTER TABLE {table} SET (endorsement_policy = '{policy}')");
    create(gateways, ["checking", "savings"].into_iter().map(change)).await?;
    // A gateway that does not know of it yet would pass scripts on as they are, and every node would reject them.
    let start = Instant::now();
    for gateway in gateways {
        let known = "SELECT 1 FROM pg_class WHERE relname = 'savings' AND reloptions IS NOT NULL";
        while connect(*gateway).await?.query(known, &[]).await?.is_empty() {
            if start.elapsed() > ANOTHER_WITHIN {
                return Err(format!("the node at {gateway} does not come up with the others").into());
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }
    screen.say(format!("who changes an account needs the agreement of {policy}"));
    Ok(())
}

async fn create(
    gateways: &[SocketAddr],
    statements: impl Iterator<Item = impl AsRef<str>>,
) -> Result<(), CommandError> {
    let mut session = Session::open(gateways, 0).await?;
    for statement in statements {
        let statement = statement.as_ref();
        session.lost = None;
        while let Err(error) = session.client.batch_execute(statement).await {
            // The gateway that ended has done it.
            if session.lost.is_some() && exists_already(&error) {
                break;
            }
            if session.after(&error).await? == Next::Fail {
                return Err(explain(statement, &error));
            }
        }
    }
    Ok(())
}

fn exists_already(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::DUPLICATE_TABLE) || code == Some(&SqlState::DUPLICATE_FUNCTION)
}

/// Loads the customers with COPY, a part through each gateway.
pub(crate) async fn load_customers(
    gateways: &[SocketAddr],
    customers: u64,
    screen: &Screen,
) -> Result<(), CommandError> {
    let start = Instant::now();
    let bar = screen.bar("customers", customers)?;
    let mut tasks = tokio::task::JoinSet::new();
    for gateway in 0..gateways.len() {
        let (bar, gateways) = (bar.clone(), gateways.to_vec());
        tasks.spawn(async move {
            let mut session = Session::open(&gateways, gateway).await?;
            let smallbank = Smallbank::new(customers, 0.0)?;
            let mut first = 1 + gateway as u64 * CUSTOMERS_PER_COPY;
            while first <= customers {
                let count = CUSTOMERS_PER_COPY.min(customers + 1 - first);
                for rows in smallbank.rows(first, count) {
                    fill(&mut session, rows).await?;
                }
                bar.inc(count);
                first += gateways.len() as u64 * CUSTOMERS_PER_COPY;
            }
            Ok::<_, CommandError>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    bar.finish_and_clear();
    let (customers, seconds) = (bench::grouped(customers), start.elapsed().as_secs_f64());
    screen.say(format!("{customers} customers loaded in {seconds:.1} s"));
    Ok(())
}

/// Sees to it that all these rows are in their table, each once.
///
/// A COPY is several transactions. Of one whose gateway has ended some may be in the table and others may come: what is
/// missing is copied again, and where one of the others has come meanwhile, the primary key refuses the second.
async fn fill(session: &mut Session<'_>, rows: Rows) -> Result<(), CommandError> {
    session.lost = None;
    let statement = format!("COPY {} ({}) FROM STDIN", rows.table, rows.columns.join(", "));
    while let Err(error) = copy(&session.client, &statement, &rows, session.lost.is_some()).await {
        if session.after(&error).await? == Next::Fail {
            return Err(explain(&statement, &error));
        }
    }
    Ok(())
}

async fn copy(
    client: &Client,
    statement: &str,
    rows: &Rows,
    again: bool,
) -> Result<(), tokio_postgres::Error> {
    let there = if again { keys(client, rows).await? } else { HashSet::new() };
    let mut text = String::new();
    for row in &rows.rows {
        let values: Vec<String> =
            row.iter().map(|value| format_value(value).unwrap_or_else(|| "\\N".to_string())).collect();
        if !there.contains(&values[0]) {
            writeln!(text, "{}", values.join("\t")).expect("text has room");
        }
    }
    if text.is_empty() {
        return Ok(());
    }
    let mut sink = std::pin::pin!(client.copy_in(statement).await?);
    sink.send(bytes::Bytes::from(text)).await?;
    sink.finish().await?;
    Ok(())
}

/// The values of the first column, which is the primary key, that are in the table, from the first to the last of these rows.
async fn keys(client: &Client, rows: &Rows) -> Result<HashSet<String>, tokio_postgres::Error> {
    let bound =
        |row: Option<&Vec<types::Value>>| row.and_then(|row| format_value(&row[0])).unwrap_or_default();
    let (key, first, last) = (rows.columns[0], bound(rows.rows.first()), bound(rows.rows.last()));
    let query = format!("SELECT {key} FROM {} WHERE {key} BETWEEN {first} AND {last}", rows.table);
    let found = client.simple_query(&query).await?;
    Ok(found.iter().filter_map(first_column).collect())
}
