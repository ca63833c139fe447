//! What udev knows of a block device: the properties in `/run/udev/data/bMAJOR:MINOR` (udevadm(8)).

/// The properties of a device that are shown. Empty texts where udev has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UdevProperties {
    /// Where it is connected (`ID_PATH`).
    pub path: String,
    /// Its World Wide Name (`ID_WWN`).
    pub wwn: String,
    /// Its model (`ID_MODEL`).
    pub model: String,
    /// Its serial number: that of SCSI, the short one, or the long one, whichever there is first.
    pub serial: String,
    /// The revision of its firmware (`ID_REVISION`).
    pub revision: String,
    /// The type of the file system on it (`ID_FS_TYPE`).
    pub fs_type: String,
    /// What the file system is for (`ID_FS_USAGE`).
    pub fs_usage: String,
    /// The UUID of the file system (`ID_FS_UUID`).
    pub fs_uuid: String,
    /// The version of the file system (`ID_FS_VERSION`).
    pub fs_version: String,
    /// The name of a mapped device (`DM_NAME`).
    pub dm_name: String,
    /// The UUID of a mapped device (`DM_UUID`).
    pub dm_uuid: String,
    /// The volume group of LVM (`DM_VG_NAME`).
    pub dm_vg_name: String,
    /// The logical volume of LVM (`DM_LV_NAME`).
    pub dm_lv_name: String,
    /// The layer of a logical volume (`DM_LV_LAYER`).
    pub dm_lv_layer: String,
    /// Whether it is an ATA disk (`ID_ATA`).
    pub is_ata: bool,
    /// Whether an ATA disk has a write cache (`ID_ATA_WRITE_CACHE`).
    pub ata_write_cache: Option<u64>,
    /// Whether that is enabled (`ID_ATA_WRITE_CACHE_ENABLED`).
    pub ata_write_cache_enabled: Option<u64>,
    /// Rotations a minute of an ATA disk, 0 for a solid one (`ID_ATA_ROTATION_RATE_RPM`).
    pub ata_rotation_rate_rpm: Option<u64>,
}

impl UdevProperties {
    /// Reads the text of a device. Lines other than `E:NAME=VALUE` are links, tags and times.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let value = |name: &str| {
            let properties = text.lines().filter_map(|line| line.strip_prefix("E:")?.split_once('='));
            // Of a name that is there twice the last one counts.
            properties.filter(|(found, _)| *found == name).next_back().map_or("", |(_, value)| value)
        };
        let owned = |name: &str| value(name).to_owned();
        let number = |name: &str| value(name).parse().ok();
        let serials = ["SCSI_IDENT_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL"];
        let serial = serials.into_iter().map(value).find(|serial| !serial.is_empty());
        Self {
            path: owned("ID_PATH"),
            wwn: owned("ID_WWN"),
            model: owned("ID_MODEL"),
            serial: serial.unwrap_or_default().to_owned(),
            revision: owned("ID_REVISION"),
            fs_type: owned("ID_FS_TYPE"),
            fs_usage: owned("ID_FS_USAGE"),
            fs_uuid: owned("ID_FS_UUID"),
            fs_version: owned("ID_FS_VERSION"),
            dm_name: owned("DM_NAME"),
            dm_uuid: owned("DM_UUID"),
            dm_vg_name: owned("DM_VG_NAME"),
            dm_lv_name: owned("DM_LV_NAME"),
            dm_lv_layer: owned("DM_LV_LAYER"),
            is_ata: !value("ID_ATA").is_empty(),
            ata_write_cache: number("ID_ATA_WRITE_CACHE"),
            ata_write_cache_enabled: number("ID_ATA_WRITE_CACHE_ENABLED"),
            ata_rotation_rate_rpm: number("ID_ATA_ROTATION_RATE_RPM"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an EBS volume with XFS.
    const EBS: &str = "S:disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0
I:5013412
E:ID_SERIAL_SHORT=vol0123456789abcdef0
E:ID_WWN=nvme.1d0f-766f6c30-416d617a6f6e-00000001
E:ID_MODEL=Amazon Elastic Block Store
E:ID_REVISION=2.0
E:ID_SERIAL=Amazon_Elastic_Block_Store_vol0123456789abcdef0
E:ID_PATH=pci-0000:00:1f.0-nvme-1
E:ID_FS_UUID=8f2b4d9c-7e1a-4a51-9d0e-0d5b2f0c11aa
E:ID_FS_TYPE=xfs
E:ID_FS_USAGE=filesystem
G:systemd
";

    #[test]
    fn the_properties_of_an_ebs_volume_are_read() {
        let read = UdevProperties::parse(EBS);
        assert_eq!(
            (read.serial.as_str(), read.model.as_str()),
            ("vol0123456789abcdef0", "Amazon Elastic Block Store")
        );
        assert_eq!(
            (read.fs_type.as_str(), read.fs_usage.as_str(), read.fs_version.as_str()),
            ("xfs", "filesystem", "")
        );
        assert!(!read.is_ata && read.ata_write_cache.is_none());
    }

    #[test]
    fn a_serial_of_scsi_goes_first_and_a_long_one_last() {
        let serial = |text| UdevProperties::parse(text).serial;
        assert_eq!(serial("E:ID_SERIAL=long\nE:SCSI_IDENT_SERIAL=scsi\nE:ID_SERIAL_SHORT=short\n"), "scsi");
        assert_eq!(serial("E:ID_SERIAL=long\nE:SCSI_IDENT_SERIAL=\nE:ID_SERIAL_SHORT=short\n"), "short");
        assert_eq!(serial("E:ID_SERIAL=long\n"), "long");
        assert_eq!(serial("ID_SERIAL=none\nE:ID_SERIAL\n"), "");
    }

    #[test]
    fn an_ata_disk_has_its_cache_and_its_rotations() {
        let read =
            UdevProperties::parse("E:ID_ATA=1\nE:ID_ATA_WRITE_CACHE=1\nE:ID_ATA_ROTATION_RATE_RPM=7200\n");
        assert!(read.is_ata);
        assert_eq!((read.ata_write_cache, read.ata_write_cache_enabled), (Some(1), None));
        assert_eq!(read.ata_rotation_rate_rpm, Some(7_200));
    }
}
