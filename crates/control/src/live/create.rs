//! Creating volumes: new ones, from snapshots, and as crash images.

use ebbtide_catalog::{Catalog, Initialization, Resolved};
use ebbtide_device::host::{SavedCredits, SavedLoading};
use ebbtide_text::seed;
use ebbtide_volume::{Array, Nanos};
use serde_json::Value;

use super::LiveControl;
use crate::identity::new_volume_id;
use crate::record::{Creation, VolumeRecord};
use crate::state::Operation;
use crate::{ControlError, CrashImageView, CreateVolume, TakeCrashImage, VolumeDetail};

/// Most characters of a token, as of a client token of EC2.
const TOKEN_LENGTH: usize = 64;

impl LiveControl {
    /// Creates a volume, or finds the one that a request with the same token has created.
    pub(super) fn create(&self, request: &CreateVolume) -> Result<VolumeDetail, ControlError> {
        let region = request.region.as_deref();
        if ![512, 4096].contains(&request.block_size) {
            return Err(ControlError::BlockSize { given: request.block_size });
        }
        let catalog = self.catalog()?;
        let resolved = catalog.resolve(&request.spec)?;
        catalog.prices(region)?;
        let initialization = initialization(request, &resolved, &catalog)?;
        let Some(creation) = creation(request, &resolved)? else {
            self.create_new(request, &resolved, initialization, None)?;
            return self.detail(&request.name, region);
        };
        // Without it, two requests at once would both find no earlier one.
        let _alone = self.create.lock();
        match self.created_by(&creation)? {
            Some(earlier) => self.detail(&earlier, region),
            None => {
                self.create_new(request, &resolved, initialization, Some(creation))?;
                self.detail(&request.name, region)
            }
        }
    }

    fn create_new(
        &self,
        request: &CreateVolume,
        resolved: &Resolved,
        initialization: Option<Initialization>,
        creation: Option<Creation>,
    ) -> Result<(), ControlError> {
        let now = self.host.now();
        let array = resolved.array(now);
        let id = new_volume_id(&request.name);
        let record = VolumeRecord {
            spec: resolved.spec.to_string(),
            block_size: request.block_size,
            seed: request.seed.unwrap_or_else(seed::fresh),
            id: Some(id.clone()),
            owner: Some(self.owner_of_new(request.owner.as_ref())),
            modified_from: None,
            modifications: Vec::new(),
            initialization,
            creation,
        };
        let mut whole = record.fresh();
        SavedCredits::write(SavedCredits::of(&array, now), &mut whole);
        let (store, size) = (self.host.store(), array.size_bytes());
        match &request.snapshot {
            None => match &request.key {
                None => store.create_volume(&request.name, size, whole)?,
                Some(key) => store.create_encrypted_volume(&request.name, size, whole, key.clone())?,
            },
            Some(snapshot) => {
                self.require_room(snapshot, size)?;
                if initialization.is_some() {
                    self.begin_loading(snapshot, &array, now, &mut whole)?;
                }
                let name = &request.name;
                match request.key.clone() {
                    None => store.create_from_snapshot(name, snapshot, size, whole)?,
                    Some(key) => store.create_from_snapshot_encrypted(name, snapshot, size, whole, key)?,
                }
            }
        }
        self.index.add(&request.name, &id);
        tracing::info!(volume = request.name, id, spec = record.spec, "created");
        Ok(())
    }

    /// Notes in the metadata of a new volume that it has to load what its snapshot has.
    fn begin_loading(
        &self,
        snapshot: &str,
        array: &Array,
        now: Nanos,
        whole: &mut Value,
    ) -> Result<(), ControlError> {
        let data = self.host.store().snapshot_data(snapshot)?;
        let members = array.new_load_states(&data, now);
        SavedLoading::write(Some(SavedLoading { members }), whole);
        Ok(())
    }

    /// The volume that an earlier request with the same token has created, by its name.
    fn created_by(&self, creation: &Creation) -> Result<Option<String>, ControlError> {
        let store = self.host.store();
        // Names and metadata alone: what volumes take is not to be counted for each creation.
        for volume in store.names().volumes {
            let Ok(meta) = store.meta(&volume) else { continue };
            let earlier = VolumeRecord::read(&meta).ok().and_then(|record| record.creation);
            match earlier {
                Some(earlier) if earlier == *creation => return Ok(Some(volume)),
                Some(earlier) if earlier.token == creation.token => {
                    return Err(ControlError::TokenUsed { volume });
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// A volume is at least as large as the snapshot that it begins as.
    fn require_room(&self, snapshot: &str, size_bytes: u64) -> Result<(), ControlError> {
        let found = self.host.store().snapshot_info(snapshot)?;
        if size_bytes < found.size_bytes {
            let (snapshot, needed_bytes) = (snapshot.to_owned(), found.size_bytes);
            return Err(ControlError::SmallerThanSnapshot { snapshot, size_bytes, needed_bytes });
        }
        Ok(())
    }

    /// Creates a volume with what a power cut of another one would leave now.
    pub(super) fn crash_image(&self, request: &TakeCrashImage) -> Result<CrashImageView, ControlError> {
        let (info, state) = self.find(&request.name)?;
        state.permits(Operation::CrashImage)?;
        let attachment = self.host.attached(&request.name)?;
        let mut whole = info.meta;
        let id = new_volume_id(&request.image);
        let is_own = state.record.is_ok();
        // The token created the volume, not its image, and the id is the volume's.
        if let Ok(record) = state.record {
            VolumeRecord { creation: None, id: Some(id.clone()), ..record }.write(&mut whole);
        }
        SavedCredits::write(attachment.live().inspect(SavedCredits::of), &mut whole);
        SavedLoading::write(attachment.live().inspect(SavedLoading::of), &mut whole);
        let seed = request.seed.unwrap_or_else(seed::fresh);
        let report = attachment.live().crash_image(self.host.store(), &request.image, seed, whole)?;
        if is_own {
            self.index.add(&request.image, &id);
        }
        tracing::info!(volume = request.name, image = request.image, seed, "crash image taken");
        Ok(CrashImageView { volume: request.name.clone(), image: request.image.clone(), seed, report })
    }
}

/// How the blocks of a new volume are loaded; none where all are there from the beginning.
fn initialization(
    request: &CreateVolume,
    resolved: &Resolved,
    catalog: &Catalog,
) -> Result<Option<Initialization>, ControlError> {
    let wanted = match (&request.snapshot, request.initialization) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(ControlError::NothingToInitialize),
        (Some(_), wanted) => wanted.unwrap_or_else(|| catalog.default_initialization(&resolved.spec)),
    };
    Ok(catalog.loader(wanted)?.map(|_| wanted))
}

/// By what a repetition of a request is known; none without a token.
fn creation(request: &CreateVolume, resolved: &Resolved) -> Result<Option<Creation>, ControlError> {
    let Some(token) = request.token.clone() else { return Ok(None) };
    let length = token.chars().count();
    if !(1..=TOKEN_LENGTH).contains(&length) {
        return Err(ControlError::TokenLength { length });
    }
    Ok(Some(Creation {
        token,
        spec: resolved.spec.to_string(),
        snapshot: request.snapshot.clone(),
        initialization: request.initialization,
        block_size: request.block_size,
        seed: request.seed,
    }))
}
