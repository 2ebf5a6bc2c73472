//! The parts that all listeners share: connections and their limits, bodies, guards, answers.

pub mod answer;
mod answer_body;
mod body;
mod connections;
pub(crate) mod cors;
pub(crate) mod event_stream;
mod guard;
mod peers;
mod problem;
mod routes;
mod serve;
mod tls;
mod transport;
mod write_timeout;

pub(crate) use answer_body::End;
pub use answer_body::{AnswerBody, BrokenOff};
pub(crate) use body::{BodyError, LargeBodies, collect, discard, is_encoded};
pub(crate) use connections::{AwaitedBody, Connections};
pub(crate) use guard::{check_navigation, check_origin, check_unsafe_get, is_navigation};
pub(crate) use peers::{Peers, Slot};
pub(crate) use problem::Problem;
pub(crate) use routes::{
    Declared, Matched, NoRoute, Received, Routes, UNKNOWN_PARAMETER, number_parameter, parameters,
    query_problem, read_parameters, refuse_parameters,
};
pub(crate) use serve::{Limits, Listener, serve, serve_stream};
pub(crate) use tls::Tls;
pub use tls::{TlsError, TlsProblem};

/// An answer.
pub type Answer = hyper::Response<AnswerBody>;
