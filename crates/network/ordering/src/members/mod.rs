//! The members' nodes: who they are at which height, how they are connected, what they tell one another beside ordering, and
//! whose folder of votes it is. Every service of several nodes stands on this.

mod clocks;
pub(crate) mod committee;
pub(crate) mod epochs;
pub(crate) mod folder;
pub(crate) mod forwarding;
mod heard;
pub(crate) mod messages;
pub(crate) mod network;
pub(crate) mod proving;
mod services;

pub(crate) use epochs::Epochs;
pub(crate) use forwarding::Forwarded;
pub(crate) use heard::{CONNECTED, Heard};
pub(crate) use messages::Messages;
pub(crate) use network::Peers;
pub(crate) use services::Members;
