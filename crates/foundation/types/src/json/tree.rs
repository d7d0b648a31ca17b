//! What a text is, before the bytes of the `jsonb` are made: how many they are is known first.

use super::node::{ARRAY, NUMBER, OBJECT};
use super::number::CanonicalNumber;
use super::part::{JsonPart, check_length, length_bytes, push_length, sort_members};
use crate::SqlError;

/// A value that has been read. Of members with one key the last one has stayed.
pub(super) enum Tree<'a> {
    Part(JsonPart<'static>),
    Number(CanonicalNumber<'a>),
    Array { content: usize, elements: Vec<Tree<'a>> },
    Object { content: usize, members: Vec<(String, Tree<'a>)> },
}

impl<'a> Tree<'a> {
    /// An array of these.
    ///
    /// # Errors
    /// As [`JsonPart::array`].
    pub(super) fn array(elements: Vec<Tree<'a>>) -> Result<Tree<'a>, SqlError> {
        let mut content = length_bytes(elements.len());
        for element in &elements {
            content += element.bytes();
            check_length(content)?;
        }
        Ok(Tree::Array { content, elements })
    }

    /// An object of these, in the order in which they are written.
    ///
    /// # Errors
    /// As [`JsonPart::object`].
    pub(super) fn object(mut members: Vec<(String, Tree<'a>)>) -> Result<Tree<'a>, SqlError> {
        sort_members(&mut members);
        let mut content = length_bytes(members.len());
        for (key, value) in &members {
            content += length_bytes(key.len()) + key.len() + value.bytes();
            check_length(content)?;
        }
        Ok(Tree::Object { content, members })
    }

    /// Bytes of the node that it becomes.
    pub(super) fn bytes(&self) -> usize {
        let content = match self {
            Tree::Part(part) => return part.bytes().len(),
            Tree::Number(number) => number.bytes(),
            Tree::Array { content, .. } | Tree::Object { content, .. } => *content,
        };
        1 + length_bytes(content) + content
    }

    /// Appends that node.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Tree::Part(part) => bytes.extend_from_slice(part.bytes()),
            Tree::Number(number) => {
                bytes.push(NUMBER);
                push_length(bytes, number.bytes());
                number.write(bytes);
            }
            Tree::Array { content, elements } => {
                bytes.push(ARRAY);
                push_length(bytes, *content);
                push_length(bytes, elements.len());
                elements.iter().for_each(|element| element.write(bytes));
            }
            Tree::Object { content, members } => {
                bytes.push(OBJECT);
                push_length(bytes, *content);
                push_length(bytes, members.len());
                for (key, value) in members {
                    push_length(bytes, key.len());
                    bytes.extend_from_slice(key.as_bytes());
                    value.write(bytes);
                }
            }
        }
    }
}
