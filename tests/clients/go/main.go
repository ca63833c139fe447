// Clients of the AWS SDK for Go, each the calls of a program that people use with EBS:
//
//	go-client terraform   the AWS provider's: aws_ebs_volume, aws_volume_attachment, aws_ebs_snapshot
//	go-client csi         the EBS CSI driver's: create, attach, resize, snapshot, clone, detach, delete
//	go-client direct      the EBS direct APIs, as backup tools use them
//	go-client metrics     CloudWatch, in CBOR
//
// Each prints one line of what it saw.
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

func tags(of types.ResourceType, key, name string) []types.TagSpecification {
	tag := types.Tag{Key: aws.String(key), Value: aws.String(name)}
	return []types.TagSpecification{{ResourceType: of, Tags: []types.Tag{tag}}}
}

func filter(name, value string) types.Filter {
	return types.Filter{Name: &name, Values: []string{value}}
}

// A refusal must have this code, as programs look at codes to decide what to do.
func expect(err error, code string) error {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == code {
		return nil
	}
	return fmt.Errorf("expected %s, not: %v", code, err)
}

func runInstance(ctx context.Context, client *ec2.Client) (string, error) {
	started, err := client.RunInstances(ctx, &ec2.RunInstancesInput{
		// The image without a root volume: devices and volumes are counted.
		ImageId: aws.String("ami-ffffffff"), InstanceType: types.InstanceTypeM6iLarge,
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
	})
	if err != nil {
		return "", err
	}
	instance := *started.Instances[0].InstanceId
	instances := &ec2.DescribeInstancesInput{InstanceIds: []string{instance}}
	return instance, ec2.NewInstanceRunningWaiter(client).Wait(ctx, instances, wait)
}

func main() {
	ctx := context.Background()
	settings, err := config.LoadDefaultConfig(ctx)
	if err == nil {
		_, err = sts.NewFromConfig(settings).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	}
	if err == nil {
		err = run(ctx, settings, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, settings aws.Config, words []string) error {
	if len(words) == 1 {
		switch words[0] {
		case "terraform":
			return terraform(ctx, ec2.NewFromConfig(settings))
		case "csi":
			return csi(ctx, ec2.NewFromConfig(settings))
		case "direct":
			return direct(ctx, settings)
		case "metrics":
			return metrics(ctx, settings)
		}
	}
	return fmt.Errorf("usage: go-client terraform|csi|direct|metrics, not: %q", words)
}
