//! Statement fusion: reading a row, deciding on it and changing it become one command.
//!
//! ```text
//! SELECT c INTO v FROM t WHERE k = 1;      ┐
//! IF v < x THEN RAISE EXCEPTION …; END IF; ├─ one command on row 1 of t, which reads nothing
//! UPDATE t SET c = c - x WHERE k = 1;      ┘
//! ```
//!
//! A **region** is a part of the code, entered at its first instruction and left at its end, whose statements of SQL
//! all work on the same row. It becomes a [`RowProgram`]: the same instructions, run at the command's place in the
//! order on the row as it stands there, with the variables' values of the simulation. So conditions, messages and
//! errors come out as if the whole transaction ran at that place, and nothing needs to be registered as read. What
//! makes that equivalent is checked in [`region`]:
//!
//! - nothing that the region computes from the row is used after it, FOUND included, unless FOUND is that of its only
//!   change;
//! - nothing else happens in between: no other row is changed, no procedure called, no loop run, nothing left early;
//! - other rows may be read in between where that reading can as well stand in front of the region;
//! - variables that the region assigns without looking at the row may be used after it: they are computed twice.
//!
//! Fused statements cost the logical steps that they cost one by one on the same row. Reading another
//! row that was put in front of a RAISE is paid for also where the RAISE ends the transaction first; and a later scan
//! that meets the command on a row that does not exist pays a step for it, also where the command changed nothing.
//!
//! What an EXCEPTION block encloses is not fused: its commands register what they use as read (`execute::protect`), so
//! there would be nothing to gain.
//!
//! The pass works on instructions with bound expressions, so names, types and control flow are settled. Liveness
//! tells whether anything that depends on the row is used afterwards. For every read that stays, the pass keeps an
//! `Obstacle`, which `EXPLAIN CALL` shows. Idioms, near misses and tests: `docs/fusion.md`.

pub(crate) mod flow;
pub(crate) mod obstacle;
mod region;
mod row_program;
mod run;

use crate::analysis::Runs;
use crate::program::{Address, Instruction};
use flow::{Flow, Surroundings, Variables};
use obstacle::Obstacle;
pub(super) use region::query_of;
use region::{Region, find};
use row_program::fuse_region;
pub(super) use run::run_fused;

/// Instructions times words of variables beyond which a procedure is not analysed: memory and time stay small.
const ANALYSED_MAX: usize = 1 << 17;

/// Fuses what can be fused, and says of every read that is left why.
pub(super) fn fuse(
    code: Vec<Instruction>,
    surroundings: &Surroundings<'_>,
) -> (Vec<Instruction>, Vec<(Address, Obstacle)>) {
    let variables = Variables::new(surroundings);
    if code.len().saturating_mul(variables.words()) > ANALYSED_MAX {
        return unfused(code, &Obstacle::TooLong);
    }
    let flow = Flow::new(&code, &variables);
    let mut regions: Vec<Region> = Vec::new();
    let mut obstacles = Vec::new();
    let mut free_from = 0;
    let is_protected =
        |address: usize| surroundings.protected.iter().any(|range| range.contains(&(address as Address)));
    for address in 0..code.len() {
        let found = match &code[address] {
            instruction if reads_rows(instruction) && is_protected(address) => Err(Obstacle::Handler),
            _ if is_protected(address) => continue,
            instruction if reads_rows(instruction) => find(&code, &flow, address),
            // What begins with a change may read the row afterwards.
            Instruction::Change(_) => find(&code, &flow, address),
            _ => continue,
        };
        match found {
            Ok(region) if address >= free_from => {
                free_from = region.end;
                regions.push(region);
            }
            Err(obstacle) if reads_rows(&code[address]) => obstacles.push((address, obstacle)),
            _ => {}
        }
    }
    let mut code = code;
    for region in regions {
        obstacles.retain(|(address, _)| !region.contains(*address) || region.hoisted.contains(address));
        for (position, hoisted) in region.hoisted.iter().enumerate() {
            let known = obstacles.iter_mut().find(|(address, _)| address == hoisted);
            match known {
                Some((address, _)) => *address = region.start + position,
                None => obstacles.push((region.start + position, Obstacle::Overlaps)),
            }
        }
        fuse_region(&mut code, &region, &variables);
    }
    obstacles.sort_by_key(|(address, _)| *address);
    let obstacles = obstacles.into_iter().map(|(address, obstacle)| (address as Address, obstacle));
    (code, obstacles.collect())
}

/// The code as it is, with one reason for all of its reads.
pub(super) fn unfused(
    code: Vec<Instruction>,
    reason: &Obstacle,
) -> (Vec<Instruction>, Vec<(Address, Obstacle)>) {
    let reads = code.iter().enumerate().filter(|(_, instruction)| reads_rows(instruction));
    let obstacles = reads.map(|(address, _)| (address as Address, reason.clone())).collect();
    (code, obstacles)
}

/// True where rows of a table are read and the program gets to know them.
pub(super) fn reads_rows(instruction: &Instruction) -> bool {
    !matches!(instruction, Instruction::ReturnQuery(_))
        && matches!(instruction.runs(), Some(Runs::Query(query)) if query.reads_rows())
}

/// By address: whether somebody looks at how many rows the change there matched.
pub(super) fn guarded_changes(code: &[Instruction], surroundings: &Surroundings<'_>) -> Vec<bool> {
    let variables = Variables::new(surroundings);
    if code.len().saturating_mul(variables.words()) > ANALYSED_MAX {
        return Vec::new();
    }
    let live = flow::live(code, &variables);
    let next = |address: usize| match &code[address] {
        Instruction::Fused(fused) => fused.end(),
        _ => address + 1,
    };
    let looked_at = |address: usize| {
        let after = &live[next(address).min(code.len())];
        after.contains(variables.found) || after.contains(variables.row_count)
    };
    (0..code.len()).map(looked_at).collect()
}
