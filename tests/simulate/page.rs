//! The page with charts, in a real browser.

use crate::support::text;
use ebbtide_testing::browser::{browse, without_scripts};

#[test]
fn the_page_draws_its_charts_without_a_network() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("run.html");
    let printed = text(&[
        "--volume",
        "gp2:size=100GiB,credits=1%",
        "--volume",
        "gp3:size=100GiB",
        "--job",
        "rw=randread,bs=16k,iodepth=16,runtime=60",
        "--seed",
        "11",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert!(printed.contains(&format!("charts: {}", page.display())), "{printed}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.len() < 200_000, "{} bytes", html.len());
    let (_, plain) = without_scripts(&html);
    for part in [
        "gp2:size=100GiB,credits=1%: Credits ended after 20 s; from then on 300 IOPS",
        "Operations (IOPS)",
        "Lowest Mean Highest Last",
        "Credits left Credits ended Throttled Monthly",
        "after 20 s",
        "$10.00 a month: 100 GiB $10.00 (us-east-1, prices of",
        "Seed 11",
        "ebbtide simulate --volume",
    ] {
        assert!(plain.contains(part), "without JavaScript there is no '{part}': {plain}");
    }
    let Some((rendered, _)) = browse(&html) else { return };
    for title in ["Operations", "Throughput", "Latency", "Queue", "Burst credits of the volume"] {
        assert!(rendered.contains(&format!("<figcaption>{title}")), "no chart '{title}'");
    }
    assert_eq!(rendered.matches("<canvas").count(), 5, "a canvas for every chart");
    assert!(rendered.contains("Credits ended after 20 s; from then on 300 IOPS"), "the findings");
    assert!(rendered.contains("--seed 11") && rendered.contains("<dd>11</dd>"), "the seed and the command");
}
