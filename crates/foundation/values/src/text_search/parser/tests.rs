use super::look::count;
use super::token::Token;
use super::{TokenKind, tokens};

/// The alphabet of the texts which are made to be slow: a character of every
/// kind which some rule tells from others.
const ALPHABET: &str = "aeé\u{301}1-_.@/:<>&;#x+~!\"'\\ ";

/// The looks which a character of a text may cost at most, whatever the text.
const LOOKS_PER_BYTE: usize = 16;

fn unescape(field: &str) -> String {
    let mut text = String::new();
    let mut characters = field.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}

fn parse(text: &str) -> Vec<String> {
    tokens(text).map(|token| format!("{}:{}", token.kind.name(), token.text)).collect()
}

/// The looks for a text, which must stay within the bound.
fn looks(text: &str) -> usize {
    count::take();
    tokens(text).for_each(drop);
    let looks = count::take();
    assert!(looks <= LOOKS_PER_BYTE * (text.len() + 8), "{looks} looks, {:.80}", text);
    looks
}

/// Calls the function with every text of up to so many letters of the alphabet.
fn each_unit(length: usize, mut function: impl FnMut(&str)) {
    let mut queue = vec![String::new()];
    while let Some(unit) = queue.pop() {
        if !unit.is_empty() {
            function(&unit);
        }
        if unit.chars().count() < length {
            queue.extend(ALPHABET.chars().map(|character| format!("{unit}{character}")));
        }
    }
}

#[test]
fn finds_the_tokens_of_postgresql() {
    let fixture = include_str!("../../../tests/data/text_search_tokens.tsv");
    assert!(fixture.lines().count() >= 60);
    for line in fixture.lines() {
        let mut fields = line.split('\t').map(unescape);
        let text = fields.next().unwrap_or_default();
        assert_eq!(parse(&text), fields.collect::<Vec<_>>(), "{text:?}");
    }
}

#[test]
fn returns_nothing_for_nothing() {
    assert_eq!(tokens("").next(), None);
    let mut word = tokens("a");
    assert_eq!(word.next(), Some(Token { kind: TokenKind::AsciiWord, text: "a" }));
    assert_eq!(word.next(), None);
    assert_eq!(word.next(), None);
}

#[test]
fn covers_the_text() {
    // Less the overlapping tokens, and unless the machine stops early, the
    // tokens are the text.
    each_unit(3, |unit| {
        let mut covered = String::new();
        for token in tokens(unit) {
            let whole = [TokenKind::NumHWord, TokenKind::AsciiHWord, TokenKind::HWord, TokenKind::Url];
            if !whole.contains(&token.kind) {
                covered.push_str(token.text);
            }
        }
        assert_eq!(covered, unit);
    });
}

#[test]
fn takes_linear_time() {
    each_unit(2, |unit| {
        looks(&unit.repeat(400));
    });
    for unit in ["a.bb_c", "a-b.cc@", "<a '\"", "<!--", "&#x1", "/./", "1@1_", "http://", "<a '\\"] {
        for (prefix, suffix) in [("", ""), ("a.bb", "!"), ("<a '", "'>"), ("a-", "é")] {
            looks(&format!("{prefix}{}{suffix}", unit.repeat(3000)));
        }
    }
}

/// As the test above for many more texts.
#[test]
#[ignore = "takes minutes: cargo test -p values takes_linear_time_for_all -- --ignored --nocapture"]
fn takes_linear_time_for_all_short_units() {
    let mut most = (0, String::new());
    each_unit(4, |unit| {
        for (prefix, suffix) in [("", ""), ("a.bb", "!"), ("<a '", "'>")] {
            let text = format!("{prefix}{}{suffix}", unit.repeat(1200 / unit.len()));
            let share = 1000 * looks(&text) / text.len();
            if share > most.0 {
                most = (share, text);
            }
        }
    });
    println!("at most {} looks for 1000 bytes, in {:.40}", most.0, most.1);
}

/// Random texts of few different pieces, which come to the deeper states.
#[test]
fn takes_linear_time_for_random_texts() {
    let letters: Vec<char> = ALPHABET.chars().collect();
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..300 {
        let pieces: Vec<String> = (0..2 + random(5))
            .map(|_| (0..1 + random(5)).map(|_| letters[random(letters.len())]).collect())
            .collect();
        let text: String = (0..500).map(|_| pieces[random(pieces.len())].as_str()).collect();
        looks(&text);
    }
}
