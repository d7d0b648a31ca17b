//! What a node says next in the topic, and when: a decision without a clock or a network of its own.

use super::config::{BACKLOG_BLOCKS, CUT_STEP, IDLE_STEP, PAUSE, SAY_AGAIN};
use super::shared::Tip;
use crate::mempool::Survey;
use std::time::Duration;
use types::BlockLimits;

/// What there is to decide on.
pub(super) struct View<'v> {
    pub now: Duration,
    pub tip: &'v Tip,
    pub block: &'v BlockLimits,
    /// What waits at this node and is not offered.
    pub survey: Survey,
    /// Positions of the members, in order.
    pub members: &'v [u16],
    /// This node's among them.
    pub own: u16,
    /// Whether blocks may have transactions, with what the topic has of certificates.
    pub is_open: bool,
    /// Whether they may with what this node has of them.
    pub may_open: bool,
    /// Since when this node has a certificate that the topic lacks.
    pub news_since: Option<Duration>,
    /// Blocks that this node has not made durable.
    pub backlog: u64,
}

/// What this node has said.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Saying {
    /// When it offered transactions last.
    pub offered: Duration,
    /// For which height it has asked for the block to be cut, and when.
    pub cut: Option<(u64, Duration)>,
    /// When it brought certificates alone.
    pub brought: Option<Duration>,
}

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// A record, with transactions or without, that asks for the block to be cut or does not. Certificates go with either.
    Record { transactions: bool, cut: bool },
    /// Nothing before this time, unless something comes.
    At(Duration),
}

impl View<'_> {
    /// How many members are to speak before this one, where it is `first`'s turn.
    fn turn(&self, first: u16) -> u32 {
        let place = |member| self.members.iter().position(|other| *other == member).unwrap_or(0);
        let count = self.members.len().max(1);
        ((place(self.own) + count - place(first)) % count) as u32
    }

    /// What this node says now.
    pub(super) fn due(&self, said: &Saying) -> Due {
        let (fill, idle) = (
            Duration::from_millis(self.block.fill_ms.into()),
            Duration::from_millis(self.block.idle_ms.into()),
        );
        let (now, tip) = (self.now, self.tip);
        let mut due = now + SAY_AGAIN;
        if self.survey.transactions > 0 && self.may_open && self.backlog <= BACKLOG_BLOCKS {
            let at = said.offered + PAUSE;
            if at <= now {
                // On an idle network nobody waits for company.
                let is_idle = tip.drafted == 0 && tip.cut_at + fill <= now;
                return Due::Record { transactions: true, cut: is_idle || self.survey.full };
            }
            due = due.min(at);
        }
        if let Some(at) = self.cut_at(fill, idle) {
            let height = tip.parent.height + 1;
            let again = said.cut.filter(|(of, _)| *of == height).map_or(at, |(_, when)| when + SAY_AGAIN);
            if at.max(again) <= now {
                return Due::Record { transactions: false, cut: true };
            }
            due = due.min(at.max(again));
        }
        if let Some(since) = self.news_since.filter(|_| !self.is_open) {
            let turn = self.turn(self.members[(tip.parent.height as usize) % self.members.len()]);
            let at = since + CUT_STEP * turn;
            let at = said.brought.map_or(at, |when| at.max(when + SAY_AGAIN / 4));
            if at <= now {
                return Due::Record { transactions: false, cut: false };
            }
            due = due.min(at);
        }
        Due::At(due)
    }

    /// When this node asks for the block to be cut; never where the block waits for certificates.
    fn cut_at(&self, fill: Duration, idle: Duration) -> Option<Duration> {
        let tip = self.tip;
        if tip.drafted > 0 {
            let [first, last] = tip.drafted_since;
            let turn = tip.first.map_or(0, |member| self.turn(member));
            return self.may_open.then(|| (first + fill).min(last + fill / 4) + CUT_STEP * turn);
        }
        let turn = self.turn(self.members[(tip.parent.height as usize) % self.members.len()]);
        Some(tip.cut_at + idle + IDLE_STEP * turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cutting::Parent;
    use crypto::Digest;

    const BLOCK: BlockLimits = BlockLimits {
        transaction_bytes_max: 10_000,
        transactions_max: 100,
        bytes_max: 10_000,
        fill_ms: 20,
        idle_ms: 1_000,
        batch_transactions: 1,
    };

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Block 8 is next, block 7 was cut at 1,000 ms.
    fn tip(drafted: usize, since: [u64; 2]) -> Tip {
        let parent = Parent { height: 7, ..Parent::charter(Digest::ZERO) };
        Tip {
            parent,
            next: 0,
            certified: 7,
            drafted,
            first: (drafted > 0).then_some(2),
            drafted_since: since.map(ms),
            cut_at: ms(1_000),
            has_caught_up: true,
        }
    }

    fn view<'v>(now: u64, tip: &'v Tip, own: u16, transactions: usize) -> View<'v> {
        let survey = Survey { transactions, ..Survey::default() };
        let members = &[0, 2, 3, 5];
        let (is_open, may_open, news_since, backlog) = (true, true, None, 0);
        View {
            now: ms(now),
            tip,
            block: &BLOCK,
            survey,
            members,
            own,
            is_open,
            may_open,
            news_since,
            backlog,
        }
    }

    #[test]
    fn transactions_are_offered_at_once_and_ask_for_a_block_where_nothing_else_happens() {
        let empty = tip(0, [0, 0]);
        let said = Saying::default();
        let offer = |cut| Due::Record { transactions: true, cut };
        assert_eq!(view(1_030, &empty, 0, 3).due(&said), offer(true));
        assert_eq!(view(1_010, &empty, 0, 3).due(&said), offer(false), "others are at work");
        let recently = Saying { offered: ms(1_028), ..said };
        assert_eq!(view(1_030, &empty, 0, 3).due(&recently), Due::At(ms(1_032)));
        let mut waits = view(1_030, &empty, 0, 3);
        waits.backlog = BACKLOG_BLOCKS + 1;
        assert!(matches!(waits.due(&said), Due::At(_)), "the node is behind");
        waits = view(1_030, &empty, 0, 3);
        (waits.is_open, waits.may_open) = (false, false);
        assert!(matches!(waits.due(&said), Due::At(_)), "outcomes are not certified");
    }

    #[test]
    fn who_has_brought_the_first_transaction_has_the_block_cut_and_then_the_next_member() {
        let tip = tip(5, [1_100, 1_110]);
        let said = Saying::default();
        let cut = Due::Record { transactions: false, cut: true };
        assert_eq!(
            view(1_114, &tip, 2, 0).due(&said),
            Due::At(ms(1_115)),
            "a quarter of the time without another"
        );
        assert_eq!(view(1_115, &tip, 2, 0).due(&said), cut);
        assert_eq!(view(1_115, &tip, 3, 0).due(&said), Due::At(ms(1_155)));
        assert_eq!(view(1_115, &tip, 0, 0).due(&said), Due::At(ms(1_235)), "the last one in turn");
        let asked = Saying { cut: Some((8, ms(1_115))), ..said };
        assert!(matches!(view(1_500, &tip, 2, 0).due(&asked), Due::At(_)), "once is enough for a while");
        assert_eq!(view(2_200, &tip, 2, 0).due(&asked), cut);
    }

    #[test]
    fn empty_blocks_and_certificates_are_brought_in_turn() {
        let empty = tip(0, [0, 0]);
        let said = Saying::default();
        // Height 7 of four members: it is the fourth's turn, member 5.
        assert_eq!(view(2_000, &empty, 5, 0).due(&said), Due::Record { transactions: false, cut: true });
        assert!(matches!(view(2_000, &empty, 0, 0).due(&said), Due::At(_)));
        assert_eq!(view(2_250, &empty, 0, 0).due(&said), Due::Record { transactions: false, cut: true });
        let mut closed = view(1_300, &empty, 5, 0);
        (closed.is_open, closed.news_since) = (false, Some(ms(1_290)));
        assert_eq!(closed.due(&said), Due::Record { transactions: false, cut: false });
        closed.own = 0;
        assert_eq!(closed.due(&said), Due::At(ms(1_330)));
    }
}
