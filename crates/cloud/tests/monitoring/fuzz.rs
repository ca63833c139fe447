//! Random requests to CloudWatch in its three protocols.

use std::sync::Arc;

use ebbtide_cloud::Service as _;
use ebbtide_volume::Op;

use crate::requests::{Target, calls, run};
use crate::support::Rig;
use crate::wire::{Protocol, Shapes, Wire};

#[test]
fn random_requests_to_cloudwatch_cause_no_panic_no_hang_and_no_internal_error() {
    let shapes = Shapes::of("monitoring");
    let words = [
        "AWS/EBS",
        "VolumeReadOps",
        "VolumeId",
        "vol-00000000000000001",
        "m1",
        "SUM(METRICS())",
        "m1 / PERIOD(m1)",
        "known",
        "Sum",
        "p99",
        "FILL(m1, 0)",
        "arn:aws:cloudwatch:us-east-1:000000000000:alarm:known",
    ];
    let words = words.map(str::to_owned);
    run(24, |bytes| {
        let rig = Rig::new();
        rig.attach("vol-00000000000000001", "gp3:size=100GiB");
        rig.drive("vol-00000000000000001", 2, (Op::Read, 16, 1));
        let services = || vec![Arc::clone(&rig.service) as _];
        let open = Wire::open(services(), rig.now_ms(), "000000000000");
        let target = Target {
            service: "monitoring",
            shapes: &shapes,
            protocols: &[Protocol::Json, Protocol::Cbor, Protocol::Query],
            actions: rig.service.actions(),
        };
        calls(bytes, &[target], &words, (&Wire::closed(services(), rig.now_ms()), &open))
    });
}
