use concurrency::endorsed::OrdererOptions;
use types::ExecutionModel;

/// Rows that the transactions of a block may touch together (Fabric++, Table 5: 16,384 unique keys).
const UNIQUE_ROWS_MAX: usize = 16_384;

/// A way to endorse, order and validate.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    /// By which experiments name it.
    pub(super) name: &'static str,
    /// When transactions are executed.
    pub(super) execution: ExecutionModel,
    /// Id of the protocol.
    pub(super) protocol: &'static str,
    pub(super) orderer: OrdererOptions,
    /// Additions are endorsed as commands.
    pub(super) commands: bool,
}

/// As they come: Fabric.
const ARRIVAL: OrdererOptions =
    OrdererOptions { reordering: false, early_abort: false, unique_rows_max: usize::MAX };
const REORDERING: OrdererOptions =
    OrdererOptions { reordering: true, unique_rows_max: UNIQUE_ROWS_MAX, ..ARRIVAL };
const EARLY_ABORT: OrdererOptions = OrdererOptions { early_abort: true, ..ARRIVAL };
/// Fabric++.
const BOTH: OrdererOptions = OrdererOptions { early_abort: true, ..REORDERING };

const fn system(name: &'static str, protocol: &'static str, orderer: OrdererOptions) -> System {
    System { name, execution: ExecutionModel::ExecuteOrderValidate, protocol, orderer, commands: false }
}

const fn with_commands(system: System) -> System {
    System { commands: true, ..system }
}

/// Order–execute with the same clients, signatures and blocks.
const fn order_execute(protocol: &'static str) -> System {
    System { execution: ExecutionModel::OrderExecute, ..system(protocol, protocol, ARRIVAL) }
}

/// Every system that an experiment may name.
pub(super) const SYSTEMS: [System; 11] = [
    order_execute("harmony"),
    order_execute("serial"),
    system("occ", "occ", ARRIVAL),
    system("occ+reordering", "occ", REORDERING),
    system("occ+early-abort", "occ", EARLY_ABORT),
    system("fabric++", "fabric++", BOTH),
    system("fabric-sharp", "fabric-sharp", ARRIVAL),
    system("xox", "xox", ARRIVAL),
    with_commands(system("occ+commands", "occ", ARRIVAL)),
    with_commands(system("fabric++commands", "fabric++", BOTH)),
    with_commands(system("xox+commands", "xox", ARRIVAL)),
];

/// The system of this name.
pub(super) fn named(name: &str) -> Option<System> {
    SYSTEMS.into_iter().find(|system| system.name == name)
}
