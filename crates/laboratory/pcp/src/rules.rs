//! The rules of the protocol, as the thesis prints them and as they must be.

/// How requests and answers of different rounds are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounds {
    /// Both carry the round, so that a request can be repeated.
    Named,
    /// The called shard counts calls (Algorithm 2), and answers carry no round (Figures 5.6 and 5.7).
    Counted,
}

/// What a shard says that has no part in a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absent {
    /// "Discard", once it has the block.
    Discards,
    /// Nothing: it ignores hashes that it does not know (5.3.2).
    IsSilent,
    /// "Commit": it has no objection.
    Commits,
}

/// How shards behave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// How rounds are told apart.
    pub rounds: Rounds,
    /// A shard leaves itself out of its dependencies, and refuses more of them than others can stand behind the hashes.
    pub checks_dependencies: bool,
    /// One round more than Theorem 2 has, because a shard without a part may stand behind the last hash.
    pub has_spare_round: bool,
    /// What shards without a part say.
    pub absent: Absent,
    /// Who waits asks again.
    pub repeats_requests: bool,
    /// A caller shows the secret that the stakeholders have put into both proposals.
    pub asks_for_secrets: bool,
}

impl Rules {
    /// The rules that hold.
    pub const CORRECTED: Rules = Rules {
        rounds: Rounds::Named,
        checks_dependencies: true,
        has_spare_round: true,
        absent: Absent::Discards,
        repeats_requests: true,
        asks_for_secrets: true,
    };

    /// Those of the thesis.
    pub const PRINTED: Rules = Rules {
        rounds: Rounds::Counted,
        checks_dependencies: false,
        has_spare_round: false,
        absent: Absent::IsSilent,
        repeats_requests: false,
        asks_for_secrets: false,
    };
}

/// Rules, with what the world does to them: the variants of the model `pcp.py`, by its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// What the model calls it.
    pub name: &'static str,
    /// The rules.
    pub rules: Rules,
    /// Stakeholders write dependency sets that make no sense.
    pub is_malformed: bool,
    /// Messages are lost and repeated, shards crash.
    pub has_faults: bool,
    /// One shard says "commit" to some and "discard" to others.
    pub lies: bool,
    /// A faulty node of an honest shard repeats older signed answers.
    pub replays: bool,
    /// Something goes wrong.
    pub is_wrong: bool,
}

impl Variant {
    const fn new(name: &'static str, rules: Rules) -> Variant {
        let (is_malformed, has_faults, lies, replays, is_wrong) = (false, false, false, false, true);
        Variant { name, rules, is_malformed, has_faults, lies, replays, is_wrong }
    }
}

const UNCHECKED: Rules = Rules { checks_dependencies: false, has_spare_round: false, ..Rules::CORRECTED };
const COUNTED: Rules = Rules { rounds: Rounds::Counted, ..Rules::CORRECTED };

/// All variants, as the model orders them.
pub const VARIANTS: [Variant; 11] = [
    Variant {
        is_malformed: true,
        has_faults: true,
        is_wrong: false,
        ..Variant::new("corrected", Rules::CORRECTED)
    },
    Variant { is_wrong: false, ..Variant::new("as printed, well-formed, no faults", Rules::PRINTED) },
    Variant { is_malformed: true, ..Variant::new("as printed, malformed dependency sets", Rules::PRINTED) },
    Variant {
        is_malformed: true,
        ..Variant::new(
            "malformed, the absent have no objection",
            Rules { absent: Absent::Commits, ..UNCHECKED },
        )
    },
    Variant {
        is_malformed: true,
        ..Variant::new("malformed, the absent discard, sets unchecked", UNCHECKED)
    },
    Variant {
        is_malformed: true,
        ..Variant::new(
            "malformed, sets checked, limit as printed",
            Rules { has_spare_round: false, ..Rules::CORRECTED },
        )
    },
    Variant {
        has_faults: true,
        ..Variant::new("counted, losses, never repeated", Rules { repeats_requests: false, ..COUNTED })
    },
    Variant { has_faults: true, ..Variant::new("counted, losses, repeated requests", COUNTED) },
    Variant {
        replays: true,
        ..Variant::new("counted, old answers replayed", Rules { repeats_requests: false, ..COUNTED })
    },
    Variant {
        replays: true,
        is_wrong: false,
        ..Variant::new("named, old answers replayed", Rules::CORRECTED)
    },
    Variant { lies: true, ..Variant::new("corrected, one shard lies", Rules::CORRECTED) },
];
