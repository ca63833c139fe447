//! Screens of the terminal view, drawn on a buffer.
//!
//! `golden/` has each screen as text. `EBBTIDE_REWRITE=1 cargo test -p ebbtide-watch --test terminal` writes them again.

mod recorded;

use std::path::PathBuf;

use ebbtide_watch::terminal::{Key, TerminalState, draw};
use ebbtide_watch::view::View;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

const SIZES: [(u16, u16); 3] = [(80, 24), (60, 20), (120, 40)];
const SCREENS: [(char, &str); 7] = [
    ('1', "overview"),
    ('2', "server"),
    ('3', "storage"),
    ('4', "replication"),
    ('5', "history"),
    ('6', "alarms"),
    ('?', "help"),
];

/// A screen after these keys, with the graphs that it wants.
fn terminal(view: &View, keys: &[Key], color: bool, (columns, rows): (u16, u16)) -> Terminal<TestBackend> {
    let mut state = TerminalState::new(color);
    for key in keys {
        state.press(*key, view);
    }
    let graphs = state.wanted(view, columns).map(|(subject, range)| recorded::graphs(&subject, range));
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, view, &graphs.unwrap_or_default(), &state)).unwrap();
    terminal
}

/// Its lines, without blanks at their ends.
fn lines(terminal: &Terminal<TestBackend>) -> Vec<String> {
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(buffer.area().width));
    rows.map(|row| {
        let text: String = row.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_owned()
    })
    .collect()
}

fn screen(view: &View, keys: &[Key], size: (u16, u16)) -> Vec<String> {
    lines(&terminal(view, keys, false, size))
}

fn golden(name: &str, lines: &[String]) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/terminal/golden").join(format!("{name}.txt"));
    let drawn = format!("{}\n", lines.join("\n"));
    if std::env::var_os("EBBTIDE_REWRITE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder of golden files")).expect("it can be made");
        std::fs::write(&path, &drawn).expect("a golden file can be written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        drawn, kept,
        "{name} is drawn otherwise; look at it, and write it again with EBBTIDE_REWRITE=1\n{drawn}"
    );
}

#[test]
fn screens_are_drawn_as_they_were_looked_at() {
    let view = recorded::view();
    for (key, name) in SCREENS {
        for (columns, rows) in SIZES {
            // The graphs are those of an hour.
            let lines = screen(&view, &[Key::Char('-'), Key::Char(key)], (columns, rows));
            golden(&format!("{name}-{columns}x{rows}"), &lines);
        }
    }
}

#[test]
fn an_empty_view_says_so_on_each_screen() {
    for (key, name) in SCREENS {
        let lines = screen(&View::default(), &[Key::Char(key)], (80, 24));
        golden(&format!("empty-{name}"), &lines);
    }
}

#[test]
fn the_first_line_is_the_answer() {
    let view = recorded::view();
    let first = |keys: &[Key]| screen(&view, keys, (120, 40)).remove(0);
    for (key, answer) in [
        ('1', "2 alarms, the worst: data: credits-end:"),
        ('2', "shop (1 of 3): 1,234 statements/s"),
        ('3', "data: 300 of 300 IOPS, held by volume IOPS 42% of the time, credits end in 12 min"),
        ('4', "1 of 2 channels not running"),
        ('5', "shop, last 15 min: operations up to"),
        ('6', "2 alarms, the worst is critical: credits-end of data; 1 silenced or without data"),
        ('?', "help:"),
    ] {
        let line = first(&[Key::Char(key)]);
        assert!(line.starts_with(answer), "{key}: {line}");
        assert!(line.ends_with(" 14:04:42"), "the time of the user is at the right: {line}");
    }
    let down = first(&[Key::Char('2'), Key::Down, Key::Down]);
    assert!(down.starts_with("old (3 of 3) is not read: "), "{down}");
    let healthy = View { alarms: Vec::new(), servers: view.servers[..1].to_vec(), ..view.clone() };
    let line = screen(&healthy, &[], (80, 24)).remove(0);
    assert!(line.starts_with("nothing alarms: 1 server, 3 volumes"), "{line}");
    let begun = View { watched_s: Some(48.0), ..healthy };
    for key in ['1', '6'] {
        let line = screen(&begun, &[Key::Char(key)], (80, 24)).remove(0);
        assert!(line.starts_with("nothing alarms yet: watched for 48 s"), "{line}");
    }
}

#[test]
fn each_screen_fits_shows_its_keys_and_no_number_that_is_none() {
    for view in [recorded::view(), recorded::broken(), recorded::crowd(), View::default()] {
        for (key, name) in SCREENS {
            for size in SIZES {
                let lines = screen(&view, &[Key::Char(key)], size);
                let text = lines.join("\n");
                assert!(!text.contains("NaN") && !text.contains("inf"), "{name} at {size:?}:\n{text}");
                assert!(
                    lines[usize::from(size.1) - 1].ends_with("? help q quit"),
                    "{name} at {size:?}:\n{text}"
                );
                assert!(!lines[0].is_empty(), "{name} at {size:?}:\n{text}");
                let shown = lines[usize::from(size.1) - 1].contains(&format!("[{key} "));
                assert_eq!(shown, key != '?', "{name} at {size:?}:\n{text}");
            }
        }
    }
}

#[test]
fn figures_that_are_not_known_are_dashes_and_never_zeroes() {
    let mut view = recorded::view();
    view.servers = vec![recorded::unknown_server()];
    let lines = screen(&view, &[Key::Char('2')], (80, 24));
    let figures =
        lines.iter().filter(|line| line.contains("commits/s") || line.contains("time in log syncs"));
    let figures: Vec<&String> = figures.collect();
    assert!(!figures.is_empty());
    for line in figures {
        assert!(line.contains('-') && !line.contains(" 0"), "{line}");
    }
}

#[test]
fn the_selected_one_of_twenty_servers_is_in_sight() {
    let view = recorded::crowd();
    for size in SIZES {
        for place in [0_usize, 7, 19] {
            let keys = vec![Key::Down; place];
            let lines = screen(&view, &keys, size);
            let selected = lines.iter().find(|line| line.starts_with("> "));
            let name = format!("> server-{place:02}");
            assert!(selected.is_some_and(|line| line.starts_with(&name)), "{name}:\n{}", lines.join("\n"));
        }
    }
    golden("crowd", &screen(&view, &[Key::Up, Key::Up], (80, 24)));
}

#[test]
fn a_hostile_name_moves_no_cursor_and_a_wide_one_shifts_no_column() {
    let view = recorded::hostile();
    for (key, name) in SCREENS {
        for size in SIZES {
            let terminal = terminal(&view, &[Key::Char(key)], true, size);
            for cell in terminal.backend().buffer().content() {
                let symbol = cell.symbol();
                assert!(!symbol.chars().any(char::is_control), "{name} at {size:?}: {symbol:?}");
            }
        }
    }
    let rows = screen(&view, &[], (120, 40));
    let head = rows.iter().find(|row| row.contains("STMT/S")).unwrap();
    let end = head.find("STMT/S").unwrap() + "STMT/S".len();
    let terminal = terminal(&view, &[], false, (120, 40));
    let buffer = terminal.backend().buffer();
    let place = rows.iter().position(|row| row.contains("STMT/S")).unwrap();
    for row in place + 1..=place + 2 {
        let (column, row) = (u16::try_from(end).unwrap(), u16::try_from(row).unwrap());
        assert_ne!(buffer[(column - 1, row)].symbol(), " ", "the figure of row {row} ends below its head");
        assert_eq!(buffer[(column, row)].symbol(), " ");
    }
}

#[test]
fn without_colours_there_are_none() {
    let view = recorded::view();
    for (key, name) in SCREENS {
        let has_color = |color: bool| {
            let terminal = terminal(&view, &[Key::Char(key)], color, (80, 24));
            terminal
                .backend()
                .buffer()
                .content()
                .iter()
                .any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
        };
        assert!(!has_color(false), "{name}");
        assert_eq!(has_color(true), name != "help", "{name}");
    }
    let terminal = terminal(&view, &[], false, (80, 24));
    let bold =
        terminal.backend().buffer().content().iter().any(|cell| cell.modifier.contains(Modifier::BOLD));
    assert!(bold, "what alarms is bold without colours too");
}

#[test]
fn no_size_of_a_terminal_panics() {
    let view = recorded::view();
    for (key, _) in SCREENS {
        for columns in (0..130).step_by(13) {
            for rows in (0..30).step_by(3) {
                terminal(&view, &[Key::Char(key)], true, (columns, rows));
            }
        }
    }
    let line = screen(&view, &[], (29, 8)).remove(0);
    assert!(line.starts_with("29x8: too small"), "{line}");
}
