use super::connection::{connect, execute};
use super::{CLIENTS, PostgresError};
use crate::laboratory::Timed;
use bytes::Bytes;
use futures::SinkExt;
use futures::future::try_join_all;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use types::{DataType, Outcome, SqlError, StatementResult, Value};
use workloads::{Condition, Invariant, Workload};

/// Calls that are made before time begins, per second of the round; one that is faster takes them again from the first.
const CALLS_PER_SECOND: f64 = 25_000.0;
/// How long a round runs before its time begins.
const WARM_UP: Duration = Duration::from_millis(200);

/// A call as PostgreSQL takes it.
struct Prepared {
    procedure: &'static str,
    values: Vec<Value>,
    arguments: Vec<Argument>,
}

/// An argument on the wire.
type Argument = Box<dyn ToSql + Send + Sync>;

/// What all clients know.
struct Plan {
    calls: Vec<Prepared>,
    /// By procedure: its CALL.
    texts: BTreeMap<&'static str, String>,
    change: fn(&str, &[Value], &Outcome) -> i128,
}

/// Loads the workload, runs its calls from [`CLIENTS`] connections for `time`, and checks what must hold.
pub(super) async fn round(
    socket: &Path,
    workload: &dyn Workload,
    time: Duration,
    seed: u64,
    processor_seconds: &dyn Fn() -> f64,
) -> Result<Timed, PostgresError> {
    load(socket, workload).await?;
    run(socket, workload, time, seed, processor_seconds).await
}

/// Tables, procedures and rows of the workload, and nothing else.
pub(super) async fn load(socket: &Path, workload: &dyn Workload) -> Result<(), PostgresError> {
    set_up(&connect(socket).await?, workload).await
}

/// Runs the calls of a workload that is loaded.
pub(super) async fn run(
    socket: &Path,
    workload: &dyn Workload,
    time: Duration,
    seed: u64,
    processor_seconds: &dyn Fn() -> f64,
) -> Result<Timed, PostgresError> {
    let control = connect(socket).await?;
    let invariant = workload.invariant();
    let before = sum(&control, &invariant).await?;
    let plan = Arc::new(plan(workload, seed, time, invariant.change)?);
    let mut clients = Vec::with_capacity(CLIENTS);
    for number in 0..CLIENTS {
        clients.push(Caller::new(socket, plan.clone(), number).await?);
    }
    let warm = run_all(clients, Instant::now() + WARM_UP).await?;
    let (clients, warm): (Vec<Caller>, Vec<(Timed, i128)>) = warm.into_iter().unzip();
    let cpu = processor_seconds();
    let start = Instant::now();
    let done = run_all(clients, start + time).await?;
    let elapsed = start.elapsed().as_secs_f64();
    let mut all = Timed::nothing();
    let mut change: i128 = warm.iter().map(|(_, change)| change).sum();
    let mut callers = Vec::with_capacity(CLIENTS);
    for (caller, (timed, changed)) in done {
        all.add(&timed);
        change += changed;
        callers.push(caller);
    }
    all.seconds = time.as_secs_f64();
    // The connections are still open, so that their processes are still there to be counted.
    all.cpu_seconds = (processor_seconds() - cpu) * all.seconds / elapsed.max(all.seconds);
    drop(callers);
    all.invariant_holds = before.is_some()
        && sum(&control, &invariant).await? == before.map(|before| before + change)
        && conditions_hold(&control, &workload.conditions()).await?;
    Ok(all)
}

async fn conditions_hold(client: &Client, conditions: &[Condition]) -> Result<bool, PostgresError> {
    for Condition { query, .. } in conditions {
        let broken = client
            .query(query.as_str(), &[])
            .await
            .map_err(|error| PostgresError::Statement { statement: query.clone(), error })?;
        if !broken.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tables, procedures and rows in a schema that nothing is left in.
async fn set_up(client: &Client, workload: &dyn Workload) -> Result<(), PostgresError> {
    execute(client, "DROP SCHEMA public CASCADE; CREATE SCHEMA public").await?;
    for statement in workload.set_up() {
        execute(client, statement).await?;
    }
    let mut tables: Vec<&str> = Vec::new();
    for portion in workload.portions() {
        let statement = format!("COPY {} ({}) FROM STDIN", portion.table, portion.columns.join(", "));
        let refused = |error| PostgresError::Statement { statement: statement.clone(), error };
        let sink = client.copy_in(&statement).await.map_err(refused)?;
        let mut sink = std::pin::pin!(sink);
        let mut text = String::new();
        for row in &portion.rows {
            let values: Vec<String> = row.iter().map(copied).collect();
            text += &values.join("\t");
            text.push('\n');
        }
        sink.send(Bytes::from(text)).await.map_err(refused)?;
        sink.finish().await.map_err(refused)?;
        if !tables.contains(&portion.table) {
            tables.push(portion.table);
        }
    }
    execute(client, &format!("VACUUM ANALYZE {}", tables.join(", "))).await?;
    execute(client, "CHECKPOINT").await
}

/// A value in COPY's text format.
fn copied(value: &Value) -> String {
    let Some(text) = types::format_value(value) else { return "\\N".to_string() };
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}

fn plan(
    workload: &dyn Workload,
    seed: u64,
    time: Duration,
    change: fn(&str, &[Value], &Outcome) -> i128,
) -> Result<Plan, PostgresError> {
    let mut random = StdRng::seed_from_u64(seed);
    let count = ((WARM_UP + time).as_secs_f64() * CALLS_PER_SECOND) as u64;
    let mut calls = Vec::with_capacity(count as usize);
    let mut texts = BTreeMap::new();
    let statements = workload.set_up();
    for number in 0..count {
        let call = workload.call(number, &mut random);
        let arguments = call.arguments.iter().map(|value| {
            argument(value).ok_or_else(|| PostgresError::Argument {
                procedure: call.procedure.to_string(),
                found: format!("{value:?}"),
            })
        });
        let arguments: Vec<Argument> = arguments.collect::<Result<_, _>>()?;
        let types: Vec<DataType> = call.arguments.iter().map(Value::data_type).collect();
        texts
            .entry(call.procedure)
            .or_insert_with(|| text(call.procedure, &types, outputs(&statements, call.procedure)));
        calls.push(Prepared { procedure: call.procedure, values: call.arguments, arguments });
    }
    Ok(Plan { calls, texts, change })
}

fn argument(value: &Value) -> Option<Argument> {
    Some(match value {
        Value::BigInt(value) => Box::new(*value),
        Value::Integer(value) => Box::new(*value),
        Value::Text(value) => Box::new(value.to_string()),
        _ => return None,
    })
}

/// `CALL p($1, $2, NULL)`: PostgreSQL wants an argument for OUT parameters too.
fn text(procedure: &str, inputs: &[DataType], outputs: usize) -> String {
    let inputs = (1..).zip(inputs).map(|(number, data_type)| format!("${number}::{data_type}"));
    let arguments: Vec<String> = inputs.chain((0..outputs).map(|_| "NULL".to_string())).collect();
    format!("CALL {procedure}({})", arguments.join(", "))
}

/// OUT parameters of a procedure.
fn outputs(statements: &[&str], procedure: &str) -> usize {
    let header = format!("CREATE PROCEDURE {procedure}(");
    let definition =
        statements.iter().find_map(|statement| statement.split_once(&header)).map(|(_, rest)| rest);
    let parameters = definition.and_then(|rest| rest.split(')').next()).unwrap_or_default();
    parameters.split(',').filter(|parameter| parameter.trim().starts_with("OUT ")).count()
}

async fn sum(client: &Client, invariant: &Invariant) -> Result<Option<i128>, PostgresError> {
    let mut total = 0;
    for query in invariant.queries {
        let statement = format!("SELECT ({query})::text");
        let row = client
            .query_one(&statement, &[])
            .await
            .map_err(|error| PostgresError::Statement { statement, error })?;
        let Some(number) = row.get::<_, &str>(0).parse::<i128>().ok() else { return Ok(None) };
        total += number;
    }
    Ok(Some(total))
}

async fn run_all(
    clients: Vec<Caller>,
    until: Instant,
) -> Result<Vec<(Caller, (Timed, i128))>, PostgresError> {
    let tasks = clients.into_iter().map(|client| tokio::spawn(client.run(until)));
    let results = try_join_all(tasks).await.expect("clients do not panic");
    results.into_iter().collect()
}

/// One connection with its share of the calls.
struct Caller {
    client: Client,
    statements: BTreeMap<&'static str, Statement>,
    plan: Arc<Plan>,
    next: usize,
}

impl Caller {
    async fn new(socket: &Path, plan: Arc<Plan>, number: usize) -> Result<Caller, PostgresError> {
        let client = connect(socket).await?;
        let mut statements = BTreeMap::new();
        for (procedure, text) in &plan.texts {
            let statement = client
                .prepare(text)
                .await
                .map_err(|error| PostgresError::Statement { statement: text.clone(), error })?;
            statements.insert(*procedure, statement);
        }
        Ok(Caller { client, statements, plan, next: number })
    }

    /// Calls until the time is up; what ends later does not count. Also by how much the invariant's sum must have changed.
    async fn run(mut self, until: Instant) -> Result<(Caller, (Timed, i128)), PostgresError> {
        let plan = self.plan.clone();
        let (mut timed, mut change) = (Timed::nothing(), 0);
        while Instant::now() < until {
            let call = &plan.calls[self.next % plan.calls.len()];
            self.next += CLIENTS;
            let start = Instant::now();
            let (outcome, attempts) = self.call(call, until).await?;
            change += (plan.change)(call.procedure, &call.values, &outcome);
            if Instant::now() > until {
                break;
            }
            timed.transactions += 1;
            timed.executions += attempts;
            timed.conflict_aborts += attempts - u64::from(outcome != Outcome::Conflict);
            timed.reexecuted += u64::from(attempts > 1);
            match outcome {
                Outcome::Committed(_) => {
                    timed.committed += 1;
                    timed.count_call(call.procedure);
                    timed.latency.saturating_record(start.elapsed().as_micros() as u64);
                }
                _ => timed.business_aborts += 1,
            }
        }
        Ok((self, (timed, change)))
    }

    /// Calls until PostgreSQL does not give it up because of a conflict, or the time is up; also how often it was called.
    /// Calls that meet in hot rows in different orders deadlock, which PostgreSQL looks for after a second.
    async fn call(&self, call: &Prepared, until: Instant) -> Result<(Outcome, u64), PostgresError> {
        let parameters: Vec<&(dyn ToSql + Sync)> =
            call.arguments.iter().map(|argument| argument.as_ref() as &(dyn ToSql + Sync)).collect();
        let statement = &self.statements[call.procedure];
        let mut attempts = 0;
        loop {
            attempts += 1;
            let error = match self.client.query(statement, &parameters).await {
                Ok(rows) => {
                    let row = rows.first().map(|row| {
                        // What invariants look at is bigint.
                        let value = |column| {
                            row.try_get::<_, Option<i64>>(column)
                                .ok()
                                .flatten()
                                .map_or(Value::Null, Value::BigInt)
                        };
                        (0..row.len()).map(value).collect()
                    });
                    let rows = row.into_iter().collect();
                    return Ok((Outcome::Committed(vec![result(rows)]), attempts));
                }
                Err(error) => error,
            };
            match error.code() {
                Some(code)
                    if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED]
                        .contains(code) =>
                {
                    if Instant::now() > until {
                        return Ok((Outcome::Conflict, attempts));
                    }
                }
                // The contract or a constraint said no.
                Some(_) => return Ok((Outcome::Aborted(refused(&error)), attempts)),
                None => {
                    let statement = format!("CALL {}", call.procedure);
                    return Err(PostgresError::Statement { statement, error });
                }
            }
        }
    }
}

fn result(rows: Vec<Vec<Value>>) -> StatementResult {
    StatementResult { tag: "CALL".to_string(), columns: Vec::new(), rows, notices: Vec::new() }
}

fn refused(error: &tokio_postgres::Error) -> SqlError {
    SqlError::new(types::SqlState::RAISE_EXCEPTION, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::Postgres;

    #[test]
    fn calls_have_an_argument_for_every_parameter() {
        let ycsb = workloads::workload("ycsb", 10_000, 0.0).expect("valid");
        assert_eq!(outputs(&ycsb.set_up(), "ycsb_5"), 1);
        assert_eq!(outputs(&ycsb.set_up(), "ycsb_10"), 0);
        let types = [DataType::BigInt, DataType::Text(None)];
        assert_eq!(text("p", &types, 1), "CALL p($1::bigint, $2::text, NULL)");
    }

    #[test]
    fn workloads_keep_their_invariants_in_postgresql_and_the_server_is_gone_afterwards() {
        let postgres = Postgres::start().expect("PostgreSQL starts");
        // `ycsb-hotspot` has the tables and procedures of `ycsb`.
        for id in ["smallbank", "ycsb", "contention"] {
            let workload = workloads::workload(id, 2_000, 0.2).expect("valid");
            let timed = postgres.round(workload.as_ref(), 0.3, 1).expect("it runs");
            assert!(timed.committed > 0 && timed.invariant_holds, "{id}: {timed:?}");
            assert!(timed.executions >= timed.transactions);
        }
        let folder = postgres.socket_folder();
        drop(postgres);
        assert!(!folder.exists());
    }
}
