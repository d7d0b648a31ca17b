//! Functions of regular expressions.

use crate::functions::entry::Argument::{From, To};
use crate::functions::entry::Gives::{ArrayOf, Is};
use crate::functions::entry::{Argument, Computed, Function, Gives, code, free};
use crate::functions::regular_syntax::{Options, invalid, of_similar, translate};
use crate::length::check_length;
use crate::work;
use DataType::{Boolean, Integer};
use regex::{Regex, RegexBuilder};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use types::{Array, DataType, ElementType, SqlError, SqlState, Value};

/// Bytes that an expression may take when it is compiled.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Parentheses inside of one another.
const NESTING_MAX: u32 = 100;

/// Bytes that the searches of one call may go over: each may have to look at all of the rest before it settles for little.
const SEARCHED_BYTES_MAX: usize = 1 << 27;

/// Expressions that a thread keeps compiled.
const RECENT_MAX: usize = 16;

const TEXT: DataType = DataType::Text(None);

/// Texts, and literals that may be some.
const TEXTS: &[DataType] = &[TEXT, DataType::Char(None), DataType::Unknown];

pub(super) static FUNCTIONS: &[Function] = &[
    regular(
        &["~"],
        &[From(TEXTS, TEXT), To(TEXT)],
        Is(Boolean),
        code!(
            [Value::Text(text), Value::Text(pattern)] => Ok(Value::Boolean(is_in(text, pattern, false)?)),
        ),
    ),
    regular(
        &["~*"],
        &[From(TEXTS, TEXT), To(TEXT)],
        Is(Boolean),
        code!(
            [Value::Text(text), Value::Text(pattern)] => Ok(Value::Boolean(is_in(text, pattern, true)?)),
        ),
    ),
    regular(
        &["!~"],
        &[From(TEXTS, TEXT), To(TEXT)],
        Is(Boolean),
        code!(
            [Value::Text(text), Value::Text(pattern)] => Ok(Value::Boolean(!is_in(text, pattern, false)?)),
        ),
    ),
    regular(
        &["!~*"],
        &[From(TEXTS, TEXT), To(TEXT)],
        Is(Boolean),
        code!(
            [Value::Text(text), Value::Text(pattern)] => Ok(Value::Boolean(!is_in(text, pattern, true)?)),
        ),
    ),
    // With its escape behind.
    regular(
        &["SIMILAR TO"],
        &[To(TEXT), To(TEXT), To(TEXT)],
        Is(Boolean),
        code!(
            [Value::Text(text), Value::Text(pattern), rest @ ..] => is_similar(text, pattern, rest, false),
        ),
    )
    .optional(1),
    // Text, pattern, flags.
    regular(
        &["regexp_like"],
        &[To(TEXT), To(TEXT), To(TEXT)],
        Is(Boolean),
        code!(
            [Value::Text(text), Value::Text(pattern), rest @ ..] => {
                let options = flags(rest, 0, "regexp_like()")?;
                Ok(Value::Boolean(compiled(pattern, options)?.is_in(text)?))
            }
        ),
    )
    .optional(1),
    // Text, pattern, flags.
    regular(
        &["regexp_match"],
        &[To(TEXT), To(TEXT), To(TEXT)],
        ArrayOf(TEXT),
        code!(
            [Value::Text(text), Value::Text(pattern), rest @ ..] => {
                matched(text, &*compiled(pattern, flags(rest, 0, "regexp_match()")?)?)
            }
        ),
    )
    .optional(1),
    // Text, pattern, flags.
    regular(
        &["regexp_split_to_array"],
        &[To(TEXT), To(TEXT), To(TEXT)],
        ArrayOf(TEXT),
        code!(
            [Value::Text(text), Value::Text(pattern), rest @ ..] => {
                split(text, &*compiled(pattern, flags(rest, 0, "regexp_split_to_array()")?)?)
            }
        ),
    )
    .optional(1),
    // Text, pattern, start, flags.
    regular(
        &["regexp_count"],
        &[To(TEXT), To(TEXT), To(Integer), To(TEXT)],
        Is(Integer),
        code!(
            [Value::Text(text), Value::Text(pattern), rest @ ..] => counted(text, pattern, rest),
        ),
    )
    .optional(2),
    // Text, pattern, start, number, end, flags, subexpression.
    regular(
        &["regexp_instr"],
        &[To(TEXT), To(TEXT), To(Integer), To(Integer), To(Integer), To(TEXT), To(Integer)],
        Is(Integer),
        code!([Value::Text(text), Value::Text(pattern), rest @ ..] => numbered(text, pattern, rest, true)),
    )
    .optional(5),
    // Text, pattern, start, number, flags, subexpression.
    regular(
        &["regexp_substr"],
        &[To(TEXT), To(TEXT), To(Integer), To(Integer), To(TEXT), To(Integer)],
        Is(TEXT),
        code!([Value::Text(text), Value::Text(pattern), rest @ ..] => numbered(text, pattern, rest, false)),
    )
    .optional(4),
    // Text, pattern, replacement, flags.
    regular(
        &["regexp_replace"],
        &[To(TEXT), To(TEXT), To(TEXT), From(TEXTS, TEXT)],
        Is(TEXT),
        code!(
            [Value::Text(text), Value::Text(pattern), Value::Text(replacement), rest @ ..] => {
                let options = flags(rest, 0, "")?;
                let which = if options.global { 0 } else { 1 };
                let regex = compiled(pattern, Options { global: false, ..options })?;
                replace(text, &regex, replacement, 0, which)
            }
        ),
    )
    .optional(1),
    // Text, pattern, replacement, start, number, flags.
    regular(
        &["regexp_replace"],
        &[To(TEXT), To(TEXT), To(TEXT), To(Integer), To(Integer), To(TEXT)],
        Is(TEXT),
        code!([Value::Text(text), Value::Text(pattern), Value::Text(replacement), rest @ ..] => {
            replace_numbered(text, pattern, replacement, rest)
        }),
    )
    .optional(2),
    // `substring(text from pattern)`
    regular(
        &["substring"],
        &[From(TEXTS, TEXT), From(TEXTS, TEXT)],
        Is(TEXT),
        code!(
            [Value::Text(text), Value::Text(pattern)] => {
                let regex = compiled(pattern, Options::default())?;
                let mut value = Value::Null;
                visit(&regex, text, 0, |found| {
                    value = first_part(&regex, text, &found);
                    Ok(false)
                })?;
                Ok(value)
            }
        ),
    ),
];

/// Expressions count for themselves what compiling them and looking for them costs.
const fn regular(
    names: &'static [&'static str],
    takes: &'static [Argument],
    gives: Gives,
    code: fn(&[Value]) -> Computed,
) -> Function {
    Function::new(names, takes, gives, code).costs(free).shown_as("regular")
}

/// An expression that is ready to be looked for.
struct Compiled {
    regex: Regex,
    /// [`crate::functions::regular_syntax::Translated::states`]
    states: u64,
}

impl Compiled {
    /// Looking for it once in so many bytes costs something.
    ///
    /// # Errors
    /// `57014` where it is too much.
    fn spend(&self, bytes: usize) -> Result<(), SqlError> {
        /// Most states are not looked at for most bytes.
        const STATES_PER_UNIT: u64 = 2;
        work::spend((bytes as u64).saturating_mul(1 + self.states / STATES_PER_UNIT))
    }

    /// Whether it is somewhere in a text.
    fn is_in(&self, text: &str) -> Result<bool, SqlError> {
        self.spend(text.len())?;
        Ok(self.regex.is_match(text))
    }
}

thread_local! {
    /// The expressions used last, which rows of one query share.
    static RECENT: RefCell<Vec<(String, Options, Rc<Compiled>)>> = const { RefCell::new(Vec::new()) };
}

/// The work of reading a pattern and of compiling it, whether or not it was kept: nobody can tell what another node has kept.
fn spend_on_compiling(pattern: &str, states: u64) -> Result<(), SqlError> {
    const UNITS_PER_STATE: u64 = 64;
    work::spend((pattern.len() as u64).saturating_add(states.saturating_mul(UNITS_PER_STATE)))
}

fn compiled(pattern: &str, options: Options) -> Result<Rc<Compiled>, SqlError> {
    let known = RECENT.with_borrow(|recent| {
        let found = recent.iter().find(|(known, with, _)| known == pattern && *with == options);
        found.map(|(_, _, regex)| regex.clone())
    });
    if let Some(known) = known {
        spend_on_compiling(pattern, known.states)?;
        return Ok(known);
    }
    let mut read = options;
    let translated = translate(pattern, &mut read)?;
    let states = translated.states;
    spend_on_compiling(pattern, states)?;
    let built = RegexBuilder::new(&translated.pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(NESTING_MAX)
        .build();
    let regex = built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => invalid("regular expression is too complex"),
        _ => invalid("it cannot be read"),
    })?;
    let compiled = Rc::new(Compiled { regex, states });
    RECENT.with_borrow_mut(|recent| {
        recent.truncate(RECENT_MAX - 1);
        recent.insert(0, (pattern.to_string(), options, compiled.clone()));
    });
    Ok(compiled)
}

/// The parts of a match: all of it, then its parentheses.
type Found = Vec<Option<Range<usize>>>;

/// Calls `take` with every match from a place on, as PostgreSQL goes on: behind the match, or one character behind an empty
/// one. It ends where `take` says so.
///
/// # Errors
/// Those of `take`; `54000` where there are too many matches in too long a text, `57014` where there are too few steps for
/// them.
fn visit(
    regex: &Compiled,
    text: &str,
    start: usize,
    mut take: impl FnMut(Found) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    let mut at = start;
    let mut searched = 0_usize;
    while at <= text.len() {
        searched += text.len() - at;
        if searched > SEARCHED_BYTES_MAX {
            let message = format!(
                "a regular expression is searched for in more than {SEARCHED_BYTES_MAX} bytes (SEARCHED_BYTES_MAX)"
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Take a shorter text, or an expression that matches less often."));
        }
        regex.spend(text.len() - at)?;
        let Some(captures) = regex.regex.captures_at(text, at) else { break };
        let found: Found = captures.iter().map(|part| part.map(|part| part.range())).collect();
        let Some(whole) = found.first().cloned().flatten() else { break };
        if !take(found)? {
            break;
        }
        at = whole.end;
        if whole.is_empty() {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    Ok(())
}

/// The first part in parentheses, or all where there are none.
fn first_part(regex: &Compiled, text: &str, found: &Found) -> Value {
    let part = if regex.regex.captures_len() > 1 { found.get(1) } else { found.first() };
    part.cloned().flatten().map_or(Value::Null, |range| Value::text(&text[range]))
}

fn texts(values: Vec<Value>) -> Result<Value, SqlError> {
    let element = ElementType::new(DataType::Text(None)).ok_or_else(|| crate::broken("arrays of texts"))?;
    Ok(Value::Array(Arc::new(Array::new(element, values)?)))
}

#[cold]
fn invalid_parameter(name: &str, value: i32) -> SqlError {
    let message = format!("invalid value for parameter \"{name}\": {value}");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// A number among the arguments, at least `least`.
fn number(values: &[Value], index: usize, name: &str, least: i32, default: i32) -> Result<i32, SqlError> {
    match values.get(index) {
        None => Ok(default),
        Some(Value::Integer(number)) if *number >= least => Ok(*number),
        Some(Value::Integer(number)) => Err(invalid_parameter(name, *number)),
        Some(_) => Err(crate::broken("a number of a regular expression of another type")),
    }
}

fn flags(values: &[Value], index: usize, function: &str) -> Result<Options, SqlError> {
    let options = match values.get(index) {
        Some(Value::Text(flags)) => Options::read(flags)?,
        _ => Options::default(),
    };
    if options.global && !function.is_empty() {
        let message = format!("{function} does not support the \"global\" option");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(options)
}

/// Bytes before a character, from 1; behind the text where it is shorter.
fn byte_of(text: &str, position: i32) -> usize {
    let skipped = usize::try_from(position - 1).unwrap_or(0);
    match text.char_indices().nth(skipped) {
        Some((at, _)) => at,
        None if text.chars().count() == skipped => text.len(),
        None => text.len() + 1,
    }
}

/// SIMILAR TO, with its escape behind.
pub(super) fn is_similar(text: &str, pattern: &str, escape: &[Value], ignore_case: bool) -> Computed {
    let escape = match escape {
        [Value::Text(escape)] => escape,
        _ => "\\",
    };
    let options = Options { ignore_case, ..Options::default() };
    Ok(Value::Boolean(compiled(&of_similar(pattern, escape)?, options)?.is_in(text)?))
}

/// The flags of a function of citext: case counts only where they have a `c`.
fn without_case(flags: &[Value]) -> Result<String, SqlError> {
    match flags {
        [] => Ok("i".to_string()),
        [Value::Text(flags), ..] if flags.contains('c') => Ok(flags.to_string()),
        [Value::Text(flags), ..] => Ok(format!("{flags}i")),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid regular expression option")),
    }
}

/// `regexp_match` of a citext.
pub(super) fn matched_without_case(text: &str, pattern: &str, options: &[Value]) -> Computed {
    let given = [Value::text(without_case(options)?)];
    matched(text, &*compiled(pattern, flags(&given, 0, "regexp_match()")?)?)
}

/// `regexp_split_to_array` of a citext.
pub(super) fn split_without_case(text: &str, pattern: &str, options: &[Value]) -> Computed {
    let given = [Value::text(without_case(options)?)];
    split(text, &*compiled(pattern, flags(&given, 0, "regexp_split_to_array()")?)?)
}

/// `regexp_replace` of a citext.
pub(super) fn replaced_without_case(
    text: &str,
    pattern: &str,
    replacement: &str,
    options: &[Value],
) -> Computed {
    let options = flags(&[Value::text(without_case(options)?)], 0, "")?;
    let which = if options.global { 0 } else { 1 };
    replace(text, &*compiled(pattern, Options { global: false, ..options })?, replacement, 0, which)
}

pub(super) fn is_in(text: &str, pattern: &str, ignore_case: bool) -> Result<bool, SqlError> {
    compiled(pattern, Options { ignore_case, ..Options::default() })?.is_in(text)
}

/// The parts in parentheses of the first match, or all of it where there are none.
fn matched(text: &str, regex: &Compiled) -> Computed {
    let mut value = Ok(Value::Null);
    visit(regex, text, 0, |found| {
        let skipped = usize::from(found.len() > 1);
        let part = |part: Option<Range<usize>>| part.map_or(Value::Null, |range| Value::text(&text[range]));
        value = texts(found.into_iter().skip(skipped).map(part).collect());
        Ok(false)
    })?;
    value
}

/// How often it is found, from a start on.
fn counted(text: &str, pattern: &str, rest: &[Value]) -> Computed {
    let start = number(rest, 0, "start", 1, 1)?;
    let regex = compiled(pattern, flags(rest, 1, "regexp_count()")?)?;
    let mut count = 0;
    visit(&regex, text, byte_of(text, start), |_| {
        count += 1;
        Ok(true)
    })?;
    Ok(Value::Integer(count))
}

/// `regexp_replace` from a start on, of the match of a number.
fn replace_numbered(text: &str, pattern: &str, replacement: &str, rest: &[Value]) -> Computed {
    let options = flags(rest, 2, "")?;
    let start = byte_of(text, number(rest, 0, "start", 1, 1)?);
    let which = match rest.get(1) {
        Some(_) => number(rest, 1, "n", 0, 1)?,
        None if options.global => 0,
        None => 1,
    };
    let regex = compiled(pattern, Options { global: false, ..options })?;
    replace(text, &regex, replacement, start, which)
}

/// `regexp_instr` and `regexp_substr`: a part of the match of a number.
fn numbered(text: &str, pattern: &str, rest: &[Value], position: bool) -> Computed {
    let start = number(rest, 0, "start", 1, 1)?;
    let which = number(rest, 1, "n", 1, 1)?;
    let end = if position { number(rest, 2, "endoption", 0, 0)? } else { 0 };
    if end > 1 {
        return Err(invalid_parameter("endoption", end));
    }
    let behind = 2 + usize::from(position);
    let name = if position { "regexp_instr()" } else { "regexp_substr()" };
    let options = flags(rest, behind, name)?;
    let part = number(rest, behind + 1, "subexpr", 0, 0)?;
    let regex = compiled(pattern, options)?;
    let (mut seen, mut range) = (0, None);
    visit(&regex, text, byte_of(text, start), |found| {
        seen += 1;
        if seen == which {
            range = found.get(part as usize).cloned().flatten();
        }
        Ok(seen < which)
    })?;
    Ok(match (range, position) {
        (None, true) => Value::Integer(0),
        (None, false) => Value::Null,
        (Some(range), false) => Value::text(&text[range]),
        (Some(range), true) => {
            let at = if end == 1 { range.end } else { range.start };
            Value::Integer(text[..at].chars().count() as i32 + 1)
        }
    })
}

fn split(text: &str, regex: &Compiled) -> Result<Value, SqlError> {
    let (mut parts, mut behind) = (Vec::new(), 0);
    visit(regex, text, 0, |found| {
        let Some(whole) = found.into_iter().next().flatten() else { return Ok(true) };
        // An empty match at an end, or behind another one, divides nothing.
        if whole.start < text.len() && whole.end > behind {
            parts.push(Value::text(&text[behind..whole.start]));
            behind = whole.end;
        }
        Ok(true)
    })?;
    parts.push(Value::text(&text[behind..]));
    texts(parts)
}

/// With the match of this number replaced, or all where it is 0.
fn replace(
    text: &str,
    regex: &Compiled,
    replacement: &str,
    start: usize,
    which: i32,
) -> Result<Value, SqlError> {
    let (mut out, mut behind, mut seen) = (String::new(), 0, 0);
    visit(regex, text, start, |found| {
        seen += 1;
        if which != 0 && seen < which {
            return Ok(true);
        }
        let Some(whole) = found.first().cloned().flatten() else { return Ok(true) };
        out.push_str(&text[behind..whole.start]);
        behind = whole.end;
        let mut characters = replacement.chars().peekable();
        while let Some(character) = characters.next() {
            if character != '\\' {
                out.push(character);
                continue;
            }
            match characters.peek().copied() {
                Some(digit @ '1'..='9') => {
                    let part = digit as usize - '0' as usize;
                    if let Some(range) = found.get(part).cloned().flatten() {
                        out.push_str(&text[range]);
                    }
                    characters.next();
                }
                Some('&') => {
                    out.push_str(&text[whole.clone()]);
                    characters.next();
                }
                Some('\\') => {
                    out.push('\\');
                    characters.next();
                }
                _ => out.push('\\'),
            }
        }
        check_length(out.len())?;
        Ok(which == 0)
    })?;
    out.push_str(&text[behind..]);
    check_length(out.len())?;
    Ok(Value::text(out))
}
