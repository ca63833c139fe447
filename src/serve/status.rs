//! `serve --status`: what a running server was asked.

use ebbtide_control::OperationView;
use ebbtide_control::protocol::{Request, ServerStatus};
use ebbtide_device::host::Home;

use crate::control;
use crate::exit::Exit;
use crate::text::{self, TextTable};

fn print(status: &ServerStatus) {
    let ServerStatus { pid, version, home, aws, metrics, requests } = status;
    text::line(&format!(
        "serving {} as process {pid}, version {version}, since {}",
        home.display(),
        requests.since
    ));
    aws.iter().for_each(|url| text::line(&format!("AWS endpoint: {url}")));
    metrics.iter().for_each(|url| text::line(&format!("metrics: {url}")));
    table(&requests.operations).print("no requests");
}

/// The operations that were asked for.
fn table(operations: &[OperationView]) -> TextTable {
    let mut table = TextTable::new(&["OPERATION", "REQUESTS", "RUNNING", "MEAN", "MAX", "FAILURES"]);
    for view in operations.iter().filter(|view| view.requests > 0) {
        let ended = view.requests - view.running;
        let time = |us: u64, of: u64| match of {
            0 => "-".to_owned(),
            _ => ebbtide_text::latency(us as f64 / of as f64),
        };
        let failures: Vec<_> =
            view.failures.iter().map(|one| format!("{} {}", one.kind.name(), one.count)).collect();
        table.row([
            view.operation.clone(),
            view.requests.to_string(),
            view.running.to_string(),
            time(view.total_us, ended),
            time(view.max_us, ended.min(1)),
            if failures.is_empty() { "-".to_owned() } else { failures.join(", ") },
        ]);
    }
    table
}

/// Asks the server of a home.
///
/// # Errors
/// No server.
pub(super) fn show(home: &Home, json: bool) -> anyhow::Result<Exit> {
    let answer = control::ask(home, &Request::Status)?;
    if json {
        text::print_json(&answer.value);
    } else {
        print(&serde_json::from_value(answer.value)?);
    }
    Ok(answer.exit)
}

#[cfg(test)]
mod tests {
    use ebbtide_control::{ControlErrorKind, FailureCount};

    use super::*;

    #[test]
    fn only_operations_that_were_asked_for_are_shown_and_running_ones_have_no_time() {
        let view = |operation: &str, requests, running, total_us, max_us| OperationView {
            operation: operation.to_owned(),
            requests,
            running,
            failures: Vec::new(),
            total_us,
            max_us,
        };
        let failures = [(ControlErrorKind::NotFound, 1), (ControlErrorKind::InUse, 2)];
        let failures = failures.map(|(kind, count)| FailureCount { kind, count }).to_vec();
        let operations = [
            OperationView { failures, ..view("attach", 5, 1, 10_000, 8_100) },
            view("create", 0, 0, 0, 0),
            view("detach", 1, 1, 0, 0),
        ];
        let expected = "\
OPERATION  REQUESTS  RUNNING  MEAN     MAX      FAILURES
attach     5         1        2.50 ms  8.10 ms  not-found 1, in-use 2
detach     1         1        -        -        -";
        assert_eq!(table(&operations).text(), expected);
    }
}
