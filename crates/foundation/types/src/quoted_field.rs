//! Fields of rows and bounds of ranges inside of texts. They may stand in quotes, in which `"` and `\` are doubled.

/// White space that C's `isspace` knows.
pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// Appends a field: in quotes where it is empty or has white space, a quote, a backslash or one of these characters.
pub(crate) fn push_field(text: &mut String, field: &str, special: &[char]) {
    let is_special = |character: char| {
        matches!(character, '"' | '\\') || is_space(character) || special.contains(&character)
    };
    if !field.is_empty() && !field.contains(is_special) {
        text.push_str(field);
        return;
    }
    text.push('"');
    for character in field.chars() {
        if matches!(character, '"' | '\\') {
            text.push(character);
        }
        text.push(character);
    }
    text.push('"');
}

/// The field that a text begins with, up to one of these characters outside of quotes, and the text from there on; `None` where none
/// of them comes.
pub(crate) fn take_field<'a>(text: &'a str, ends: &[char]) -> Option<(String, &'a str)> {
    let mut field = String::new();
    let mut quoted = false;
    let mut characters = text.chars();
    loop {
        let rest = characters.as_str();
        match characters.next()? {
            end if !quoted && ends.contains(&end) => return Some((field, rest)),
            '\\' => field.push(characters.next()?),
            '"' if quoted && characters.as_str().starts_with('"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            character => field.push(character),
        }
    }
}
