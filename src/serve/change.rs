//! `serve --change`: what a running server takes without a restart, the AWS endpoint, its metrics and the level of its log.

use ebbtide_control::protocol::{RefusedRequest, Request, ServerChange, ServerChanged};
use ebbtide_device::host::Home;
use ebbtide_serve::{MetricsTarget, RunningServer, ServerChanges, endpoint_url};

use super::aws::AwsArgs;
use super::log::{self, LogLevel};
use crate::control;
use crate::exit::{Exit, Refusal, Report};
use crate::refusal::refuse_serve;
use crate::text;

/// Changes a running server by the words of the command line.
#[derive(Debug)]
pub(super) struct Changes<'a> {
    /// The server.
    pub(super) running: &'a RunningServer<'a>,
    /// Its home.
    pub(super) home: &'a Home,
    /// Its log.
    pub(super) log: LogLevel,
}

impl ServerChanges for Changes<'_> {
    fn apply(&self, change: &ServerChange) -> Result<ServerChanged, RefusedRequest> {
        self.changed(change).map_err(|error| Report::of(&error).into())
    }
}

impl Changes<'_> {
    fn changed(&self, change: &ServerChange) -> anyhow::Result<ServerChanged> {
        let filter = change.log.as_deref().map(log::parse_option).transpose()?;
        let target = change.metrics.as_deref().map(str::parse::<MetricsTarget>).transpose();
        let target = target.map_err(|error| Refusal::usage(format!("--metrics {error}")))?;
        if !change.aws.is_empty() {
            let args = AwsArgs::of_words(&change.aws)?;
            args.check()?;
            let endpoint = args
                .endpoint()
                .ok_or_else(|| Refusal::usage("the options of the AWS endpoint need --aws ADDRESS"))?;
            self.running.begin_endpoint(&endpoint).map_err(refuse_serve)?;
        }
        if let Some(target) = target {
            self.running.change_metrics(target).map_err(refuse_serve)?;
        }
        if let Some(filter) = filter {
            self.log.set(filter)?;
            tracing::info!(log = change.log, "the log was changed");
        }
        let metrics = self.running.metrics_url();
        Ok(ServerChanged { log: change.log.clone(), aws: endpoint_url(self.home), metrics })
    }
}

/// Asks the server of a home to change.
///
/// # Errors
/// Nothing to change; what the server refuses; no server.
pub(super) fn ask(
    home: &Home,
    log: Option<&str>,
    aws: &AwsArgs,
    metrics: Option<MetricsTarget>,
    json: bool,
) -> anyhow::Result<Exit> {
    aws.check()?;
    let words = aws.words()?.into_iter().map(std::ffi::OsString::into_string);
    let aws = words.collect::<Result<Vec<_>, _>>().map_err(|_| Refusal::usage("a path is not UTF-8"))?;
    if log.is_none() && aws.is_empty() && metrics.is_none() {
        return Err(Refusal::usage("--change changes nothing by itself")
            .hint("give --log FILTER, --metrics PORT or off, or --aws ADDRESS with its options")
            .into());
    }
    log.map(log::parse_option).transpose()?;
    let is_about_metrics = metrics.is_some();
    let metrics = metrics.map(|target| target.to_string());
    let change = ServerChange { log: log.map(str::to_owned), aws, metrics };
    let answer = control::ask(home, &Request::ServerChange(change))?;
    if json {
        text::print_json(&answer.value);
        return Ok(answer.exit);
    }
    let ServerChanged { log, aws, metrics } = serde_json::from_value(answer.value)?;
    log.iter().for_each(|filter| text::line(&format!("log: {filter}")));
    aws.iter().for_each(|url| text::line(&format!("AWS endpoint: {url}")));
    match metrics {
        Some(url) => text::line(&format!("metrics: {url}")),
        None if is_about_metrics => text::line("metrics: off"),
        None => {}
    }
    Ok(answer.exit)
}
