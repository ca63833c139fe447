// The calls of Terraform's AWS provider for aws_ebs_volume, aws_volume_attachment and aws_ebs_snapshot, in its order,
// through the AWS SDK for Go that it uses.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

const (
	zone = "us-east-1a"
	wait = time.Minute
)

func tags(of types.ResourceType, name string) []types.TagSpecification {
	tag := types.Tag{Key: aws.String("Name"), Value: aws.String(name)}
	return []types.TagSpecification{{ResourceType: of, Tags: []types.Tag{tag}}}
}

// A refusal must have this code, as the provider looks at codes to decide what to do.
func expect(err error, code string) error {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == code {
		return nil
	}
	return fmt.Errorf("expected %s, not: %v", code, err)
}

func life(ctx context.Context, client *ec2.Client) error {
	started, err := client.RunInstances(ctx, &ec2.RunInstancesInput{
		ImageId: aws.String("ami-00000000"), InstanceType: types.InstanceTypeM6iLarge,
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
	})
	if err != nil {
		return err
	}
	instance := *started.Instances[0].InstanceId
	instances := &ec2.DescribeInstancesInput{InstanceIds: []string{instance}}
	if err := ec2.NewInstanceRunningWaiter(client).Wait(ctx, instances, wait); err != nil {
		return err
	}

	create := &ec2.CreateVolumeInput{
		AvailabilityZone: aws.String(zone), Size: aws.Int32(10), VolumeType: types.VolumeTypeGp3,
		ClientToken: aws.String("terraform-1"), TagSpecifications: tags(types.ResourceTypeVolume, "data"),
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
	if _, err := client.AttachVolume(ctx, &ec2.AttachVolumeInput{
		Device: aws.String("/dev/sdh"), InstanceId: &instance, VolumeId: &volume,
	}); err != nil {
		return err
	}
	if err := ec2.NewVolumeInUseWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	_, err = client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &volume})
	if err := expect(err, "VolumeInUse"); err != nil {
		return err
	}
	if _, err := client.ModifyVolume(ctx, &ec2.ModifyVolumeInput{
		VolumeId: &volume, Size: aws.Int32(20), Iops: aws.Int32(4000),
	}); err != nil {
		return err
	}
	modified, err := client.DescribeVolumesModifications(ctx, &ec2.DescribeVolumesModificationsInput{
		VolumeIds: []string{volume},
	})
	if err != nil || *modified.VolumesModifications[0].TargetIops != 4000 {
		return fmt.Errorf("modified: %v, %v", modified, err)
	}
	if _, err := client.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{volume}, Tags: []types.Tag{{Key: aws.String("Team"), Value: aws.String("db")}},
	}); err != nil {
		return err
	}
	taken, err := client.CreateSnapshot(ctx, &ec2.CreateSnapshotInput{
		VolumeId: &volume, TagSpecifications: tags(types.ResourceTypeSnapshot, "nightly"),
	})
	if err != nil {
		return err
	}
	snapshots := &ec2.DescribeSnapshotsInput{SnapshotIds: []string{*taken.SnapshotId}}
	if err := ec2.NewSnapshotCompletedWaiter(client).Wait(ctx, snapshots, wait); err != nil {
		return err
	}

	if _, err := client.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: &volume, InstanceId: &instance}); err != nil {
		return err
	}
	if err := ec2.NewVolumeAvailableWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	pages := ec2.NewDescribeVolumesPaginator(client, &ec2.DescribeVolumesInput{
		Filters: []types.Filter{{Name: aws.String("tag:Team"), Values: []string{"db"}}}, MaxResults: aws.Int32(5),
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
	if _, err := client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &volume}); err != nil {
		return err
	}
	if err := ec2.NewVolumeDeletedWaiter(client).Wait(ctx, volumes, wait); err != nil {
		return err
	}
	_, err = client.DescribeVolumes(ctx, volumes)
	if err := expect(err, "InvalidVolume.NotFound"); err != nil {
		return err
	}
	if _, err := client.DeleteSnapshot(ctx, &ec2.DeleteSnapshotInput{SnapshotId: taken.SnapshotId}); err != nil {
		return err
	}
	_, err = client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{instance}})
	return err
}

func main() {
	ctx := context.Background()
	settings, err := config.LoadDefaultConfig(ctx)
	if err == nil {
		_, err = sts.NewFromConfig(settings).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	}
	if err == nil {
		err = life(ctx, ec2.NewFromConfig(settings))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
