//! Looks at the topic before anything of it is believed: its settings, where it begins and ends, and whether it is the one that
//! this node's ledger was cut from.

use super::config::{AGAIN, ASK_WAIT, consumer};
use super::record::{Record, record_bytes_max};
use super::{KafkaSettings, Proof};
use crate::OrderingError;
use bytes::Bytes;
use crypto::{Digest, Signature};
use futures::executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The only partition: an order has no others.
const PARTITION: i32 = 0;

/// What the library says, where ours stands.
pub(super) struct ToTracing;

impl ClientContext for ToTracing {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::warn!(target: "kafka", facility, "{message}");
            }
            _ => tracing::debug!(target: "kafka", facility, "{message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "kafka", %error, "{reason}");
    }
}

impl ConsumerContext for ToTracing {}

/// Reads the topic.
pub(super) type Reader = BaseConsumer<ToTracing>;

/// Where this node stands.
#[derive(Clone, Debug)]
pub(super) struct Stand {
    pub ledger: Digest,
    /// Height of its last block.
    pub height: u64,
    /// The offset of the record with which the next block begins.
    pub next: u64,
    /// Where the last record of the last block stands, and how it is signed.
    pub last: Option<(u64, Signature)>,
    /// What blocks may have of transactions.
    pub block_bytes_max: u32,
}

impl Stand {
    /// Behind a block with this proof.
    pub(super) fn behind(&mut self, height: u64, proof: &Proof) {
        (self.height, self.next, self.last) = (height, proof.next, proof.last());
    }
}

/// What a look at the topic has come to.
pub(super) enum Look {
    /// It is read from where this node stands.
    Ready(Reader),
    /// It begins behind where this node stands.
    Truncated { begins: u64 },
    /// Nobody answers, or not with enough; this may pass.
    Later(String),
}

/// Looks at the topic, within a time.
///
/// # Errors
/// It is not as it has to be, or not this ledger's.
pub(super) fn look(settings: &KafkaSettings, stand: &Stand, wait: Duration) -> Result<Look, OrderingError> {
    let until = Instant::now() + wait;
    let record_bytes = record_bytes_max(stand.block_bytes_max);
    let made = consumer(settings, record_bytes).create_with_context::<_, Reader>(ToTracing);
    let reader = made.map_err(|error| OrderingError::Settings(error.to_string()))?;
    let left = || until.saturating_duration_since(Instant::now()).min(ASK_WAIT);
    let unreachable = |error: KafkaError| {
        Look::Later(format!(
            "the brokers at {} do not answer ({error}); blocks go on when they do",
            settings.brokers
        ))
    };
    let metadata = match reader.fetch_metadata(Some(&settings.topic), left()) {
        Ok(metadata) => metadata,
        Err(error) => return Ok(unreachable(error)),
    };
    let Some(topic) = metadata.topics().first() else {
        return Ok(unreachable(KafkaError::NoMessageReceived));
    };
    match topic.error().map(RDKafkaErrorCode::from) {
        None => {}
        // A broker hears of a new topic after the others.
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
            return match Instant::now() + AGAIN < until {
                true => {
                    std::thread::sleep(AGAIN);
                    look(settings, stand, until.saturating_duration_since(Instant::now()).min(2 * AGAIN))
                }
                false => Err(missing(settings, stand.block_bytes_max)),
            };
        }
        Some(code) => return Ok(unreachable(KafkaError::MetadataFetch(code))),
    }
    let replicas = topic.partitions().first().map_or(0, |partition| partition.replicas().len());
    check_partitions(settings, topic.partitions().len(), replicas)?;
    match values(settings, left()) {
        Ok(values) => check_values(settings, &values, replicas, record_bytes)?,
        Err(error) => return Ok(unreachable(error)),
    }
    let (begins, ends) = match ends(&reader, settings, stand.next, left()) {
        Ok(ends) => ends,
        Err(error) => return Ok(unreachable(error)),
    };
    if ends < stand.next {
        let expected =
            format!("records up to offset {}, of which this node's ledger has blocks", stand.next - 1);
        return Err(another(settings, &expected, format!("{ends} as the next one's offset")));
    }
    if stand.next < begins {
        return Ok(Look::Truncated { begins });
    }
    match confirm(settings, &reader, stand, (begins, ends), left())? {
        Some(later) => return Ok(Look::Later(later)),
        None => assign(&reader, &settings.topic, stand.next)?,
    }
    Ok(Look::Ready(reader))
}

/// Where the topic begins and ends. A broker that leads since a moment ago may not know all of it yet, so one that ends too early
/// is asked again.
fn ends(
    reader: &Reader,
    settings: &KafkaSettings,
    expected: u64,
    wait: Duration,
) -> Result<(u64, u64), KafkaError> {
    let until = Instant::now() + wait;
    loop {
        let (begins, ends) = reader.fetch_watermarks(&settings.topic, PARTITION, ASK_WAIT)?;
        let (begins, ends) = (begins.max(0) as u64, ends.max(0) as u64);
        if ends >= expected || Instant::now() + AGAIN > until {
            return Ok((begins, ends));
        }
        std::thread::sleep(AGAIN);
    }
}

/// Reads the record that the last block's certificate names, or the first of a topic that this node has no block of: it has to be the
/// same, or of this ledger. What keeps from it, if something does.
fn confirm(
    settings: &KafkaSettings,
    reader: &Reader,
    stand: &Stand,
    (begins, ends): (u64, u64),
    wait: Duration,
) -> Result<Option<String>, OrderingError> {
    let at = match stand.last {
        Some((offset, _)) if offset >= begins => offset,
        // Nothing can be said of what is gone.
        Some(_) => return Ok(None),
        None if ends > begins => begins,
        None => return Ok(None),
    };
    let (found, bytes) = match record_at(reader, &settings.topic, at, wait)? {
        Ok(record) => record,
        Err(later) => return Ok(Some(later)),
    };
    let record = Record::from_bytes(&bytes);
    match (stand.last, record) {
        (Some((_, signature)), Ok(record)) if found == at && record.signature == signature => Ok(None),
        (None, Ok(record)) if record.ledger == stand.ledger => Ok(None),
        (Some(_), record) => {
            let expected = format!("at offset {at} the last record of block {}", stand.height);
            Err(another(settings, &expected, describe(found, &record)))
        }
        (None, record) => {
            let expected = format!("records of ledger {}", stand.ledger);
            let remedy = "give each ledger a topic of its own".to_string();
            let topic = settings.topic.clone();
            Err(OrderingError::Topic { topic, expected, found: describe(found, &record), remedy })
        }
    }
}

fn describe(offset: u64, record: &Result<Record, String>) -> String {
    match record {
        Ok(record) => format!(
            "at offset {offset} a record that organisation {} of ledger {} offered for block {}",
            record.statement.member, record.ledger, record.statement.height
        ),
        Err(reason) => format!("at offset {offset} something else: {reason}"),
    }
}

/// The first record at an offset or behind it, or what keeps from it.
fn record_at(
    reader: &Reader,
    topic: &str,
    offset: u64,
    wait: Duration,
) -> Result<Result<(u64, Bytes), String>, OrderingError> {
    assign(reader, topic, offset)?;
    let until = Instant::now() + wait.max(Duration::from_secs(2));
    while Instant::now() < until {
        match reader.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                let bytes = Bytes::copy_from_slice(message.payload().unwrap_or_default());
                return Ok(Ok((message.offset().max(0) as u64, bytes)));
            }
            Some(Err(error)) => tracing::debug!(%error, "the topic is not read yet"),
            None => {}
        }
    }
    Ok(Err(format!("the brokers do not give the record at offset {offset} of topic {topic}")))
}

/// Has everything from an offset on read.
pub(super) fn assign(reader: &Reader, topic: &str, offset: u64) -> Result<(), OrderingError> {
    let mut list = TopicPartitionList::new();
    let added = list.add_partition_offset(topic, PARTITION, Offset::Offset(offset as i64));
    let assigned = added.and_then(|()| reader.assign(&list));
    assigned.map_err(|error| OrderingError::Ended(format!("the topic cannot be read from {offset}: {error}")))
}

/// The topic was made anew, or has lost what it had acknowledged.
fn another(settings: &KafkaSettings, expected: &str, found: String) -> OrderingError {
    OrderingError::Topic {
        topic: settings.topic.clone(),
        expected: expected.to_string(),
        found,
        remedy: "the topic was made anew, is another ledger's, or its brokers have lost records: give the node the topic that the \
                 ledger was ordered by, restored if need be; where it is lost, found a new ledger and load the rows of this one"
            .to_string(),
    }
}

fn missing(settings: &KafkaSettings, block_bytes_max: u32) -> OrderingError {
    OrderingError::Topic {
        topic: settings.topic.clone(),
        expected: format!("a topic of this name at {}", settings.brokers),
        found: "none".to_string(),
        remedy: format!("make it: {}", creation(settings, settings.replicas_min, block_bytes_max)),
    }
}

fn check_partitions(
    settings: &KafkaSettings,
    partitions: usize,
    replicas: usize,
) -> Result<(), OrderingError> {
    let wrong = |expected: String, found: String, remedy: &str| {
        Err(OrderingError::Topic {
            topic: settings.topic.clone(),
            expected,
            found,
            remedy: remedy.to_string(),
        })
    };
    if partitions != 1 {
        let remedy = "make a new topic with one partition; records of several have no order";
        return wrong("1 partition".to_string(), partitions.to_string(), remedy);
    }
    let least = usize::from(settings.replicas_min);
    if replicas < least {
        let remedy = "have more brokers keep it (kafka-reassign-partitions.sh), or set kafka.replicas_min in node.toml if \
                      losing the ledger's order with one disk is acceptable";
        return wrong(format!("at least {least} replicas"), replicas.to_string(), remedy);
    }
    Ok(())
}

/// How the topic has to be set, but for what depends on the number of replicas and the length of blocks.
const SETTINGS: [(&str, &str); 5] = [
    ("cleanup.policy", "delete"),
    ("message.timestamp.type", "LogAppendTime"),
    ("retention.ms", "-1"),
    ("retention.bytes", "-1"),
    ("unclean.leader.election.enable", "false"),
];

/// How many replicas have to be in step.
fn in_sync_min(replicas: usize) -> usize {
    replicas / 2 + 1
}

fn check_values(
    settings: &KafkaSettings,
    values: &BTreeMap<String, String>,
    replicas: usize,
    record_bytes: u32,
) -> Result<(), OrderingError> {
    let value = |name: &str| values.get(name).map_or("", String::as_str);
    let wrong = |name: &str, expected: String, why: &str| {
        Err(OrderingError::Topic {
            topic: settings.topic.clone(),
            expected: format!("{name} = {expected}"),
            found: value(name).to_string(),
            remedy: format!("{why}; kafka-configs.sh --alter --entity-type topics changes it"),
        })
    };
    for (name, expected) in SETTINGS {
        let may_end = settings.finite_retention && name.starts_with("retention.");
        if value(name) == expected || may_end {
            continue;
        }
        let why = match name {
            "cleanup.policy" => "nodes that lack blocks cut them from all records, in their order",
            "message.timestamp.type" => "blocks take their time from the brokers' clock",
            "unclean.leader.election.enable" => {
                "a broker that lacks records would take acknowledged ones back"
            }
            _ => {
                "nodes that lack blocks need all records, or others that have the blocks: kafka.finite_retention = true in \
                  node.toml says that this is meant"
            }
        };
        return wrong(name, expected.to_string(), why);
    }
    let number = |name: &str| value(name).parse::<u64>().unwrap_or(0);
    let least = in_sync_min(replicas);
    if number("min.insync.replicas") < least as u64 {
        let why = "what one broker alone has acknowledged is lost with it";
        return wrong("min.insync.replicas", format!("at least {least}"), why);
    }
    if number("max.message.bytes") < u64::from(record_bytes) {
        let why = "a record has up to a block's transactions, and their certificates";
        return wrong("max.message.bytes", format!("at least {record_bytes}"), why);
    }
    Ok(())
}

/// What the topic is set to.
fn values(settings: &KafkaSettings, wait: Duration) -> Result<BTreeMap<String, String>, KafkaError> {
    let admin = admin(settings)?;
    let options = AdminOptions::new().request_timeout(Some(wait));
    let described = block_on(admin.describe_configs([&ResourceSpecifier::Topic(&settings.topic)], &options))?;
    let resource = described.into_iter().next().ok_or(KafkaError::NoMessageReceived)?;
    let resource = resource.map_err(KafkaError::AdminOp)?;
    let entries = resource.entries.into_iter();
    Ok(entries.filter_map(|entry| Some((entry.name, entry.value?))).collect())
}

fn admin(settings: &KafkaSettings) -> Result<AdminClient<DefaultClientContext>, KafkaError> {
    rdkafka::ClientConfig::new().set("bootstrap.servers", &settings.brokers).create()
}

/// The command that makes a topic as a ledger needs it.
pub fn creation(settings: &KafkaSettings, replicas: u16, block_bytes_max: u32) -> String {
    let values: Vec<String> = (SETTINGS.into_iter())
        .map(|(name, value)| format!("--config {name}={value}"))
        .chain([
            format!("--config min.insync.replicas={}", in_sync_min(replicas.into())),
            format!("--config max.message.bytes={}", record_bytes_max(block_bytes_max)),
        ])
        .collect();
    format!(
        "kafka-topics.sh --bootstrap-server {} --create --topic {} --partitions 1 --replication-factor {replicas} {}",
        settings.brokers,
        settings.topic,
        values.join(" ")
    )
}

/// Where the broker listens that leads the topic: `host:port`.
///
/// # Errors
/// What the brokers say.
pub fn leader(settings: &KafkaSettings) -> Result<String, OrderingError> {
    let ended = |what: String| {
        OrderingError::Ended(format!("who leads topic {} is not known: {what}", settings.topic))
    };
    let made = consumer(settings, 0).create_with_context::<_, Reader>(ToTracing);
    let reader = made.map_err(|error| ended(error.to_string()))?;
    let metadata =
        reader.fetch_metadata(Some(&settings.topic), ASK_WAIT).map_err(|error| ended(error.to_string()))?;
    let partition = metadata.topics().first().and_then(|topic| topic.partitions().first());
    let leads = |broker: &&rdkafka::metadata::MetadataBroker| {
        partition.is_some_and(|partition| partition.leader() == broker.id())
    };
    let found = metadata.brokers().iter().find(leads);
    found
        .map(|broker| format!("{}:{}", broker.host(), broker.port()))
        .ok_or_else(|| ended("nobody does".to_string()))
}

/// Makes a topic as a ledger needs it, on so many brokers each; for whoever starts brokers of its own. `changes` are said behind what a
/// ledger needs.
///
/// # Errors
/// What the brokers say.
pub fn create_topic(
    settings: &KafkaSettings,
    replicas: u16,
    block_bytes_max: u32,
    changes: &[(&str, &str)],
) -> Result<(), OrderingError> {
    let (in_sync, bytes) =
        (in_sync_min(replicas.into()).to_string(), record_bytes_max(block_bytes_max).to_string());
    let mut topic = NewTopic::new(&settings.topic, 1, TopicReplication::Fixed(replicas.into()));
    let own = [("min.insync.replicas", in_sync.as_str()), ("max.message.bytes", bytes.as_str())];
    let mut values: BTreeMap<&str, &str> = SETTINGS.into_iter().chain(own).collect();
    values.extend(changes.iter().copied());
    for (name, value) in &values {
        topic = topic.set(name, value);
    }
    let ended =
        |what: String| OrderingError::Ended(format!("topic {} cannot be made: {what}", settings.topic));
    let admin = admin(settings).map_err(|error| ended(error.to_string()))?;
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
    let made = block_on(admin.create_topics([&topic], &options)).map_err(|error| ended(error.to_string()))?;
    match made.into_iter().next() {
        Some(Err((_, code))) => Err(ended(code.to_string())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> BTreeMap<String, String> {
        let own = [("min.insync.replicas", "2"), ("max.message.bytes", "9000000")];
        SETTINGS.into_iter().chain(own).map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn every_setting_that_is_wrong_is_named() {
        let settings = KafkaSettings::new("127.0.0.1:1", "topic");
        assert!(check_values(&settings, &good(), 3, 9_000_000).is_ok());
        let wrong = [
            ("cleanup.policy", "compact"),
            ("cleanup.policy", "compact,delete"),
            ("message.timestamp.type", "CreateTime"),
            ("retention.ms", "604800000"),
            ("retention.bytes", "1000"),
            ("unclean.leader.election.enable", "true"),
            ("min.insync.replicas", "1"),
            ("max.message.bytes", "8999999"),
        ];
        for (name, value) in wrong {
            let mut values = good();
            values.insert(name.to_string(), value.to_string());
            let error = check_values(&settings, &values, 3, 9_000_000).expect_err(name).to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
        let mut finite = good();
        finite.insert("retention.ms".to_string(), "604800000".to_string());
        let stated = KafkaSettings { finite_retention: true, ..settings.clone() };
        assert!(check_values(&stated, &finite, 3, 9_000_000).is_ok());
        assert!(check_partitions(&settings, 1, 3).is_ok());
        for (partitions, replicas) in [(2, 3), (1, 2)] {
            assert!(check_partitions(&settings, partitions, replicas).is_err());
        }
    }
}
