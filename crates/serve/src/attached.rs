//! Which volumes commands have attached, in a file of the home: a start with `--restore` attaches them again.
//!
//! What the AWS endpoint attaches is in its own records, and comes back with it.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ebbtide_control::protocol::{AttachRequest, ExportRequest, MountPoint};
use ebbtide_device::host::Home;
use serde::{Deserialize, Serialize};

use crate::error::{ServeError, chain};

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Saved {
    /// In the order in which they were attached.
    attached: Vec<AttachRequest>,
}

/// What commands have attached, as it is saved.
#[derive(Debug)]
pub struct AttachedList<'a> {
    home: &'a Home,
    entries: Mutex<Vec<AttachRequest>>,
}

impl<'a> AttachedList<'a> {
    /// The list of a server that begins: what was attached when the last one ended, if it is to `restore` that; else it is empty.
    ///
    /// # Errors
    /// A list that cannot be read or written: [`ServeError::List`], [`ServeError::ListDamaged`].
    pub fn begin(home: &'a Home, restore: bool) -> Result<Self, ServeError> {
        let saved = home.attached().map_err(ServeError::List)?;
        if !restore && saved.is_some() {
            home.save_attached(&bytes(&Saved::default())).map_err(ServeError::List)?;
        }
        let read = |saved: Vec<u8>| serde_json::from_slice::<Saved>(&saved);
        let saved = saved.filter(|_| restore).map(read).transpose().map_err(ServeError::ListDamaged)?;
        Ok(Self { home, entries: Mutex::new(saved.unwrap_or_default().attached) })
    }

    /// What is to be attached again: a directory before those below it, otherwise as it was attached.
    pub(crate) fn to_restore(&self) -> Vec<AttachRequest> {
        let mut entries = self.lock().clone();
        // The sort is stable.
        entries.sort_by_key(|request| mount_of(request).map_or(0, depth));
        entries
    }

    /// A volume was attached.
    pub(crate) fn attached(&self, mut request: AttachRequest) {
        if let ExportRequest::Block { mount: Some(mount) } = &mut request.export {
            // The file system is there by now. A start destroys nothing.
            mount.destroy = false;
        }
        let mut entries = self.lock();
        match entries.iter_mut().find(|known| known.name == request.name) {
            Some(known) => *known = request,
            None => entries.push(request),
        }
        self.save(entries);
    }

    /// A volume was detached or deleted.
    pub(crate) fn ended(&self, name: &str) {
        let mut entries = self.lock();
        let before = entries.len();
        entries.retain(|known| known.name != name);
        if entries.len() < before {
            self.save(entries);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<AttachRequest>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume is attached or detached all the same where it cannot be saved.
    fn save(&self, entries: MutexGuard<'_, Vec<AttachRequest>>) {
        let saved = self.home.save_attached(&bytes(&Saved { attached: entries.clone() }));
        if let Err(error) = saved {
            let error = chain(&error);
            tracing::warn!(
                error,
                "the list of attached volumes is not saved: 'serve --restore' will not know of the change"
            );
        }
    }
}

fn bytes(saved: &Saved) -> Vec<u8> {
    serde_json::to_vec_pretty(saved).expect("the requests arrived as UTF-8 text")
}

/// The directory where a volume is to be mounted.
pub(crate) fn mount_of(request: &AttachRequest) -> Option<&Path> {
    match &request.export {
        ExportRequest::Block { mount: Some(MountPoint { dir, .. }) } => Some(dir),
        _ => None,
    }
}

fn depth(dir: &Path) -> usize {
    dir.components().count()
}

#[cfg(test)]
mod tests {
    use ebbtide_device::host::FsType;

    use super::*;

    fn request(name: &str, mount: Option<&str>) -> AttachRequest {
        let mount = mount.map(|dir| MountPoint { dir: dir.into(), fs: FsType::Xfs, destroy: true });
        AttachRequest {
            name: name.to_owned(),
            export: ExportRequest::Block { mount },
            instance: None,
            over_limit: false,
            shadows: Vec::new(),
        }
    }

    fn destroys(request: &AttachRequest) -> bool {
        matches!(&request.export, ExportRequest::Block { mount: Some(mount) } if mount.destroy)
    }

    fn names(entries: &[AttachRequest]) -> Vec<&str> {
        entries.iter().map(|request| request.name.as_str()).collect()
    }

    #[test]
    fn what_was_attached_comes_back_in_the_order_of_the_mounts_and_destroys_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Home::open(dir.path()).unwrap().lock().unwrap();
        let list = AttachedList::begin(lock.home(), false).unwrap();
        for (name, mount) in [
            ("below", Some("/srv/db/log")),
            ("net", None),
            ("gone", None),
            ("db", Some("/srv/db")),
            ("web", Some("/srv/a")),
        ] {
            list.attached(request(name, mount));
        }
        list.ended("gone");
        list.attached(request("net", None));
        let again = AttachedList::begin(lock.home(), true).unwrap().to_restore();
        assert_eq!(names(&again), ["net", "db", "web", "below"]);
        assert!(!again.iter().any(destroys));
        // A server that does not restore begins with none attached, which is what the next one finds.
        AttachedList::begin(lock.home(), false).unwrap();
        assert_eq!(names(&AttachedList::begin(lock.home(), true).unwrap().to_restore()), Vec::<&str>::new());
    }

    #[test]
    fn a_list_that_is_none_is_refused_and_what_to_do_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Home::open(dir.path()).unwrap().lock().unwrap();
        lock.home().save_attached(b"{").unwrap();
        let error = AttachedList::begin(lock.home(), true).unwrap_err();
        assert!(error.to_string().contains("attached.json"), "{error}");
    }
}
