//! The statements and the distribution of sysbench's scripts, from a profile's keys and to them.

use ebbtide_workload::Distribution;
use ebbtide_workload::sysbench::Mix;

use super::ProfileError;
use super::file::WorkloadTable;

/// Statements of one kind in a transaction, at most.
const MOST_STATEMENTS: u32 = 10_000;

impl WorkloadTable {
    /// The statements of a transaction: sysbench's, with those that the profile changes.
    ///
    /// # Errors
    /// A number that is out of its range.
    pub(super) fn mix(&self, table_size: u32) -> Result<Mix, ProfileError> {
        let mut mix = Mix::default();
        let range = |key: &str, value: u32, most: u32, allowed| {
            if value <= most {
                return Ok(value);
            }
            Err(ProfileError::Range { key: format!("workload.{key}"), value: value.to_string(), allowed })
        };
        let counts = [
            ("point_selects", self.point_selects, &mut mix.point_selects),
            ("simple_ranges", self.simple_ranges, &mut mix.simple_ranges),
            ("sum_ranges", self.sum_ranges, &mut mix.sum_ranges),
            ("order_ranges", self.order_ranges, &mut mix.order_ranges),
            ("distinct_ranges", self.distinct_ranges, &mut mix.distinct_ranges),
            ("index_updates", self.index_updates, &mut mix.index_updates),
            ("non_index_updates", self.non_index_updates, &mut mix.non_index_updates),
            ("delete_inserts", self.delete_inserts, &mut mix.delete_inserts),
        ];
        for (key, given, count) in counts {
            if let Some(given) = given {
                *count = range(key, given, MOST_STATEMENTS, "0 to 10000 statements of a transaction")?;
            }
        }
        if let Some(size) = self.range_size {
            mix.range_size = range("range_size", size, table_size, "1 to table_size")?;
            range("range_size", u32::from(size == 0), 0, "1 to table_size")?;
        }
        mix.range_selects = self.range_selects.unwrap_or(mix.range_selects);
        if let Some(gets) = self.gets_pct {
            mix.gets_pct = range("gets_pct", gets, 100, "0 to 100 percent")?;
        }
        Ok(mix)
    }

    /// Puts statements into the keys; those that are sysbench's are left out. None where a profile has no key for them.
    #[must_use]
    pub fn with_mix(mut self, mix: &Mix) -> Option<Self> {
        if mix.skip_trx {
            return None;
        }
        let usual = Mix::default();
        let other = |value: u32, usual: u32| (value != usual).then_some(value);
        self.point_selects = other(mix.point_selects, usual.point_selects);
        self.simple_ranges = other(mix.simple_ranges, usual.simple_ranges);
        self.sum_ranges = other(mix.sum_ranges, usual.sum_ranges);
        self.order_ranges = other(mix.order_ranges, usual.order_ranges);
        self.distinct_ranges = other(mix.distinct_ranges, usual.distinct_ranges);
        self.index_updates = other(mix.index_updates, usual.index_updates);
        self.non_index_updates = other(mix.non_index_updates, usual.non_index_updates);
        self.delete_inserts = other(mix.delete_inserts, usual.delete_inserts);
        self.range_size = other(mix.range_size, usual.range_size);
        self.gets_pct = other(mix.gets_pct, usual.gets_pct);
        self.range_selects = (mix.range_selects != usual.range_selects).then_some(mix.range_selects);
        Some(self)
    }

    /// The distribution, with sysbench's parameters where the profile gives none.
    ///
    /// # Errors
    /// An unknown name, a parameter out of its range, or one that the distribution does not have.
    pub(super) fn distribution(&self) -> Result<Distribution, ProfileError> {
        let name = self.rand_type.as_deref().unwrap_or("special");
        let (iterations, pct, res) = (self.rand_spec_iter, self.rand_spec_pct, self.rand_spec_res);
        let (h, exponent) = (self.rand_pareto_h, self.rand_zipfian_exp);
        let given = [
            ("rand_spec_iter", iterations.is_some(), matches!(name, "special" | "gaussian")),
            ("rand_spec_pct", pct.is_some(), name == "special"),
            ("rand_spec_res", res.is_some(), name == "special"),
            ("rand_pareto_h", h.is_some(), name == "pareto"),
            ("rand_zipfian_exp", exponent.is_some(), name == "zipfian"),
        ];
        if let Some((key, ..)) = given.into_iter().find(|(_, given, has)| *given && !has) {
            return Err(ProfileError::Conflict(format!(
                "workload.{key}: the distribution {name} (workload.rand_type) has no such parameter"
            )));
        }
        let iterations = iterations.unwrap_or(12);
        let distribution = match name {
            "special" => Distribution::Special { iterations, pct: pct.unwrap_or(1), res: res.unwrap_or(75) },
            "uniform" => Distribution::Uniform,
            "gaussian" => Distribution::Gaussian { iterations },
            "pareto" => Distribution::Pareto { h: h.unwrap_or(0.2) },
            "zipfian" => Distribution::Zipfian { exponent: exponent.unwrap_or(0.8) },
            _ => {
                return Err(ProfileError::Range {
                    key: "workload.rand_type".into(),
                    value: name.into(),
                    allowed: "special, uniform, gaussian, pareto or zipfian",
                });
            }
        };
        distribution.check().map_err(|error| ProfileError::Range {
            key: format!("workload.{}", error.option.replace('-', "_")),
            value: error.value,
            allowed: error.allowed,
        })?;
        Ok(distribution)
    }

    /// Puts a distribution into the keys; parameters that are sysbench's are left out.
    #[must_use]
    pub fn with_distribution(mut self, distribution: Distribution) -> Self {
        let other = |value: u32, usual: u32| (value != usual).then_some(value);
        let real = |value: f64, usual: f64| ((value - usual).abs() > 1e-12).then_some(value);
        let name = match distribution {
            Distribution::Special { iterations, pct, res } => {
                self.rand_spec_iter = other(iterations, 12);
                self.rand_spec_pct = other(pct, 1);
                self.rand_spec_res = other(res, 75);
                "special"
            }
            Distribution::Uniform => "uniform",
            Distribution::Gaussian { iterations } => {
                self.rand_spec_iter = other(iterations, 12);
                "gaussian"
            }
            Distribution::Pareto { h } => {
                self.rand_pareto_h = real(h, 0.2);
                "pareto"
            }
            Distribution::Zipfian { exponent } => {
                self.rand_zipfian_exp = real(exponent, 0.8);
                "zipfian"
            }
        };
        self.rand_type = Some(name.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_distributions_are_read_as_they_were_written() {
        let mix =
            Mix { point_selects: 3, delete_inserts: 0, range_selects: false, gets_pct: 50, ..Mix::default() };
        let written = WorkloadTable::default().with_mix(&mix).unwrap();
        assert_eq!((written.point_selects, written.sum_ranges), (Some(3), None));
        assert_eq!(written.mix(1_000).unwrap(), mix);
        assert!(WorkloadTable::default().with_mix(&Mix { skip_trx: true, ..mix }).is_none());
        for distribution in [
            Distribution::default(),
            Distribution::Special { iterations: 5, pct: 20, res: 60 },
            Distribution::Uniform,
            Distribution::Gaussian { iterations: 3 },
            Distribution::Pareto { h: 0.4 },
            Distribution::Zipfian { exponent: 1.2 },
        ] {
            let written = WorkloadTable::default().with_distribution(distribution);
            assert_eq!(written.distribution().unwrap(), distribution, "{written:?}");
        }
    }

    #[test]
    fn wrong_statements_and_parameters_are_refused_with_what_is_allowed() {
        let error = |table: WorkloadTable| {
            let mix = table.mix(1_000).err().map(|error| error.to_string());
            mix.or_else(|| Some(table.distribution().unwrap_err().to_string())).unwrap()
        };
        let table = WorkloadTable::default();
        let said = error(WorkloadTable { index_updates: Some(20_000), ..table.clone() });
        assert!(said.contains("workload.index_updates = 20000") && said.contains("0 to 10000"), "{said}");
        let said = error(WorkloadTable { range_size: Some(0), ..table.clone() });
        assert!(said.contains("workload.range_size") && said.contains("1 to table_size"), "{said}");
        let said = error(WorkloadTable { rand_spec_pct: Some(101), ..table.clone() });
        assert!(said.contains("workload.rand_spec_pct = 101") && said.contains("1 to 100"), "{said}");
        let said = error(WorkloadTable { rand_pareto_h: Some(0.3), ..table });
        assert!(said.contains("workload.rand_pareto_h: the distribution special"), "{said}");
    }
}
