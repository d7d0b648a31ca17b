//! Choosing endorsers. Organisations are numbered by preference; a tree holds what is still open after some of them were
//! decided. A branch-and-bound search decides the most preferred organisation that is still mentioned: first that it
//! endorses, then that it does not. The first set that it finds within the smallest size is therefore the preferred
//! one.

use super::{Policy, Term};
use crate::limits;
use std::collections::BTreeMap;

/// Of a share of one organisation: divisible by every number of mentions up to 10, so that little is lost in
/// rounding.
const SHARES: usize = 2_520;

impl Policy {
    /// Who is chosen, and whether no smaller or preferred set exists for certain.
    pub(super) fn choose_with(&self, available: &[&str], search: &mut Search) -> Option<(Vec<String>, bool)> {
        let mentioned = self.organisations();
        let mut candidates: Vec<&str> = Vec::new();
        let mut numbers = BTreeMap::new();
        for name in available.iter().filter(|name| mentioned.contains(*name)) {
            numbers.entry(*name).or_insert_with(|| {
                candidates.push(name);
                candidates.len() - 1
            });
        }
        let tree = match Tree::open(&self.term, &numbers) {
            Decided::Open(tree) => tree,
            // A term is in normal form, so nothing but endorsements satisfies it.
            _ => return None,
        };
        let (numbers, is_exact) = search.smallest(&tree);
        let chosen = numbers.into_iter().map(|number| candidates[number].to_string()).collect();
        Some((chosen, is_exact))
    }
}

/// A term over the numbers of organisations that are undecided.
#[derive(Clone)]
enum Tree {
    Organisation(usize),
    AtLeast { needed: usize, operands: Vec<Tree> },
}

/// What a decision leaves of a tree.
enum Decided {
    Satisfied,
    Impossible,
    Open(Tree),
}

impl Tree {
    /// The term without the organisations that have no number.
    fn open(term: &Term, numbers: &BTreeMap<&str, usize>) -> Decided {
        match term {
            Term::Organisation(name) => match numbers.get(name.as_str()) {
                Some(number) => Decided::Open(Tree::Organisation(*number)),
                None => Decided::Impossible,
            },
            Term::AtLeast { needed, operands } => {
                Tree::join(*needed, operands.iter().map(|operand| Tree::open(operand, numbers)))
            }
        }
    }

    fn decide(&self, number: usize, endorses: bool) -> Decided {
        match self {
            Tree::Organisation(found) if *found != number => Decided::Open(self.clone()),
            Tree::Organisation(_) if endorses => Decided::Satisfied,
            Tree::Organisation(_) => Decided::Impossible,
            Tree::AtLeast { needed, operands } => {
                Tree::join(*needed, operands.iter().map(|operand| operand.decide(number, endorses)))
            }
        }
    }

    fn join(mut needed: usize, operands: impl Iterator<Item = Decided>) -> Decided {
        let mut open = Vec::new();
        for operand in operands {
            match operand {
                Decided::Satisfied if needed == 1 => return Decided::Satisfied,
                Decided::Satisfied => needed -= 1,
                Decided::Impossible => {}
                Decided::Open(tree) => open.push(tree),
            }
        }
        match open.len() {
            few if few < needed => Decided::Impossible,
            1 => Decided::Open(open.remove(0)),
            _ => Decided::Open(Tree::AtLeast { needed, operands: open }),
        }
    }

    fn is_satisfied(&self, chosen: &[usize]) -> bool {
        match self {
            Tree::Organisation(number) => chosen.contains(number),
            Tree::AtLeast { needed, operands } => {
                operands.iter().filter(|operand| operand.is_satisfied(chosen)).count() >= *needed
            }
        }
    }

    fn count_mentions(&self, mentions: &mut [usize; limits::ORGANISATIONS_MAX]) {
        match self {
            Tree::Organisation(number) => mentions[*number] += 1,
            Tree::AtLeast { operands, .. } => {
                operands.iter().for_each(|operand| operand.count_mentions(mentions));
            }
        }
    }

    /// The cheapest way to satisfy the tree if every mention is paid for by itself.
    fn cost(&self, mentions: &[usize; limits::ORGANISATIONS_MAX]) -> usize {
        match self {
            Tree::Organisation(number) => SHARES / mentions[*number],
            Tree::AtLeast { needed, operands } => {
                let mut costs: Vec<_> = operands.iter().map(|operand| operand.cost(mentions)).collect();
                costs.sort_unstable();
                costs[..*needed].iter().sum()
            }
        }
    }
}

/// The search ran out of work.
struct Exhausted;

/// How many mentions the search may still visit.
pub(super) struct Search {
    work_left: usize,
}

impl Search {
    pub(super) fn new(work_left: usize) -> Search {
        Search { work_left }
    }

    /// The preferred one of the smallest sets, and whether it is: without work left it is only minimal.
    fn smallest(&mut self, tree: &Tree) -> (Vec<usize>, bool) {
        let greedy = greedy(tree);
        for size in measure(tree).size_min..=greedy.len() {
            let mut chosen = Vec::new();
            match self.within(tree, size, &mut chosen) {
                Ok(true) => return (chosen, true),
                Ok(false) => {}
                Err(Exhausted) => return (greedy, false),
            }
        }
        unreachable!("the greedy set is one of its size")
    }

    /// Adds at most `size` organisations to `chosen` that satisfy the tree: the preferred ones of those that do.
    fn within(&mut self, tree: &Tree, size: usize, chosen: &mut Vec<usize>) -> Result<bool, Exhausted> {
        let measure = measure(tree);
        self.work_left = self.work_left.checked_sub(measure.mentions).ok_or(Exhausted)?;
        if measure.size_min > size {
            return Ok(false);
        }
        chosen.push(measure.preferred);
        match tree.decide(measure.preferred, true) {
            Decided::Satisfied => return Ok(true),
            Decided::Open(rest) if self.within(&rest, size - 1, chosen)? => return Ok(true),
            _ => chosen.pop(),
        };
        match tree.decide(measure.preferred, false) {
            Decided::Open(rest) => self.within(&rest, size, chosen),
            _ => Ok(false),
        }
    }
}

struct Measure {
    /// The most preferred organisation that is mentioned.
    preferred: usize,
    mentions: usize,
    /// No smaller set satisfies the tree. An organisation with `m` mentions pays an m-th part of itself at each, so
    /// that a set that satisfies the tree pays at most its size; mentions are then independent, and the cheapest
    /// operands of a threshold are the best. Exact where nobody is mentioned twice.
    size_min: usize,
}

fn measure(tree: &Tree) -> Measure {
    let mut mentions = [0; limits::ORGANISATIONS_MAX];
    tree.count_mentions(&mut mentions);
    Measure {
        preferred: mentions.iter().position(|count| *count > 0).expect("a tree mentions somebody"),
        mentions: mentions.iter().sum(),
        size_min: tree.cost(&mentions).div_ceil(SHARES),
    }
}

/// One descent by the bound alone; then nobody stays who can be left out, the least preferred first.
fn greedy(tree: &Tree) -> Vec<usize> {
    let mut chosen = Vec::new();
    let mut open = tree.clone();
    loop {
        let preferred = measure(&open).preferred;
        let with = open.decide(preferred, true);
        let without = open.decide(preferred, false);
        open = match (with, without) {
            (Decided::Open(with), Decided::Open(without))
                if 1 + measure(&with).size_min > measure(&without).size_min =>
            {
                without
            }
            (with, _) => {
                chosen.push(preferred);
                let Decided::Open(with) = with else { break };
                with
            }
        };
    }
    for position in (0..chosen.len()).rev() {
        let number = chosen.remove(position);
        if !tree.is_satisfied(&chosen) {
            chosen.insert(position, number);
        }
    }
    chosen
}
