//! A gateway in front of the database, and sessions of it.

use super::*;
use tokio_postgres::{Client, NoTls};

/// A gateway in front of `fake`: ports of Postgres and HTTP.
pub async fn serve(fake: Arc<Fake>) -> (u16, u16) {
    serve_with(fake, Access::default()).await
}

/// A gateway that lets in whom `access` says.
pub async fn serve_with(fake: Arc<Fake>, access: Access) -> (u16, u16) {
    let database: Arc<dyn Database> = fake;
    let postgres = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ports = (postgres.local_addr().unwrap().port(), http.local_addr().unwrap().port());
    let access = SharedAccess::from(access);
    tokio::spawn(gateway::serve_postgres(postgres, Arc::clone(&database), access.clone()));
    tokio::spawn(gateway::serve_http(http, database, access));
    ports
}

/// A session of `ada`.
pub async fn connect(port: u16) -> Client {
    let config = format!("host=127.0.0.1 port={port} user=ada dbname=any application_name=tests");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A gateway in front of a new database, and a session of it.
pub async fn started() -> (Arc<Fake>, Client) {
    let (fake, client, _) = started_at().await;
    (fake, client)
}

/// The same, and the port of Postgres.
pub async fn started_at() -> (Arc<Fake>, Client, u16) {
    let fake = Arc::new(Fake::default());
    let (port, _) = serve(Arc::clone(&fake)).await;
    (fake, connect(port).await, port)
}
