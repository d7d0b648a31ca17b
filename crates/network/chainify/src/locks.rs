//! Who may hold the locks that the writer waits for.

use crate::DatabaseError;
use crate::address::{Address, Kind};
use crate::session;

/// The same error with whoever has transactions open that have lasted. Their statements are not shown: they are the organisation's
/// affair.
pub(crate) fn explained(address: &Address, error: DatabaseError) -> DatabaseError {
    let holders = holders(address).unwrap_or_default();
    match holders.is_empty() {
        true => error,
        false => DatabaseError {
            message: format!("{}; held, it seems, by {}", error.message, holders.join(", ")),
            ..error
        },
    }
}

fn holders(address: &Address) -> Result<Vec<String>, DatabaseError> {
    let mut session = session::connect(address)?;
    let sql = match address.kind {
        Kind::Postgres => {
            "SELECT 'process ' || pid || ' of ' || usename || coalesce(' (' || nullif(application_name, '') || ')', '') \
             || ', whose transaction is open since ' || to_char(xact_start, 'HH24:MI:SS') \
             FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
             AND xact_start < clock_timestamp() - interval '2 seconds' AND application_name <> 'entente' \
             ORDER BY xact_start LIMIT 3"
        }
        Kind::MariaDb => {
            "SELECT CONCAT('thread ', t.trx_mysql_thread_id, ' of ', COALESCE(p.USER, '?'), ', whose transaction is open since ', \
             t.trx_started) FROM information_schema.INNODB_TRX t \
             LEFT JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id \
             WHERE t.trx_started < NOW() - INTERVAL 2 SECOND AND t.trx_mysql_thread_id <> CONNECTION_ID() \
             ORDER BY t.trx_started LIMIT 3"
        }
    };
    Ok(session.query(sql)?.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}
