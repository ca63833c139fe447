//! Hosts the volumes of a home: the server behind `ebbtide serve`.
//!
//! It joins what other crates do in one process: `ebbtide-control` says what may be done to a volume, `ebbtide-cloud` answers AWS's
//! APIs, `ebbtide-history` keeps the samples, `ebbtide-watch` writes the metrics. The program reads the options, has the log and the
//! signals, and gives errors their exit codes and hints.
//!
//! # Where to begin reading
//!
//! - [`Service`] is the adapter of the control socket: each request becomes a call of the control plane.
//! - [`RunningServer`] has what can change without a restart: the endpoint and the metrics. `sampling` is the thread that samples
//!   the volumes once a second, whether there is an endpoint or not.
//! - `endpoint` has the one list of AWS's services; `resources` is what EC2 has in the home, with or without an endpoint.
//! - [`AttachedList`] is the file from which `--restore` attaches again.
#![forbid(unsafe_code)]

mod attached;
mod clock;
mod disk;
mod endpoint;
mod error;
mod metrics;
mod ready;
mod recording;
mod resources;
mod running;
mod sampling;
mod service;

pub use attached::AttachedList;
pub use disk::{DiskWatch, attach_note};
pub use ebbtide_watch::Build;
pub use endpoint::{
    CertificateFiles, EndpointAddress, EndpointOptions, EventTarget, EventTargetError, NotAnAddress,
    endpoint_url,
};
pub use error::{EndpointError, ServeError};
pub use metrics::MetricsTarget;
pub use ready::{report_ready, report_stopping};
pub use running::RunningServer;
pub use service::{ServerChanges, Service};
