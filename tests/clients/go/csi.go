package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

const (
	nameTag         = "CSIVolumeName"
	snapshotNameTag = "CSIVolumeSnapshotName"
)

// The calls of the EBS CSI driver for a claim that is made, mounted, resized, cloned from a snapshot and removed.
func csi(ctx context.Context, client *ec2.Client) error {
	instance, err := runInstance(ctx, client)
	if err != nil {
		return err
	}
	volume, err := provision(ctx, client, "pvc-1", 4, nil)
	if err != nil {
		return err
	}
	if err := publish(ctx, client, volume, instance); err != nil {
		return err
	}
	if err := resize(ctx, client, volume); err != nil {
		return err
	}
	taken, err := client.CreateSnapshot(ctx, &ec2.CreateSnapshotInput{
		VolumeId: &volume, TagSpecifications: tags(types.ResourceTypeSnapshot, snapshotNameTag, "snapshot-1"),
		Description: aws.String("Created by AWS EBS CSI driver for volume " + volume),
	})
	if err != nil {
		return err
	}
	snapshot, err := listed(ctx, client, volume, *taken.SnapshotId)
	if err != nil {
		return err
	}
	clone, err := provision(ctx, client, "pvc-2", 8, &snapshot)
	if err != nil {
		return err
	}
	if err := unpublish(ctx, client, volume, instance); err != nil {
		return err
	}
	for _, one := range []string{volume, clone} {
		if err := remove(ctx, client, one); err != nil {
			return err
		}
	}
	_, err = client.DeleteSnapshot(ctx, &ec2.DeleteSnapshotInput{SnapshotId: &snapshot, DryRun: aws.Bool(false)})
	if err != nil {
		return err
	}
	_, err = client.DeleteSnapshot(ctx, &ec2.DeleteSnapshotInput{SnapshotId: &snapshot})
	if err := expect(err, "InvalidSnapshot.NotFound"); err != nil {
		return err
	}
	fmt.Println("created, attached, resized, cloned, removed")
	return nil
}

// The limit of a type, which the driver reads out of the refusal of a volume with too many IOPS.
func limits(ctx context.Context, client *ec2.Client) error {
	_, err := client.CreateVolume(ctx, &ec2.CreateVolumeInput{
		AvailabilityZone: aws.String(zone), Size: aws.Int32(4), VolumeType: types.VolumeTypeIo2,
		Iops: aws.Int32(2147483647), DryRun: aws.Bool(true),
	})
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "InvalidParameterValue" ||
		!strings.Contains(api.ErrorMessage(), "iops") && !strings.Contains(api.ErrorMessage(), "IOPS") {
		return fmt.Errorf("the limit of io2: %v", err)
	}
	return nil
}

func provision(ctx context.Context, client *ec2.Client, name string, size int32, snapshot *string) (string, error) {
	zones, err := client.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil || len(zones.AvailabilityZones) == 0 {
		return "", fmt.Errorf("zones: %v, %v", zones, err)
	}
	if err := limits(ctx, client); err != nil {
		return "", err
	}
	byName := &ec2.DescribeVolumesInput{Filters: []types.Filter{filter("tag:"+nameTag, name)}}
	before, err := client.DescribeVolumes(ctx, byName)
	if err != nil || len(before.Volumes) != 0 {
		return "", fmt.Errorf("%s before: %v, %v", name, before, err)
	}
	create := &ec2.CreateVolumeInput{
		AvailabilityZone: zones.AvailabilityZones[0].ZoneName, Size: &size, VolumeType: types.VolumeTypeGp3,
		ClientToken: &name, SnapshotId: snapshot, TagSpecifications: tags(types.ResourceTypeVolume, nameTag, name),
		Encrypted: aws.Bool(false),
	}
	created, err := client.CreateVolume(ctx, create)
	if err != nil {
		return "", err
	}
	other := *create
	other.Size = aws.Int32(size + 1)
	_, err = client.CreateVolume(ctx, &other)
	if err := expect(err, "IdempotentParameterMismatch"); err != nil {
		return "", err
	}
	volumes := &ec2.DescribeVolumesInput{VolumeIds: []string{*created.VolumeId}}
	if err := ec2.NewVolumeAvailableWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return "", err
	}
	found, err := client.DescribeVolumes(ctx, byName)
	if err != nil || len(found.Volumes) != 1 || *found.Volumes[0].VolumeId != *created.VolumeId {
		return "", fmt.Errorf("%s: %v, %v", name, found, err)
	}
	return *created.VolumeId, nil
}

func publish(ctx context.Context, client *ec2.Client, volume, instance string) error {
	found, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{instance}})
	if err != nil || len(found.Reservations[0].Instances[0].BlockDeviceMappings) != 0 {
		return fmt.Errorf("devices before: %v, %v", found, err)
	}
	request := &ec2.AttachVolumeInput{Device: aws.String("/dev/xvdaa"), InstanceId: &instance, VolumeId: &volume}
	if _, err := client.AttachVolume(ctx, request); err != nil {
		return err
	}
	for {
		found, err := client.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{volume}})
		if err != nil {
			return err
		}
		attachments := found.Volumes[0].Attachments
		if len(attachments) == 1 && attachments[0].State == types.VolumeAttachmentStateAttached {
			break
		}
	}
	found, err = client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return err
	}
	mappings := found.Reservations[0].Instances[0].BlockDeviceMappings
	if len(mappings) != 1 || *mappings[0].DeviceName != "/dev/xvdaa" || *mappings[0].Ebs.VolumeId != volume {
		return fmt.Errorf("devices: %+v", mappings)
	}
	_, err = client.AttachVolume(ctx, request)
	return expect(err, "VolumeInUse")
}

func resize(ctx context.Context, client *ec2.Client, volume string) error {
	modifications := &ec2.DescribeVolumesModificationsInput{VolumeIds: []string{volume}}
	_, err := client.DescribeVolumesModifications(ctx, modifications)
	if err := expect(err, "InvalidVolumeModification.NotFound"); err != nil {
		return err
	}
	modify := &ec2.ModifyVolumeInput{VolumeId: &volume, Size: aws.Int32(8)}
	if _, err := client.ModifyVolume(ctx, modify); err != nil {
		return err
	}
	for {
		found, err := client.DescribeVolumesModifications(ctx, modifications)
		if err != nil {
			return err
		}
		if found.VolumesModifications[0].ModificationState != types.VolumeModificationStateModifying {
			break
		}
	}
	found, err := client.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{volume}})
	if err != nil || *found.Volumes[0].Size != 8 {
		return fmt.Errorf("resized: %v, %v", found, err)
	}
	return nil
}

// The snapshot by its name and in the list of its volume.
func listed(ctx context.Context, client *ec2.Client, volume, snapshot string) (string, error) {
	waiter := ec2.NewSnapshotCompletedWaiter(client)
	if err := waiter.Wait(ctx, &ec2.DescribeSnapshotsInput{SnapshotIds: []string{snapshot}}, wait); err != nil {
		return "", err
	}
	byName, err := client.DescribeSnapshots(ctx, &ec2.DescribeSnapshotsInput{
		Filters: []types.Filter{filter("tag:"+snapshotNameTag, "snapshot-1")},
	})
	if err != nil || len(byName.Snapshots) != 1 || *byName.Snapshots[0].SnapshotId != snapshot {
		return "", fmt.Errorf("by name: %v, %v", byName, err)
	}
	ofVolume, err := client.DescribeSnapshots(ctx, &ec2.DescribeSnapshotsInput{
		Filters: []types.Filter{filter("volume-id", volume)}, MaxResults: aws.Int32(5),
	})
	if err != nil || len(ofVolume.Snapshots) != 1 {
		return "", fmt.Errorf("of the volume: %v, %v", ofVolume, err)
	}
	return snapshot, nil
}

func unpublish(ctx context.Context, client *ec2.Client, volume, instance string) error {
	request := &ec2.DetachVolumeInput{InstanceId: &instance, VolumeId: &volume}
	if _, err := client.DetachVolume(ctx, request); err != nil {
		return err
	}
	volumes := &ec2.DescribeVolumesInput{VolumeIds: []string{volume}}
	if err := ec2.NewVolumeAvailableWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	_, err := client.DetachVolume(ctx, request)
	return expect(err, "IncorrectState")
}

func remove(ctx context.Context, client *ec2.Client, volume string) error {
	if _, err := client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &volume}); err != nil {
		return err
	}
	volumes := &ec2.DescribeVolumesInput{VolumeIds: []string{volume}}
	if err := ec2.NewVolumeDeletedWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	_, err := client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &volume})
	return expect(err, "InvalidVolume.NotFound")
}
