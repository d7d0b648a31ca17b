//! The load on the network, with a line that shows it every second.

use super::DemoArguments;
use super::brokers::Brokers;
use super::chaos::{self, Leads};
use super::screen::Screen;
use super::supervision::Supervisor;
use crate::CommandError;
use bench::{Load, LoadOptions, LoadProgress, LoadReport, Pace, Submit};
use client::Client;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Transactions of each submission, in a closed loop.
pub(crate) const TRANSACTIONS: usize = 400;
/// Before the end `--chaos` kills no more, so that what it killed last comes back under load.
const CALM_BEFORE_END: Duration = Duration::from_secs(2);

/// Clients of all organisations for some seconds, and `--chaos` where it is asked for.
pub(super) async fn apply(
    arguments: &DemoArguments,
    (supervisor, brokers, screen): (&Supervisor, Option<&Brokers>, &Screen),
    clients: &[Client],
    gateways: &[SocketAddr],
) -> Result<LoadReport, CommandError> {
    let closed = Pace::Closed { submissions: arguments.clients as usize, transactions: TRANSACTIONS };
    let options = LoadOptions {
        customers: arguments.customers,
        skew: arguments.skew,
        pace: arguments.rate.map_or(closed, |rate| Pace::Open { rate }),
        seed: 1,
        submit: match arguments.model.executes_scripts() {
            true => Submit::ChainifyScripts,
            false => Submit::Calls,
        },
    };
    let load = Load::new(clients.to_vec(), options)?;
    let line = screen.line("load")?;
    let (mut before, mut second) = (0, 0);
    let time = Duration::from_secs(arguments.seconds());
    let show = |progress: LoadProgress| {
        second += 1;
        let text = format!(
            "{second:3}/{} s  height {:6}  {:>7} tps  p50 {:6.1} ms  p99 {:6.1} ms",
            time.as_secs(),
            progress.height,
            bench::grouped(progress.committed - before),
            progress.latency_ms.p50,
            progress.latency_ms.p99
        );
        before = progress.committed;
        if screen.is_hidden() {
            screen.say(format!("load       {text}  {}", supervisor.summary()));
        }
        line.set_message(text);
        line.tick();
    };
    let until = Instant::now() + time - CALM_BEFORE_END.min(time);
    let chaos = async {
        if arguments.chaos {
            let leads = match (brokers, arguments.model.ordering.takes_turns()) {
                (Some(brokers), _) => Leads::Broker(brokers, Duration::from_secs(arguments.restart_after)),
                (None, true) => Leads::InTurn,
                (None, false) => Leads::UntilItFails,
            };
            chaos::kill_in_turn((supervisor, screen), (gateways, &leads), until).await;
        }
        std::future::pending().await
    };
    let report = tokio::select! {
        report = load.run(time, show) => report?,
        report = chaos => report,
    };
    line.finish();
    Ok(report)
}
