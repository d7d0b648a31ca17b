//! The machine.
//!
//! A token is found by at most a few attempts, each of which reads on from the
//! last remembered position. Most attempts that fail have read no more than what
//! the next tokens cover, or stop at the next character of the kind with which
//! they started. Three may read far and fail, and would do so again for each of
//! the many short tokens which follow; they are made linear without a change of
//! what is found:
//!
//! * That of a host, as in `1_1_1_1`. What follows a dot, a hyphen or an
//!   underscore there depends only on that character and on its position, so
//!   that an attempt which comes to one from which an earlier one went on in
//!   vain fails too.
//! * That of a path of dots and tildes, as in `/././.`, for the same reason with
//!   a slash or a tilde.
//! * That of a comment without an end: if one has none then no later one has.
//!
//! The quotes within tags need no such note: of all the attempts from different
//! `<` at most three are alive at any position, since quotes exchange the three
//! ways to stand there (within either kind of quotes, or outside, where the next
//! `<` ends the attempt) and never make two attempts stand in the same way. (A
//! backslash ends those outside, and the others see the same escapes.)

use super::address::{host_end, url_path_end};
use super::look::Look;
use super::rule::Action;
use super::state::State;
use super::table::rules;
use super::token::{Token, TokenKind};

/// The tokens of a text as PostgreSQL 15's default text search parser finds
/// them, in the order in which its `ts_parse('default', …)` returns them.
pub(crate) fn tokens(text: &str) -> Tokens<'_> {
    Tokens {
        text,
        position: 0,
        state: State::Base,
        url: None,
        ignoring: false,
        vain_host: Stretch::default(),
        vain_path: Stretch::default(),
        unclosed_comment: false,
    }
}

/// An iterator over the tokens of a text, as [`tokens`] returns it.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    /// Where the next token starts, and in which state.
    position: usize,
    state: State,
    /// What is still to be returned of a URL.
    url: Option<UrlParts>,
    /// Whether a tag has opened a script or a style which no tag has closed.
    ignoring: bool,
    vain_host: Stretch,
    vain_path: Stretch,
    unclosed_comment: bool,
}

/// What is still to be returned of a URL which has been returned as a whole.
#[derive(Clone, Copy, Debug)]
enum UrlParts {
    HostAndPath { host_end: usize, path_end: usize },
    Path { path_end: usize },
}

/// A stretch of the text, behind `after` and up to `last`, through which an
/// attempt went in vain. The last such stretch is enough, since no token to come
/// reaches back before it.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    after: usize,
    last: usize,
}

impl Stretch {
    fn contains(self, position: usize) -> bool {
        self.after < position && position <= self.last
    }

    fn note(&mut self, after: usize, last: usize) {
        if last > self.last {
            *self = Stretch { after, last };
        }
    }
}

/// An attempt at a token.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    start: usize,
    position: usize,
    state: State,
    /// The first rule of the state to look at.
    first_rule: usize,
    fallback: Option<Fallback>,
}

/// Where to go on after a failure.
#[derive(Clone, Copy, Debug)]
struct Fallback {
    position: usize,
    state: State,
    first_rule: usize,
}

/// What a step of an attempt came to.
enum Step {
    Further,
    Found(TokenKind, usize),
    /// No token, and none to come.
    Stop,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let start = self.position;
        if let Some(url) = self.url.take() {
            return self.url_part(url);
        }
        if start >= self.text.len() {
            return None;
        }
        let mut attempt =
            Attempt { start, position: start, state: self.state, first_rule: 0, fallback: None };
        self.state = State::Base;
        loop {
            match self.step(&mut attempt) {
                Step::Further => {}
                Step::Found(kind, end) => {
                    let text = self.text.get(start..end)?;
                    return Some(Token { kind, text });
                }
                Step::Stop => {
                    self.position = self.text.len();
                    return None;
                }
            }
        }
    }
}

impl std::iter::FusedIterator for Tokens<'_> {}

impl<'a> Tokens<'a> {
    /// The next part of a URL.
    fn url_part(&mut self, url: UrlParts) -> Option<Token<'a>> {
        let (kind, end) = match url {
            UrlParts::HostAndPath { host_end, path_end } => {
                self.url = Some(UrlParts::Path { path_end });
                (TokenKind::Host, host_end)
            }
            UrlParts::Path { path_end } => (TokenKind::UrlPath, path_end),
        };
        let text = self.text.get(self.position..end)?;
        self.position = end;
        Some(Token { kind, text })
    }

    /// Applies one rule.
    fn step(&mut self, attempt: &mut Attempt) -> Step {
        let look = Look::at(self.text, attempt.position);
        let found = rules(attempt.state)
            .iter()
            .enumerate()
            .skip(attempt.first_rule)
            .find(|(_, rule)| look.fits(rule, self.ignoring));
        // Every state has a rule which applies, and what fails has a fallback.
        let Some((index, rule)) = found else {
            return Step::Stop;
        };
        attempt.first_rule = 0;
        let here = attempt.position;
        let behind = here + look.length;
        match rule.action {
            Action::Go(state) => self.enter(attempt, state, behind),
            Action::Try(state) => {
                attempt.fallback =
                    Some(Fallback { position: here, state: attempt.state, first_rule: index + 1 });
                self.enter(attempt, state, behind)
            }
            Action::Fail => self.fail(attempt),
            Action::FailUnclosed => {
                self.unclosed_comment = true;
                self.fail(attempt)
            }
            Action::Stop => Step::Stop,
            Action::Again(state) => {
                attempt.state = state;
                Step::Further
            }
            Action::Emit(kind) => self.found(kind, here, State::Base),
            Action::Take(kind) => self.found(kind, behind, State::Base),
            Action::EmitThen(kind, state) => self.found(kind, here, state),
            Action::EmitCompound(kind) => {
                self.state = State::Parts;
                Step::Found(kind, here)
            }
            Action::GoTag => {
                self.open_or_close(attempt);
                self.enter(attempt, State::TagBody, behind)
            }
            Action::TakeTag => {
                self.open_or_close(attempt);
                self.found(TokenKind::Tag, behind, State::Base)
            }
            Action::EmitSign => self.found(TokenKind::Blank, attempt.start + 1, State::UnsignedInteger),
            Action::Email => match host_end(self.text, here) {
                Some(end) => self.found(TokenKind::Email, end, State::Base),
                None => self.fail(attempt),
            },
            Action::Url => match url_path_end(self.text, here) {
                Some(path_end) => {
                    // The path starts with the slash before this position.
                    let host_end = here.saturating_sub(1);
                    self.url = Some(UrlParts::HostAndPath { host_end, path_end });
                    Step::Found(TokenKind::Url, path_end)
                }
                None => self.fail(attempt),
            },
        }
    }

    /// Ends a token; the next one starts behind it.
    fn found(&mut self, kind: TokenKind, end: usize, next: State) -> Step {
        self.position = end;
        self.state = next;
        Step::Found(kind, end)
    }

    /// Goes to a state, or fails at once if that is known to lead nowhere.
    fn enter(&mut self, attempt: &mut Attempt, state: State, position: usize) -> Step {
        attempt.state = state;
        attempt.position = position;
        let vain = match state {
            State::HostDomainFirst | State::HostPartFirst => self.vain_host.contains(position),
            State::FileFirst | State::FileTilde => self.vain_path.contains(position),
            State::Comment => self.unclosed_comment,
            _ => false,
        };
        if vain { self.fail(attempt) } else { Step::Further }
    }

    /// Goes back, and notes what a later attempt need not read again.
    fn fail(&mut self, attempt: &mut Attempt) -> Step {
        let Some(fallback) = attempt.fallback.take() else {
            return Step::Stop;
        };
        match attempt.state {
            State::HostDomainFirst
            | State::HostDomainSecond
            | State::HostPartFirst
            | State::HostPart
            | State::EmailHost => self.vain_host.note(fallback.position, attempt.position),
            State::FileFirst | State::FileTilde | State::PathDotFirst | State::PathDot | State::PathDots => {
                self.vain_path.note(fallback.position, attempt.position)
            }
            _ => {}
        }
        attempt.position = fallback.position;
        attempt.state = fallback.state;
        attempt.first_rule = fallback.first_rule;
        Step::Further
    }

    /// Notes whether the tag read so far opens or closes a script or a style.
    /// PostgreSQL does so even if the tag turns out to be none.
    fn open_or_close(&mut self, attempt: &Attempt) {
        let tag = self.text.get(attempt.start..attempt.position).unwrap_or_default();
        if ["<script", "<style"].iter().any(|name| tag.eq_ignore_ascii_case(name)) {
            self.ignoring = true;
        } else if ["</script", "</style"].iter().any(|name| tag.eq_ignore_ascii_case(name)) {
            self.ignoring = false;
        }
    }
}
