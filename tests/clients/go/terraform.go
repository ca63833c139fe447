package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The calls of Terraform's AWS provider in its order: create, plan, change, snapshot, destroy.
func terraform(ctx context.Context, client *ec2.Client) error {
	instance, err := runInstance(ctx, client)
	if err != nil {
		return err
	}
	create := &ec2.CreateVolumeInput{
		AvailabilityZone: aws.String(zone), Size: aws.Int32(10), VolumeType: types.VolumeTypeGp3,
		ClientToken: aws.String("terraform-1"), TagSpecifications: tags(types.ResourceTypeVolume, "Name", "data"),
	}
	created, err := client.CreateVolume(ctx, create)
	if err != nil {
		return err
	}
	again, err := client.CreateVolume(ctx, create)
	if err != nil || *again.VolumeId != *created.VolumeId {
		return fmt.Errorf("the same token made another volume: %v", err)
	}
	volume := *created.VolumeId
	volumes := &ec2.DescribeVolumesInput{VolumeIds: []string{volume}}
	if err := ec2.NewVolumeAvailableWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	if err := attach(ctx, client, volume, instance); err != nil {
		return err
	}
	_, err = client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &volume})
	if err := expect(err, "VolumeInUse"); err != nil {
		return err
	}
	if err := change(ctx, client, volume); err != nil {
		return err
	}
	snapshot, err := takeSnapshot(ctx, client, volume)
	if err != nil {
		return err
	}
	if err := detach(ctx, client, volume, instance); err != nil {
		return err
	}
	pages := ec2.NewDescribeVolumesPaginator(client, &ec2.DescribeVolumesInput{
		Filters: []types.Filter{filter("tag:Team", "db")}, MaxResults: aws.Int32(5),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, one := range page.Volumes {
			fmt.Println(*one.Size, *one.Iops, one.State)
		}
	}
	return destroy(ctx, client, volume, snapshot, instance)
}

// The attachment of a volume, as the provider looks for it: none is an empty list, and no error.
func attachments(ctx context.Context, client *ec2.Client, volume, instance string) ([]types.Volume, error) {
	found, err := client.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{
		VolumeIds: []string{volume},
		Filters:   []types.Filter{filter("attachment.device", "/dev/sdh"), filter("attachment.instance-id", instance)},
	})
	if err != nil {
		return nil, err
	}
	return found.Volumes, nil
}

func attach(ctx context.Context, client *ec2.Client, volume, instance string) error {
	if before, err := attachments(ctx, client, volume, instance); err != nil || len(before) != 0 {
		return fmt.Errorf("attached before: %v, %v", before, err)
	}
	if _, err := client.AttachVolume(ctx, &ec2.AttachVolumeInput{
		Device: aws.String("/dev/sdh"), InstanceId: &instance, VolumeId: &volume,
	}); err != nil {
		return err
	}
	volumes := &ec2.DescribeVolumesInput{VolumeIds: []string{volume}}
	if err := ec2.NewVolumeInUseWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	after, err := attachments(ctx, client, volume, instance)
	if err != nil || len(after) != 1 || *after[0].Attachments[0].InstanceId != instance {
		return fmt.Errorf("attached: %v, %v", after, err)
	}
	return nil
}

// A change of a volume: the provider asks for the modification until it is optimizing or completed, and refreshes.
func change(ctx context.Context, client *ec2.Client, volume string) error {
	if _, err := client.ModifyVolume(ctx, &ec2.ModifyVolumeInput{
		VolumeId: &volume, Size: aws.Int32(20), Iops: aws.Int32(4000),
	}); err != nil {
		return err
	}
	for {
		found, err := client.DescribeVolumesModifications(ctx, &ec2.DescribeVolumesModificationsInput{
			VolumeIds: []string{volume},
		})
		if err != nil || *found.VolumesModifications[0].TargetIops != 4000 {
			return fmt.Errorf("modified: %v, %v", found, err)
		}
		if found.VolumesModifications[0].ModificationState != types.VolumeModificationStateModifying {
			break
		}
	}
	if _, err := client.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{volume}, Tags: []types.Tag{{Key: aws.String("Team"), Value: aws.String("db")}},
	}); err != nil {
		return err
	}
	found, err := client.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{volume}})
	if err != nil {
		return err
	}
	one := found.Volumes[0]
	if *one.Size != 20 || *one.Iops != 4000 || *one.Throughput != 125 || *one.Encrypted || len(one.Tags) != 2 {
		return fmt.Errorf("refreshed: %+v", one)
	}
	return nil
}

func takeSnapshot(ctx context.Context, client *ec2.Client, volume string) (string, error) {
	taken, err := client.CreateSnapshot(ctx, &ec2.CreateSnapshotInput{
		VolumeId: &volume, TagSpecifications: tags(types.ResourceTypeSnapshot, "Name", "nightly"),
	})
	if err != nil {
		return "", err
	}
	snapshots := &ec2.DescribeSnapshotsInput{SnapshotIds: []string{*taken.SnapshotId}}
	if err := ec2.NewSnapshotCompletedWaiter(client).Wait(ctx, snapshots, wait); err != nil {
		return "", err
	}
	found, err := client.DescribeSnapshots(ctx, snapshots)
	if err != nil || *found.Snapshots[0].VolumeId != volume || *found.Snapshots[0].VolumeSize != 20 {
		return "", fmt.Errorf("snapshot: %v, %v", found, err)
	}
	return *taken.SnapshotId, nil
}

func detach(ctx context.Context, client *ec2.Client, volume, instance string) error {
	ended, err := client.DetachVolume(ctx, &ec2.DetachVolumeInput{
		Device: aws.String("/dev/sdh"), VolumeId: &volume, InstanceId: &instance,
	})
	if err != nil {
		return fmt.Errorf("detached: %v, %w", ended, err)
	}
	volumes := &ec2.DescribeVolumesInput{VolumeIds: []string{volume}}
	if err := ec2.NewVolumeAvailableWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	if after, err := attachments(ctx, client, volume, instance); err != nil || len(after) != 0 {
		return fmt.Errorf("attached after: %v, %v", after, err)
	}
	_, err = client.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: &volume, InstanceId: &instance})
	return expect(err, "IncorrectState")
}

func destroy(ctx context.Context, client *ec2.Client, volume, snapshot, instance string) error {
	if _, err := client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &volume}); err != nil {
		return err
	}
	volumes := &ec2.DescribeVolumesInput{VolumeIds: []string{volume}}
	if err := ec2.NewVolumeDeletedWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	_, err := client.DescribeVolumes(ctx, volumes)
	if err := expect(err, "InvalidVolume.NotFound"); err != nil {
		return err
	}
	if _, err := client.DeleteSnapshot(ctx, &ec2.DeleteSnapshotInput{SnapshotId: &snapshot}); err != nil {
		return err
	}
	_, err = client.DeleteSnapshot(ctx, &ec2.DeleteSnapshotInput{SnapshotId: &snapshot})
	if err := expect(err, "InvalidSnapshot.NotFound"); err != nil {
		return err
	}
	_, err = client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{instance}})
	return err
}
