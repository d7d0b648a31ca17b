//! What a client sends up to Sync is one transaction, message by message: batches and pipelines of drivers.

mod fake;
mod talk;

use fake::{Fake, serve};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use talk::{Talk, bind, execute, message};
use types::{Payload, SessionStep, Value};

async fn started() -> (Arc<Fake>, Talk) {
    let fake = Arc::new(Fake::default());
    let (port, _) = serve(Arc::clone(&fake)).await;
    (fake, Talk::start(port).await)
}

fn payloads(fake: &Fake) -> Vec<Payload> {
    std::mem::take(&mut *fake.payloads.lock().expect("no panic"))
}

fn run(sql: &str) -> SessionStep {
    SessionStep::Run { sql: sql.to_string(), parameters: vec![] }
}

fn parse(sql: &str) -> Vec<u8> {
    message(b'P', format!("\0{sql}\0\0\0").as_bytes())
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// Parse, Bind and Execute of each.
fn statements(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().flat_map(|sql| [parse(sql), bind(), execute(0)]).collect()
}

impl Talk {
    /// Sends statements up to Sync at once.
    async fn pipeline(&mut self, all: &[&str]) -> String {
        self.send(&[statements(all), vec![sync()]].concat()).await;
        self.heard().await
    }

    /// What came, without the heights at which transactions have committed.
    async fn heard(&mut self) -> String {
        let answer = self.answer().await;
        let word = |word: &str| {
            if word.starts_with("entente.last_height") { "committed".to_string() } else { word.to_string() }
        };
        answer.split(", ").map(word).collect::<Vec<_>>().join(", ")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_up_to_sync_are_one_transaction() {
    let (fake, mut talk) = started().await;
    let answer = talk.pipeline(&["insert into t values (1)", "select series 2", "delete from t"]).await;
    assert_eq!(answer, "INSERT 0 1, row, row, SELECT 2, DELETE 1, committed, I");
    let sent = payloads(&fake);
    let [Payload::Session { steps, .. }] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(*steps, ["insert into t values (1)", "select series 2", "delete from t"].map(run));
    // What only reads is no transaction of the ledger.
    assert_eq!(
        talk.pipeline(&["select series 1", "select series 1"]).await,
        "row, SELECT 1, row, SELECT 1, I"
    );
    assert!(payloads(&fake).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_undoes_what_came_before_it_and_leaves_out_the_rest() {
    let (fake, mut talk) = started().await;
    let all = [
        "insert into t values (1)",
        "SET application_name = 'x'",
        "insert into fail values (1)",
        "delete from t",
    ];
    let answer = talk.pipeline(&all).await;
    assert_eq!(answer, "INSERT 0 1, application_name=x, SET, error 23514, application_name=, I");
    // An error of Parse does the same.
    assert_eq!(talk.pipeline(&["insert into t values (1)", "selec"]).await, "INSERT 0 1, error 42601, I");
    assert!(payloads(&fake).is_empty());
    // The next one is not touched by that.
    assert_eq!(talk.pipeline(&["delete from t"]).await, "committed, DELETE 1, I");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_alone_up_to_sync_needs_no_block() {
    let (fake, mut talk) = started().await;
    let insert = "insert into t values (1)";
    let close = message(b'C', b"P\0");
    // However its messages come.
    let one = statements(&[insert]);
    talk.send(&[one.clone(), vec![close.clone(), sync()]].concat()).await;
    assert_eq!(talk.heard().await, "committed, INSERT 0 1, I");
    talk.send(&[one.clone(), vec![message(b'H', b""), sync()]].concat()).await;
    assert_eq!(talk.heard().await, "committed, INSERT 0 1, I");
    talk.send(&[one, vec![close[..3].to_vec()]].concat()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    talk.send(&[close[3..].to_vec(), sync()]).await;
    assert_eq!(talk.heard().await, "committed, INSERT 0 1, I");
    let alone = |payload: &Payload| {
        *payload == Payload::Script { sql: insert.to_string(), parameters: Vec::<Value>::new() }
    };
    let sent = payloads(&fake);
    assert!(sent.len() == 3 && sent.iter().all(alone), "{sent:?}");
    assert_eq!(fake.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn flush_gives_answers_while_the_transaction_is_open() {
    let (fake, mut talk) = started().await;
    talk.send(&[statements(&["insert into t values (1)"]), vec![message(b'H', b"")]].concat()).await;
    // ParseComplete, BindComplete, CommandComplete.
    for expected in [b'1', b'2', b'C'] {
        assert_eq!(talk.read().await.expect("an answer").0, expected);
    }
    assert!(payloads(&fake).is_empty(), "it waits for Sync");
    assert_eq!(talk.pipeline(&["delete from t"]).await, "DELETE 1, committed, I");
    assert_eq!(payloads(&fake).len(), 1);
    // Who goes without Sync has done nothing.
    talk.send(
        &[statements(&["insert into t values (1)"]), vec![message(b'H', b""), message(b'X', b"")]].concat(),
    )
    .await;
    assert_eq!(talk.answer().await, "INSERT 0 1");
    assert!(payloads(&fake).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn begin_and_commit_inside_of_a_pipeline_do_what_they_do_in_postgresql() {
    let (fake, mut talk) = started().await;
    let (insert, delete) = ("insert into t values (1)", "delete from t");
    // BEGIN takes what came in front of it into its block.
    assert_eq!(talk.pipeline(&[insert, "BEGIN", delete]).await, "INSERT 0 1, BEGIN, DELETE 1, T");
    assert!(payloads(&fake).is_empty());
    assert_eq!(talk.pipeline(&["COMMIT"]).await, "committed, COMMIT, I");
    assert_eq!(payloads(&fake).len(), 1);
    // COMMIT ends what nobody has begun, and says so.
    let answer = talk.pipeline(&[insert, "COMMIT", delete]).await;
    assert_eq!(answer, "INSERT 0 1, warning 25P01, committed, COMMIT, committed, DELETE 1, I");
    assert_eq!(payloads(&fake).len(), 2);
    assert_eq!(
        talk.pipeline(&[insert, "ROLLBACK", "select 1"]).await,
        "INSERT 0 1, warning 25P01, ROLLBACK, row, SELECT 1, I"
    );
    assert_eq!(talk.pipeline(&[insert, "SAVEPOINT a"]).await, "INSERT 0 1, error 25P01, I");
    assert_eq!(talk.pipeline(&["BEGIN", insert, "COMMIT"]).await, "BEGIN, INSERT 0 1, committed, COMMIT, I");
    // A query string ends the transaction that it comes into.
    talk.send(&statements(&[insert])).await;
    talk.send(&[message(b'Q', b"delete from t\0")]).await;
    assert_eq!(talk.heard().await, "INSERT 0 1, DELETE 1, committed, I");
    assert_eq!(talk.query("select 1").await, "row, SELECT 1, I");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_cannot_be_committed_is_told_at_sync() {
    let (fake, mut talk) = started().await;
    fake.conflicting.store(true, Ordering::SeqCst);
    assert_eq!(
        talk.pipeline(&["insert into t values (1)", "delete from t"]).await,
        "INSERT 0 1, DELETE 1, error 40001, I"
    );
    fake.conflicting.store(false, Ordering::SeqCst);
    assert_eq!(talk.pipeline(&["select 1"]).await, "row, SELECT 1, I");
}
