//! What holds for every experiment.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::support::read;

/// A file with axes of these sizes, every option of which changes something.
fn file(sizes: &[usize]) -> String {
    let mut text = String::new();
    for (axis, size) in sizes.iter().enumerate() {
        for option in 0..*size {
            // Options of the same name on several axes are allowed.
            text.push_str(&format!("[axes.axis{axis}.option{option}.load]\n"));
            let key = ["point_selects", "range_size", "index_updates", "order_ranges"][axis];
            text.push_str(&format!("{key} = {}\n", option + 1));
        }
    }
    text
}

proptest! {
    #[test]
    fn arms_are_the_product_of_the_options_and_all_differ_in_name(
        sizes in prop::collection::vec(1_usize..5, 0..4)
    ) {
        let experiment = read(&file(&sizes)).unwrap();
        prop_assert_eq!(experiment.arms.len(), sizes.iter().product::<usize>());
        let names: BTreeSet<_> = experiment.arms.iter().map(|arm| &arm.name).collect();
        prop_assert_eq!(names.len(), experiment.arms.len());
        let options: BTreeSet<_> = experiment.arms.iter().map(|arm| &arm.options).collect();
        prop_assert_eq!(options.len(), experiment.arms.len());
        // Each arm but those of the baseline is held against one that differs in the first axis alone.
        let first = sizes.first().copied().unwrap_or(1);
        prop_assert_eq!(experiment.comparisons.len(), experiment.arms.len() / first * (first - 1));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn no_sections_make_the_reader_panic(
        section in "(data|trial|load|volumes|settings|instance|warmup|batch|arms|axes|quick|compare|title)",
        key in "[a-z_.]{1,20}",
        value in "(-?[0-9]{1,20}|true|\"[a-z0-9:=%, ]{0,20}\"|\\[\\]|\\{\\}|1\\.5|1e400)",
    ) {
        let _ = read(&format!("[{section}]\n{key} = {value}\n"));
    }
}
