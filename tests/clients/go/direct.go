package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ebs"
	"github.com/aws/aws-sdk-go-v2/service/ebs/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

const blockSize = 512 << 10

func block(fill byte) []byte {
	return bytes.Repeat([]byte{fill}, blockSize)
}

func digest(data []byte) *string {
	sum := sha256.Sum256(data)
	return aws.String(base64.StdEncoding.EncodeToString(sum[:]))
}

// A snapshot that is put together from blocks, a changed one on top of it, and what is read back of both.
func direct(ctx context.Context, settings aws.Config) error {
	client, instances := ebs.NewFromConfig(settings), ec2.NewFromConfig(settings)
	first, err := upload(ctx, client, instances, nil, map[int32][]byte{0: block(1), 7: block(2)})
	if err != nil {
		return err
	}
	second, err := upload(ctx, client, instances, &first, map[int32][]byte{7: block(3)})
	if err != nil {
		return err
	}
	listed := 0
	pages := ebs.NewListSnapshotBlocksPaginator(client, &ebs.ListSnapshotBlocksInput{SnapshotId: &second})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, one := range page.Blocks {
			if err := compare(ctx, client, second, one, map[int32][]byte{0: block(1), 7: block(3)}); err != nil {
				return err
			}
			listed++
		}
	}
	changed, err := client.ListChangedBlocks(ctx, &ebs.ListChangedBlocksInput{
		FirstSnapshotId: &first, SecondSnapshotId: &second,
	})
	if err != nil {
		return err
	}
	_, err = client.GetSnapshotBlock(ctx, &ebs.GetSnapshotBlockInput{
		SnapshotId: &first, BlockIndex: aws.Int32(0), BlockToken: aws.String("none"),
	})
	if err := expect(err, "ValidationException"); err != nil {
		return err
	}
	fmt.Printf("%d blocks, %d changed\n", listed, len(changed.ChangedBlocks))
	return nil
}

func upload(
	ctx context.Context, client *ebs.Client, instances *ec2.Client, parent *string, blocks map[int32][]byte,
) (string, error) {
	started, err := client.StartSnapshot(ctx, &ebs.StartSnapshotInput{
		VolumeSize: aws.Int64(1), ParentSnapshotId: parent, Timeout: aws.Int32(10),
	})
	if err != nil {
		return "", err
	}
	for index, data := range blocks {
		if _, err := client.PutSnapshotBlock(ctx, &ebs.PutSnapshotBlockInput{
			SnapshotId: started.SnapshotId, BlockIndex: &index, BlockData: bytes.NewReader(data),
			DataLength: aws.Int32(blockSize), Checksum: digest(data), ChecksumAlgorithm: types.ChecksumAlgorithmChecksumAlgorithmSha256,
		}); err != nil {
			return "", err
		}
	}
	if _, err := client.CompleteSnapshot(ctx, &ebs.CompleteSnapshotInput{
		SnapshotId: started.SnapshotId, ChangedBlocksCount: aws.Int32(int32(len(blocks))),
	}); err != nil {
		return "", err
	}
	snapshots := &ec2.DescribeSnapshotsInput{SnapshotIds: []string{*started.SnapshotId}}
	return *started.SnapshotId, ec2.NewSnapshotCompletedWaiter(instances).Wait(ctx, snapshots, wait)
}

func compare(ctx context.Context, client *ebs.Client, snapshot string, one types.Block, wanted map[int32][]byte) error {
	got, err := client.GetSnapshotBlock(ctx, &ebs.GetSnapshotBlockInput{
		SnapshotId: &snapshot, BlockIndex: one.BlockIndex, BlockToken: one.BlockToken,
	})
	if err != nil {
		return err
	}
	defer got.BlockData.Close()
	data, err := io.ReadAll(got.BlockData)
	if err != nil || !bytes.Equal(data, wanted[*one.BlockIndex]) || *got.Checksum != *digest(data) {
		return fmt.Errorf("block %d: %d bytes, %v", *one.BlockIndex, len(data), err)
	}
	return nil
}
