//! Where the facts of the checks come from.

use crate::finding::Source;

/// MySQL's manual, InnoDB startup options.
pub(super) const MYSQL_INNODB: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html";
/// MySQL's manual, options of the binary log.
pub(super) const MYSQL_BINLOG: &str =
    "https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html";
/// MySQL's manual, options of a replica.
pub(super) const MYSQL_REPLICA: &str =
    "https://dev.mysql.com/doc/refman/8.4/en/replication-options-replica.html";
/// MySQL's manual, the redo log.
pub(super) const MYSQL_REDO: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-redo-log.html";
/// MySQL's manual, the buffer pool.
pub(super) const MYSQL_POOL: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-buffer-pool-resize.html";
/// MariaDB's manual, InnoDB system variables.
pub(super) const MARIADB_INNODB: &str =
    "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables";
/// MariaDB's manual, variables of replication and of the binary log.
pub(super) const MARIADB_BINLOG: &str = "https://mariadb.com/docs/server/ha-and-performance/standard-replication/replication-and-binary-log-system-variables";
/// AWS's whitepaper on MySQL on EC2 with EBS.
pub(super) const WHITEPAPER: &str =
    "https://docs.aws.amazon.com/whitepapers/latest/optimizing-mysql-on-ec2-using-amazon-ebs/";
/// AWS's pages of volume types.
pub(super) const EBS_TYPES: &str = "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html";
/// AWS's page of gp2 and gp3.
pub(super) const EBS_GP: &str = "https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html";
/// AWS's page of instances' limits.
pub(super) const EBS_INSTANCE: &str = "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-optimized.html";
/// AWS's page of NVMe time-outs.
pub(super) const EBS_NVME: &str =
    "https://docs.aws.amazon.com/ebs/latest/userguide/timeout-nvme-ebs-volumes.html";
/// The kernel's pages of block queues.
pub(super) const KERNEL_BLOCK: &str = "https://docs.kernel.org/block/queue-sysfs.html";
/// The kernel's pages of memory.
pub(super) const KERNEL_VM: &str = "https://docs.kernel.org/admin-guide/sysctl/vm.html";
/// The manual page of mount options.
pub(super) const MOUNT: &str = "https://man7.org/linux/man-pages/man5/ext4.5.html";
/// Percona's article on gp2 bursts, as the published results have it.
pub(super) const PERCONA_RESULTS: &str = "https://github.com/Percona-Lab-results";
/// What this project measured.
pub(super) const OWN_CUTS: &str = "docs/crash.md";
/// The experiments of the lab. Their recorded results are in SPECIFICATION.md.
pub(super) const OWN_LAB: &str = "docs/experiments.md";

/// A source and its statement.
pub(super) const fn says(url: &'static str, says: &'static str) -> Source {
    Source { says, url }
}
