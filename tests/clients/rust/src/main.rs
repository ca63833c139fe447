//! The life of a volume and of a snapshot through the AWS SDK for Rust: waiters, pages, errors by their codes.
//!
//! Nothing here names Ebbtide: the endpoint, the Region and the key are in the environment.
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::Duration;

use aws_sdk_ec2::Client;
use aws_sdk_ec2::client::Waiters as _;
use aws_sdk_ec2::error::ProvideErrorMetadata as _;
use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification, VolumeType};

const WAIT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = aws_config::load_from_env().await;
    let ec2 = Client::new(&settings);
    let ebs = aws_sdk_ebs::Client::new(&settings);

    let name = Tag::builder().key("Name").value("data").build();
    let tagged = TagSpecification::builder().resource_type(ResourceType::Volume).tags(name).build();
    let created = ec2.create_volume().availability_zone("us-east-1a").size(8).volume_type(VolumeType::Gp3);
    let created = created.tag_specifications(tagged).send().await?;
    let volume = created.volume_id().ok_or("a volume without an id")?;
    ec2.wait_until_volume_available().volume_ids(volume).wait(WAIT).await?;
    ec2.modify_volume().volume_id(volume).size(9).iops(4_000).send().await?;

    let taken = ec2.create_snapshot().volume_id(volume).send().await?;
    let snapshot = taken.snapshot_id().ok_or("a snapshot without an id")?;
    ec2.wait_until_snapshot_completed().snapshot_ids(snapshot).wait(WAIT).await?;
    let listed = ebs.list_snapshot_blocks().snapshot_id(snapshot).send().await?;

    let by_name = Filter::builder().name("tag:Name").values("data").build();
    let mut pages = ec2.describe_volumes().filters(by_name).into_paginator().page_size(5).send();
    while let Some(page) = pages.next().await {
        for one in page?.volumes() {
            println!("{} {} {}", one.size().unwrap_or(0), one.iops().unwrap_or(0), listed.blocks().len());
        }
    }

    ec2.delete_snapshot().snapshot_id(snapshot).send().await?;
    ec2.delete_volume().volume_id(volume).send().await?;
    ec2.wait_until_volume_deleted().volume_ids(volume).wait(WAIT).await?;
    match ec2.describe_volumes().volume_ids(volume).send().await {
        Err(error) if error.code() == Some("InvalidVolume.NotFound") => Ok(()),
        other => Err(format!("a deleted volume is described: {other:?}").into()),
    }
}
