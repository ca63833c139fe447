//! The words of sysbench and of MySQL for on and off.

/// Reads an option that is on or off.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" | "yes" | "required" => Ok(true),
        "off" | "false" | "0" | "no" | "disabled" => Ok(false),
        _ => Err("use on or off".into()),
    }
}
