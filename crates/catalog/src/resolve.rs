//! From a spec to the limits of its volumes.

use ebbtide_text::closest;
use ebbtide_volume::{Array, AtomicUnit, Durability, KIB, Limits, MIB, Nanos, RateLimit, format_size};
use jiff::civil::Date;

use crate::{
    Catalog, CatalogError, Provenance, Raid0, Rejection, Resolved, Spec, VolumeFigures, VolumeSpec,
    data::{Class, Period, TypeEntry},
    describe,
    error::data,
    rules::{self, Request},
};

impl Catalog {
    /// The limits that a spec describes.
    ///
    /// # Errors
    /// What AWS would refuse, in its words; a type that did not exist on the day asked for; a
    /// setting that the type does not have.
    pub fn resolve(&self, spec: &Spec) -> Result<Resolved, CatalogError> {
        let (entry, period) = self.find(&spec.volume)?;
        let (volume, limits) = self.volume(&spec.volume, entry, period)?;
        let raid0 = spec.raid0.map(|raid0| self.stripe(raid0, &limits)).transpose()?;
        let figures = figures(&limits, period);
        let service = self.service(entry, period);
        let provenance = |source: &str, date: Date| Provenance {
            source: source.to_owned(),
            date: date.to_string(),
            overridden: entry.overridden.clone(),
        };
        let spec = Spec { volume, raid0 };
        let members = vec![limits; usize::from(spec.members())];
        let chunk_bytes = raid0.and_then(|raid0| raid0.chunk_bytes).unwrap_or(4 * KIB);
        Array::striped(members.clone(), chunk_bytes, Nanos::ZERO)
            .map_err(|error| data(&spec.to_string(), error))?;
        Ok(Resolved {
            members,
            chunk_bytes,
            credit_share: spec.volume.credits.map(crate::CreditShare::share),
            description: describe::line(&spec, &figures),
            figures,
            provenance: provenance(&period.source, period.date),
            service_provenance: provenance(&service.source, service.date),
            spec,
        })
    }

    /// The type and its period on the day asked for.
    pub(crate) fn find(&self, spec: &VolumeSpec) -> Result<(&TypeEntry, &Period), CatalogError> {
        let entry = self.entry(&spec.kind).ok_or_else(|| self.unknown(&spec.kind))?;
        let newest = entry.period.last().expect("a type has a period, as was checked");
        let Some(as_of) = spec.as_of else { return Ok((entry, newest)) };
        let period = entry.period.iter().rev().find(|period| period.from <= as_of.day());
        match (period, entry.launched) {
            (Some(period), _) => Ok((entry, period)),
            (None, Some(launched)) => Err(CatalogError::NotThen {
                kind: entry.name.clone(),
                day: as_of.day().to_string(),
                reason: not_then(launched, entry.period[0].from, as_of.day()),
            }),
            (None, None) => Ok((entry, newest)),
        }
    }

    fn unknown(&self, kind: &str) -> CatalogError {
        let store = kind.starts_with("instance-store");
        let names: Vec<&str> = self.types().iter().map(|info| info.name.as_str()).collect();
        let listed = names.iter().filter(|name| name.starts_with("instance-store") == store);
        let mut known: Vec<String> = listed.map(|&name| name.to_owned()).collect();
        if !store {
            known.push("instance-store:CLASS".into());
        }
        Rejection::UnknownType { kind: kind.into(), nearest: closest(kind, names).map(str::to_owned), known }
            .into()
    }

    /// One volume's spec with everything filled in, and its limits.
    fn volume(
        &self,
        spec: &VolumeSpec,
        entry: &TypeEntry,
        period: &Period,
    ) -> Result<(VolumeSpec, Limits), CatalogError> {
        let request = Request::of(spec, entry, period)?;
        let (iops, throughput) = rules::rates(&request, period);
        let bursts = iops.iter().chain(&throughput).any(|rate| rate.credits > 0);
        if spec.credits.is_some() && !bursts {
            return Err(CatalogError::NoSuchSetting {
                kind: entry.name.clone(),
                key: "credits",
                why: "at this size and on this day it has no burst credits".into(),
            });
        }
        let twp = self.torn_write_prevention(spec, entry, period)?;
        let limits = Limits {
            size_bytes: request.size_bytes,
            iops,
            throughput,
            accounting: self.accounting(entry),
            service: self
                .service(entry, period)
                .times(request.size_bytes)
                .expect("service times were checked when they were loaded"),
            durability: Durability {
                atomic_unit: if twp { AtomicUnit::SixteenKib } else { AtomicUnit::FourKib },
                volatile_cache_bytes: period.volatile_cache_mib * MIB,
            },
        };
        let spec = VolumeSpec {
            kind: spec.kind.clone(),
            as_of: spec.as_of,
            size_bytes: Some(request.size_bytes),
            iops: request.iops,
            throughput_mib_s: request.throughput_mib_s,
            credits: spec.credits,
            twp: Some(twp),
        };
        Ok((spec, limits))
    }

    /// Whether aligned writes of 16 KiB are kept whole.
    fn torn_write_prevention(
        &self,
        spec: &VolumeSpec,
        entry: &TypeEntry,
        period: &Period,
    ) -> Result<bool, CatalogError> {
        let since = self.torn_write_prevention.since;
        let (possible, default) = match entry.class {
            Class::Ebs => {
                let there = spec.as_of.is_none_or(|as_of| as_of.day() >= since);
                (there, there)
            }
            Class::InstanceStore | Class::Device | Class::Aurora => {
                let possible = period.max_atomic_kib.is_some_and(|kib| kib >= 16);
                (possible, possible && period.atomic_by_default)
            }
        };
        match spec.twp {
            Some(true) if !possible => Err(CatalogError::NoSuchSetting {
                kind: entry.name.clone(),
                key: "twp=on",
                why: match entry.class {
                    Class::Ebs => format!("EBS prevents torn writes since {since}"),
                    _ => "this device keeps 4 KiB whole and no more".into(),
                },
            }),
            Some(on) => Ok(on),
            None => Ok(default),
        }
    }

    fn stripe(&self, raid0: Raid0, limits: &Limits) -> Result<Raid0, CatalogError> {
        let chunk = raid0.chunk_bytes.unwrap_or(self.array.default_chunk_kib * KIB);
        if chunk > limits.size_bytes {
            return Err(CatalogError::ChunkTooLarge {
                chunk: format_size(chunk),
                member: format_size(limits.size_bytes),
            });
        }
        Ok(Raid0 { chunk_bytes: Some(chunk), ..raid0 })
    }
}

fn not_then(launched: Date, first: Date, day: Date) -> String {
    if day < launched {
        format!("it was launched on {launched}")
    } else {
        format!("it was launched on {launched}, but its limits are known from {first} on")
    }
}

fn figures(limits: &Limits, period: &Period) -> VolumeFigures {
    let bursting = |rate: &RateLimit| rate.credits > 0;
    let mib_s = |bytes: u64| bytes as f64 / MIB as f64;
    let iops = limits.iops;
    let throughput = limits.throughput;
    let credits = [iops, throughput].into_iter().flatten().find(bursting);
    VolumeFigures {
        iops: iops.map(|rate| rate.rate).or(period.nominal_iops),
        burst_iops: iops.filter(bursting).map(|rate| rate.ceiling),
        throughput_mib_s: throughput.map(|rate| mib_s(rate.rate)),
        burst_throughput_mib_s: throughput.filter(bursting).map(|rate| mib_s(rate.ceiling)),
        burst_seconds: credits.and_then(|rate| rate.credits_end_s(1.0, rate.ceiling as f64)),
        refill_seconds: credits.and_then(|rate| rate.credits_full_s(0.0)),
    }
}
