//! What a volume is to be: its type, size, IOPS and throughput, judged by the catalogue.

use ebbtide_catalog::{Catalog, CatalogError, Rejection, Resolved, Spec, VolumeSpec};

use super::ask::{Input, gib};
use super::records::Shape;
use super::refuse;
use crate::ApiError;

/// Types of EBS volumes.
pub(super) const TYPES: [&str; 7] = ["gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"];

/// The type of a volume whose call names none.
const DEFAULT_TYPE: &str = "gp2";

/// Below these, a gp3 has these: so AWS answers to smaller ones, down to the least that it reads.
const GP3_IOPS: u64 = 3_000;
const GP3_LEAST_IOPS: u64 = 100;
const GP3_THROUGHPUT: u64 = 125;

/// A volume that can be created.
#[derive(Debug, Clone)]
pub(super) struct Provision {
    pub(super) shape: Shape,
    pub(super) spec: Spec,
}

/// What a call asks a volume to be.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) kind: Option<String>,
    pub(super) size_gib: Option<u64>,
    pub(super) iops: Option<u64>,
    pub(super) throughput: Option<u64>,
    pub(super) multi_attach: Option<bool>,
}

impl Asked {
    /// Reads it from a call.
    pub(super) fn read(input: Input<'_>) -> Result<Self, ApiError> {
        let kind = input.text("VolumeType").filter(|kind| !kind.is_empty()).map(type_name).transpose()?;
        Ok(Self {
            kind,
            size_gib: positive(input, "Size", "size")?,
            iops: positive(input, "Iops", "iops")?,
            throughput: positive(input, "Throughput", "throughput")?,
            multi_attach: input.flag("MultiAttachEnabled"),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The spec for a volume that is of type `kind` in the end.
    pub(super) fn spec(&self, kind: &str) -> Result<Spec, ApiError> {
        let gp3 = kind == "gp3";
        if let Some(iops) = self.iops.filter(|iops| gp3 && *iops < GP3_LEAST_IOPS) {
            return Err(of_catalog(&Rejection::IopsTooLow { iops, min: GP3_LEAST_IOPS }.into()));
        }
        let volume = VolumeSpec {
            kind: kind.to_owned(),
            size_bytes: self.size_gib.map(gib),
            iops: self.iops.map(|iops| if gp3 { iops.max(GP3_IOPS) } else { iops }),
            throughput_mib_s: self
                .throughput
                .map(|mib_s| if gp3 { mib_s.max(GP3_THROUGHPUT) } else { mib_s }),
            ..VolumeSpec::default()
        };
        Ok(Spec { volume, raid0: None })
    }
}

/// What a CreateVolume call asks for; `snapshot_gib` is the size where it names none.
pub(super) fn provision(
    catalog: &Catalog,
    asked: &Asked,
    snapshot_gib: Option<u64>,
) -> Result<Provision, ApiError> {
    let kind = asked.kind.as_deref().unwrap_or(DEFAULT_TYPE);
    let asked = Asked { size_gib: asked.size_gib.or(snapshot_gib), ..asked.clone() };
    let resolved = catalog.resolve(&asked.spec(kind)?).map_err(|error| of_catalog(&error))?;
    let shape = Shape { multi_attach: asked.multi_attach == Some(true), ..shape(&resolved) };
    Ok(Provision { shape, spec: resolved.spec })
}

/// What AWS shows of a volume.
pub(super) fn shape(resolved: &Resolved) -> Shape {
    let volume = &resolved.spec.volume;
    let shows_iops = matches!(volume.kind.as_str(), "gp2" | "gp3" | "io1" | "io2");
    Shape {
        kind: volume.kind.clone(),
        size_gib: volume.size_bytes.unwrap_or_default() >> 30,
        iops: volume.iops.or(resolved.figures.iops).filter(|_| shows_iops),
        throughput: volume.throughput_mib_s.filter(|_| volume.kind == "gp3"),
        multi_attach: false,
    }
}

/// The spec of a volume as it is.
pub(super) fn spec_of(shape: &Shape) -> Spec {
    let provisioned = matches!(shape.kind.as_str(), "gp3" | "io1" | "io2");
    let volume = VolumeSpec {
        kind: shape.kind.clone(),
        size_bytes: Some(gib(shape.size_gib)),
        iops: shape.iops.filter(|_| provisioned),
        throughput_mib_s: shape.throughput,
        ..VolumeSpec::default()
    };
    Spec { volume, raid0: None }
}

/// What the catalogue refuses, as AWS does.
pub(super) fn of_catalog(error: &CatalogError) -> ApiError {
    let message = match error {
        // AWS's text ends with a blank.
        CatalogError::Rejected(Rejection::UnknownType { .. }) => format!("{error} "),
        _ => error.to_string(),
    };
    match error.aws_code() {
        Some(code) => ApiError::client(code, message),
        None => refuse::internal(message),
    }
}

/// A type by its name, in upper or lower case.
fn type_name(text: &str) -> Result<String, ApiError> {
    let kind = text.to_ascii_lowercase();
    if TYPES.contains(&kind.as_str()) {
        return Ok(kind);
    }
    let message = format!("Unsupported volume type '{text}' for volume creation. ");
    Err(ApiError::client("UnknownVolumeType", message))
}

fn positive(input: Input<'_>, name: &str, parameter: &str) -> Result<Option<u64>, ApiError> {
    let Some(number) = input.number(name) else { return Ok(None) };
    match u64::try_from(number) {
        Ok(value) if value > 0 => Ok(Some(value)),
        _ => {
            let message = format!(
                "Value ({number}) for parameter {parameter} is invalid. Value must be a positive integer."
            );
            Err(refuse::invalid_value(message))
        }
    }
}
