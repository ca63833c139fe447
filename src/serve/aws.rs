//! The options of `ebbtide serve` for its AWS endpoint.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, FromArgMatches as _};
use ebbtide_cloud::sigv4;
use ebbtide_serve::{CertificateFiles, EndpointAddress, EndpointOptions, EventTarget};
use ebbtide_volume::parse_size;

use crate::exit::Refusal;

/// The options of `serve` for the AWS endpoint.
#[derive(Debug, Args)]
pub(crate) struct AwsArgs {
    /// Answer AWS's APIs at this address, [http://|https://][HOST:]PORT: without HOST at 127.0.0.1, and with HTTPS
    /// alone where other machines reach it
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["stop", "status"])]
    aws: Option<EndpointAddress>,
    /// The certificate of HTTPS, a PEM file with its chain; without one, a certificate is made in the home
    #[arg(long, value_name = "FILE", requires_all = ["aws", "aws_key"])]
    aws_cert: Option<PathBuf>,
    /// The private key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["aws", "aws_cert"])]
    aws_key: Option<PathBuf>,
    /// Let everyone who reaches the AWS endpoint do everything: no signature is verified, and no policy holds
    #[arg(long, requires = "aws")]
    open: bool,
    /// The only region that the AWS endpoint serves [default: each, as a request is signed for it]
    #[arg(long, value_name = "REGION", requires = "aws", value_parser = region)]
    region: Option<String>,
    /// Let every state of the AWS endpoint be reached at once, for tests: a new volume is available, a modification
    /// completed, a snapshot made
    #[arg(long, requires = "aws")]
    instant: bool,
    /// Refuse calls that store something while the files of the home take as much as SIZE, such as 50GiB; what databases write
    /// to attached volumes is not counted before it is there [default: no bound]
    #[arg(long, value_name = "SIZE", requires = "aws", value_parser = size)]
    most_bytes: Option<u64>,
    /// Let the tag ebbtide:attach=tcp:127.0.0.1:PORT of an instance export its volumes over TCP: every user and container of
    /// this machine can read and write them, whatever policies say. Encrypted volumes are never exported so
    #[arg(long, requires = "aws")]
    tcp_exports: bool,
    /// Where events in the form of EventBridge go (volumes, snapshots, alarms and their actions): a FILE, to which they are
    /// appended as lines of JSON; exec:COMMAND, which a shell runs for each event, with the event as its input; or a URL,
    /// http:// or https://, to which each is posted. May be given several times [default: aws/events.jsonl in the home]
    #[arg(long, value_name = "FILE|exec:COMMAND|URL", requires = "aws")]
    aws_events: Vec<EventTarget>,
}

fn region(text: &str) -> Result<String, String> {
    if sigv4::is_region(text) {
        Ok(text.to_owned())
    } else {
        Err("is no name of a region, such as us-east-1".to_owned())
    }
}

fn size(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("is no room at all; give a size such as 50GiB".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

impl AwsArgs {
    /// Refuses what is not safe or cannot work, before anything is started.
    ///
    /// # Errors
    /// A file of events that cannot be written; an endpoint for other machines without TLS, or without authorization.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for target in &self.aws_events {
            target.check().with_context(|| {
                // Only a file is refused.
                let file = match target {
                    EventTarget::File(file) => file.display().to_string(),
                    EventTarget::Command(_) | EventTarget::Webhook(_) => String::new(),
                };
                Refusal::environment(format!("events cannot be appended to {file}"))
                    .hint("name a file for --aws-events that this user can write")
            })?;
        }
        let Some(address) = self.aws.as_ref().filter(|address| !address.socket().ip().is_loopback()) else {
            return Ok(());
        };
        if self.open {
            let message = format!("--open is for this machine alone, and others reach {}", address.text());
            return Err(Refusal::usage(message).hint("leave --open out, or listen at 127.0.0.1").into());
        }
        if !self.has_tls(address) {
            let message = format!("other machines reach {}, which needs HTTPS", address.text());
            return Err(Refusal::usage(message)
                .hint("give https:// or no scheme, or listen at 127.0.0.1")
                .into());
        }
        Ok(())
    }

    fn has_tls(&self, address: &EndpointAddress) -> bool {
        address.has_tls(self.aws_cert.is_some())
    }

    /// The endpoint that they ask for; None without `--aws`.
    pub(super) fn endpoint(&self) -> Option<EndpointOptions> {
        let files = self.aws_cert.clone().zip(self.aws_key.clone());
        Some(EndpointOptions {
            address: self.aws.clone()?,
            certificate: files.map(|(certificate, key)| CertificateFiles { certificate, key }),
            is_open: self.open,
            region: self.region.clone(),
            is_instant: self.instant,
            most_bytes: self.most_bytes,
            has_tcp_exports: self.tcp_exports,
            events: self.aws_events.clone(),
        })
    }

    /// The options as words, for the process that stays behind.
    ///
    /// # Errors
    /// The working directory is gone, and a file is given relative to it.
    pub(super) fn words(&self) -> anyhow::Result<Vec<OsString>> {
        let mut words: Vec<OsString> = Vec::new();
        let texts =
            [("--aws", self.aws.as_ref().map(EndpointAddress::text)), ("--region", self.region.as_deref())];
        for (option, text) in texts {
            words.extend(text.into_iter().flat_map(|text| [option.into(), text.into()]));
        }
        let files = [("--aws-cert", &self.aws_cert), ("--aws-key", &self.aws_key)];
        for (option, file) in files {
            if let Some(file) = file {
                words.extend([option.into(), std::path::absolute(file)?.into()]);
            }
        }
        for target in &self.aws_events {
            words.extend(["--aws-events".into(), target.word()?]);
        }
        if let Some(most) = self.most_bytes {
            words.extend(["--most-bytes".into(), most.to_string().into()]);
        }
        let flags = [("--open", self.open), ("--instant", self.instant), ("--tcp-exports", self.tcp_exports)];
        words.extend(flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.into()));
        Ok(words)
    }

    /// The options of such words.
    ///
    /// # Errors
    /// Words of another version.
    pub(super) fn of_words(words: &[String]) -> anyhow::Result<Self> {
        let command = clap::Command::new("serve").no_binary_name(true);
        // Its options exclude these, which are not its own.
        let others = ["stop", "status"].map(|name| clap::Arg::new(name).long(name));
        let read = Self::augment_args(command).args(others).try_get_matches_from(words);
        read.and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| Refusal::usage(error.to_string()).into())
    }

    /// Whether the server is to warn that authorization is off.
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(aws: &str) -> AwsArgs {
        AwsArgs {
            aws: Some(aws.parse().unwrap()),
            aws_cert: None,
            aws_key: None,
            open: false,
            region: None,
            instant: false,
            most_bytes: None,
            tcp_exports: false,
            aws_events: Vec::new(),
        }
    }

    #[test]
    fn other_machines_need_tls_and_authorization() {
        args("4599").check().unwrap();
        args("0.0.0.0:4599").check().unwrap();
        assert!(args("0.0.0.0:4599").has_tls(&"0.0.0.0:4599".parse().unwrap()));
        assert!(!args("4599").has_tls(&"4599".parse().unwrap()));
        let error = args("http://0.0.0.0:4599").check().unwrap_err();
        assert!(error.to_string().contains("HTTPS"), "{error}");
        let error = AwsArgs { open: true, ..args("0.0.0.0:4599") }.check().unwrap_err();
        assert!(error.to_string().contains("--open"), "{error}");
        AwsArgs { open: true, ..args("4599") }.check().unwrap();
    }

    #[test]
    fn the_process_that_stays_behind_gets_every_option() {
        let all = AwsArgs {
            aws_cert: Some("/c.pem".into()),
            aws_key: Some("/k.pem".into()),
            aws_events: ["/e.jsonl", "exec:cat >> /e", "https://a.example/hook"]
                .map(|target| target.parse().unwrap())
                .to_vec(),
            open: true,
            instant: true,
            most_bytes: Some(1 << 40),
            tcp_exports: true,
            region: Some("eu-west-1".to_owned()),
            ..args("4599")
        };
        let words = all.words().unwrap();
        let texts: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            texts.join(" "),
            "--aws 4599 --region eu-west-1 --aws-cert /c.pem --aws-key /k.pem --aws-events /e.jsonl --aws-events exec:cat \
             >> /e --aws-events https://a.example/hook --most-bytes 1099511627776 --open --instant --tcp-exports"
        );
        let command = clap::Command::new("serve").no_binary_name(true);
        let command = AwsArgs::augment_args(command)
            .args(["stop", "status"].map(|name| clap::Arg::new(name).long(name)));
        let read = command.try_get_matches_from(words).unwrap();
        assert_eq!(read.get_one::<EndpointAddress>("aws"), all.aws.as_ref());
        let targets = read.get_many::<EventTarget>("aws_events").unwrap().cloned().collect::<Vec<_>>();
        assert_eq!(targets, all.aws_events);
    }
}
