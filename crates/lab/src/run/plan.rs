//! What is run of an experiment on a server: decided once, and consumed by the run.

use ebbtide_catalog::Catalog;
use ebbtide_mysql::{Binary, NamedServers};

use super::connections;
use crate::experiment::{self, Arm, Experiment, ExperimentError, PlannedArm, Programs};

/// What is run of an experiment on a server: [`plan`] makes it, and a run consumes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The experiment without its arms: each is in [`Self::arms`], next to what it resolves to.
    rest: Experiment,
    arms: Vec<PlannedArm>,
    server: Binary,
    left_out: Vec<String>,
}

/// What is run of an experiment on a server: without the arms that this server cannot have, and with room for all
/// connections. Of the server programs that it names only trusted ones are taken ([`NamedServers`]).
///
/// # Errors
/// As [`experiment::check()`].
pub fn plan(experiment: Experiment, catalog: &Catalog, server: &Binary) -> Result<Plan, ExperimentError> {
    plan_with(experiment, catalog, server, &NamedServers::default())
}

/// [`plan`] with the server programs that the experiment may name.
///
/// # Errors
/// As [`experiment::check()`].
pub fn plan_with(
    mut experiment: Experiment,
    catalog: &Catalog,
    server: &Binary,
    servers: &NamedServers,
) -> Result<Plan, ExperimentError> {
    let programs = Programs::find(&experiment, server, servers);
    let mut left_out = experiment::fit_on(&mut experiment, &programs);
    left_out.extend(experiment::fit_volumes(&mut experiment, catalog, &programs));
    connections::admit(&mut experiment);
    let arms = experiment::check_on(&experiment, catalog, &programs)?;
    Ok(Plan { rest: Experiment { arms: Vec::new(), ..experiment }, arms, server: server.clone(), left_out })
}

impl Plan {
    /// The arms, in their order.
    #[must_use]
    pub fn arms(&self) -> &[PlannedArm] {
        &self.arms
    }

    /// The server that is measured, but for servers of arms that name another ([`PlannedArm::server`]).
    #[must_use]
    pub const fn server(&self) -> &Binary {
        &self.server
    }

    /// A sentence for each arm that was left out.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The experiment as it is run.
    #[must_use]
    pub fn experiment(&self) -> Experiment {
        let arms = self.arms.iter().map(|planned| planned.arm.clone());
        Experiment { arms: arms.collect(), ..self.rest.clone() }
    }

    /// Leaves out the arms that cannot run, as [`experiment::leave_out`].
    ///
    /// # Errors
    /// [`ExperimentError::NoArms`]: none is left.
    pub(crate) fn leave_out(
        &mut self,
        against: impl Fn(&Arm) -> Option<String>,
    ) -> Result<Vec<String>, ExperimentError> {
        let mut experiment = self.experiment();
        let left_out = experiment::leave_out(&mut experiment, against);
        let kept: Vec<Arm> = std::mem::take(&mut experiment.arms);
        if kept.is_empty() {
            return Err(ExperimentError::NoArms);
        }
        self.arms.retain(|planned| kept.iter().any(|arm| arm.name == planned.arm.name));
        self.rest = experiment;
        Ok(left_out)
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::{Flavour, Version};

    use super::*;
    use crate::experiment::Overrides;

    /// Three arms, the second of which may be left out; the others are held against the first.
    fn three() -> Plan {
        let text = "title = \"t\"\n[volumes]\ndata = \"gp3:size=20GiB\"\n[arms.a]\n[arms.b]\noptional = true\n\
                    [arms.c.settings]\nio_capacity = 300\n[arms.b.settings]\nio_capacity = 200\n";
        let experiment = experiment::parse("t", "t.toml", text, &Overrides::default()).unwrap();
        plan(experiment, &Catalog::builtin(), &mariadb()).unwrap()
    }

    fn mariadb() -> Binary {
        let version = Version { major: 10, minor: 11, patch: 14 };
        let text = "Ver 10.11.14-MariaDB".to_owned();
        Binary { path: "/usr/sbin/mariadbd".into(), flavour: Flavour::MariaDb, version, text }
    }

    /// What is planned of arms `a`, `b` and `c`, to the second and third of which these lines are added.
    fn planned(b: &str, c: &str) -> Result<Plan, ExperimentError> {
        let text = format!(
            "title = \"t\"\n[data]\nwarehouses = 20\n[load]\nworkload = \"tpcc\"\n[volumes]\ndata = \"gp3:size=20GiB\"\n\
             [arms.a]\n[arms.b.settings]\nio_capacity = 200\n{b}[arms.c.settings]\nio_capacity = 300\n{c}"
        );
        let experiment = experiment::parse("t", "t.toml", &text, &Overrides::default()).unwrap();
        plan(experiment, &Catalog::builtin(), &mariadb())
    }

    #[test]
    fn an_arm_whose_warehouses_do_not_fit_or_whose_setting_the_server_lacks_is_a_hole_and_the_others_go_on() {
        for (lines, why) in [
            ("[arms.b.volumes]\ndata = \"gp3:size=1GiB\"\n", "take a larger volume or fewer warehouses"),
            ("page_cleaners = 4\n", "has no page_cleaners"),
        ] {
            let plan = planned(lines, "").unwrap();
            let names: Vec<&str> = plan.arms().iter().map(|planned| planned.arm.name.as_str()).collect();
            assert_eq!(names, ["a", "c"]);
            let left_out = plan.experiment().left_out;
            assert!(left_out.len() == 1 && left_out[0].arm == "b" && !left_out[0].optional, "{left_out:?}");
            assert!(left_out[0].why.contains(why), "{left_out:?}");
            assert_eq!(plan.left_out(), [left_out[0].words()]);
        }
    }

    #[test]
    fn a_run_in_which_nothing_can_be_compared_any_more_is_refused() {
        let small = |arm: &str| format!("[arms.{arm}.volumes]\ndata = \"gp3:size=1GiB\"\n");
        let error = planned(&small("b"), &small("c")).unwrap_err().to_string();
        assert!(error.starts_with("arm 'b': its data volume has 1024 MiB"), "{error}");
    }

    #[test]
    fn an_arm_that_is_left_out_takes_what_it_resolves_to_with_it() {
        let mut plan = three();
        let whole = plan.experiment();
        assert_eq!(whole.arms.len(), 3);
        let notes = plan.leave_out(|arm| (arm.name == "b").then(|| "no".to_owned())).unwrap();
        assert_eq!(notes, ["arm 'b' is left out: no"]);
        let names: Vec<&str> = plan.arms().iter().map(|planned| planned.arm.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        let left = plan.experiment();
        for comparison in &left.comparisons {
            assert!(comparison.arm < 2 && comparison.baseline < 2, "{comparison:?}");
            let of = |index: usize| left.arms[index].name.as_str();
            assert_eq!((of(comparison.arm), of(comparison.baseline)), ("c", "a"));
        }
        assert!(left.comparisons.len() < whole.comparisons.len());
    }
}
