//! Fabric++'s reordering of a block (Sharma et al., "Blurring the Lines between Blockchains and Database Systems",
//! SIGMOD 2019, section 5.1): endorsed transactions all read the state before the block, so one stays valid exactly
//! if no valid transaction in front of it wrote what it read. Readers are therefore put before writers; where that is
//! a circle, somebody has to go.
//!
//! 1. Edges lead from who writes a key to everybody else who reads it: *the child has to come before the parent*.
//!    Writing what another one writes is no reason for an order, and neither is reading what oneself writes.
//! 2. Strongly connected components of more than one transaction hold all cycles.
//! 3. In each, all elementary cycles are listed, and who lies on most of those left is dropped (tie: the smaller
//!    number), until none is left. This is greedy; the smallest set to drop is NP-hard to find.
//! 4. The others are scheduled by a walk that takes parents first; the block is the reverse of it.
//!
//! # Bounds
//!
//! The paper has none for step 3, where the number of cycles can be exponential: n transactions that read and write
//! one key are a complete graph. A component with more than [`CYCLES_MAX`] cycles, or whose cycles are not found
//! within [`STEPS_MAX`] steps, goes through a round of the degree rule instead: one in [`ROUND_DIVISOR`] of its
//! transactions, at least one, is dropped, each time the one with the largest product of in-degree and out-degree
//! inside the component (tie: the smaller number). What is left is split into components again. Listing their cycles
//! is tried again when they have at most half the size at which it failed. For n transactions with a key accesses, a
//! row of the matrix having n/64 words:
//!
//! | step | at most | 1,024 transactions, 16 keys each |
//! | --- | --- | --- |
//! | edges | 2a rows | 32,768 rows |
//! | components, once | 3n rows | 3,072 rows |
//! | listing cycles | [`STEPS_TOTAL_MAX`] steps | 262,144 steps |
//! | dropping by cycles | n² comparisons | 1 million comparisons |
//! | dropping by degree | 160n rows, n²/2 comparisons, each edge once | 163,840 rows; in a clique 1 million edges |
//! | scheduling | 2n rows, n²/2 moves | 2,048 rows; about 2,048 moves are usual |
//!
//! On an idle core of a 2.5 GHz Xeon 1,024 transactions took 0.2 ms without cycles, 5 ms as a clique, and at most
//! 10 ms in whatever else was tried. Memory is n²/4 bytes for the edges in both directions, at most half as much for
//! the search for components, and 8 bytes for each number up to the largest key.

/// Elementary cycles listed in one component, at most; with more of them degrees decide.
pub const CYCLES_MAX: usize = 1_024;

/// Steps spent on listing the cycles of one component: edges followed, transactions on cycles found, rows of the
/// matrix read.
pub const STEPS_MAX: usize = 1 << 16;

/// Steps spent on listing cycles in one batch.
pub const STEPS_TOTAL_MAX: usize = 1 << 18;

/// A round of the degree rule drops one in so many transactions of a component. Splitting after each one instead kept
/// as many transactions of random batches, give or take four, and took up to ten times as long.
pub const ROUND_DIVISOR: usize = 32;

/// Keys that a transaction reads and writes, as small numbers; each list ascending, without repetition.
///
/// Keys are numbered from 0 with few gaps: memory is taken for every number up to the largest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySets {
    /// Keys read, whether or not they are written too.
    pub reads: Vec<u32>,
    /// Keys written, whether or not they are read too.
    pub writes: Vec<u32>,
}

/// What reordering made of a batch. Transactions are named by their place in it, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Who stays, in the order to be put in the block.
    pub order: Vec<u32>,
    /// Who is aborted early because it lies on a cycle, ascending.
    pub dropped: Vec<u32>,
    /// Elementary cycles counted, in the components where all of them were listed.
    pub cycles: usize,
    /// Some component had more cycles than are counted, or finding them took too long: the degree rule decided there.
    pub capped: bool,
}

/// Orders a batch so that everybody in [`Reordering::order`] is valid: nobody reads what another one before it
/// writes. Who lies on no cycle of the batch is never dropped. The same batch always gives the same result.
pub fn reorder(transactions: &[KeySets]) -> Reordering {
    let graph = Graph::of(transactions);
    let mut breaker = CycleBreaker::new(&graph);
    breaker.break_all();
    let CycleBreaker { mut dropped, cycles, capped, .. } = breaker;
    dropped.sort_unstable();
    let mut kept = graph.set_of(&graph.numbers());
    for number in &dropped {
        remove(&mut kept, *number);
    }
    Reordering { order: graph.schedule(kept), dropped, cycles, capped }
}

/// The matrix of who writes what others read, by rows in both directions, a bit per transaction.
struct Graph {
    transactions: usize,
    /// 64-bit words of a row.
    words: usize,
    /// Row of a writer: who reads something it writes, and has to come before it.
    children: Vec<u64>,
    /// Row of a reader: who writes something it reads.
    parents: Vec<u64>,
}

impl Graph {
    fn of(transactions: &[KeySets]) -> Graph {
        let words = transactions.len().div_ceil(64);
        let empty = vec![0; transactions.len() * words];
        let mut graph =
            Graph { transactions: transactions.len(), words, children: empty.clone(), parents: empty };
        let keys = transactions.iter().flat_map(|one| [&one.reads, &one.writes]).flatten();
        let keys = keys.max().map_or(0, |largest| *largest as usize + 1);
        let readers = ByKey::of(keys, || transactions.iter().map(|one| one.reads.as_slice()));
        let writers = ByKey::of(keys, || transactions.iter().map(|one| one.writes.as_slice()));
        for key in 0..keys {
            let (readers, writers) = (readers.get(key), writers.get(key));
            if !readers.is_empty() && !writers.is_empty() {
                unite_rows(&mut graph.children, words, writers, readers);
                unite_rows(&mut graph.parents, words, readers, writers);
            }
        }
        for number in 0..transactions.len() {
            let row = number * words..(number + 1) * words;
            remove(&mut graph.children[row.clone()], number as u32);
            remove(&mut graph.parents[row], number as u32);
        }
        graph
    }

    fn numbers(&self) -> Vec<u32> {
        (0..self.transactions as u32).collect()
    }

    fn set_of(&self, numbers: &[u32]) -> Vec<u64> {
        let mut set = vec![0; self.words];
        numbers.iter().for_each(|number| insert(&mut set, *number));
        set
    }

    fn children(&self, number: u32) -> &[u64] {
        self.row(&self.children, number)
    }

    fn parents(&self, number: u32) -> &[u64] {
        self.row(&self.parents, number)
    }

    fn row<'a>(&self, rows: &'a [u64], number: u32) -> &'a [u64] {
        &rows[number as usize * self.words..][..self.words]
    }

    /// The strongly connected components of more than one among some transactions, each ascending.
    ///
    /// Tarjan's algorithm in Gabow's form ("Path-based depth-first search", 2000): instead of the lowest number that
    /// a transaction reaches, it keeps the places on the stack where components begin as far as is known. With the
    /// stack below each of them as a set, an edge down the stack is found by comparing words, and no edge is looked
    /// at by itself: at most 3 rows are read for a transaction, however many edges it has.
    fn components(&self, among: &[u32]) -> Vec<Vec<u32>> {
        let mut search = ComponentSearch::new(self, among);
        for root in among {
            search.visit_all_from(*root);
        }
        search.components
    }

    /// The acyclic rest in an order in which children come before their parents: the walk of the paper's step 5,
    /// which always takes the smallest number, reversed at the end.
    ///
    /// Nobody becomes unscheduled again, so each row is searched from the word where the search in it stopped.
    fn schedule(&self, mut unscheduled: Vec<u64>) -> Vec<u32> {
        let mut order = Vec::new();
        let mut word_of_parent = vec![0; self.transactions];
        let mut word_of_child = vec![0; self.transactions];
        let mut word = 0;
        while let Some(next) = first_common(&unscheduled, &unscheduled, word) {
            word = next as usize / 64;
            let mut cursor = Some(next);
            while let Some(mut number) = cursor {
                while let Some(parent) = first_common_onward(
                    self.parents(number),
                    &unscheduled,
                    &mut word_of_parent[number as usize],
                ) {
                    number = parent;
                }
                remove(&mut unscheduled, number);
                order.push(number);
                cursor = first_common_onward(
                    self.children(number),
                    &unscheduled,
                    &mut word_of_child[number as usize],
                );
            }
        }
        order.reverse();
        order
    }
}

/// A depth-first search for strongly connected components.
struct ComponentSearch<'a> {
    graph: &'a Graph,
    unvisited: Vec<u64>,
    /// Visited transactions whose component is not complete, and the same as a set.
    stack: Vec<u32>,
    stacked: Vec<u64>,
    /// Places on the stack where components begin, as far as is known.
    beginnings: Vec<usize>,
    /// For each beginning, a row with who is on the stack below it.
    below: Vec<u64>,
    /// The way from the root to where the search is.
    path: Vec<Visit>,
    components: Vec<Vec<u32>>,
}

struct Visit {
    number: u32,
    /// Its place on the stack.
    place: usize,
    /// Where the search for unvisited children goes on.
    word: usize,
}

impl<'a> ComponentSearch<'a> {
    fn new(graph: &'a Graph, among: &[u32]) -> Self {
        ComponentSearch {
            graph,
            unvisited: graph.set_of(among),
            stack: Vec::new(),
            stacked: vec![0; graph.words],
            beginnings: Vec::new(),
            below: Vec::new(),
            path: Vec::new(),
            components: Vec::new(),
        }
    }

    fn visit_all_from(&mut self, root: u32) {
        if contains(&self.unvisited, root) {
            self.visit(root);
        }
        while let Some(visit) = self.path.last_mut() {
            let children = self.graph.children(visit.number);
            if let Some(child) = first_common_onward(children, &self.unvisited, &mut visit.word) {
                self.visit(child);
            } else {
                let place = visit.place;
                self.path.pop();
                if self.beginnings.last() == Some(&place) {
                    self.complete(place);
                }
            }
        }
    }

    fn visit(&mut self, number: u32) {
        let place = self.stack.len();
        self.beginnings.push(place);
        self.below.extend_from_slice(&self.stacked);
        self.path.push(Visit { number, place, word: 0 });
        self.stack.push(number);
        insert(&mut self.stacked, number);
        remove(&mut self.unvisited, number);
        // An edge to below a beginning closes a cycle around it. There is nobody below the first.
        let children = self.graph.children(number);
        while intersects(children, &self.below[self.below.len() - children.len()..]) {
            self.forget_beginning();
        }
    }

    fn complete(&mut self, place: usize) {
        self.forget_beginning();
        let mut component = self.stack.split_off(place);
        component.iter().for_each(|number| remove(&mut self.stacked, *number));
        if component.len() > 1 {
            component.sort_unstable();
            self.components.push(component);
        }
    }

    fn forget_beginning(&mut self) {
        self.beginnings.pop();
        self.below.truncate(self.beginnings.len() * self.graph.words);
    }
}

/// Step 3: drops transactions until no cycle is left.
struct CycleBreaker<'a> {
    graph: &'a Graph,
    /// Edges to and from each transaction inside its component.
    in_degree: Vec<u32>,
    out_degree: Vec<u32>,
    search: CycleSearch<'a>,
    dropped: Vec<u32>,
    cycles: usize,
    capped: bool,
}

/// A strongly connected component of more than one transaction.
struct Component {
    /// Ascending.
    numbers: Vec<u32>,
    /// Its cycles are listed only if it has at most so many transactions.
    listed_up_to: usize,
}

impl<'a> CycleBreaker<'a> {
    fn new(graph: &'a Graph) -> Self {
        CycleBreaker {
            graph,
            in_degree: vec![0; graph.transactions],
            out_degree: vec![0; graph.transactions],
            search: CycleSearch::new(graph),
            dropped: Vec::new(),
            cycles: 0,
            capped: false,
        }
    }

    fn break_all(&mut self) {
        let components = self.graph.components(&self.graph.numbers());
        components.iter().for_each(|numbers| self.count_degrees(numbers));
        let component = |numbers| Component { numbers, listed_up_to: usize::MAX };
        let mut pending: Vec<Component> = components.into_iter().map(component).collect();
        while let Some(mut component) = pending.pop() {
            if self.may_have_few_cycles(&component) {
                if let Some(cycles) = self.search.elementary_cycles(&component.numbers) {
                    self.cycles += cycles.len();
                    self.drop_by_cycles(&component.numbers, &cycles);
                    continue;
                }
                component.listed_up_to = component.numbers.len() / 2;
            }
            self.capped = true;
            pending.extend(self.drop_by_degree(component));
        }
    }

    fn count_degrees(&mut self, numbers: &[u32]) {
        let inside = self.graph.set_of(numbers);
        for number in numbers {
            self.out_degree[*number as usize] = count_common(self.graph.children(*number), &inside);
            self.in_degree[*number as usize] = count_common(self.graph.parents(*number), &inside);
        }
    }

    /// Whether listing is worth a try. A strongly connected graph is made of e - n + 1 ears, of which each closes
    /// another cycle, so that it has at least so many.
    fn may_have_few_cycles(&self, component: &Component) -> bool {
        let Component { numbers, listed_up_to } = component;
        let edges: usize = numbers.iter().map(|number| self.out_degree[*number as usize] as usize).sum();
        numbers.len() <= *listed_up_to && edges + 1 - numbers.len() <= CYCLES_MAX
    }

    /// Drops who lies on most cycles until all of them are broken.
    fn drop_by_cycles(&mut self, numbers: &[u32], cycles: &[Vec<u32>]) {
        let place = |number: &u32| numbers.binary_search(number).expect("cycles stay inside their component");
        let mut through: Vec<Vec<usize>> = vec![Vec::new(); numbers.len()];
        for (cycle, members) in cycles.iter().enumerate() {
            members.iter().for_each(|member| through[place(member)].push(cycle));
        }
        let mut left: Vec<usize> = through.iter().map(Vec::len).collect();
        let mut broken = vec![false; cycles.len()];
        // Of several with most the last is found: the smallest number.
        while let Some(most) = (0..numbers.len()).rev().max_by_key(|place| left[*place])
            && left[most] > 0
        {
            self.dropped.push(numbers[most]);
            for cycle in &through[most] {
                if !std::mem::replace(&mut broken[*cycle], true) {
                    cycles[*cycle].iter().for_each(|member| left[place(member)] -= 1);
                }
            }
        }
    }

    /// A round: drops who has the largest product of degrees, one after the other, and splits the rest.
    fn drop_by_degree(&mut self, component: Component) -> Vec<Component> {
        let Component { mut numbers, listed_up_to } = component;
        let mut inside = self.graph.set_of(&numbers);
        for _ in 0..numbers.len().div_ceil(ROUND_DIVISOR) {
            let product = |number: &u32| {
                u64::from(self.in_degree[*number as usize]) * u64::from(self.out_degree[*number as usize])
            };
            // Of several with the largest product the last is found, which is the smallest number.
            let most = numbers.iter().copied().rev().max_by_key(product);
            let Some(most) = most.filter(|most| product(most) > 0) else { break };
            self.dropped.push(most);
            self.leave(most, &mut inside);
        }
        numbers.retain(|number| contains(&inside, *number));
        let parts = self.graph.components(&numbers);
        // Usually all are still one component, and no edge is lost.
        if parts.first().is_none_or(|part| part.len() < numbers.len()) {
            parts.iter().for_each(|part| self.forget_edges_out_of(part, &inside));
        }
        parts.into_iter().map(|numbers| Component { numbers, listed_up_to }).collect()
    }

    /// Takes a transaction out of a component, and everybody whom that leaves without edges in or edges out.
    fn leave(&mut self, number: u32, inside: &mut [u64]) {
        let mut leaving = vec![number];
        while let Some(number) = leaving.pop() {
            if !contains(inside, number) {
                continue;
            }
            remove(inside, number);
            (self.in_degree[number as usize], self.out_degree[number as usize]) = (0, 0);
            common(self.graph.children(number), inside).for_each(|child| {
                self.in_degree[child as usize] -= 1;
                if self.in_degree[child as usize] == 0 {
                    leaving.push(child);
                }
            });
            common(self.graph.parents(number), inside).for_each(|parent| {
                self.out_degree[parent as usize] -= 1;
                if self.out_degree[parent as usize] == 0 {
                    leaving.push(parent);
                }
            });
        }
    }

    /// Counts edges between a part of a component and the others in it no longer.
    fn forget_edges_out_of(&mut self, part: &[u32], whole: &[u64]) {
        let mut others = whole.to_vec();
        part.iter().for_each(|number| remove(&mut others, *number));
        for number in part {
            self.out_degree[*number as usize] -= count_common(self.graph.children(*number), &others);
            self.in_degree[*number as usize] -= count_common(self.graph.parents(*number), &others);
        }
    }
}

/// Johnson's search for elementary cycles ("Finding all the elementary circuits of a directed graph", 1975), with
/// limits.
struct CycleSearch<'a> {
    graph: &'a Graph,
    /// Of the component that is searched.
    children: Vec<Vec<u32>>,
    /// On the path, or known not to lead back to its start while those who are on the path are.
    blocked: Vec<bool>,
    /// Who is to be unblocked together with this one. May name somebody twice, which costs less than to find out.
    waiting: Vec<Vec<u32>>,
    /// Steps left for this component, and for all others after it.
    steps: usize,
    steps_of_others: usize,
}

struct Step {
    number: u32,
    /// The next of its children to be tried.
    child: usize,
    /// Whether a cycle was found through it.
    closes: bool,
}

impl<'a> CycleSearch<'a> {
    fn new(graph: &'a Graph) -> Self {
        CycleSearch {
            graph,
            children: vec![Vec::new(); graph.transactions],
            blocked: vec![false; graph.transactions],
            waiting: vec![Vec::new(); graph.transactions],
            steps: 0,
            steps_of_others: STEPS_TOTAL_MAX,
        }
    }

    /// All elementary cycles of a strongly connected component, or none if a limit is exceeded.
    fn elementary_cycles(&mut self, component: &[u32]) -> Option<Vec<Vec<u32>>> {
        self.steps = STEPS_MAX.min(self.steps_of_others);
        self.steps_of_others -= self.steps;
        let cycles = self.cycles_of(component);
        self.steps_of_others += self.steps;
        cycles
    }

    fn cycles_of(&mut self, component: &[u32]) -> Option<Vec<Vec<u32>>> {
        self.spend(component.len())?;
        let inside = self.graph.set_of(component);
        for number in component {
            let children = common(self.graph.children(*number), &inside);
            self.children[*number as usize].clear();
            self.children[*number as usize].extend(children);
            // Whoever is not in the part that is searched stays blocked.
            self.blocked[*number as usize] = true;
        }
        let mut cycles = Vec::new();
        let mut pending = vec![component.to_vec()];
        while let Some(part) = pending.pop() {
            for number in &part {
                self.blocked[*number as usize] = false;
                self.waiting[*number as usize].clear();
            }
            self.cycles_through(part[0], &mut cycles)?;
            part.iter().for_each(|number| self.blocked[*number as usize] = true);
            self.spend(3 * part.len())?;
            pending.extend(self.graph.components(&part[1..]));
        }
        Some(cycles)
    }

    /// Adds the cycles through one transaction that consist of it and of who is not blocked.
    fn cycles_through(&mut self, start: u32, cycles: &mut Vec<Vec<u32>>) -> Option<()> {
        self.blocked[start as usize] = true;
        let mut path = vec![Step { number: start, child: 0, closes: false }];
        while let Some(step) = path.last_mut() {
            self.spend(1)?;
            let Some(&child) = self.children[step.number as usize].get(step.child) else {
                self.step_back(&mut path);
                continue;
            };
            step.child += 1;
            if child == start {
                step.closes = true;
                self.spend(path.len())?;
                if cycles.len() == CYCLES_MAX {
                    return None;
                }
                cycles.push(path.iter().map(|step| step.number).collect());
            } else if !self.blocked[child as usize] {
                self.blocked[child as usize] = true;
                path.push(Step { number: child, child: 0, closes: false });
            }
        }
        Some(())
    }

    fn step_back(&mut self, path: &mut Vec<Step>) {
        let Some(Step { number, closes, .. }) = path.pop() else { return };
        if !closes {
            for child in &self.children[number as usize] {
                self.waiting[*child as usize].push(number);
            }
            return;
        }
        if let Some(before) = path.last_mut() {
            before.closes = true;
        }
        let mut free = vec![number];
        while let Some(number) = free.pop() {
            if std::mem::replace(&mut self.blocked[number as usize], false) {
                free.append(&mut self.waiting[number as usize]);
            }
        }
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.map(|_| ())
    }
}

/// Lists of transactions by key.
struct ByKey {
    /// Where the list of each key begins; one more at the end.
    beginnings: Vec<u32>,
    transactions: Vec<u32>,
}

impl ByKey {
    /// From the keys of each transaction, all below `keys`.
    fn of<'a, K: Iterator<Item = &'a [u32]>>(keys: usize, of_transactions: impl Fn() -> K) -> ByKey {
        let mut beginnings = vec![0; keys + 1];
        of_transactions().flatten().for_each(|key| beginnings[*key as usize] += 1);
        let mut sum = 0;
        for beginning in &mut beginnings {
            sum += *beginning;
            *beginning = sum;
        }
        // Each beginning is the end of its list now, and moves to the front of it while the list is filled.
        let mut transactions = vec![0; sum as usize];
        for (number, keys) in of_transactions().enumerate() {
            for key in keys {
                let place = &mut beginnings[*key as usize];
                *place -= 1;
                transactions[*place as usize] = number as u32;
            }
        }
        ByKey { beginnings, transactions }
    }

    fn get(&self, key: usize) -> &[u32] {
        &self.transactions[self.beginnings[key] as usize..self.beginnings[key + 1] as usize]
    }
}

/// Adds a set of transactions to the rows of others.
fn unite_rows(rows: &mut [u64], words: usize, of: &[u32], with: &[u32]) {
    let mut added = vec![0; words];
    with.iter().for_each(|number| insert(&mut added, *number));
    for number in of {
        let row = &mut rows[*number as usize * words..][..words];
        row.iter_mut().zip(&added).for_each(|(word, added)| *word |= added);
    }
}

fn insert(set: &mut [u64], number: u32) {
    set[number as usize / 64] |= 1 << (number % 64);
}

fn remove(set: &mut [u64], number: u32) {
    set[number as usize / 64] &= !(1 << (number % 64));
}

fn contains(set: &[u64], number: u32) -> bool {
    set[number as usize / 64] & 1 << (number % 64) != 0
}

fn intersects(one: &[u64], other: &[u64]) -> bool {
    one.iter().zip(other).any(|(one, other)| one & other != 0)
}

fn count_common(one: &[u64], other: &[u64]) -> u32 {
    one.iter().zip(other).map(|(one, other)| (one & other).count_ones()).sum()
}

/// Who is in both sets, ascending.
fn common(one: &[u64], other: &[u64]) -> impl Iterator<Item = u32> {
    one.iter().zip(other).enumerate().flat_map(|(word, (one, other))| {
        let mut bits = one & other;
        std::iter::from_fn(move || {
            let bit = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            (bit < 64).then_some(word as u32 * 64 + bit)
        })
    })
}

/// The smallest number in both sets from a word on.
fn first_common(one: &[u64], other: &[u64], from_word: usize) -> Option<u32> {
    let mut words = one[from_word..].iter().zip(&other[from_word..]).map(|(one, other)| one & other);
    let word = from_word + words.position(|bits| bits != 0)?;
    Some(word as u32 * 64 + (one[word] & other[word]).trailing_zeros())
}

/// The same, remembering the word: for sets in which nothing appears before it.
fn first_common_onward(one: &[u64], other: &[u64], word: &mut usize) -> Option<u32> {
    let found = first_common(one, other, *word);
    *word = found.map_or(one.len(), |number| number as usize / 64);
    found
}

#[cfg(test)]
mod tests;
