//! Every stated limit of the gateway. What exceeds one gets an error that names it.

use std::time::Duration;

/// Bytes of the rows of one COPY to a temporary table.
pub const TEMPORARY_COPY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Sessions at the same time where `node.toml` says nothing else; one more gets `53300`.
pub const CONNECTIONS_MAX: usize = 2_000;
/// Connections of one port that have not started their session yet, or over HTTP not said whether they speak TLS, and done its handshake; where there are more the oldest is closed. A client takes
/// milliseconds here, so that who only holds connections keeps nobody out.
pub const STARTING_MAX: usize = 500;
/// Bytes of one message from a client, CopyData included; a longer one ends the connection with `08P01`.
pub const MESSAGE_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Bytes of the message that starts a session.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// Bytes of one message of authentication.
pub const AUTHENTICATION_BYTES_MAX: usize = 4_096;
/// Time that a client has to start its session, authentication included; over HTTP, to say whether it speaks TLS, and for the handshake.
pub const STARTUP_TIME_MAX: Duration = Duration::from_secs(10);
/// Time that a client may take to read what it was sent.
pub const WRITE_TIME_MAX: Duration = Duration::from_secs(300);
/// Bytes of a query string; a longer one gets `54000`.
pub const STATEMENT_BYTES_MAX: usize = types::limits::TRANSACTION_BYTES_MAX;
/// Bytes of a prepared statement with a name, which a session keeps; a longer one gets `54000`.
pub const PREPARED_STATEMENT_BYTES_MAX: usize = 1024 * 1024;
/// Statements in one query string; more get `54000`.
pub const STATEMENTS_MAX: usize = 10_000;
/// Prepared statements of a session; more get `54000`.
pub const PREPARED_STATEMENTS_MAX: usize = 2_000;
/// Portals of a session; more get `54000`.
pub const PORTALS_MAX: usize = 500;
/// Times that a statement is run which is a block of its own, as long as others change what it reads; then its client gets `40001`.
pub const BLOCK_TRIES_MAX: u32 = 10;
/// Open cursors of a session; more get `54000`.
pub const CURSORS_MAX: usize = 256;
/// Values in the rows of all open cursors of a session, which are in memory; more get `54000`.
pub const CURSOR_VALUES_MAX: usize = 1 << 23;
/// Channels on which a session listens; more get `54000`.
pub const CHANNELS_MAX: usize = 1_000;
/// Bytes of notifications that wait for a session that does not take them; with more it is ended with `53400`.
pub const LISTENER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Time between two looks at a lock that a statement waits for, whatever blocks come.
pub const LOCK_ASKED_AGAIN_MIN: Duration = Duration::from_millis(10);
/// The same where a transaction has not had the lock that its node took for free: the time of blocks may be behind the node's clock.
pub const LOCK_REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// The longest time where no block comes: a lock may have run out.
pub const LOCK_ASKED_AGAIN_MAX: Duration = Duration::from_secs(1);
/// What a notification that waits counts besides its text.
pub const NOTIFICATION_SPACE: usize = 96;
/// Bytes of a value of a session setting.
pub const SETTING_BYTES_MAX: usize = 1_000;
/// Time that a session may leave a transaction block without a message, whatever `idle_in_transaction_session_timeout`
/// says: a block keeps a snapshot.
pub const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_secs(3600);
/// Time that a read waits for the height that `entente.min_height` asks for.
pub const MIN_HEIGHT_WAIT_MAX: Duration = Duration::from_secs(10);
/// Bytes of the rows of one transaction that COPY makes.
pub const COPY_CHUNK_BYTES: usize = 96 * 1024;
/// The same of a table in a schema with members: below PART_BYTES_MAX with everything that stands around the rows.
pub const PRIVATE_COPY_CHUNK_BYTES: usize = 40 * 1024;
/// Transactions of one COPY that wait at the same time.
pub const COPY_CHUNKS_IN_FLIGHT: usize = 4;
/// Bytes of one line of COPY data.
pub const COPY_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Requests over HTTP at the same time, without submissions and those for endorsements; one more gets 503.
pub const HTTP_REQUESTS_MAX: usize = 256;
/// Submissions over HTTP at the same time.
pub const HTTP_SUBMISSIONS_MAX: usize = 256;
/// Requests for endorsements at the same time.
pub const HTTP_PROPOSALS_MAX: usize = 64;
/// Time for the body of a request over HTTP to arrive.
pub const HTTP_BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// Connections over HTTP at the same time, whether something is asked on them or not; one more gets 503.
pub const HTTP_CONNECTIONS_MAX: usize = 1_000;
/// Time between two requests on one connection, and for the head of a request to arrive. Common clients give up idle connections sooner.
pub const HTTP_IDLE_TIME_MAX: Duration = Duration::from_secs(120);
