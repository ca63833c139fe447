//! Attaching and detaching a volume.

use std::sync::Arc;

use ebbtide_volume::{Array, InstanceLimits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attachment::{Attachment, HostMatch};
use super::info::AttachmentInfo;
use super::parts::{Export, Parts, check_mount_dir};
use super::{Host, HostError, Progress, block};
use crate::engine::{LiveOptions, LiveVolume};

/// What to attach, and how.
#[derive(Debug)]
pub struct AttachRequest {
    /// The volume's name in the store.
    pub volume: String,
    /// Its metadata, from which all of this follows. Where they are others by now, nothing is
    /// attached: another command came in between.
    pub meta: Value,
    /// Its physics, with its credits and modification as they are by now.
    pub array: Array,
    /// Seed of its draws.
    pub seed: u64,
    /// Logical block size in bytes, 512 or 4096.
    pub block_bytes: u32,
    /// The instance whose limits hold too.
    pub instance: Option<InstanceRequest>,
    /// How the outside sees it.
    pub export: Export,
    /// How it compares with the host; it is marked with that.
    pub host_match: HostMatch,
}

/// An instance to attach to.
#[derive(Debug, Clone)]
pub struct InstanceRequest {
    /// Which one: volumes with the same identifier share it.
    pub id: String,
    /// Its type, like `r5.large`.
    pub kind: String,
    /// Its limits.
    pub limits: InstanceLimits,
    /// How many volumes it takes.
    pub slots: u32,
}

/// How a volume was detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// The volume.
    pub volume: String,
    /// Why it had to be detached by force, where a stop of the host did so.
    pub forced: Option<String>,
    /// What could not be written back, as texts; empty where everything is on the volume.
    pub lost: Vec<String>,
    /// Requests that failed during the attachment because the host's disk is full or broken.
    pub host_errors: u64,
    /// Whether a power cut had ended the volume, so that nothing could be written any more.
    pub power_cut: bool,
}

impl Host {
    /// Attaches a volume.
    ///
    /// # Errors
    /// A volume that does not exist or is not free; an environment without block devices; a mount
    /// directory in use; content that a file system would destroy. Nothing is left attached then.
    pub fn attach(
        &self,
        request: AttachRequest,
        progress: Progress<'_>,
    ) -> Result<Arc<Attachment>, HostError> {
        let reserved = self.shared.reserve(&request.volume, "being attached")?;
        if self.store().meta(&request.volume)? != request.meta {
            let (volume, state) = (request.volume, "being changed by another command".to_owned());
            return Err(HostError::NotFree { volume, state });
        }
        let store = self.store().open_volume(&request.volume)?;
        if let Export::Block { mount } = &request.export {
            block::require()?;
            mount.as_ref().map_or(Ok(()), |mount| check_mount_dir(&mount.dir))?;
        }
        let instance = request.instance.as_ref().map(|wanted| self.instances.lock().join(wanted));
        let live = LiveVolume::start(LiveOptions {
            instance: instance.transpose()?,
            block_bytes: request.block_bytes,
            ..LiveOptions::new(&request.volume, request.array, store, request.seed)
        })?;
        let mut info = AttachmentInfo {
            instance: request.instance.map(|instance| instance.id),
            ..AttachmentInfo::nowhere(&request.volume, self.now())
        };
        let mut parts = Parts::new(self.home().clone(), &request.volume);
        if let Err(error) = parts.make(&request.export, &live, self.store(), &mut info, progress) {
            if let Err(stuck) = parts.take_apart(&live, true, progress) {
                tracing::error!(volume = request.volume, %stuck, "a failed attachment is not cleared");
            }
            let failures = live.host_failures();
            drop((parts, live));
            self.shared.wait_until_closed(&request.volume);
            return Err(match error {
                HostError::Tool(_) | HostError::NotBlank { .. } if !failures.is_empty() => {
                    HostError::HostFailed { volume: request.volume, failures, source: Box::new(error) }
                }
                other => other,
            });
        }
        tracing::info!(volume = request.volume, "attached {}", info.place());
        let earlier = self.earlier_totals(&request.volume).unwrap_or_default();
        let attachment = Arc::new(Attachment::new(info, request.host_match, live, earlier, parts));
        reserved.attach(attachment.clone());
        Ok(attachment)
    }

    /// Attaches a volume as a block device and nothing more: no mount, no instance, blocks of 512
    /// bytes. For crash images, whose file systems are [mounted](Attachment::mount) and checked
    /// afterwards, and for whatever else is only looked at.
    ///
    /// # Errors
    /// As [`Self::attach`].
    pub fn attach_bare(&self, volume: &str, array: Array) -> Result<Arc<Attachment>, HostError> {
        let request = AttachRequest {
            volume: volume.to_owned(),
            meta: self.store().meta(volume)?,
            array,
            seed: 0,
            block_bytes: 512,
            instance: None,
            export: Export::Block { mount: None },
            host_match: HostMatch::default(),
        };
        self.attach(request, &|_| ())
    }

    /// Detaches a volume whose content nobody needs any more, and deletes it. What its file system has in
    /// memory is thrown away.
    ///
    /// # Errors
    /// [`HostError::InUse`] while files are open: the volume stays attached. The error of the store.
    pub fn discard(&self, volume: &str) -> Result<(), HostError> {
        let (reserved, attachment) = self.shared.reserve_attached(volume, "being discarded")?;
        attachment.parts.lock().throw_away(attachment.live())?;
        reserved.release(attachment);
        self.forget_totals(volume);
        Ok(self.store().delete_volume(volume)?)
    }

    /// Detaches a volume: unmounts it, completes what is in flight, saves its credits. With `force`
    /// also where files are open or I/O is stalled: what was written before is flushed to the volume, I/O
    /// after that fails, and so does what is stalled. The answer has what could not be written back.
    ///
    /// # Errors
    /// [`HostError::InUse`] and [`HostError::Stalled`] without `force`; the volume stays attached.
    pub fn detach(&self, volume: &str, force: bool, progress: Progress<'_>) -> Result<Detached, HostError> {
        let (reserved, attachment) = self.shared.reserve_attached(volume, "being detached")?;
        if attachment.is_stalled() && !force {
            return Err(HostError::Stalled { volume: volume.to_owned() });
        }
        let live = attachment.live();
        let power_cut = !live.is_live();
        let lost = attachment.parts.lock().take_apart(live, force, progress)?;
        self.shared.save_state(&attachment);
        let totals = attachment.reading().totals;
        self.shared.earlier.lock().insert(volume.to_owned(), totals);
        let detached = Detached {
            volume: volume.to_owned(),
            forced: None,
            lost,
            host_errors: live.host_errors(),
            power_cut,
        };
        reserved.release(attachment);
        Ok(detached)
    }
}
