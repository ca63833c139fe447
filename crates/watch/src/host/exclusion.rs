//! What node_exporter leaves out by default (`diskstats_linux.go` and `filesystem_linux.go` of version 1.12.1), and network file systems.

/// Whether a device is left out: RAM disks, loop devices, floppy disks, and partitions of the usual names. The pattern is
/// `^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`.
pub(super) fn is_device_excluded(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() {
        return false;
    }
    let is_partition = ["hd", "sd", "vd", "xvd"]
        .iter()
        .any(|kind| matches!(stem.strip_prefix(kind).map(str::as_bytes), Some([b'a'..=b'z'])));
    matches!(stem, "ram" | "zram" | "loop" | "fd") || is_partition || is_nvme_partition(stem)
}

/// Whether a name without its last digits is that of an NVMe partition: `nvme\d+n\d+p`.
fn is_nvme_partition(stem: &str) -> bool {
    let numbers = stem.strip_prefix("nvme").and_then(|rest| rest.strip_suffix('p')?.split_once('n'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(controller, namespace)| is_number(controller) && is_number(namespace))
}

/// Whether a mount point is left out. The pattern is
/// `^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)`.
pub(super) fn is_mount_point_excluded(dir: &str) -> bool {
    let is_below =
        |parent: &str| dir.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let has_more = |parent: &str| dir.strip_prefix(parent).is_some_and(|rest| !rest.is_empty());
    ["/dev", "/proc", "/sys"].into_iter().any(is_below)
        || ["/run/credentials/", "/var/lib/docker/", "/var/lib/containers/storage/"].into_iter().any(has_more)
}

/// Types of file systems that are left out.
const EXCLUDED_TYPES: [&str; 25] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "erofs",
    "fusectl",
    "hugetlbfs",
    "iso9660",
    "mqueue",
    "nsfs",
    "overlay",
    "proc",
    "procfs",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tracefs",
];

/// Whether a type of file system is left out.
pub(super) fn is_type_excluded(fs_type: &str) -> bool {
    EXCLUDED_TYPES.contains(&fs_type)
}

/// Whether a file system is on the network, and waits for as long as its server does not answer. A server of files that a program
/// serves (FUSE) has the name of the program behind a dot.
pub(super) fn is_network(fs_type: &str) -> bool {
    let served = fs_type.strip_prefix("fuse.").unwrap_or(fs_type);
    matches!(
        served,
        "9p" | "afs"
            | "beegfs"
            | "ceph"
            | "ceph-fuse"
            | "cifs"
            | "coda"
            | "efs"
            | "gcsfuse"
            | "glusterfs"
            | "lustre"
            | "mountpoint-s3"
            | "ncpfs"
            | "nfs"
            | "nfs4"
            | "rclone"
            | "s3fs"
            | "smb3"
            | "smbfs"
            | "sshfs"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_left_out_as_the_pattern_of_node_exporter_says() {
        for name in
            ["ram0", "zram12", "loop7", "fd0", "hda1", "sdb12", "vda1", "xvdf1", "nvme0n1p1", "nvme10n2p128"]
        {
            assert!(is_device_excluded(name), "{name}");
        }
        let kept = [
            "sda",
            "sdaa1",
            "xvdba1",
            "vda",
            "nvme0n1",
            "nvme0c0n1",
            "nvme0n1p",
            "nvmen1p1",
            "nvme0np1",
            "dm-0",
            "md127",
            "mmcblk0p1",
            "sr0",
            "zloop1",
            "1",
            "",
            "sd1",
            "xvd1",
            "sdA1",
        ];
        for name in kept {
            assert!(!is_device_excluded(name), "{name}");
        }
    }

    #[test]
    fn mount_points_are_left_out_as_the_pattern_of_node_exporter_says() {
        for dir in
            ["/dev", "/dev/shm", "/proc/sys", "/sys", "/run/credentials/a", "/var/lib/docker/overlay2/x"]
        {
            assert!(is_mount_point_excluded(dir), "{dir}");
        }
        for dir in [
            "/",
            "/devices",
            "/run",
            "/run/credentials",
            "/run/lock",
            "/var/lib/docker",
            "/var/lib/mysql",
            "/mnt/proc",
        ] {
            assert!(!is_mount_point_excluded(dir), "{dir}");
        }
    }

    #[test]
    fn types_without_a_disk_are_left_out_and_network_ones_are_known() {
        assert!(is_type_excluded("overlay") && is_type_excluded("cgroup2") && !is_type_excluded("tmpfs"));
        assert!(EXCLUDED_TYPES.is_sorted());
        assert!(is_network("nfs4") && is_network("fuse.sshfs") && is_network("ceph"));
        assert!(!is_network("xfs") && !is_network("fuse") && !is_network("fuseblk"));
    }
}
