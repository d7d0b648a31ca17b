//! Limits, times and channels, each with its reason; and what the client library is told.

use super::KafkaSettings;
use commonware_runtime::Quota;
use rdkafka::ClientConfig;
use std::num::NonZeroU32;
use std::time::Duration;

/// The longest that whoever waits does so without a look at what else there is.
pub(super) const TICK: Duration = Duration::from_millis(20);
/// How long a start waits for brokers before it goes on without them.
pub(super) const FIRST_WAIT: Duration = Duration::from_secs(8);
/// How long a question to brokers may take.
pub(super) const ASK_WAIT: Duration = Duration::from_secs(5);
/// The pause between two tries to reach brokers.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// Records that are judged together.
pub(super) const READ_RECORDS: usize = 64;
/// Blocks on their way from the topic to the node.
pub(super) const FED_BLOCKS: usize = 16;
/// Blocks that the node has not made durable.
pub(super) const PENDING_BLOCKS: u64 = 16;
/// A node with more of them offers no transactions, so that clients learn that it is full.
pub(super) const BACKLOG_BLOCKS: u64 = 8;
/// Records that the brokers have not acknowledged. Five is what an idempotent producer has on its way.
pub(super) const OUTSTANDING: i32 = 5;
/// The pause between two records with transactions: a record costs each node a signature.
pub(super) const PAUSE: Duration = Duration::from_millis(4);
/// Members ask one after the other for a block to be cut, so far apart: more than a record takes through the brokers.
pub(super) const CUT_STEP: Duration = Duration::from_millis(40);
/// The same for an empty block, which nobody waits for.
pub(super) const IDLE_STEP: Duration = Duration::from_millis(250);
/// What has not come out of the topic after so long is said again.
pub(super) const SAY_AGAIN: Duration = Duration::from_secs(1);

/// Bytes of blocks in an answer to who lacks them; one block may be longer.
pub(super) const BACKFILL_BYTES: usize = 1024 * 1024;
/// Blocks in such an answer.
pub(super) const BACKFILL_BLOCKS: u64 = 64;
/// After so long somebody else is asked.
pub(super) const BACKFILL_WAIT: Duration = Duration::from_secs(1);
/// A member says that it is there so often.
pub(super) const PRESENCE: Duration = Duration::from_secs(1);

/// The longest message between members: a block of any ledger with its certificate, and what stands around them.
pub(super) fn max_message_size() -> u32 {
    const AROUND: usize = 16 * 1024;
    // What a certificate has of a record, and of a transaction that stands in another one.
    let proof = super::rule::PARTS_MAX * 256 + super::rule::LEFT_OUT_MAX * 40;
    let head = types::BlockHeader::BYTES + types::Attested::BYTES_MAX;
    types::limits::BLOCK_BYTES_MAX + (head + proof + AROUND) as u32
}

/// The channels between members, with messages per second and peer: blocks for who lacks them, messages to all nodes, messages
/// to one node.
pub(super) fn quotas() -> [(u64, Quota); 3] {
    [(0, 64), (1, 512), (2, 512)]
        .map(|(channel, rate)| (channel, Quota::per_second(NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN))))
}

/// What every client of the brokers is told.
fn client(settings: &KafkaSettings) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &settings.brokers)
        .set("client.id", "entente")
        .set("socket.keepalive.enable", "true")
        .set("reconnect.backoff.max.ms", "1000")
        .set("topic.metadata.refresh.interval.ms", "10000");
    config
}

/// A consumer that reads everything, from where it is told, and says when there is no more and when it cannot.
pub(super) fn consumer(settings: &KafkaSettings, record_bytes: u32) -> ClientConfig {
    let mut config = client(settings);
    let longest = (record_bytes.max(1024 * 1024) * 2).to_string();
    config
        // No group is joined: every node reads everything.
        .set("group.id", "entente")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "error")
        .set("allow.auto.create.topics", "false")
        .set("enable.partition.eof", "true")
        // What was aborted is read as well: every node has to see the same, whoever cleans up when.
        .set("isolation.level", "read_uncommitted")
        .set("check.crcs", "true")
        .set("fetch.wait.max.ms", "100")
        .set("fetch.message.max.bytes", &longest)
        .set("queued.max.messages.kbytes", "65536");
    config
}

/// A producer whose records are there once, in their order, on as many brokers as the topic asks for, however long it takes.
pub(super) fn producer(settings: &KafkaSettings, record_bytes: u32) -> ClientConfig {
    let mut config = client(settings);
    config
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("linger.ms", "0")
        .set("message.max.bytes", record_bytes.max(1_000_000).to_string())
        // Nothing is given up: what may have arrived must not be said twice.
        .set("message.timeout.ms", "0");
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::consumer::BaseConsumer;
    use rdkafka::producer::BaseProducer;

    #[test]
    fn the_library_knows_every_setting() {
        let settings = KafkaSettings::new("127.0.0.1:1", "topic");
        consumer(&settings, 9_000_000).create::<BaseConsumer>().expect("known settings");
        producer(&settings, 9_000_000).create::<BaseProducer>().expect("known settings");
    }
}
