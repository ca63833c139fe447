//! Names of the devices under which an instance has its volumes.

/// The device name of the root volume, which a stand-in does not have until one is attached under it.
pub(super) const ROOT_DEVICE: &str = "/dev/xvda";

/// A device name without what differs between names of one device: `/dev/sdf`, `sdf` and `xvdf` are `f`.
pub(super) fn device_key(name: &str) -> Option<&str> {
    let bare = name.strip_prefix("/dev/").unwrap_or(name);
    let (key, longest) = match bare.strip_prefix("xvd") {
        Some(key) => (key, 2),
        None => (bare.strip_prefix("sd")?, 1),
    };
    let letters = key.bytes().take_while(u8::is_ascii_lowercase).count();
    let digits = &key[letters..];
    let valid = (1..=longest).contains(&letters)
        && digits.len() <= 2
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    valid.then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_device_have_one_key() {
        for name in ["/dev/sdf", "sdf", "/dev/xvdf", "xvdf"] {
            assert_eq!(device_key(name), Some("f"), "{name}");
        }
        assert_eq!(device_key("/dev/sda1"), Some("a1"));
        assert_eq!(device_key("/dev/xvdba"), Some("ba"));
        for name in ["", "/dev/", "/dev/sd", "/dev/nvme1n1", "/dev/sdF", "/dev/sdaa", "/dev/xvdaaa", "sdf-1"]
        {
            assert_eq!(device_key(name), None, "{name}");
        }
    }
}
