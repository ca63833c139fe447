//! What metrics read of volumes.

use ebbtide_catalog::Spec;
use ebbtide_device::host::{Attachment, Status};
use ebbtide_device::store::VolumeSummary;

use super::LiveControl;
use crate::record::VolumeRecord;
use crate::{
    AttachmentKind, ControlError, ControlPlane as _, CreditsView, ObservedAttachment, ObservedVolume,
    VolumeObserver, VolumeStatus,
};

impl VolumeObserver for LiveControl {
    fn observe(&self) -> Result<Vec<ObservedVolume>, ControlError> {
        self.ready()?;
        let summaries = self.host.store().summaries();
        Ok(summaries.into_iter().map(|summary| self.observed(summary)).collect())
    }
}

impl LiveControl {
    fn observed(&self, summary: VolumeSummary) -> ObservedVolume {
        let status = self.host.status(&summary.name);
        let attachment = match &status {
            Status::Attached(attachment) => Some(observed_attachment(attachment)),
            Status::Free | Status::Busy(_) => None,
        };
        let totals = match (&attachment, &status) {
            (Some(attachment), _) => Some(attachment.reading.totals),
            (None, Status::Free) => self.host.earlier_totals(&summary.name),
            // What the attachment has counted may not be among the earlier counters yet.
            (None, Status::Busy(_) | Status::Attached(_)) => None,
        };
        ObservedVolume {
            kind: VolumeRecord::read(&summary.meta).map(|record| kind(&record.spec)).unwrap_or_default(),
            status: match &status {
                _ if summary.is_damaged => VolumeStatus::Damaged,
                Status::Free => VolumeStatus::Available,
                Status::Busy(_) => VolumeStatus::Busy,
                Status::Attached(_) => VolumeStatus::InUse,
            },
            size_bytes: summary.size_bytes,
            name: summary.name,
            totals,
            attachment,
        }
    }
}

/// The type of a spec, such as `gp3` or `raid0(2x gp3)`.
fn kind(spec: &str) -> String {
    let Ok(spec) = Spec::parse(spec) else { return String::new() };
    match spec.members() {
        1 => spec.volume.kind,
        members => format!("raid0({members}x {})", spec.volume.kind),
    }
}

fn observed_attachment(attachment: &Attachment) -> ObservedAttachment {
    let info = attachment.info();
    let path = |path: &std::path::PathBuf| path.display().to_string();
    // Before the reading, so that no time is negative.
    let earliest = attachment.earliest_sample();
    let reading = attachment.reading();
    let stats = &reading.totals.stats;
    let before = earliest.and_then(|sample| Some((sample.credit_share?, stats.at.since(sample.at))));
    let credits = stats.credit_share.map(|left| {
        let before = before.map(|(share, span)| (share, span.as_secs_f64()));
        CreditsView::new(left, before, reading.credits.map(|credits| credits.refill_seconds()))
    });
    ObservedAttachment {
        since: info.since,
        kind: if info.device.is_some() { AttachmentKind::Block } else { AttachmentKind::Nbd },
        device: info.device.as_ref().map(path).or_else(|| info.uri.clone()).unwrap_or_default(),
        mount: info.mount.as_ref().map(path),
        fs: info.fs.map(|fs| fs.to_string()),
        instance: info.instance.clone(),
        is_host_too_slow: !attachment.host_match().too_slow.is_empty(),
        credits,
        reading,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_type_is_named_without_its_settings_and_an_array_with_its_members() {
        for (spec, kind) in [
            ("gp3:size=100GiB,iops=6000", "gp3"),
            ("raid0(2x gp3:size=250GiB)", "raid0(2x gp3)"),
            ("no spec at all", ""),
        ] {
            assert_eq!(super::kind(spec), kind, "{spec}");
        }
    }
}
