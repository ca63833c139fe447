//! Options that are durations: [`ebbtide_text::parse_duration`] reads all of them, here or as the parser of the option.

use std::time::Duration;

use ebbtide_text::parse_duration;
use ebbtide_volume::Nanos;

use crate::exit::Refusal;

/// Longest duration of an option of virtual time: ten years.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

/// The value of an option of virtual time.
pub(crate) fn virtual_time(option: &str, text: &str) -> anyhow::Result<Nanos> {
    match parse_duration(text) {
        Ok(time) if time <= LONGEST => Ok(time.into()),
        Ok(_) => Err(Refusal::usage(format!("{option} {text}: expected at most 3650d")).into()),
        Err(error) => Err(Refusal::usage(format!("{option}: {error}")).into()),
    }
}

/// How long a server is looked at: a second to a day.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    if allowed.contains(&interval) { Ok(interval) } else { Err("use 1s to 24h".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_looked_at_for_a_second_to_a_day() {
        assert_eq!(parse_interval("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(parse_interval("24h"), Ok(Duration::from_secs(86_400)));
        for text in ["999ms", "0s", "25h"] {
            assert_eq!(parse_interval(text).unwrap_err(), "use 1s to 24h", "{text}");
        }
        assert_eq!(parse_interval("90").unwrap_err(), "'90' has no unit: write it like 90s, 90ms or 90m");
    }

    #[test]
    fn a_virtual_time_has_a_unit_and_ends_after_ten_years() {
        assert_eq!(virtual_time("--for", "90s").unwrap(), Nanos::from_secs(90));
        assert_eq!(virtual_time("--for", "3650d").unwrap(), Nanos::from_secs(3_650 * 86_400));
        let refused = |text| virtual_time("--for", text).unwrap_err().to_string();
        assert_eq!(refused("3651d"), "--for 3651d: expected at most 3650d");
        assert_eq!(refused("90"), "--for: '90' has no unit: write it like 90s, 90ms or 90m");
    }
}
