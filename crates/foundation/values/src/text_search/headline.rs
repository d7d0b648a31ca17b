//! The part of a text that shows why it was found, with the words that were looked for marked: PostgreSQL's `ts_headline`.

use super::dictionary::{Lexed, lex};
use super::document::UNITS_PER_BYTE;
use super::headline_options::HeadlineOptions;
use super::looks::Looks;
use super::matching::{Found, execute};
use super::parser::{TokenKind, tokens};
use crate::length::check_length;
use crate::work;
use std::cell::Cell;
use std::cmp::Reverse;
use types::SqlError;
use types::text_search::{Configuration, LEXEME_BYTES_MAX, POSITION_MAX, QueryItem, TsQuery};

/// A part of the text: a word, or what stands between words.
#[derive(Clone)]
struct Word<'t> {
    kind: TokenKind,
    text: &'t str,
    /// Its place among the words.
    place: u16,
    /// The item of the query that means it.
    item: Option<usize>,
    /// It stands here again because another item of the query means it, too.
    is_repeated: bool,
    is_shown: bool,
    is_marked: bool,
    becomes_space: bool,
    is_skipped: bool,
}

impl Word<'_> {
    /// What is between words, or has its parts behind it.
    fn is_no_word(&self) -> bool {
        matches!(self.kind, TokenKind::Blank | TokenKind::Tag) || self.has_parts()
    }

    /// Its parts follow as words of their own.
    fn has_parts(&self) -> bool {
        matches!(self.kind, TokenKind::Url | TokenKind::NumHWord | TokenKind::AsciiHWord | TokenKind::HWord)
    }

    fn is_looked_for(&self) -> bool {
        self.item.is_some() && !self.is_repeated
    }

    /// A headline should not end here.
    fn is_bad_end(&self, short_word: usize) -> bool {
        let is_number = matches!(
            self.kind,
            TokenKind::SFloat | TokenKind::Version | TokenKind::Float | TokenKind::Int | TokenKind::UInt
        );
        let is_markup = matches!(self.kind, TokenKind::Protocol | TokenKind::Entity);
        let is_weak = self.is_no_word() || is_number || is_markup || self.text.len() <= short_word;
        is_weak && !self.is_looked_for()
    }
}

/// Words from the first to the last one.
#[derive(Clone, Copy)]
struct Stretch {
    first: usize,
    last: usize,
}

/// The headline of a text.
///
/// # Errors
/// `22023` and `42601` for options that cannot be, `57014` where that takes more work than there is left.
pub(crate) fn headline(
    configuration: Configuration,
    text: &str,
    query: &TsQuery,
    options: &HeadlineOptions,
) -> Result<String, SqlError> {
    let words = words_of(configuration, text, query)?;
    let mut document = Document { words, query, options, looks: Cell::default() };
    if options.fragments_max == 0 {
        document.choose_words()?;
    } else {
        document.choose_fragments()?;
    }
    document.written()
}

fn words_of<'t>(
    configuration: Configuration,
    text: &'t str,
    query: &TsQuery,
) -> Result<Vec<Word<'t>>, SqlError> {
    work::spend((text.len() as u64).saturating_mul(UNITS_PER_BYTE + query.items().len() as u64))?;
    let mut words: Vec<Word<'t>> = Vec::new();
    let mut place = 0_u32;
    for token in tokens(text) {
        if token.text.len() > LEXEME_BYTES_MAX {
            continue;
        }
        let mut word = Word {
            kind: token.kind,
            text: token.text,
            place: 0,
            item: None,
            is_repeated: false,
            is_shown: false,
            is_marked: false,
            becomes_space: false,
            is_skipped: false,
        };
        let lexed = lex(configuration, token.kind, token.text);
        if lexed.is_some() {
            place = place.saturating_add(1);
        }
        let Some(Lexed::Word(lexeme)) = lexed else {
            words.push(word);
            continue;
        };
        word.place = u16::try_from(place).unwrap_or(POSITION_MAX).min(POSITION_MAX);
        // From the last item to the first, as PostgreSQL keeps them.
        let mut meant = query.items().iter().enumerate().rev().filter(|(_, item)| means(item, &lexeme));
        word.item = meant.next().map(|(item, _)| item);
        words.push(word.clone());
        for (item, _) in meant {
            words.push(Word { item: Some(item), is_repeated: true, ..word.clone() });
        }
    }
    Ok(words)
}

fn means(item: &QueryItem, lexeme: &str) -> bool {
    match item {
        QueryItem::Operand { text, is_prefix: true, .. } => lexeme.starts_with(&**text),
        QueryItem::Operand { text, .. } => lexeme == &**text,
        _ => false,
    }
}

struct Document<'d> {
    words: Vec<Word<'d>>,
    query: &'d TsQuery,
    options: &'d HeadlineOptions,
    /// What has been looked at.
    looks: Cell<Looks>,
}

impl Document<'_> {
    /// The shortest stretch from a word on that has what is looked for.
    fn cover_from(&self, start: usize) -> Result<Option<Stretch>, SqlError> {
        if self.query.is_empty() {
            return Ok(None);
        }
        let next = |from: usize| (from..self.words.len()).find(|at| self.words[*at].item.is_some());
        let mut begins = next(start);
        while let Some(first) = begins {
            begins = next(first + 1);
            let further = std::iter::successors(Some(first), |end| next(end + 1));
            let ends: Vec<usize> = further.take_while(|end| end - first < self.options.cover_max()).collect();
            if let Some(last) = self.first_end(first, &ends)? {
                return Ok(Some(Stretch { first, last }));
            }
        }
        Ok(None)
    }

    /// The first of these ends up to which a stretch has what is looked for.
    fn first_end(&self, first: usize, ends: &[usize]) -> Result<Option<usize>, SqlError> {
        let is_end = |last: &usize| self.has_all(Stretch { first, last: *last });
        if self.query.items().contains(&QueryItem::Not) {
            for last in ends {
                if is_end(last)? {
                    return Ok(Some(*last));
                }
            }
            return Ok(None);
        }
        // A longer stretch has whatever a shorter one has.
        let Some(longest) = ends.last() else { return Ok(None) };
        if !is_end(longest)? {
            return Ok(None);
        }
        let (mut low, mut high) = (0, ends.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            if is_end(&ends[middle])? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(Some(ends[low]))
    }

    fn has_all(&self, stretch: Stretch) -> Result<bool, SqlError> {
        let words = &self.words[stretch.first..=stretch.last];
        let mut looks = self.looks.take();
        let taken = looks.take((words.len() as u64 + 16) * self.query.items().len() as u64, 1);
        self.looks.set(looks);
        taken?;
        execute(self.query, &mut |operand, _| {
            let mut places: Vec<u16> = Vec::new();
            for word in words.iter().filter(|word| word.item == Some(operand.item)) {
                if places.last().is_none_or(|last| *last < word.place) {
                    places.push(word.place);
                }
            }
            Ok(if places.is_empty() { Found::No } else { Found::At(places) })
        })
    }

    fn is_bad_end(&self, at: usize) -> bool {
        self.words[at].is_bad_end(self.options.short_word)
    }

    /// Words that count, and words that were looked for, of one word.
    fn counts(&self, at: usize) -> (usize, usize) {
        let word = &self.words[at];
        (usize::from(!word.is_no_word()), usize::from(word.is_looked_for()))
    }

    /// Shows the first words of the text.
    fn show_first_words(&mut self) {
        let mut count = 0;
        let mut end = 0;
        while end < self.words.len() && count < self.options.words_min {
            count += self.counts(end).0;
            end += 1;
        }
        self.show(0, end);
    }

    /// Shows the words from one to the one in front of another.
    fn show(&mut self, from: usize, end: usize) {
        for word in &mut self.words[from..end] {
            word.is_marked |= word.item.is_some();
            if self.options.shows_all {
                word.is_skipped |= word.has_parts();
            } else if word.kind == TokenKind::Tag {
                word.becomes_space = true;
            } else {
                word.is_skipped |= word.has_parts();
            }
            word.is_shown = !word.is_repeated;
        }
    }

    /// One headline around the best cover.
    fn choose_words(&mut self) -> Result<(), SqlError> {
        if self.options.shows_all {
            self.show(0, self.words.len());
            return Ok(());
        }
        let mut best: Option<Candidate> = None;
        let mut start = 0;
        while let Some(cover) = self.cover_from(start)? {
            let candidate = self.candidate(cover);
            // What has the whole cover comes first, then what has more of the words, then what ends well.
            let is_better = best.as_ref().is_none_or(|best| {
                let (new, old) =
                    ((candidate.has_cover, candidate.looked_for), (best.has_cover, best.looked_for));
                new > old
                    || (new == old
                        && !self.is_bad_end(candidate.stretch.last)
                        && self.is_bad_end(best.stretch.last))
            });
            if is_better {
                best = Some(candidate);
            }
            start = cover.first + 1;
        }
        match best {
            Some(best) => self.show(best.stretch.first, best.stretch.last + 1),
            None => self.show_first_words(),
        }
        Ok(())
    }

    /// The headline that a cover would have.
    fn candidate(&self, cover: Stretch) -> Candidate {
        let (words_min, words_max) = (self.options.words_min, self.options.words_max);
        let (mut count, mut looked_for) = (0, 0);
        let mut stretch = Stretch { first: cover.first, last: cover.first };
        let mut at = cover.first;
        while at <= cover.last && count < words_max {
            let (word, found) = self.counts(at);
            count += word;
            looked_for += found;
            stretch.last = at;
            at += 1;
        }
        if count < words_max {
            self.lengthen(cover, &mut stretch, &mut count, &mut looked_for);
        } else {
            // The last word that was looked at, or the one behind it.
            let mut at = at.min(cover.last);
            while count > words_min && self.is_bad_end(at) {
                count -= self.counts(at).0;
                let Some(before) = at.checked_sub(1) else { break };
                stretch.last = before;
                at = before;
            }
        }
        let has_cover = stretch.first <= cover.first && stretch.last >= cover.last;
        Candidate { stretch, looked_for, has_cover }
    }

    /// Goes on behind a cover until there are words enough and a good end; then in front of it, where the text has ended.
    fn lengthen(&self, cover: Stretch, stretch: &mut Stretch, count: &mut usize, looked_for: &mut usize) {
        let (words_min, words_max) = (self.options.words_min, self.options.words_max);
        let mut at = cover.last;
        while at < self.words.len() && *count < words_max {
            if at > cover.last {
                let (word, found) = self.counts(at);
                *count += word;
                *looked_for += found;
            }
            stretch.last = at;
            if !self.is_bad_end(at) && *count >= words_min {
                break;
            }
            at += 1;
        }
        if *count >= words_min {
            return;
        }
        stretch.first = 0;
        for at in (0..cover.first).rev() {
            let (word, found) = self.counts(at);
            *count += word;
            *looked_for += found;
            if *count >= words_max || (!self.is_bad_end(at) && *count >= words_min) {
                stretch.first = at;
                break;
            }
        }
    }

    /// Several headlines, each around a part of a cover.
    fn choose_fragments(&mut self) -> Result<(), SqlError> {
        let mut fragments = self.fragments()?;
        let mut chosen = 0;
        while chosen < self.options.fragments_max {
            work::spend(fragments.len() as u64)?;
            // Most of the words that were looked for, then the fewest words, then the first.
            let best = (0..fragments.len())
                .filter(|at| !fragments[*at].is_out)
                .max_by_key(|at| (fragments[*at].looked_for, Reverse(fragments[*at].count), Reverse(*at)));
            let Some(best) = best else { break };
            let stretch = self.stretched(&fragments[best]);
            self.show(stretch.first, stretch.last + 1);
            fragments[best].is_out = true;
            chosen += 1;
            for (at, fragment) in fragments.iter_mut().enumerate() {
                let overlaps =
                    fragment.stretch.first <= stretch.last && fragment.stretch.last >= stretch.first;
                fragment.is_out |= at != best && overlaps;
            }
        }
        if chosen == 0 {
            self.show_first_words();
        }
        Ok(())
    }

    /// All covers, in pieces that are not too long and begin and end with words that were looked for.
    fn fragments(&self) -> Result<Vec<Fragment>, SqlError> {
        let mut fragments = Vec::new();
        let mut start = 0;
        while let Some(cover) = self.cover_from(start)? {
            let mut rest = cover;
            while rest.first <= rest.last {
                work::spend((rest.last - rest.first + 1) as u64)?;
                let fragment = self.first_fragment(rest);
                rest.first = fragment.stretch.last + 1;
                fragments.push(fragment);
            }
            start = cover.first + 1;
        }
        Ok(fragments)
    }

    fn first_fragment(&self, of: Stretch) -> Fragment {
        let first = (of.first..=of.last).find(|at| self.words[*at].is_looked_for()).unwrap_or(of.last);
        let (mut count, mut looked_for) = (0, 0);
        let mut at = first;
        while at <= of.last && count < self.options.words_max {
            let (word, found) = self.counts(at);
            count += word;
            looked_for += found;
            at += 1;
        }
        let mut last = of.last;
        if last > at {
            // Back to a word that was looked for.
            last = first;
            for back in (first..=at).rev() {
                last = back;
                if self.words[back].is_looked_for() {
                    break;
                }
                count = count.saturating_sub(self.counts(back).0);
            }
        }
        Fragment { stretch: Stretch { first, last }, looked_for, count, is_out: false }
    }

    /// A fragment with words around it, where it has room for more.
    fn stretched(&self, fragment: &Fragment) -> Stretch {
        let mut stretch = fragment.stretch;
        let mut count = fragment.count;
        let words_max = self.options.words_max;
        if count >= words_max {
            return stretch;
        }
        let room = (words_max - count) / 2;
        let (mut marker, mut taken) = (stretch.first, 0);
        for at in (0..stretch.first).rev() {
            if taken >= room || self.words[at].is_shown {
                break;
            }
            let (word, _) = self.counts(at);
            count += word;
            taken += word;
            marker = at;
        }
        while marker < stretch.first && self.is_bad_end(marker) {
            count -= self.counts(marker).0;
            marker += 1;
        }
        stretch.first = marker;
        let mut marker = stretch.last;
        for at in stretch.last + 1..self.words.len() {
            if count >= words_max || self.words[at].is_shown {
                break;
            }
            count += self.counts(at).0;
            marker = at;
        }
        while marker > stretch.last && self.is_bad_end(marker) {
            marker -= 1;
        }
        stretch.last = marker;
        stretch
    }

    /// # Errors
    /// `54000` where it is longer than a text may be.
    fn written(&self) -> Result<String, SqlError> {
        let mut written = String::new();
        let (mut fragments, mut is_inside) = (0, false);
        for word in self.words.iter().filter(|word| !word.is_repeated) {
            if !word.is_shown {
                is_inside = false;
                continue;
            }
            if !is_inside {
                is_inside = true;
                fragments += 1;
                if fragments > 1 {
                    written.push_str(&self.options.delimiter);
                }
            }
            if word.becomes_space {
                written.push(' ');
            } else if !word.is_skipped {
                if word.is_marked {
                    written.push_str(&self.options.start);
                }
                written.push_str(word.text);
                if word.is_marked {
                    written.push_str(&self.options.stop);
                }
            }
            // Marks may be much longer than words.
            check_length(written.len())?;
        }
        Ok(written)
    }
}

/// A headline that could be chosen.
struct Candidate {
    stretch: Stretch,
    /// Words in it that were looked for.
    looked_for: usize,
    has_cover: bool,
}

/// A piece of a cover.
struct Fragment {
    stretch: Stretch,
    /// Words in it that were looked for.
    looked_for: usize,
    /// Words in it.
    count: usize,
    /// It is shown, or overlaps with what is.
    is_out: bool,
}
