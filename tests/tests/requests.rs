//! Every mistake that a request can hold gets the right answer, and the server keeps running.

mod bodies;
mod coinbase2;
mod guard;
mod is_valid;
mod job_data;
mod methods;
mod openapi;
mod paths;
mod protocol;
mod service;

use service::{Service, coinbase2};
