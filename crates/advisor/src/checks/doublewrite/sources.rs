//! Where the facts come from.

use crate::finding::Source;

/// What others report, the vendor's promises first.
pub(super) const SOURCES: [Source; 6] = [
    Source {
        says: "AWS for RDS: up to twice the write transactions",
        url: "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-optimized-writes.html",
    },
    Source {
        says: "AWS for EC2: up to 30% more transactions, up to 50% less write latency",
        url: "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/storage-twp.html",
    },
    Source {
        says: "Percona's raw results, MySQL 8.0, TPC-C on a local SSD: from 4% fewer transactions (data in \
               memory) to 34% more",
        url: "https://github.com/Percona-Lab-results/201805-sysbench-tpcc-mysql8",
    },
    Source {
        says: "AWS: up to 256 KiB in a row count as one operation on SSD volumes",
        url: "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-io-characteristics.html",
    },
    Source {
        says: "our lab, MariaDB 10.11.19, sysbench write-only. Where the volume's throughput is the limit: 44% more \
               transactions without the buffer (95%: 33% to 56%). Where its IOPS are: no difference seen",
        url: "docs/crash.md#optimized-writes",
    },
    Source {
        says: "our power cuts, MariaDB 10.11.19. Without the buffer, on storage that keeps 16 KiB whole: 0 of 3,063 \
               damaged pages of tables that do not grow (at most 0.12%, 95%). Where 4 KiB are torn, even with the buffer: 3 \
               of 1,147 left a table's first page damaged",
        url: "docs/crash.md",
    },
];
