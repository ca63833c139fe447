//! The server programs of an experiment: the run's own, and those that servers of its arms name.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ebbtide_mysql::{Binary, NamedServers};

use super::arm_error::{ArmError, chain};
use super::{Arm, Experiment};

/// The server programs of an experiment.
#[derive(Debug)]
pub(crate) struct Programs<'a> {
    own: &'a Binary,
    /// By the words of the experiment; else why there is none.
    named: BTreeMap<String, Result<Binary, String>>,
    /// Whether they may be started to ask them something.
    unstarted: bool,
    collations: RefCell<BTreeMap<PathBuf, String>>,
}

/// The programs of an arm's servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArmPrograms<'p> {
    /// That of the server of the load, which a replica follows whose power is cut.
    pub(crate) source: &'p Binary,
    /// That of its replicas, or of the one whose power is cut, where that has a source of its own program; else none.
    pub(crate) replica: Option<&'p Binary>,
}

impl<'p> ArmPrograms<'p> {
    /// That of the server which the arm's own settings and volumes are of: the one whose power is cut, or that of the load.
    pub(crate) fn own(&self, arm: &Arm) -> &'p Binary {
        let cut = self.replica.filter(|_| arm.cut_replicas_source().is_some());
        cut.unwrap_or(self.source)
    }
}

impl Experiment {
    /// The words by which servers of its arms name programs other than the run's.
    #[must_use]
    pub fn named_servers(&self) -> BTreeSet<String> {
        let replicas = self.arms.iter().filter_map(Arm::replica).filter_map(|replica| replica.server);
        let followed = self.arms.iter().filter_map(|arm| arm.cut_replicas_source().map(str::to_owned));
        self.arms.iter().filter_map(|arm| arm.server.clone()).chain(replicas).chain(followed).collect()
    }
}

impl<'a> Programs<'a> {
    /// Finds the programs that an experiment names. `own` is the run's.
    pub(crate) fn find(experiment: &Experiment, own: &'a Binary, servers: &NamedServers) -> Self {
        let found = |name: String| {
            let found = servers.find(&name).map_err(|error| chain(&error));
            (name, found)
        };
        let named = experiment.named_servers().into_iter().map(found).collect();
        Self { own, named, unstarted: servers.starts_none(), collations: RefCell::default() }
    }

    /// The programs of an arm's servers.
    ///
    /// # Errors
    /// [`ArmError::NoProgram`], [`ArmError::OtherProduct`] and [`ArmError::OlderReplica`].
    pub(crate) fn of(&self, arm: &Arm) -> Result<ArmPrograms<'_>, ArmError> {
        let own = self.named(arm.server.as_deref())?;
        let (source, replica) = if let Some(source) = arm.cut_replicas_source() {
            (self.named(Some(source)).map_err(|why| ArmError::OfSource { why: Box::new(why) })?, own)
        } else if let Some(replica) = arm.replica() {
            let replica = self.named(replica.server.as_deref());
            (own, replica.map_err(|why| ArmError::OfReplica { why: Box::new(why) })?)
        } else {
            return Ok(ArmPrograms { source: own, replica: None });
        };
        let names = || (source.name(), replica.name());
        if source.is_mariadb() != replica.is_mariadb() {
            let (followed, replica) = names();
            return Err(ArmError::OtherProduct { followed, replica });
        }
        if replica.version < source.version {
            let (followed, replica) = names();
            return Err(ArmError::OlderReplica { followed, replica });
        }
        Ok(ArmPrograms { source, replica: Some(replica) })
    }

    fn named(&self, name: Option<&str>) -> Result<&Binary, ArmError> {
        let Some(name) = name else { return Ok(self.own) };
        match self.named.get(name) {
            Some(Ok(binary)) => Ok(binary),
            Some(Err(why)) => Err(ArmError::NoProgram { server: name.to_owned(), why: why.clone() }),
            None => unreachable!("all names of the experiment were looked for"),
        }
    }

    /// The collation that a replica's database needs for rows in its source's format; none where both servers have the
    /// same default, and where they are not started.
    ///
    /// # Errors
    /// [`ArmError::NoProgram`] for a program that does not answer.
    pub(crate) fn replica_collation(
        &self,
        source: &Binary,
        replica: &Binary,
    ) -> Result<Option<String>, ArmError> {
        if source == replica || self.unstarted {
            return Ok(None);
        }
        let needed = self.collation(source)?;
        Ok((self.collation(replica)? != needed).then_some(needed))
    }

    fn collation(&self, binary: &Binary) -> Result<String, ArmError> {
        if let Some(known) = self.collations.borrow().get(&binary.path) {
            return Ok(known.clone());
        }
        let collation = binary.default_collation().map_err(|error| ArmError::NoProgram {
            server: binary.path.display().to_string(),
            why: chain(&error),
        })?;
        self.collations.borrow_mut().insert(binary.path.clone(), collation.clone());
        Ok(collation)
    }
}
