//! What a load says to people: its answer as a document, and the lines in sysbench's layout before and while it runs.

mod document;
mod summary;
mod sysbench;
pub mod tpcc;

pub use self::document::document;
pub use self::summary::LoadSummary;
pub use self::sysbench::{interval, live, prepare_header, prepared, progress, run_header};
