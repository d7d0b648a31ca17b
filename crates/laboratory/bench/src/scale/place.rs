use std::time::Duration;

/// Where the members of a network are, and how they are connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScaleNetwork {
    /// In one machine room.
    Room,
    /// In four cities of one continent.
    Continent,
    /// On four continents.
    World,
}

/// Milliseconds from continent to continent, one way, between HarmonyBC's places (paper 004, section 5.5): Ohio, Mumbai, Sydney,
/// Stockholm. They are half of the usual round trips between regions of public clouds there.
const WORLD_MS: [[u64; 4]; 4] = [[1, 100, 95, 57], [100, 1, 75, 70], [95, 75, 1, 138], [57, 70, 138, 1]];
/// The same from city to city.
const CONTINENT_MS: [[u64; 4]; 4] = [[1, 6, 9, 13], [6, 1, 8, 12], [9, 8, 1, 15], [13, 12, 15, 1]];
/// From machine to machine.
const ROOM: Duration = Duration::from_micros(100);

impl ScaleNetwork {
    /// All of them.
    pub const ALL: [ScaleNetwork; 3] = [ScaleNetwork::Room, ScaleNetwork::Continent, ScaleNetwork::World];

    /// The name in records and options.
    pub fn name(self) -> &'static str {
        match self {
            ScaleNetwork::Room => "room",
            ScaleNetwork::Continent => "continent",
            ScaleNetwork::World => "world",
        }
    }

    /// The network of a name.
    pub fn named(name: &str) -> Option<ScaleNetwork> {
        ScaleNetwork::ALL.into_iter().find(|network| network.name() == name)
    }

    /// Of each member's line, in each direction.
    pub fn bits_per_second(self) -> u64 {
        match self {
            ScaleNetwork::Room => 10_000_000_000,
            ScaleNetwork::Continent | ScaleNetwork::World => 1_000_000_000,
        }
    }

    /// How long a message is on its way between members, which are spread over the places in turns.
    pub(super) fn latency(self, from: usize, to: usize) -> Duration {
        let between = |places: &[[u64; 4]; 4]| Duration::from_millis(places[from % 4][to % 4]);
        match self {
            ScaleNetwork::Room => ROOM,
            ScaleNetwork::Continent => between(&CONTINENT_MS),
            ScaleNetwork::World => between(&WORLD_MS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_equally_long_in_both_directions_and_no_detour_is_shorter() {
        for network in ScaleNetwork::ALL {
            assert_eq!(ScaleNetwork::named(network.name()), Some(network));
            for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))) {
                assert_eq!(network.latency(from, to), network.latency(to, from));
                for between in 0..4 {
                    let detour = network.latency(from, between) + network.latency(between, to);
                    assert!(from == to || detour >= network.latency(from, to), "{network:?} {from} {to}");
                }
            }
        }
    }
}
