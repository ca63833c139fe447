//! The words of sysbench and of MySQL for on and off.

use ebbtide_captured::client_defaults::switch;

/// Reads an option that is on or off.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    switch(text).ok_or_else(|| "use on or off".into())
}
