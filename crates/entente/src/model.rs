//! How a new ledger orders and executes: the options that `init` and `demo` share.

use crate::CommandError;
use clap::Args;
use node::{KafkaConfig, Network, NodeFolder};
use types::{Charter, ExecutionModel, Pipeline};

/// Who puts transactions into an order, as the charter says it.
#[derive(Args)]
pub(crate) struct ServiceArguments {
    /// Who orders: bft, where a third of the organisations may lie; raft, where all trust whoever leads with the order, and only
    /// with that; or kafka, where they trust whoever runs its brokers with it (docs/ordering.md); solo is for one organisation,
    /// which has it by itself
    #[arg(long, default_value = "bft", value_parser = ["bft", "raft", "kafka", "solo"])]
    pub(crate) ordering: String,
}

impl ServiceArguments {
    /// Writes into a charter of so many organisations what orders its ledger.
    ///
    /// # Errors
    /// Several cannot order alone.
    pub(crate) fn apply(&self, charter: &mut Charter, organisations: usize) -> Result<(), CommandError> {
        charter.ordering = self.of(organisations)?.to_string();
        if charter.ordering == "solo" {
            // A block waits for nobody, so it need not wait to be worth the others' while.
            charter.block.fill_ms = charter.block.fill_ms.min(SOLO_FILL_MS);
        }
        Ok(())
    }

    fn of(&self, organisations: usize) -> Result<&str, CommandError> {
        match (self.ordering.as_str(), organisations) {
            // One has nobody to agree with.
            ("bft", 1) => Ok("solo"),
            ("solo", 2..) => {
                let text = format!(
                    "--ordering solo is for one organisation, found {organisations}: choose bft, raft or kafka"
                );
                Err(text.into())
            }
            (ordering, _) => Ok(ordering),
        }
    }
}

/// How long one organisation alone collects transactions for a block, in milliseconds.
const SOLO_FILL_MS: u32 = 1;

/// Where a node finds the topic that orders.
#[derive(Args)]
pub(crate) struct TopicArguments {
    /// Brokers of Kafka to begin with, host:port with commas between, with --ordering kafka
    #[arg(long, value_name = "BROKERS")]
    kafka_brokers: Option<String>,
    /// The topic, with --ordering kafka [default: entente- and the beginning of the ledger's id]
    #[arg(long, value_name = "TOPIC")]
    kafka_topic: Option<String>,
}

impl TopicArguments {
    /// What a node is told, where brokers were named.
    ///
    /// # Errors
    /// A topic without brokers.
    pub(crate) fn config(&self) -> Result<Option<KafkaConfig>, CommandError> {
        let topic = self.kafka_topic.clone();
        match &self.kafka_brokers {
            Some(brokers) => Ok(Some(topic_at(brokers, topic))),
            None if topic.is_some() => Err("--kafka-topic needs --kafka-brokers".into()),
            None => Ok(None),
        }
    }
}

fn topic_at(brokers: &str, topic: Option<String>) -> KafkaConfig {
    KafkaConfig { brokers: brokers.to_string(), topic, replicas_min: None, finite_retention: false }
}

/// Says how to make the topic of a ledger.
pub(crate) fn show_topic(config: &KafkaConfig, charter: &Charter) {
    let settings = config.settings(&charter.ledger());
    println!("Make the topic, if it is not there (docs/ordering.md):");
    println!("  {}", ordering::kafka::creation(&settings, settings.replicas_min, charter.block.bytes_max));
}

/// Who puts transactions into an order, and where all nodes of a network on one machine find the topic.
#[derive(Args)]
pub(crate) struct OrderingArguments {
    #[command(flatten)]
    pub(crate) service: ServiceArguments,
    #[command(flatten)]
    topic: TopicArguments,
}

impl OrderingArguments {
    /// A topic of brokers that are started for it.
    pub(crate) fn kafka() -> OrderingArguments {
        OrderingArguments {
            service: ServiceArguments { ordering: "kafka".to_string() },
            topic: TopicArguments { kafka_brokers: None, kafka_topic: None },
        }
    }

    /// Writes the choice into a charter of so many organisations.
    ///
    /// # Errors
    /// Options that do not go together.
    pub(crate) fn apply(&self, charter: &mut Charter, organisations: usize) -> Result<(), CommandError> {
        if !self.is_kafka() && (self.topic.kafka_brokers.is_some() || self.topic.kafka_topic.is_some()) {
            return Err("--kafka-brokers and --kafka-topic need --ordering kafka".into());
        }
        self.service.apply(charter, organisations)
    }

    /// Whether a topic orders.
    pub(crate) fn is_kafka(&self) -> bool {
        self.service.ordering == "kafka"
    }

    /// The brokers that were named.
    pub(crate) fn brokers(&self) -> Option<&str> {
        self.topic.kafka_brokers.as_deref()
    }

    /// Tells all nodes of a network where the topic is; gives what they are told.
    ///
    /// # Errors
    /// A folder cannot be written.
    pub(crate) fn choose_topic(&self, network: &Network, brokers: &str) -> Result<KafkaConfig, CommandError> {
        let config = topic_at(brokers, self.topic.kafka_topic.clone());
        for folder in &network.folders {
            NodeFolder::open(folder)?.choose_kafka(&config)?;
        }
        Ok(config)
    }

    /// Whether nodes lead in turn, or one leads until it fails.
    pub(crate) fn takes_turns(&self) -> bool {
        self.service.ordering == "bft"
    }
}

/// How transactions are executed, as the charter says it.
#[derive(Args)]
pub(crate) struct ExecutionArguments {
    /// When transactions are executed, and by whom: by every node after they are ordered; by endorsers before; or, as
    /// scripts, by each organisation's own database after they are ordered, who then agree on what came of them
    #[arg(long, default_value = "order-execute",
        value_parser = ["order-execute", "execute-order-validate", "whatever-then-agree"])]
    execution: String,
    /// How conflicts are settled: harmony, aria, ssi, graph, block-stm, serial; with execute-order-validate xox, occ,
    /// fabric++, fabric-sharp; with whatever-then-agree serial, block-stm [default: harmony, xox or serial]
    #[arg(long)]
    protocol: Option<String>,
    /// Who must endorse a transaction, with execute-order-validate [default: one more than may be faulty]
    ///
    /// An expression over organisations, for example "2 of (org1, org2, org3)" or "org1 AND (org2 OR org3)".
    #[arg(long, value_name = "POLICY")]
    endorsement: Option<String>,
    /// Endorse additions as commands, so that hot rows make nobody stale, with execute-order-validate
    #[arg(long)]
    endorse_commands: bool,
    /// How many organisations must come to the same outcome of a block [default: n − ⌊(n − 1)/3⌋ of n]
    ///
    /// ChainifyDB's policies: 2 is `any 2`, the number of organisations is `all`.
    #[arg(long, value_name = "COUNT")]
    outcome_quorum: Option<u32>,
}

impl ExecutionArguments {
    /// Whether transactions are executed before they are ordered.
    fn executes_before_ordering(&self) -> bool {
        self.execution == "execute-order-validate"
    }

    /// Writes the choice into a charter.
    ///
    /// # Errors
    /// Options that do not go together.
    pub(crate) fn apply(&self, charter: &mut Charter) -> Result<(), CommandError> {
        if !self.executes_before_ordering() && (self.endorsement.is_some() || self.endorse_commands) {
            return Err("--endorsement and --endorse-commands need --execution execute-order-validate".into());
        }
        let (execution, ids, default) = match self.execution.as_str() {
            "execute-order-validate" => {
                (ExecutionModel::ExecuteOrderValidate, concurrency::VALIDATION_IDS.as_slice(), "xox")
            }
            "whatever-then-agree" => {
                (ExecutionModel::WhateverThenAgree, &["serial", "block-stm"][..], "serial")
            }
            _ => (ExecutionModel::OrderExecute, concurrency::IDS.as_slice(), "harmony"),
        };
        let protocol = self.protocol.as_deref().unwrap_or(default);
        if !ids.contains(&protocol) {
            let (execution, ids) = (&self.execution, ids.join(", "));
            return Err(format!("--protocol: {execution} has {ids}; found {protocol}").into());
        }
        charter.execution = execution;
        charter.outcome_quorum = self.outcome_quorum;
        charter.protocol = protocol.to_string();
        charter.endorsement.policy = self.endorsement.clone().unwrap_or_default();
        charter.endorsement.commands = self.endorse_commands;
        Ok(())
    }
}

/// How a node schedules validation, which is its own affair.
#[derive(Args)]
pub(crate) struct PipelineArguments {
    /// How nodes schedule validation, with execute-order-validate: serial, one after the other, or graph, on the graph of
    /// all transactions that wait (SmartFabric) [default: serial]
    #[arg(long, value_parser = ["serial", "graph"])]
    pipeline: Option<String>,
}

impl PipelineArguments {
    pub(crate) fn pipeline(&self) -> Pipeline {
        match self.pipeline.as_deref() {
            Some("graph") => Pipeline::Graph,
            _ => Pipeline::Serial,
        }
    }
}

#[derive(Args)]
pub(crate) struct ModelArguments {
    #[command(flatten)]
    pub(crate) ordering: OrderingArguments,
    #[command(flatten)]
    execution: ExecutionArguments,
    #[command(flatten)]
    scheduling: PipelineArguments,
}

impl ModelArguments {
    /// Writes the choice into a charter of so many organisations.
    ///
    /// # Errors
    /// Options that do not go together.
    pub(crate) fn apply(&self, charter: &mut Charter, organisations: usize) -> Result<(), CommandError> {
        if !self.execution.executes_before_ordering() && self.scheduling.pipeline.is_some() {
            return Err("--pipeline needs --execution execute-order-validate".into());
        }
        self.ordering.apply(charter, organisations)?;
        self.execution.apply(charter)
    }

    /// Whether nodes execute transactions after they are ordered.
    pub(crate) fn executes_after_ordering(&self) -> bool {
        self.execution.execution == "order-execute"
    }

    /// Whether each organisation's own database executes scripts.
    pub(crate) fn executes_scripts(&self) -> bool {
        self.execution.execution == "whatever-then-agree"
    }

    /// How each node schedules validation.
    pub(crate) fn pipeline(&self) -> Pipeline {
        self.scheduling.pipeline()
    }
}
