//! Any bytes to the Postgres port: first a startup of the input's choice, then messages.
#![no_main]

#[path = "../../crates/network/gateway/tests/fake/mod.rs"]
mod fake;

use fake::Fake;
use gateway::{Access, Authentication, PostgresServer};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"));

const STARTUP: &[u8] = b"\0\0\0\x12\0\x03\0\0user\0ada\0\0";

fuzz_target!(|data: &[u8]| {
    let Some((mode, data)) = data.split_first() else { return };
    let authentication = if mode & 2 == 0 { Authentication::Trust } else { Authentication::ScramSha256 };
    let access = Access { authentication, ..Access::default() };
    RUNTIME.block_on(async {
        let server = PostgresServer::new(Arc::new(Fake::default()), access);
        let (mut client, stream) = tokio::io::duplex(1 << 20);
        let sent = async {
            if mode & 1 == 0 {
                let _ = client.write_all(STARTUP).await;
            }
            let _ = client.write_all(data).await;
            let _ = client.shutdown().await;
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer).await;
            assert!(answer.len() < 1 << 26, "an answer of {} bytes", answer.len());
        };
        let both = async { tokio::join!(server.serve(stream, true), sent) };
        tokio::time::timeout(Duration::from_secs(20), both)
            .await
            .expect("the connection ends when its client has gone");
    });
});
