//! EC2 instances: limits that the volumes attached to one share.

use std::collections::BTreeMap;
use std::sync::Arc;

use ebbtide_volume::Instance;
use parking_lot::Mutex;

use super::HostError;
use super::attach::InstanceRequest;

/// The instances that volumes were attached to since the host started.
#[derive(Debug, Default)]
pub(super) struct Instances(BTreeMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    kind: String,
    state: Arc<Mutex<Instance>>,
}

impl Instances {
    /// The instance that is asked for, made with full balances where it is new.
    pub(super) fn join(&mut self, request: &InstanceRequest) -> Result<Arc<Mutex<Instance>>, HostError> {
        let entry = self.0.entry(request.id.clone()).or_insert_with(|| Entry {
            kind: request.kind.clone(),
            state: Arc::new(Mutex::new(Instance::new(request.limits))),
        });
        // An instance that nobody is attached to may have been stopped and resized.
        let attached = u32::try_from(Arc::strong_count(&entry.state) - 1).unwrap_or(u32::MAX);
        if entry.kind != request.kind {
            if attached > 0 {
                let (instance, kind) = (request.id.clone(), entry.kind.clone());
                return Err(HostError::OtherInstance { instance, kind });
            }
            entry.kind.clone_from(&request.kind);
            entry.state = Arc::new(Mutex::new(Instance::new(request.limits)));
        }
        if attached >= request.slots {
            return Err(HostError::NoSlot { instance: request.id.clone(), slots: request.slots });
        }
        Ok(entry.state.clone())
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::{InstanceLimits, RateLimit};

    use super::*;

    fn request(kind: &str, slots: u32) -> InstanceRequest {
        let limits = InstanceLimits { iops: RateLimit::flat(1_000), throughput: RateLimit::flat(1 << 20) };
        InstanceRequest { id: "web1".into(), kind: kind.into(), limits, slots }
    }

    #[test]
    fn volumes_share_an_instance_until_it_is_full() {
        let mut instances = Instances::default();
        let first = instances.join(&request("r5.large", 2)).unwrap();
        let second = instances.join(&request("r5.large", 2)).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let full = instances.join(&request("r5.large", 2)).unwrap_err();
        assert!(matches!(full, HostError::NoSlot { slots: 2, .. }), "{full}");
        let other = instances.join(&request("r5.xlarge", 2)).unwrap_err();
        assert!(matches!(other, HostError::OtherInstance { .. }), "{other}");
        drop((first, second));
        instances.join(&request("r5.xlarge", 2)).unwrap();
    }
}
