INSERT OR REPLACE INTO minutes (
    series, minute, kind, span, read_ops, read_bytes, read_time, write_ops, write_bytes, write_time, consumed_ops, queue,
    queue_time, idle_time, volume_iops_exceeded, volume_throughput_exceeded, instance_iops_exceeded,
    instance_throughput_exceeded, credit_share, iops_rate, balance_io, balance_bytes
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)
