//! A PostgreSQL server of the test's own, asked one statement after the other.

use bench::postgres_server;
use servers::PostgresServer;
use tokio::runtime::Runtime;
use tokio_postgres::error::DbError;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// What a statement gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Rows(Vec<Vec<Option<String>>>),
    Error { state: String, message: String },
}

impl Answer {
    pub fn sort(&mut self) {
        if let Answer::Rows(rows) = self {
            rows.sort();
        }
    }
}

pub struct Postgres {
    runtime: Runtime,
    client: Client,
    // Behind the client: it is stopped last. None: somebody else keeps it.
    _server: Option<PostgresServer>,
}

impl Postgres {
    /// A new server with these tables.
    pub fn with(schema: &[&str]) -> Postgres {
        let server = postgres_server(&[]).unwrap_or_else(|error| panic!("{error}"));
        let mut postgres = Postgres::of(&server, "postgres");
        postgres._server = Some(server);
        postgres.run("SET TimeZone = 'UTC'");
        postgres.run("SET synchronous_commit = off");
        schema.iter().for_each(|statement| postgres.run(statement));
        postgres
    }

    /// A connection to a database of a server that lives longer.
    pub fn of(server: &PostgresServer, database: &str) -> Postgres {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let mut config = Config::new();
        config.host_path(server.socket_folder()).user("postgres").dbname(database);
        let client = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await.expect("a server that is ready");
            tokio::spawn(connection);
            client
        });
        Postgres { runtime, client, _server: None }
    }

    /// All that the server says to a script.
    pub fn messages(&self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Box<DbError>> {
        self.runtime.block_on(self.client.simple_query(sql)).map_err(|error| {
            Box::new(error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error}")).clone())
        })
    }

    pub fn ask(&self, sql: &str) -> Answer {
        let messages = match self.messages(sql) {
            Ok(messages) => messages,
            Err(refusal) => {
                return Answer::Error {
                    state: refusal.code().code().to_string(),
                    message: refusal.message().to_string(),
                };
            }
        };
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_string)).collect())
            }
            _ => None,
        });
        Answer::Rows(rows.collect())
    }

    /// Something that must succeed.
    pub fn run(&self, sql: &str) {
        if let Answer::Error { message, .. } = self.ask(sql) {
            panic!("{sql}: {message}");
        }
    }
}
