//! Free space of file systems: df in any unit and language, and `findmnt -D`.

/// A line of df.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) device: String,
    pub(super) point: String,
    pub(super) size: u64,
    pub(super) free: u64,
    /// The free space as it is printed, where it is rounded, with the bytes by which it may be less.
    pub(super) rounded: Option<(String, u64)>,
}

/// Bytes of the units in df's heading: `1K-blocks`, `1B-blocks` of `df -B1`, `1kB-blocks` of `df -BkB`.
const UNITS: [(&str, u64); 10] = [
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];

/// The lines of df, or of `findmnt -D`; empty in another text.
pub(super) fn spaces(text: &str) -> Vec<Space> {
    let mut all = Vec::new();
    let mut heading = "";
    let mut device = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Without -P df ends the line behind a long name.
        if let [name] = fields[..] {
            device = Some(name);
            continue;
        }
        let is_rest = fields[0].bytes().all(|byte| byte.is_ascii_digit());
        let device = device.take().filter(|_| is_rest);
        match row(device.into_iter().chain(fields).collect(), heading) {
            // `df -i` counts inodes.
            Some(_) if heading.contains("Inode") || heading.contains("IUse") || heading.is_empty() => {}
            Some(space) => all.push(space),
            None => heading = line,
        }
    }
    all
}

/// A row: a device, a type perhaps, size, used and free space, a share, and a directory.
fn row(mut fields: Vec<&str>, heading: &str) -> Option<Space> {
    let of_findmnt = heading.trim_start().starts_with("SOURCE");
    let share = fields.iter().position(|field| is_share(field)).filter(|place| matches!(place, 4 | 5))?;
    let after = fields.split_off(share + 1);
    // The name of a directory may have blanks.
    let point = after.join(" ");
    let unit = if of_findmnt { None } else { block(heading) };
    let (size, _) = figure(fields[share - 3], unit)?;
    let (free, step) = figure(fields[share - 1], unit)?;
    let rounded = (step > 0).then(|| (fields[share - 1].to_owned(), step));
    point.starts_with('/').then(|| Space { device: fields[0].to_owned(), point, size, free, rounded })
}

/// Whether a field is the share that is used: `57%`.
fn is_share(field: &str) -> bool {
    field.strip_suffix('%').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Bytes of a block, as the heading of df has them in any language; None with `-h`, where each figure has a unit.
fn block(heading: &str) -> Option<u64> {
    heading
        .split_whitespace()
        .find_map(|word| {
            let end = word.find(|letter: char| !letter.is_ascii_digit())?;
            let (number, rest) = word.split_at(end);
            let number: u64 = number.parse().ok()?;
            let unit: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
            let known = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes);
            number.checked_mul(known.or_else(|| unit.is_empty().then_some(1))?)
        })
        .or_else(|| {
            // `blocs de 1K` has the unit at its end.
            heading.split_whitespace().any(|word| word == "1K").then_some(1 << 10)
        })
}

/// A figure, bytes, and by how much it is rounded up at most. `df -BG` writes the unit behind each number, too.
pub(super) fn figure(field: &str, block: Option<u64>) -> Option<(u64, u64)> {
    let end = field.find(|letter: char| letter.is_alphabetic()).unwrap_or(field.len());
    let (number, unit) = field.split_at(end);
    if let Some(block) = block {
        let bytes = number.parse::<u64>().ok()?.checked_mul(block)?;
        // Blocks of 1 KiB, and bytes, are as exact as a file system's own.
        return Some((bytes, if block > 1 << 12 { block } else { 0 }));
    }
    // `df -h`, and `df -H`, which alone has a small k.
    let power = "KMGTPE"
        .find(&unit.chars().next().map_or(String::new(), |letter| letter.to_ascii_uppercase().to_string()))?;
    let scale = match unit {
        "" => 1,
        "k" => 1_000,
        _ => 1_u64 << (10 * (u32::try_from(power).ok()? + 1)),
    };
    let number = number.replace(',', ".");
    let value: f64 = number.parse().ok()?;
    let step = if number.contains('.') { scale as f64 / 10.0 } else { scale as f64 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    (value >= 0.0).then_some(((value * scale as f64) as u64, if scale > 1 { step as u64 } else { 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// Point, size and free space of the only row.
    fn one(text: &str) -> (String, u64, u64, bool) {
        let all = spaces(text);
        let [space] = &all[..] else { panic!("{text}: {all:?}") };
        assert!(space.device.starts_with("/dev/"), "{space:?}");
        (space.point.clone(), space.size, space.free, space.rounded.is_some())
    }

    #[test]
    fn df_is_read_in_every_unit_and_language() {
        let exact = [
            "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/nvme1n1 104857600 1 52428800 50% /var/lib/mysql\n",
            "Filesystem Type 1024-blocks Used Available Capacity Mounted on\n/dev/nvme1n1 xfs 104857600 1 52428800 50% /var/lib/mysql\n",
            "Filesystem 1B-blocks Used Available Use% Mounted on\n/dev/nvme1n1 107374182400 1 53687091200 50% /var/lib/mysql\n",
            "Dateisystem 1K-Blöcke Benutzt Verfügbar Verw% Eingehängt auf\n/dev/nvme1n1 104857600 1 52428800 50% /var/lib/mysql\n",
            "Sys. de fichiers blocs de 1K Utilisé Disponible Uti% Monté sur\n/dev/nvme1n1 104857600 1 52428800 50% /var/lib/mysql\n",
            "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/mapper/a_name_that_is_long\n    104857600 1 52428800 50% /var/lib/mysql\n",
        ];
        for text in exact {
            assert_eq!(one(text), ("/var/lib/mysql".into(), 100 * GIB, 50 * GIB, false), "{text}");
        }
        let rounded = [
            "Filesystem Size Used Avail Use% Mounted on\n/dev/nvme1n1 100G 50G 50G 50% /var/lib/mysql\n",
            "Filesystem Type Size Used Avail Use% Mounted on\n/dev/nvme1n1 xfs 100G 50G 50G 50% /var/lib/mysql\n",
            "Filesystem 1G-blocks Used Available Use% Mounted on\n/dev/nvme1n1 100G 50G 50G 50% /var/lib/mysql\n",
            "Dateisystem Größe Benutzt Verf. Verw% Eingehängt auf\n/dev/nvme1n1 100G 50G 50G 50% /var/lib/mysql\n",
            "SOURCE FSTYPE SIZE USED AVAIL USE% TARGET\n/dev/nvme1n1 xfs 100G 50G 50G 50% /var/lib/mysql\n",
        ];
        for text in rounded {
            assert_eq!(one(text), ("/var/lib/mysql".into(), 100 * GIB, 50 * GIB, true), "{text}");
        }
        let comma =
            "Dateisystem Größe Benutzt Verf. Verw% Eingehängt auf\n/dev/sdb 1,5T 1T 0,5T 67% /data dir\n";
        assert_eq!(one(comma), ("/data dir".into(), 1_649_267_441_664, 549_755_813_888, true));
        let steps = |text: &str| spaces(text)[0].rounded.clone().unwrap().1;
        assert_eq!(steps(rounded[0]), GIB);
        assert_eq!(steps(comma), 109_951_162_777);
        for other in [
            "",
            "/dev/nvme1n1 104857600 1 52428800 50% /var/lib/mysql\n",
            "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/nvme1n1 104857600 1 52428800 50% /var/lib/mysql\n",
            "a b\nc 1 2 3 4% x\n",
        ] {
            assert_eq!(spaces(other), [], "{other}");
        }
    }
}
