//! Traces of transactions, from the gateway to the receipt, for a collector that speaks OTLP over HTTP.
//!
//! A trace is made when the receipt goes out, of the times that were noted on the way: those of the transaction, kept with who waits
//! for it, and those of its block.
//!
//! ```text
//!  transaction ├─ admit ─┤├──── order ────┤├─ verify ─┤ ├─ execute ─┤ ├─ record ─┤├─ attest ─┤
//!              came       admitted         the block is final                       recorded   answered
//! ```

use crate::NodeError;
use crate::folder::NodeConfig;
use crate::metrics::{EXECUTE, RECORD, VERIFY};
use client::Trust;
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use types::{Outcome, Receipt};

/// Blocks whose times are kept: more than may wait to be attested.
const BLOCKS_MAX: usize = 4_096;
/// How long the collector may take for an answer.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(10);
/// The parts of a block's way that a trace shows.
const STAGES: [&str; 3] = [VERIFY, EXECUTE, RECORD];

/// From when until when.
type Times = (Instant, Instant);

/// When a transaction came, and when it was admitted.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) came: Instant,
    pub(crate) admitted: Instant,
}

/// Notes times and sends traces.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// When the stages worked on blocks, by height.
    blocks: Mutex<BTreeMap<u64, [Option<Times>; STAGES.len()]>>,
}

impl Traces {
    /// What sends traces where `node.toml` says so. `organisation`: whose they are.
    ///
    /// # Errors
    /// `trace_endpoint` is no address of a collector.
    pub(crate) fn of(
        config: &NodeConfig,
        folder: &Path,
        organisation: &str,
    ) -> Result<Option<Traces>, NodeError> {
        let Some(endpoint) = &config.trace_endpoint else { return Ok(None) };
        let wrong = |reason: String| NodeError::Config {
            path: folder.join("node.toml"),
            reason: format!("trace_endpoint: {reason}"),
        };
        let is_encrypted = endpoint.starts_with("https://");
        if !is_encrypted && !endpoint.starts_with("http://") {
            let expected = "expected the address of a collector such as http://127.0.0.1:4318/v1/traces";
            return Err(wrong(format!("{expected}, found {endpoint}")));
        }
        let client = reqwest::blocking::Client::builder().timeout(EXPORT_TIME_MAX);
        let client = match is_encrypted {
            true => client.tls_backend_preconfigured(Trust::System.config().map_err(wrong)?),
            // No certificates of the machine are needed.
            false => client.tls_certs_only([]),
        };
        let client = client.build().map_err(|error| wrong(error.to_string()))?;
        let exporter = SpanExporter::builder().with_http().with_http_client(client).with_endpoint(endpoint);
        let exporter = exporter.build().map_err(|error| wrong(error.to_string()))?;
        let resource = Resource::builder_empty().with_service_name("entente").with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", organisation.to_string()),
        ]);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        let tracer = provider.tracer("entente");
        Ok(Some(Traces { provider, tracer, blocks: Mutex::default() }))
    }

    /// A stage has worked on the block at `height` until now.
    pub(crate) fn worked(&self, stage: &'static str, height: u64, start: Instant) {
        let Some(place) = STAGES.iter().position(|known| *known == stage) else { return };
        let mut blocks = self.blocks.lock();
        blocks.entry(height).or_default()[place] = Some((start, Instant::now()));
        if blocks.len() > BLOCKS_MAX {
            blocks.pop_first();
        }
    }

    /// A receipt goes out now.
    pub(crate) fn answered(&self, receipt: &Receipt, way: Way) {
        let answered = Instant::now();
        let stages = self.blocks.lock().get(&receipt.height).copied().unwrap_or_default();
        let outcome = match &receipt.outcome {
            Outcome::Committed(_) => "committed",
            Outcome::Aborted(_) => "business_abort",
            Outcome::Conflict => "conflict_abort",
            Outcome::Rejected(_) => "rejected",
        };
        let attributes = [
            KeyValue::new("entente.transaction", receipt.transaction.to_string()),
            KeyValue::new("entente.height", receipt.height as i64),
            KeyValue::new("entente.index", i64::from(receipt.index)),
            KeyValue::new("entente.outcome", outcome),
        ];
        let clock = Clock::now();
        let root = self.tracer.span_builder("transaction").with_kind(SpanKind::Server);
        let mut root =
            root.with_start_time(clock.time(way.came)).with_attributes(attributes).start(&self.tracer);
        if let Outcome::Aborted(error) = &receipt.outcome {
            root.set_status(Status::error(error.state.to_string()));
        }
        let context = Context::new().with_span(root);
        let part = |name: &'static str, (from, to): Times| {
            let part = self.tracer.span_builder(name).with_start_time(clock.time(from));
            part.start_with_context(&self.tracer, &context).end_with_timestamp(clock.time(to));
        };
        part("admit", (way.came, way.admitted));
        let [verified, _, recorded] = stages;
        if let Some((start, _)) = verified {
            // A transaction that is asked for again was ordered before.
            part("order", (way.admitted, start.max(way.admitted)));
        }
        for (name, times) in STAGES.into_iter().zip(stages) {
            times.into_iter().for_each(|times| part(name, times));
        }
        if let Some((_, end)) = recorded {
            part("attest", (end, answered.max(end)));
        }
        context.span().end_with_timestamp(clock.time(answered));
    }

    /// Sends what is left.
    pub(crate) fn end(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// Tells which time an instant was.
struct Clock(Instant, SystemTime);

impl Clock {
    fn now() -> Clock {
        Clock(Instant::now(), SystemTime::now())
    }

    fn time(&self, instant: Instant) -> SystemTime {
        self.1 - self.0.saturating_duration_since(instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_an_address_or_there_is_none() {
        let listen = [7000, 7100, 7200].map(|port| std::net::SocketAddr::from(([127, 0, 0, 1], port)));
        let mut config = NodeConfig::new(listen, 1);
        let traces = |config: &NodeConfig| Traces::of(config, Path::new("node"), "org1");
        assert!(traces(&config).is_ok_and(|traces| traces.is_none()), "nobody asked for them");
        for wrong in ["127.0.0.1:4318", "ftp://collector.example/v1/traces", "http://", "https://"] {
            config.trace_endpoint = Some(wrong.to_string());
            let error = traces(&config).err().unwrap_or_else(|| panic!("{wrong} is taken")).to_string();
            assert!(error.contains("trace_endpoint: "), "{error}");
        }
        config.trace_endpoint = Some("http://127.0.0.1:4318/v1/traces".to_string());
        assert!(traces(&config).is_ok_and(|traces| traces.is_some()));
        // Over TLS, where this machine trusts anybody.
        config.trace_endpoint = Some("https://127.0.0.1:4318/v1/traces".to_string());
        let encrypted = traces(&config).map(|traces| traces.is_some()).map_err(|error| error.to_string());
        let untrusting = |error: &String| error.contains("no certificate of an authority");
        assert!(encrypted == Ok(true) || encrypted.as_ref().err().is_some_and(untrusting), "{encrypted:?}");
    }
}
