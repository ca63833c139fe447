//! Why the server of a home cannot begin, change, or carry out a request.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use ebbtide_cloud::RecordsError;
use ebbtide_cloud::ec2::{self, DeleteError, Hold};
use ebbtide_cloud::front::tls::TlsError;
use ebbtide_cloud::kms;
use ebbtide_cloud::monitoring::DbError;
use ebbtide_cloud::users::UserError;
use ebbtide_control::ControlError;
use ebbtide_control::protocol::RefusedRequest;
use ebbtide_device::host::HomeError;
use ebbtide_http::LoopbackAddress;

/// What the server of a home cannot do. The caller gives exit codes and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The control plane refuses it.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The control plane knows no volume or snapshot of a name, but a similar one.
    #[error("{error}")]
    Misnamed {
        /// The refusal: [`ControlError::NotFound`].
        error: Box<ControlError>,
        /// The name that was meant, probably.
        nearest: String,
    },
    /// The program refuses a change of the server.
    #[error("{}", .0.chain.join(": "))]
    Refused(RefusedRequest),
    /// EC2 has a volume, which does not allow the request.
    #[error("{}", held(volume, hold))]
    Held {
        /// Name of the volume.
        volume: String,
        /// Its id.
        id: String,
        /// How EC2 has it.
        hold: Hold,
        /// Whether the AWS endpoint is served.
        is_served: bool,
    },
    /// EC2 has a snapshot, which a command does not delete.
    #[error("snapshot '{name}' belongs to EC2 of this home")]
    SnapshotOfEc2 {
        /// Name of the snapshot.
        name: String,
        /// Whether the AWS endpoint is served.
        is_served: bool,
    },
    /// A volume with a record of EC2 is not deleted.
    #[error("volume '{volume}' is not deleted")]
    NotDeleted {
        /// Name of the volume.
        volume: String,
        /// Why.
        source: Box<DeleteError>,
    },
    /// Records of EC2 that cannot be read.
    #[error("the records of EC2 of this home cannot be read")]
    Records(#[source] RecordsError),
    /// The list of attached volumes cannot be read or written.
    #[error("the list of attached volumes, attached.json of the home, cannot be used")]
    List(#[source] HomeError),
    /// The list of attached volumes is not JSON of its form.
    #[error("the list of attached volumes, attached.json of the home, cannot be used")]
    ListDamaged(#[source] serde_json::Error),
    /// A recording is never written over a file.
    #[error("{} exists already", file.display())]
    RecordingExists {
        /// The file.
        file: PathBuf,
    },
    /// The file of a recording cannot be made.
    #[error("cannot make {}: {error}", file.display())]
    Recording {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The address of metrics is taken, or cannot be listened at.
    #[error("cannot listen at {address} for metrics")]
    Metrics {
        /// The address.
        address: LoopbackAddress,
        /// Why.
        source: io::Error,
    },
    /// The system refuses the thread that samples the volumes of a server without the AWS endpoint.
    #[error("the server cannot sample its volumes")]
    Sampling(#[source] io::Error),
    /// The AWS endpoint cannot begin.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The AWS endpoint has begun before.
    #[error("the AWS endpoint is served already, at {url}")]
    EndpointServed {
        /// Its URL; empty where its file is missing.
        url: String,
    },
    /// By its record an instance has a volume that a command has attached: an endpoint would find it attached.
    #[error(
        "volume '{volume}' is attached to an instance of EC2 of this home, and a command has attached it"
    )]
    AttachedByCommand {
        /// Name of the volume.
        volume: String,
    },
    /// A request looks at EC2's records for longer than the endpoint waits.
    #[error("a request is being carried out, and the AWS endpoint cannot begin meanwhile")]
    Busy,
}

/// Why the AWS endpoint cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Its folder in the home.
    #[error("cannot write {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: HomeError,
    },
    /// The keys of KMS.
    #[error("the keys of this home's encrypted volumes cannot be used")]
    Keys(#[source] kms::OpenError),
    /// The certificate of HTTPS.
    #[error("the AWS endpoint has no certificate")]
    Certificate(#[source] TlsError),
    /// The system gives no random bytes.
    #[error("the system has no random bytes")]
    NoRandom,
    /// The file of users.
    #[error("the AWS endpoint has no users that can be read")]
    Users(#[source] UserError),
    /// The temporary keys of STS.
    #[error("the temporary keys of this home cannot be used")]
    Sessions(#[source] RecordsError),
    /// The file of regions.
    #[error("the regions of this home cannot be read")]
    Regions(#[source] io::Error),
    /// EC2.
    #[error("EC2 of this home cannot be answered for")]
    Ec2(#[source] ec2::OpenError),
    /// The EBS direct APIs.
    #[error("the EBS direct APIs of this home cannot be answered for")]
    Ebs(#[source] io::Error),
    /// CloudWatch.
    #[error("CloudWatch of this home cannot be answered for")]
    CloudWatch(#[source] DbError),
    /// The thread that delivers events.
    #[error("events cannot be delivered")]
    Events(#[source] io::Error),
    /// The thread that samples the volumes.
    #[error("the AWS endpoint cannot sample its volumes")]
    Sampling(#[source] io::Error),
    /// The address is taken, or cannot be listened at.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address, as it was given.
        address: String,
        /// Why.
        source: io::Error,
    },
}

fn held(volume: &str, hold: &Hold) -> String {
    match hold {
        Hold::Instance(instance) => format!("volume '{volume}' is attached to instance '{instance}' of EC2"),
        Hold::RecycleBin => format!("volume '{volume}' is in the recycle bin of EC2"),
        Hold::Making => format!("volume '{volume}' is being made by a call of EC2"),
    }
}

/// An error with its causes, for the log. Equal words are written once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut words = vec![error.to_string()];
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    words.extend(causes.map(ToString::to_string));
    words.dedup();
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_causes_of_an_error_follow_it_and_equal_words_are_written_once() {
        let taken = EndpointError::Listen { address: "4599".to_owned(), source: io::Error::other("taken") };
        assert_eq!(chain(&ServeError::from(taken)), "cannot listen at 4599: taken");
        let error =
            EndpointError::Ebs(io::Error::other("the EBS direct APIs of this home cannot be answered for"));
        assert_eq!(chain(&error), "the EBS direct APIs of this home cannot be answered for");
    }

    #[test]
    fn a_volume_that_ec2_has_is_refused_with_how_it_has_it() {
        let refused = |hold| ServeError::Held {
            volume: "db".to_owned(),
            id: "vol-1".to_owned(),
            hold,
            is_served: true,
        };
        let text = refused(Hold::Instance("i-1".to_owned())).to_string();
        assert_eq!(text, "volume 'db' is attached to instance 'i-1' of EC2");
        assert_eq!(refused(Hold::Making).to_string(), "volume 'db' is being made by a call of EC2");
    }
}
