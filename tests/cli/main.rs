//! The real program in homes of its own: commands, exit codes, block devices, NBD, recovery.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test panics where something is missing")]

mod attach;
mod aws;
mod aws_clients;
mod bad_input;
mod candidate;
mod completion;
mod config;
mod crash;
mod doctor;
mod doctor_proof;
mod documents;
mod faults;
mod harness;
mod inventory;
mod log;
mod manual;
mod metrics;
mod nbd;
mod pages;
mod recovery;
mod refusals;
mod run;
mod schemas;
mod serve;
mod service;
mod tpcc;
mod tutorial;
mod version;
mod volumes;
mod watch;
