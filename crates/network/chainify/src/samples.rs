//! A table and databases of both kinds, for tests of this crate's parts.

use crate::address::Address;
use servers::{MariaDbServer, PostgresServer};
use std::sync::Arc;
use types::{Column, DataType, Key, Row, Table, TableId, Value};

/// Accounts: a number and a balance.
pub(crate) fn table() -> Arc<Table> {
    let column = |name: &str| Column {
        name: name.to_string(),
        data_type: DataType::BigInt,
        not_null: true,
        default: None,
        generated: false,
    };
    Arc::new(Table {
        id: TableId(7),
        name: "checking".to_string(),
        columns: vec![column("customer_id"), column("balance")],
        primary_key: vec![0],
        primary_key_name: String::new(),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    })
}

pub(crate) fn row(id: i64, balance: i64) -> Row {
    [Value::BigInt(id), Value::BigInt(balance)].into()
}

pub(crate) fn key(id: i64) -> Key {
    Key::encode(&[Value::BigInt(id)]).expect("a short key")
}

/// A server of each kind with an empty database.
pub(crate) struct Servers {
    postgres: PostgresServer,
    mariadb: MariaDbServer,
}

impl Servers {
    pub(crate) fn start() -> Servers {
        let postgres = PostgresServer::start(&["shared_buffers=256MB"], false);
        let mariadb = MariaDbServer::start(&["innodb-buffer-pool-size=512M"], false);
        let mariadb = mariadb.unwrap_or_else(|error| panic!("{error}"));
        mariadb.create_database("shop").unwrap_or_else(|error| panic!("{error}"));
        Servers { postgres: postgres.unwrap_or_else(|error| panic!("{error}")), mariadb }
    }

    pub(crate) fn addresses(&self) -> [Address; 2] {
        let (postgres, mariadb) = (self.postgres.socket_folder(), self.mariadb.socket());
        [
            format!("postgres://postgres@localhost/postgres?socket={}", postgres.display()),
            format!("mariadb://root@localhost/shop?socket={}", mariadb.display()),
        ]
        .map(|address| address.parse().expect("an address"))
    }
}
