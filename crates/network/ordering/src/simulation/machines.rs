//! The machines that a measured network runs on: what a member's processor and line can do, and how far it is to the others.
//!
//! A simulation has no speed of its own: its code takes no simulated time. To measure a network of eighty members on one machine
//! every message is charged to whoever sends and takes it: to a processor that does one thing after the other, and to a
//! line with a bandwidth. A process that does something else charges it with [`Machines::work`].

use super::Costs;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::time::Duration;

/// Messages shorter than this do not wait for longer ones on the same line: it carries packets of both in turns.
const SHORT: usize = 16 * 1024;

/// The machines of a network, in the order of its nodes.
pub struct Machines {
    /// How long a message is on its way, from node to node.
    latency: Box<dyn Fn(usize, usize) -> Duration + Send + Sync>,
    /// Of each member's line, in each direction.
    bits_per_second: u64,
    costs: Costs,
    machines: Vec<Machine>,
    /// Messages that were sent.
    messages: AtomicU64,
}

#[derive(Default)]
struct Machine {
    busy: Mutex<Busy>,
    /// Bytes, of blocks and in all.
    sent_in_blocks: AtomicU64,
    sent: AtomicU64,
}

/// Until when.
#[derive(Clone, Copy, Default)]
struct Busy {
    processor: Duration,
    out: Duration,
    into: Duration,
}

/// What taking a message costs beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Contents {
    /// Signatures in it.
    pub signatures: usize,
    /// It is a block.
    pub block: bool,
}

impl Machines {
    /// So many, all alike. `latency` says how long a message is on its way from one node to another.
    pub fn new(
        nodes: usize,
        latency: impl Fn(usize, usize) -> Duration + Send + Sync + 'static,
        bits_per_second: u64,
        costs: Costs,
    ) -> Machines {
        let machines = (0..nodes).map(|_| Machine::default()).collect();
        Machines {
            latency: Box::new(latency),
            bits_per_second: bits_per_second.max(1),
            costs,
            machines,
            messages: AtomicU64::new(0),
        }
    }

    pub(super) fn latency(&self, from: usize, to: usize) -> Duration {
        (self.latency)(from, to)
    }

    /// The processor of a node works for so long as soon as it can; gives when it is done.
    pub fn work(&self, node: usize, now: Duration, time: Duration) -> Duration {
        let mut busy = self.machines[node].busy.lock();
        busy.processor = busy.processor.max(now) + time;
        busy.processor
    }

    /// How many bytes of blocks all nodes have sent as leaders.
    pub fn sent_in_blocks(&self) -> u64 {
        self.machines.iter().map(|machine| machine.sent_in_blocks.load(Atomic::Relaxed)).sum()
    }

    /// How many bytes all nodes have sent.
    pub fn sent(&self) -> u64 {
        self.machines.iter().map(|machine| machine.sent.load(Atomic::Relaxed)).sum()
    }

    /// A node sends a message to so many others; gives when it leaves for each.
    pub(super) fn send(
        &self,
        node: usize,
        now: Duration,
        (bytes, recipients): (usize, usize),
        contents: Contents,
    ) -> Vec<Duration> {
        let (machine, sent) = (&self.machines[node], (bytes * recipients) as u64);
        machine.sent.fetch_add(sent, Atomic::Relaxed);
        if contents.block {
            machine.sent_in_blocks.fetch_add(sent, Atomic::Relaxed);
        }
        let each = nanoseconds(self.costs.message + self.costs.byte * bytes as f64);
        let on_line = self.on_line(bytes);
        let mut busy = machine.busy.lock();
        let leave = |_| {
            busy.processor = busy.processor.max(now) + each;
            let ready = busy.processor;
            occupy(&mut busy.out, ready, (bytes, on_line))
        };
        (0..recipients).map(leave).collect()
    }

    /// A message has come to a node; gives when it is taken.
    pub(super) fn take(&self, node: usize, now: Duration, bytes: usize, contents: Contents) -> Duration {
        let on_line = self.on_line(bytes);
        let mut busy = self.machines[node].busy.lock();
        let here = occupy(&mut busy.into, now, (bytes, on_line));
        let signatures = self.costs.signature * contents.signatures as f64;
        let work = nanoseconds(self.costs.message + self.costs.byte * bytes as f64 + signatures);
        busy.processor = busy.processor.max(here) + work;
        busy.processor
    }

    /// A number for a message, larger than all before.
    pub(super) fn number(&self) -> u64 {
        self.messages.fetch_add(1, Atomic::Relaxed)
    }

    fn on_line(&self, bytes: usize) -> Duration {
        Duration::from_nanos((bytes as u128 * 8 * 1_000_000_000 / u128::from(self.bits_per_second)) as u64)
    }
}

/// A line carries a message; gives when it has.
fn occupy(line: &mut Duration, ready: Duration, (bytes, time): (usize, Duration)) -> Duration {
    *line = (*line).max(ready) + time;
    if bytes < SHORT { ready + time } else { *line }
}

fn nanoseconds(time: f64) -> Duration {
    Duration::from_nanos(time as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn a_processor_does_one_thing_after_the_other_and_a_line_carries_what_its_bandwidth_allows() {
        let costs = Costs { message: 1_000_000.0, ..Costs::default() };
        // A megabyte in 8 ms.
        let machines = Machines::new(2, |_, _| ms(10), 1_000_000_000, costs);
        let (block, word) = (Contents { signatures: 0, block: true }, Contents::default());
        assert_eq!(machines.send(0, ms(5), (1_000_000, 3), block), [ms(14), ms(22), ms(30)]);
        // A short one does not wait for those, but for the processor.
        let short = machines.send(0, ms(5), (125, 1), word);
        assert_eq!(short, [ms(9) + Duration::from_micros(1)]);
        assert_eq!((machines.sent_in_blocks(), machines.sent()), (3_000_000, 3_000_125));
        assert_eq!(machines.work(1, ms(1), ms(6)), ms(7));
        assert_eq!(machines.take(1, ms(2), 1_000_000, Contents::default()), ms(11));
        assert_eq!(machines.take(1, ms(2), 1_000_000, Contents::default()), ms(19));
    }

    #[test]
    fn bytes_and_signatures_cost_whoever_takes_them() {
        let costs = Costs { message: 0.0, byte: 1.0, block_byte: 0.0, signature: 1_000.0 };
        let machines = Machines::new(1, |_, _| ms(10), u64::MAX, costs);
        assert_eq!(machines.take(0, ms(0), 1_000, Contents::default()), Duration::from_nanos(1_000));
        let votes = Contents { signatures: 3, block: false };
        assert_eq!(machines.take(0, ms(1), 0, votes), ms(1) + Duration::from_nanos(3_000));
    }
}
