//! What an error of `ebbtide-serve` is on the command line: the exit code, and what to do.

use ebbtide_cloud::ec2::Hold;
use ebbtide_control::ControlError;
use ebbtide_serve::{EndpointError, ServeError};

use super::forecast::{Refusable, refused};
use super::refuse;
use crate::exit::{Refusal, Report};

/// The refusal of an error; its causes follow as the chain.
pub(crate) fn refuse_serve(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Control(error) => refuse(error),
        ServeError::Refused(refused) => Report::from(refused).into(),
        error => refused(error),
    }
}

impl Refusable for ServeError {
    fn refusal(&self) -> Refusal {
        let usage = Refusal::usage(self.to_string());
        let environment = Refusal::environment(self.to_string());
        match self {
            Self::Misnamed { error, nearest } => usage.hint(did_you_mean(error, nearest)),
            Self::Held { id, hold, is_served, .. } => usage.hint(free(id, hold, *is_served)),
            Self::SnapshotOfEc2 { name, is_served } => usage
                .hint(format!("use 'aws ec2 delete-snapshot --snapshot-id {name}'{}", served(*is_served))),
            Self::RecordingExists { .. } => {
                usage.hint("name another file; a recording never writes over one")
            }
            Self::EndpointServed { .. } => {
                usage.hint("its options change with a restart: 'ebbtide serve --stop'")
            }
            Self::List(_) | Self::ListDamaged(_) => {
                environment.hint("mend or remove it; without it nothing is attached at the start")
            }
            Self::Metrics { .. } => {
                environment.hint("choose another port for --metrics; port 0 takes one that is free")
            }
            Self::Endpoint(EndpointError::Listen { .. }) => {
                environment.hint("choose another address for --aws; port 0 takes one that is free")
            }
            Self::AttachedByCommand { volume } => {
                environment.hint(format!("'ebbtide volume detach {volume}', then change the server again"))
            }
            Self::Busy => environment.hint("wait until it has ended, then change the server again"),
            _ => environment,
        }
    }
}

fn did_you_mean(error: &ControlError, nearest: &str) -> String {
    match error {
        ControlError::NotFound { thing, .. } => {
            format!("did you mean '{nearest}'? 'ebbtide {thing} list' shows what there is")
        }
        _ => format!("did you mean '{nearest}'?"),
    }
}

/// How a volume is freed that EC2 has.
fn free(id: &str, hold: &Hold, is_served: bool) -> String {
    let call = match (hold, is_served) {
        (Hold::Instance(_), _) => "detach-volume",
        (Hold::RecycleBin, _) => "restore-volume-from-recycle-bin",
        (Hold::Making, true) => return "wait until the call has ended".to_owned(),
        (Hold::Making, false) => {
            return "start 'ebbtide serve --aws': it takes back what the call has begun".to_owned();
        }
    };
    format!("use 'aws ec2 {call} --volume-id {id}' first{}", served(is_served))
}

/// When a call of EC2 can be made, for the end of a hint.
const fn served(is_served: bool) -> &'static str {
    if is_served { "" } else { ", while 'ebbtide serve --aws' runs" }
}

#[cfg(test)]
mod tests {
    use std::io;

    use ebbtide_control::ResourceKind;

    use super::*;
    use crate::exit::Exit;

    #[test]
    fn a_volume_that_ec2_has_is_a_wrong_request_that_names_the_call_which_frees_it() {
        let held = |hold, is_served| {
            let (volume, id) = ("db".to_owned(), "vol-1".to_owned());
            Report::of(&refuse_serve(ServeError::Held { volume, id, hold, is_served }))
        };
        let attached = held(Hold::Instance("i-1".to_owned()), true);
        assert_eq!(attached.exit, Exit::Usage);
        assert_eq!(attached.chain, ["volume 'db' is attached to instance 'i-1' of EC2"]);
        assert_eq!(attached.hint.as_deref(), Some("use 'aws ec2 detach-volume --volume-id vol-1' first"));
        let hint = held(Hold::RecycleBin, false).hint.unwrap();
        assert!(hint.ends_with(" first, while 'ebbtide serve --aws' runs"), "{hint}");
        assert_eq!(held(Hold::Making, true).hint.as_deref(), Some("wait until the call has ended"));
    }

    #[test]
    fn a_name_that_is_almost_one_is_named_and_what_the_program_refused_stays_as_it_is() {
        let name = "bd".to_owned();
        let error = Box::new(ControlError::NotFound { thing: ResourceKind::Volume, name });
        let report = Report::of(&refuse_serve(ServeError::Misnamed { error, nearest: "db".to_owned() }));
        assert_eq!((report.exit, report.chain.len()), (Exit::Usage, 1));
        assert!(report.hint.is_some_and(|hint| hint.starts_with("did you mean 'db'? 'ebbtide volume list'")));
        let refused = Report { exit: Exit::Finding, chain: vec!["a".to_owned()], hint: Some("b".to_owned()) };
        let again = ServeError::Refused(refused.clone().into());
        assert_eq!(Report::of(&refuse_serve(again)), refused);
    }

    #[test]
    fn an_address_that_is_taken_is_the_environments_fault_and_its_cause_is_said() {
        let source = io::Error::other("in use");
        let taken = ServeError::from(EndpointError::Listen { address: "4599".to_owned(), source });
        let report = Report::of(&refuse_serve(taken));
        assert_eq!(report.exit, Exit::Environment);
        assert_eq!(report.chain, ["cannot listen at 4599", "in use"]);
        assert!(report.hint.is_some_and(|hint| hint.contains("--aws")));
    }
}
