use concurrency::endorsed::OrdererOptions;
use types::ExecutionModel;

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
    /// What is stale may run again, where the protocol does that.
    pub(super) run_again: bool,
}

const FABRIC: OrdererOptions = OrdererOptions::FABRIC;
const BOTH: OrdererOptions = OrdererOptions::FABRIC_PLUS_PLUS;
const SHARP: OrdererOptions = OrdererOptions::FABRIC_SHARP;
const REORDERING: OrdererOptions = OrdererOptions { early_abort: false, ..BOTH };
const EARLY_ABORT: OrdererOptions = OrdererOptions { early_abort: true, ..FABRIC };

const fn system(name: &'static str, protocol: &'static str, orderer: OrdererOptions) -> System {
    let execution = ExecutionModel::ExecuteOrderValidate;
    System { name, execution, protocol, orderer, commands: false, run_again: true }
}

const fn with_commands(system: System) -> System {
    System { commands: true, ..system }
}

/// Order–execute with the same clients, signatures and blocks.
const fn order_execute(protocol: &'static str) -> System {
    System { execution: ExecutionModel::OrderExecute, ..system(protocol, protocol, FABRIC) }
}

/// Every system that an experiment may name.
pub(super) const SYSTEMS: [System; 12] = [
    order_execute("harmony"),
    order_execute("serial"),
    system("occ", "occ", FABRIC),
    system("occ+reordering", "occ", REORDERING),
    system("occ+early-abort", "occ", EARLY_ABORT),
    system("fabric++", "fabric++", BOTH),
    system("fabric-sharp", "fabric-sharp", SHARP),
    system("xox", "xox", FABRIC),
    System { run_again: false, ..system("xox-without-running-again", "xox", FABRIC) },
    with_commands(system("occ+commands", "occ", FABRIC)),
    with_commands(system("fabric++commands", "fabric++", BOTH)),
    with_commands(system("xox+commands", "xox", FABRIC)),
];

/// The system of this name.
pub(super) fn named(name: &str) -> Option<System> {
    SYSTEMS.into_iter().find(|system| system.name == name)
}
