//! The public documents whose experiments are repeated.

use serde::{Deserialize, Serialize};

/// A public document whose experiments are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Document {
    /// The AWS whitepaper on MySQL on EC2 with EBS.
    Whitepaper,
    /// Percona's article on gp2 bursts.
    BurstArticle,
    /// The AWS article on RDS Optimized Writes.
    OptimizedWrites,
    /// Samsung's paper on MySQL and SSDs.
    SsdPaper,
    /// The study of the binary log on Aurora MySQL.
    AuroraBinlog,
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its name in experiment files, and that of its page.
    pub key: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Who wrote it, where and when.
    pub by: &'static str,
}

impl Document {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Whitepaper, Self::BurstArticle, Self::OptimizedWrites, Self::SsdPaper, Self::AuroraBinlog];

    /// What it is.
    #[must_use]
    pub const fn about(self) -> About {
        match self {
            Self::Whitepaper => About {
                key: "whitepaper",
                title: "Optimizing MySQL Running on Amazon EC2 Using Amazon EBS",
                by: "AWS whitepaper, November 2017, updated December 2021",
            },
            Self::BurstArticle => About {
                key: "burst-article",
                title: "Why Use Provisioned IOPS Volumes for AWS Databases?",
                by: "Peter Zaitsev, Percona, June 2016",
            },
            Self::OptimizedWrites => About {
                key: "optimized-writes",
                title: "Improve application performance with Amazon RDS Optimized Writes",
                by: "AWS Database Blog, 2022, with the user guides of RDS and EC2 that it rests on",
            },
            Self::SsdPaper => About {
                key: "ssd-paper",
                title: "Best Practices for MySQL with SSDs",
                by: "Balakrishnan, Choi, Lagrange and Smith, Samsung",
            },
            Self::AuroraBinlog => About {
                key: "aurora-binlog",
                title: "The binary log off and on, on Aurora MySQL",
                by: "dshimizu, December 2023, with the Aurora user guide on the enhanced binary log",
            },
        }
    }

    /// Its name in experiment files.
    #[must_use]
    pub const fn key(self) -> &'static str {
        self.about().key
    }

    /// The document of this name.
    #[must_use]
    pub fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|document| document.key() == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_found_by_the_name_that_it_has() {
        for document in Document::ALL {
            assert_eq!(Document::parse(document.key()), Some(document));
        }
        assert_eq!(Document::parse("white-paper"), None);
    }
}
