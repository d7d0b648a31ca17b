use crate::AnkerError;

/// How analytics get a state that stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Chunks of 8,192 values, copied when they are written while a snapshot has them. What Entente does.
    Columns,
    /// A physical copy of each column.
    Copy,
    /// A copy of the process.
    Fork,
    /// Pages of a file in memory, mapped a second time.
    Rewire,
    /// None: one engine, where analytics read the newest columns and their version chains.
    See,
}

/// What transactions see of one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// As if one ran after the other: what a transaction read is validated when it commits.
    Serializable,
    /// What it read is not validated.
    Snapshot,
    /// Nothing is validated and nothing is versioned; a transaction may be seen in part.
    ReadUncommitted,
}

/// A storage under an isolation: what the paper calls a configuration (2.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct System {
    /// The name on the command line.
    pub name: &'static str,
    /// Where snapshots come from.
    pub storage: Storage,
    /// What transactions see.
    pub isolation: Isolation,
    /// The paper's name of the same configuration, where it has one.
    pub paper: Option<&'static str>,
}

impl System {
    /// All of them. The first five are the storages under full serializability.
    pub const ALL: [System; 7] = [
        System::of("columns", Storage::Columns, Isolation::Serializable, None),
        System::of("copy", Storage::Copy, Isolation::Serializable, None),
        System::of("fork", Storage::Fork, Isolation::Serializable, Some("HEE fork")),
        System::of("rewire", Storage::Rewire, Isolation::Serializable, None),
        System::of("see", Storage::See, Isolation::Serializable, Some("SEE FS")),
        System::of("see-snapshot", Storage::See, Isolation::Snapshot, Some("SEE SI")),
        System::of("see-uncommitted", Storage::See, Isolation::ReadUncommitted, Some("SEE RU")),
    ];

    const fn of(
        name: &'static str,
        storage: Storage,
        isolation: Isolation,
        paper: Option<&'static str>,
    ) -> System {
        System { name, storage, isolation, paper }
    }

    /// The system of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<System, AnkerError> {
        let known = || System::ALL.map(|system| system.name).join(", ");
        let found = System::ALL.into_iter().find(|system| system.name == name);
        found.ok_or_else(|| {
            AnkerError::option("--storage", format!("some of {}", known()), format_args!("`{name}`"))
        })
    }

    /// Whether a snapshot is made of each column by itself.
    pub fn snapshots_columns(self) -> bool {
        matches!(self.storage, Storage::Columns | Storage::Copy | Storage::Rewire)
    }
}
