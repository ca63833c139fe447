INSERT INTO series (owner, region, volume, instance, latest, latest_burst, latest_provisioned, latest_checked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (owner, region, volume, instance) DO UPDATE SET
    latest = max(latest, excluded.latest),
    latest_burst = max(latest_burst, excluded.latest_burst),
    latest_provisioned = max(latest_provisioned, excluded.latest_provisioned),
    latest_checked = max(latest_checked, excluded.latest_checked)
RETURNING id
