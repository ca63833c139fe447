package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// An alarm, its state, and a query with an expression. The SDK for Go speaks CBOR with CloudWatch.
func metrics(ctx context.Context, settings aws.Config) error {
	client := cloudwatch.NewFromConfig(settings)
	metric := &types.Metric{
		Namespace: aws.String("AWS/EBS"), MetricName: aws.String("VolumeReadOps"),
		Dimensions: []types.Dimension{{Name: aws.String("VolumeId"), Value: aws.String("vol-00000000000000001")}},
	}
	if _, err := client.PutMetricAlarm(ctx, &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String("idle"), Namespace: metric.Namespace, MetricName: metric.MetricName,
		Dimensions: metric.Dimensions, Statistic: types.StatisticSum, Period: aws.Int32(60),
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0.5), TreatMissingData: aws.String("breaching"),
		ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
	}); err != nil {
		return err
	}
	waiter := cloudwatch.NewAlarmExistsWaiter(client)
	alarms := &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{"idle"}}
	if err := waiter.Wait(ctx, alarms, wait); err != nil {
		return err
	}
	found, err := client.DescribeAlarms(ctx, alarms)
	if err != nil || *found.MetricAlarms[0].Threshold != 0.5 || *found.MetricAlarms[0].Period != 60 {
		return fmt.Errorf("alarm: %v, %v", found, err)
	}
	now := time.Now()
	data, err := client.GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-time.Hour)), EndTime: &now,
		MetricDataQueries: []types.MetricDataQuery{
			{Id: aws.String("r"), ReturnData: aws.Bool(false), MetricStat: &types.MetricStat{
				Metric: metric, Period: aws.Int32(60), Stat: aws.String("Sum"),
			}},
			{Id: aws.String("rate"), Expression: aws.String("r / PERIOD(r)")},
		},
	})
	if err != nil || len(data.MetricDataResults) != 1 || *data.MetricDataResults[0].Id != "rate" {
		return fmt.Errorf("data: %v, %v", data, err)
	}
	_, err = client.GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-time.Hour)), EndTime: &now,
		MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("e"), Expression: aws.String("SEARCH('', 'Sum', 60)")}},
	})
	if err := expect(err, "ValidationError"); err != nil {
		return err
	}
	if _, err := client.DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{"idle"}}); err != nil {
		return err
	}
	fmt.Println(data.MetricDataResults[0].StatusCode)
	return nil
}
