//! The server's part of `ebbtide volume`: create, attach, detach, modify, delete, break.

use std::time::Duration;

use anyhow::Context as _;
use ebbtide_catalog::Resolved;
use ebbtide_catalog::modify::{self, ModificationRecord};
use ebbtide_device::host::{
    AttachRequest, Attachment, Export, FsType, HostMatch, InstanceRequest, MountRequest, SavedCredits, Status,
};
use ebbtide_device::nbd::NbdAddress;
use ebbtide_device::store::{StoreError, VolumeInfo};
use ebbtide_volume::{Array, Nanos};
use serde_json::Value;

use super::calibration::Demand;
use super::meta::Meta;
use super::service::{Service, is_lossless, parse, refuse_catalog, refuse_host, refuse_store, unix_now_s};
use crate::answers::Deleted;
use crate::control::{Answer, Progress};
use crate::exit::{Exit, Refusal};
use crate::volume::args::{AttachArgs, CrashImageArgs, CreateArgs, DetachArgs, Fs, ModifyArgs, Optimizing};
use crate::volume::view::{CrashImageView, DetachView};

impl Service {
    /// `volume create`
    pub(super) fn create(&self, args: &CreateArgs) -> anyhow::Result<Value> {
        if ![512, 4096].contains(&args.block_size) {
            let given = args.block_size;
            return Err(Refusal::usage(format!("a block size of {given} is not possible"))
                .hint("give --block-size 512 or 4096")
                .into());
        }
        let catalog = self.catalog()?;
        let resolved = catalog.resolve(&parse(&args.spec)?).map_err(refuse_catalog)?;
        catalog.prices(args.region.as_deref()).map_err(refuse_catalog)?;
        let now = self.host.now();
        let array = resolved.array(now);
        let meta = Meta {
            spec: resolved.spec.to_string(),
            block_size: args.block_size,
            seed: args.seed.unwrap_or_else(fresh_seed),
            modified_from: None,
            modifications: Vec::new(),
        };
        let mut whole = meta.fresh();
        SavedCredits::write(SavedCredits::of(&array, now), &mut whole);
        let (store, size) = (self.host.store(), array.size_bytes());
        let created = match &args.snapshot {
            None => store.create_volume(&args.name, size, whole),
            Some(snapshot) => {
                self.require_room(snapshot, size)?;
                store.create_from_snapshot(&args.name, snapshot, size, whole)
            }
        };
        created.map_err(refuse_store)?;
        tracing::info!(volume = args.name, spec = meta.spec, "created");
        self.show(&args.name, args.region.as_deref())
    }

    /// A volume is at least as large as the snapshot that it begins as.
    fn require_room(&self, snapshot: &str, size: u64) -> anyhow::Result<()> {
        let snapshots = self.host.store().snapshots();
        let found = snapshots.iter().find(|found| found.name == snapshot).ok_or_else(|| {
            refuse_store(StoreError::NotFound { kind: "snapshot", name: snapshot.to_owned() })
        })?;
        if size < found.size_bytes {
            let (have, need) = (crate::text::size(size), crate::text::size(found.size_bytes));
            return Err(Refusal::usage(format!(
                "the volume would have {have}, the snapshot '{snapshot}' needs {need}"
            ))
            .hint(format!("give it size={} or more", ebbtide_volume::format_size(found.size_bytes)))
            .into());
        }
        Ok(())
    }

    /// `volume attach`
    pub(super) fn attach(&self, args: &AttachArgs, progress: Progress<'_>) -> anyhow::Result<Value> {
        let info = self.host.store().volume(&args.name).map_err(refuse_store)?;
        if let Status::Attached(_) | Status::Busy(_) = self.host.status(&args.name) {
            // The host refuses it in its own words, before anything is measured.
            self.host.while_free(&args.name, "being looked at", || ()).map_err(refuse_host)?;
        }
        let meta = read_meta(&info)?;
        let array = self.array_of(&info, &meta)?;
        let export = export_of(args)?;
        let instance = args.instance.as_deref().map(|text| self.instance_of(text)).transpose()?;
        let demand = Demand {
            volume: &args.name,
            array: &array,
            instance: instance.as_ref(),
            through_nbd: matches!(export, Export::Nbd(_)),
            over_limit: args.over_limit,
            does: "attaches",
        };
        let host_match = self.require_of_host(&demand, progress)?;
        let request = AttachRequest {
            volume: args.name.clone(),
            meta: info.meta,
            array,
            seed: meta.seed,
            block_bytes: meta.block_size,
            instance,
            export,
            host_match,
        };
        self.host.attach(request, progress).map_err(refuse_host)?;
        self.show(&args.name, None)
    }

    /// An instance by `TYPE[/ID]`. Without an identifier, all volumes that name the type share one.
    fn instance_of(&self, text: &str) -> anyhow::Result<InstanceRequest> {
        let kind = text.split('/').next().unwrap_or(text);
        let found = self.catalog()?.instance(kind).map_err(refuse_catalog)?;
        Ok(InstanceRequest {
            id: text.to_owned(),
            kind: found.name,
            limits: found.limits,
            slots: found.ebs_slots,
        })
    }

    /// A volume's model as it is now: its credits and modification go on by the wall clock while
    /// it is detached.
    pub(super) fn array_of(&self, info: &VolumeInfo, meta: &Meta) -> anyhow::Result<Array> {
        let now = self.host.now();
        let credits = SavedCredits::read(&info.meta);
        // A clock that was set back must not make credits of the future.
        let from = credits.map_or(now, |credits| credits.at.min(now));
        let under_way = meta.under_way(from);
        let first = under_way.map_or(meta.spec.as_str(), |(source, _)| source);
        let mut array = self.resolve(first)?.array(from);
        if let Some(credits) = credits {
            array.set_credit_share(credits.share, from);
        }
        if let Some((_, record)) = under_way {
            let target = self.resolve(&meta.spec)?;
            let at = |unix_s: i64| Nanos::from_secs(u64::try_from(unix_s).unwrap_or(0));
            array
                .modify(
                    &target.members[0],
                    at(record.started_unix_s),
                    at(record.optimizing_unix_s),
                    at(record.completes_unix_s),
                )
                .context(Refusal::invariant("the stored modification contradicts itself"))?;
        }
        array.advance(now);
        Ok(array)
    }

    /// `volume detach`
    pub(super) fn detach(&self, args: &DetachArgs, progress: Progress<'_>) -> anyhow::Result<Answer> {
        let detached = self.host.detach(&args.name, args.force, progress).map_err(refuse_host)?;
        tracing::info!(volume = args.name, force = args.force, "detached");
        let exit = if is_lossless(&detached) { Exit::Clean } else { Exit::Finding };
        let view = DetachView {
            volume: self.detail(&args.name, None)?,
            lost: detached.lost,
            host_errors: detached.host_errors,
            power_cut: detached.power_cut,
        };
        Ok(Answer { exit, value: serde_json::to_value(view)? })
    }

    /// `volume delete`
    pub(super) fn delete(&self, name: &str) -> anyhow::Result<Value> {
        self.host.store().volume(name).map_err(refuse_store)?;
        let delete = || self.host.store().delete_volume(name);
        self.host.while_free(name, "being deleted", delete).map_err(refuse_host)?.map_err(refuse_store)?;
        tracing::info!(volume = name, "deleted");
        Ok(serde_json::to_value(Deleted { deleted: name })?)
    }

    /// `volume modify`
    pub(super) fn modify(&self, args: &ModifyArgs, progress: Progress<'_>) -> anyhow::Result<Value> {
        let change = |attachment: Option<&Attachment>| self.modify_alone(args, attachment, progress);
        self.host.while_alone(&args.name, "being modified", change).map_err(refuse_host)??;
        self.show(&args.name, None)
    }

    fn modify_alone(
        &self,
        args: &ModifyArgs,
        attachment: Option<&Attachment>,
        progress: Progress<'_>,
    ) -> anyhow::Result<()> {
        let info = self.host.store().volume(&args.name).map_err(refuse_store)?;
        let mut meta = read_meta(&info)?;
        let (from, to) = (parse(&meta.spec)?, parse(&args.spec)?);
        let now_s = unix_now_s();
        let plan = modify::check_modify(&self.catalog()?, &from, &to, &meta.modifications, now_s)
            .map_err(refuse_catalog)?;
        let required = |attachment| self.require_of_attached(args, &plan.target, attachment, progress);
        let host_match = attachment.map(required).transpose()?;
        let record = match args.optimizing {
            Some(Optimizing::Aws) => plan.record(now_s),
            Some(Optimizing::For(span)) => at_once(now_s, span),
            None => at_once(now_s, Duration::ZERO),
        };
        let (old, size) = (std::mem::replace(&mut meta.spec, plan.target.spec.to_string()), info.size_bytes);
        meta.modified_from = Some(old);
        meta.modifications.push(record);
        let target_size = plan.target.size_bytes();
        if target_size > size {
            self.host.store().resize_volume(&args.name, target_size).map_err(refuse_store)?;
        }
        // Written before the live volume changes: a kill in between leaves the new volume, which
        // is what the next attachment then finds.
        self.host.update_meta(&args.name, |whole| meta.write(whole)).map_err(refuse_host)?;
        if let Some(attachment) = attachment {
            let at = |unix_s: i64| Nanos::from_secs(u64::try_from(unix_s).unwrap_or(0));
            attachment
                .live()
                .modify(&plan.target.members[0], at(record.optimizing_unix_s), at(record.completes_unix_s))
                .context(Refusal::invariant("the catalogue's limits contradict themselves"))?;
            attachment.set_host_match(host_match.unwrap_or_default());
            attachment.grow().map_err(refuse_host)?;
        }
        tracing::info!(volume = args.name, spec = meta.spec, "modified");
        Ok(())
    }

    /// How an attached volume compares with the host once it is modified; a detached one is
    /// compared when it is attached.
    fn require_of_attached(
        &self,
        args: &ModifyArgs,
        target: &Resolved,
        attachment: &Attachment,
        progress: Progress<'_>,
    ) -> anyhow::Result<HostMatch> {
        let info = attachment.info();
        let instance = info.instance.as_deref().map(|text| self.instance_of(text)).transpose()?;
        let demand = Demand {
            volume: &args.name,
            array: &target.array(self.host.now()),
            instance: instance.as_ref(),
            through_nbd: info.device.is_none(),
            over_limit: args.over_limit,
            does: "modifies",
        };
        self.require_of_host(&demand, progress)
    }

    /// `volume crash-image`
    pub(super) fn crash_image(&self, args: &CrashImageArgs) -> anyhow::Result<Value> {
        let attachment = self.host.attached(&args.name).map_err(refuse_host)?;
        let info = self.host.store().volume(&args.name).map_err(refuse_store)?;
        let mut whole = info.meta;
        SavedCredits::write(attachment.live().inspect(SavedCredits::of), &mut whole);
        let seed = args.seed.unwrap_or_else(fresh_seed);
        let report = attachment
            .live()
            .crash_image(self.host.store(), &args.image, seed, whole)
            .map_err(|error| refuse_host(error.into()))?;
        tracing::info!(volume = args.name, image = args.image, seed, "crash image taken");
        let view = CrashImageView { volume: &args.name, image: &args.image, seed, report };
        Ok(serde_json::to_value(view)?)
    }
}

impl Meta {
    /// The latest modification, where it was still under way at a time, and what the volume was
    /// before it.
    fn under_way(&self, at: Nanos) -> Option<(&str, ModificationRecord)> {
        let record = *self.modifications.last()?;
        let at_s = i64::try_from(at.0 / Nanos::SECOND.0).unwrap_or(i64::MAX);
        let source = self.modified_from.as_deref()?;
        (record.completes_unix_s > at_s).then_some((source, record))
    }
}

/// What the control plane keeps with a volume.
pub(super) fn read_meta(info: &VolumeInfo) -> anyhow::Result<Meta> {
    Meta::read(&info.meta).map_err(|error| {
        let refusal = Refusal::environment(format!("volume '{}' was made by another program", info.name));
        anyhow::Error::new(error).context(refusal)
    })
}

/// A modification whose size is there at once and whose performance follows over a span.
fn at_once(now_s: i64, span: Duration) -> ModificationRecord {
    ModificationRecord {
        started_unix_s: now_s,
        optimizing_unix_s: now_s,
        completes_unix_s: now_s.saturating_add_unsigned(span.as_secs()),
    }
}

fn export_of(args: &AttachArgs) -> anyhow::Result<Export> {
    if let Some(address) = &args.nbd {
        let address = NbdAddress::parse(address).map_err(|error| Refusal::usage(error.to_string()))?;
        return Ok(Export::Nbd(address));
    }
    let mount = args.mount.as_ref().zip(args.fs).map(|(dir, fs)| MountRequest {
        dir: dir.clone(),
        fs: match fs {
            Fs::Xfs => FsType::Xfs,
            Fs::Ext4 => FsType::Ext4,
            Fs::Ext4Bigalloc => FsType::Ext4Bigalloc,
        },
        destroy: args.execute,
        grow: false,
    });
    Ok(Export::Block { mount })
}

/// A seed that nobody chose. It is stored and shown, so that the run can be repeated; 32 bits are
/// short enough to type, and exact in every JSON reader.
pub(super) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish() >> 32
}
