//! Hosts and paths which are read in one go.
//!
//! PostgreSQL starts a second parser for the host of an electronic mail address
//! and for the path of a URL, and takes what it returns if it is of the right
//! kind. Both amount to a longest match, which these functions look for.

use super::character;
use super::class::Classes;
use super::look::Look;
use super::rule::Action;
use super::state::State;
use super::table::rules;
use super::token::TokenKind;

/// Where the host (with its port) which starts at the position ends; nothing if
/// the token which starts there would not be a host.
///
/// It reads no further than to the next `@`, so that the hosts behind many of
/// them take linear time together.
pub(crate) fn host_end(text: &str, start: usize) -> Option<usize> {
    if starts_with_exponent(text, start) {
        return None;
    }
    let mut position = start;
    // A token which starts with a letter or a digit becomes a host in the same
    // way as from within a part of one; what starts otherwise becomes none.
    let mut state = State::HostPartFirst;
    let mut end = None;
    loop {
        let look = Look::at(text, position);
        let rule = rules(state).iter().find(|rule| look.fits(rule, false))?;
        state = match rule.action {
            // The second parser wants no mail address and no URL.
            Action::Try(State::EmailHost | State::UrlPath) => return Some(position),
            Action::Go(State::EmailHost) => return end,
            Action::Try(next) => {
                end = Some(position);
                next
            }
            Action::Go(next) => next,
            Action::Emit(TokenKind::Host) => return Some(position),
            _ => return end,
        };
        position += look.length;
    }
}

/// Whether a number with an exponent starts at the position: it is preferred to
/// a host, as in `1e5.example.org`.
fn starts_with_exponent(text: &str, start: usize) -> bool {
    let mut position = start;
    while Look::at(text, position).is_in(Classes::DIGIT) {
        position += 1;
    }
    let letter = Look::at(text, position);
    if position == start || !(letter.is(b'e') || letter.is(b'E')) {
        return false;
    }
    let sign = Look::at(text, position + 1);
    let digit = if sign.is(b'+') || sign.is(b'-') { position + 2 } else { position + 1 };
    Look::at(text, digit).is_in(Classes::DIGIT)
}

/// Where the path of a URL which starts at the position, behind its slash, ends;
/// nothing if it would be empty.
pub(crate) fn url_path_end(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    let length = rest.find(|character| !character::is_url(character)).unwrap_or(rest.len());
    (length > 0).then_some(start + length)
}
