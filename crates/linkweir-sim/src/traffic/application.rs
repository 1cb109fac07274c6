// SPDX-License-Identifier: BSD-3-Clause
//! Applications over TCP, as state machines without clock, connection or queue. The engine calls them when something has
//! happened and carries out the actions that they ask for.

use crate::experiment;
use crate::random::Random;

use super::action::Action;
use super::requests::Requests;
use super::transfers::Transfers;
use super::video::{Playback, Video};
use super::web::Web;

/// An application; see the module.
#[derive(Clone, Debug)]
pub(crate) enum Session {
    Transfers(Transfers),
    Requests(Requests),
    Web(Web),
    Video(Video),
}

impl Session {
    /// Begins nothing at `stop_ns` or later.
    pub(crate) fn new(
        session: &experiment::Session,
        start_ns: u64,
        stop_ns: u64,
        random: Random,
    ) -> Session {
        match session {
            experiment::Session::Transfers {
                arrivals,
                size,
                concurrent,
            } => Session::Transfers(Transfers::new(
                arrivals,
                size,
                *concurrent,
                (start_ns, stop_ns),
                random,
            )),
            experiment::Session::Requests {
                response,
                server_ns,
                think_ns,
            } => Session::Requests(Requests::new(
                response, server_ns, think_ns, stop_ns, random,
            )),
            experiment::Session::Web { .. } => {
                Session::Web(Web::new(session.clone(), stop_ns, random))
            }
            experiment::Session::Video(video) => Session::Video(Video::new(video, stop_ns, random)),
        }
    }

    /// The flow starts.
    pub(crate) fn begin(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        match self {
            Session::Transfers(transfers) => transfers.begin(actions),
            Session::Requests(requests) => requests.begin(now_ns, actions),
            Session::Web(web) => web.begin_page(now_ns, actions),
            Session::Video(video) => video.begin(now_ns, actions),
        }
    }

    /// The time of an [`Action::Wake`] has come.
    pub(crate) fn on_wake(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        match self {
            Session::Transfers(transfers) => transfers.arrive(now_ns, actions),
            Session::Requests(requests) => requests.ask(now_ns, actions),
            Session::Web(web) => web.begin_page(now_ns, actions),
            Session::Video(video) => video.ask(now_ns, actions),
        }
    }

    /// All that was written into a connection has arrived in order.
    pub(crate) fn on_received(&mut self, now_ns: u64, connection: u32, actions: &mut Vec<Action>) {
        match self {
            Session::Transfers(transfers) => transfers.on_received(connection, actions),
            Session::Requests(requests) => requests.on_received(now_ns, actions),
            Session::Web(web) => web.on_received(now_ns, connection, actions),
            Session::Video(video) => video.on_received(now_ns, actions),
        }
    }

    /// A connection that was to be closed is: all its data is acknowledged.
    pub(crate) fn on_closed(&mut self, connection: u32) {
        match self {
            Session::Transfers(transfers) => transfers.on_closed(connection),
            Session::Web(web) => web.on_closed(connection),
            Session::Requests(_) | Session::Video(_) => {}
        }
    }

    /// What a viewer saw until now; none for other applications.
    pub(crate) fn playback(&mut self, now_ns: u64) -> Option<Playback> {
        match self {
            Session::Video(video) => Some(video.playback(now_ns)),
            _ => None,
        }
    }
}
