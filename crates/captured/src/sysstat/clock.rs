//! Dates and times as sysstat prints them: `%x %X` of the locale, an ISO time, or seconds since 1970.
//!
//! A text is divided into numbers and words, so no list of formats is needed. `05/06/26` has several readings: which one is
//! right is decided by the sequence of all dates ([`super::timeline`]).

use jiff::civil::Date;

use crate::offset;

/// Seconds of a day.
pub(crate) const DAY: f64 = 86_400.0;

/// A time that a report was printed with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stamp {
    /// As it was printed.
    pub(crate) text: String,
    pub(crate) day: Day,
    /// Second of the day, 0 to 86,400; of [`Day::Epoch`] seconds since 1970.
    pub(crate) second: f64,
    /// Whether the clock has 12 hours, with a word for the half of the day.
    pub(crate) twelve_hours: bool,
}

/// A day, as far as one text tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Day {
    /// The text is seconds since 1970 (`iostat -U`, `sadf -U`).
    Epoch,
    /// Days since 1970.
    Known(i64),
    /// Three numbers, whose order the text alone does not tell.
    Numbers([Number; 3]),
    /// A date with a month that is not in the table: it changes with each day.
    Named(String),
    /// A time of day alone.
    None,
}

/// A number with its digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    value: i64,
    digits: usize,
}

/// The order of the numbers of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// 31/12/26, as most of the world writes it.
    DayMonthYear,
    /// 12/31/26, as the United States and the locale C write it.
    MonthDayYear,
    /// 26/12/31, with two digits of the year.
    YearMonthDay,
}

impl Order {
    /// All orders.
    pub(super) const ALL: [Self; 3] = [Self::DayMonthYear, Self::MonthDayYear, Self::YearMonthDay];
}

impl Stamp {
    /// Its day in days since 1970 with this order; None where the numbers are no date in it, or no numbers.
    pub(crate) fn days(&self, order: Order) -> Option<i64> {
        match &self.day {
            Day::Known(days) => Some(*days),
            Day::Numbers(numbers) => days(*numbers, order),
            Day::Epoch | Day::Named(_) | Day::None => None,
        }
    }

    /// The order that is taken where no sequence of dates decides, and the clock has 12 hours or 24. Intervals do not depend on
    /// it.
    ///
    /// glibc's locales with a 12 hour clock and numbers write the month first most often (en_US), as the locale C does with
    /// two digits of the year. The others with four digits, dots or dashes write the day first.
    pub(super) fn likely_order(&self, twelve_hours: bool) -> Order {
        match &self.day {
            Day::Numbers(numbers) => {
                let slashes = self.text.contains('/');
                if slashes && (twelve_hours || numbers[2].digits <= 2) {
                    Order::MonthDayYear
                } else {
                    Order::DayMonthYear
                }
            }
            _ => Order::DayMonthYear,
        }
    }
}

/// The days since 1970 of three numbers in this order; None where they are no date.
fn days(numbers: [Number; 3], order: Order) -> Option<i64> {
    let [first, second, third] = numbers;
    let (year, month, day) = match order {
        Order::DayMonthYear => (third, second, first),
        Order::MonthDayYear => (third, first, second),
        Order::YearMonthDay => (first, second, third),
    };
    civil(year, month.value, day.value)
}

fn civil(year: Number, month: i64, day: i64) -> Option<i64> {
    let year = match (year.digits, year.value) {
        (..=2, value) => 2_000 + value,
        // The Buddhist calendar of Thailand.
        (_, value @ 2_400..) => value - 543,
        (_, value) => value,
    };
    let date =
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let since = date.since(Date::constant(1970, 1, 1)).ok()?;
    Some(i64::from(since.get_days()))
}

/// Zeros of scripts that have digits of their own, and that glibc's locales use.
const ZEROS: [u32; 14] = [
    0x0660, 0x06f0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0e50, 0x1040, 0x17e0,
    0xff10,
];

/// The digit of any script as one of ASCII.
fn plain_digit(letter: char) -> char {
    let code = u32::from(letter);
    let zero = ZEROS.into_iter().find(|zero| (*zero..*zero + 10).contains(&code));
    zero.and_then(|zero| char::from_digit(code - zero, 10)).unwrap_or(letter)
}

/// A number, or a word with whether it is glued to the number before it.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Number),
    Word { text: String, glued: bool },
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = text;
    let mut after_number = false;
    while let Some(first) = rest.chars().next() {
        let is_digit = |letter: char| letter.is_ascii_digit();
        if is_digit(first) {
            let length = rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len());
            if let Ok(value) = rest[..length].parse() {
                tokens.push(Token::Number(Number { value, digits: length }));
            }
            (rest, after_number) = (&rest[length..], true);
        } else if first.is_whitespace() || (first.is_ascii() && !first.is_ascii_alphabetic()) {
            (rest, after_number) = (&rest[first.len_utf8()..], false);
        } else {
            let ends =
                |letter: char| letter.is_ascii_digit() || letter.is_whitespace() || ",:/".contains(letter);
            let length = rest.find(ends).unwrap_or(rest.len());
            tokens.push(Token::Word { text: rest[..length].to_owned(), glued: after_number });
            (rest, after_number) = (&rest[length..], false);
        }
    }
    tokens
}

/// Words for the time before noon in glibc's locales whose `%X` has a 12 hour clock (`am_pm`), in small letters, with blanks between them.
const BEFORE_NOON: &str = "am a.m. an n.u. pd purvahan wd asubuhi biknait hengihengi saaku soodo subaxnimo \
    téng-po͘ πμ دوپھربرونھ ص پن पूर्वाह्न फुं. बिहिनियाँ म.पू. सञं এ.ম. পূর্বাহ্ণ \
    পূৰ্ব্বাহ্ন ਸਵੇਰੇ સવારે காலை ఉ. ಕಾಂಡೆ ಪೂರ್ವಾಹ್ನ രാവിലെ ဂယး နံနက် ပွတ်းၼႂ် ማለዶ ጡዋት \
    ጽባሕ ꮜꮎꮄ 上午 午前 오전 上晝 頂晡";
/// Those for the time after noon.
const AFTER_NOON: &str = "pm p.m. ew n.h. md aparaahna wb alasiri apinun efiafi carra hawwaro galabnimo ē-po͘ \
    μμ دوپھرپتھ م دن अपराह्न बेलासे. मंझनियाँ म.नं. सबेर প.ম. অপরাহ্ণ অপৰাহ্ন ਸ਼ਾਮ સાંજે \
    மாலை సా. ಬಯ್ಯ ಅಪರಾಹ್ನ വൈകു တ္ၚဲစေၚ် ညနေ ဝၢႆးဝၼ်း ቃማ ከሰዓት ምሴት ꮢꭿᏹꭲꮧꮲ 下午 午後 오후 下晝 下晡";

/// Whether a word names the second half of the day; None for a word of another kind.
fn second_half(word: &str) -> Option<bool> {
    let word = word.to_lowercase();
    let is_in = |words: &str| words.split(' ').any(|own| own == word);
    match (is_in(BEFORE_NOON), is_in(AFTER_NOON)) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        (false, false) => None,
    }
}

/// Whether a word beside a time says nothing of it: units of hours, minutes and seconds, weekdays of Chinese, and zones.
fn says_nothing(word: &str) -> bool {
    const UNITS: [&str; 11] = ["时", "時", "分", "秒", "시", "분", "초", "h", "T", "kl", "kl."];
    let zone = word.len() <= 5 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    UNITS.contains(&word) || zone || ["星期", "週", "周", "(週"].iter().any(|start| word.starts_with(start))
}

/// First letters of months in locales that print words.
const MONTHS: [&[&str]; 12] = [
    &["jan"],
    &["feb"],
    &["mar", "mac"],
    &["apr"],
    &["may", "mai", "maí", "mei"],
    &["jun", "jún"],
    &["jul", "júl"],
    &["aug", "ágú", "ogo"],
    &["sep"],
    &["oct", "okt"],
    &["nov", "nóv"],
    &["dec", "des", "dis"],
];

fn month(word: &str) -> Option<i64> {
    let word = word.to_lowercase();
    let place = MONTHS.iter().position(|starts| starts.iter().any(|start| word.starts_with(start)))?;
    i64::try_from(place + 1).ok()
}

/// Reads the time of a report; None in a text that is none, or is not understood.
pub(crate) fn stamp(text: &str) -> Option<Stamp> {
    let text = text.trim();
    let plain: String = text.chars().map(plain_digit).collect();
    if (9..=12).contains(&plain.len()) && plain.bytes().all(|byte| byte.is_ascii_digit()) {
        let second = plain.parse().ok()?;
        return Some(Stamp { text: text.into(), day: Day::Epoch, second, twelve_hours: false });
    }
    let (body, offset_s) = offset::split(&plain);
    let tokens = tokens(body);
    let numbers = tokens.iter().enumerate().filter_map(|(place, token)| match token {
        Token::Number(number) => Some((place, *number)),
        Token::Word { .. } => None,
    });
    let numbers: Vec<(usize, Number)> = numbers.collect();
    let dated = numbers.len().checked_sub(3)?;
    if !matches!(dated, 0 | 2 | 3) {
        return None;
    }
    let last_of_date = numbers[..dated].last().map(|(place, _)| *place);
    let from = last_of_date.map_or(0, |place| place + 1);
    let (second, twelve_hours) = time_of_day(&numbers[dated..], &tokens[from..], last_of_date.is_some())?;
    let date = &tokens[..from];
    let values: Vec<Number> = numbers[..dated].iter().map(|(_, number)| *number).collect();
    let day = day(&values, date, body)?;
    let (day, second) = match (offset_s, day) {
        // With the difference to UTC a time is exact, over a change of the clock too.
        (Some(offset), Day::Known(days)) => (Day::Epoch, days as f64 * DAY + second - f64::from(offset)),
        (_, day) => (day, second),
    };
    Some(Stamp { text: text.into(), day, second, twelve_hours })
}

/// The day of a date alone, such as that of sysstat's first line.
pub(crate) fn date(text: &str) -> Option<Stamp> {
    let plain: String = text.trim().chars().map(plain_digit).collect();
    let tokens = tokens(&plain);
    let values = tokens.iter().filter_map(|token| match token {
        Token::Number(number) => Some(*number),
        Token::Word { .. } => None,
    });
    let values: Vec<Number> = values.collect();
    let day = day(&values, &tokens, &plain).filter(|day| *day != Day::None)?;
    Some(Stamp { text: text.trim().into(), day, second: 0.0, twelve_hours: false })
}

/// The day that the numbers and words of a date tell.
fn day(values: &[Number], tokens: &[Token], body: &str) -> Option<Day> {
    match values {
        [] => Some(Day::None),
        [year, month, day] if year.digits == 4 => civil(*year, month.value, day.value).map(Day::Known),
        [first, second, third] => Some(Day::Numbers([*first, *second, *third])),
        [first, second] => {
            let words = tokens.iter().filter_map(|token| match token {
                Token::Word { text, .. } => Some(text.as_str()),
                Token::Number(_) => None,
            });
            let (day, year) = if first.digits == 4 { (second, first) } else { (first, second) };
            let mut months = words.filter_map(month);
            let known = months.next().and_then(|month| civil(*year, month, day.value));
            let named = || {
                let end = body.find(':').unwrap_or(body.len());
                Day::Named(
                    body[..end].trim_end_matches(|letter: char| letter.is_ascii_digit()).trim().to_owned(),
                )
            };
            Some(known.map_or_else(named, Day::Known))
        }
        _ => None,
    }
}

/// The second of the day of three numbers, and whether a word tells the half of the day.
fn time_of_day(numbers: &[(usize, Number)], tokens: &[Token], after_date: bool) -> Option<(f64, bool)> {
    let [(_, hour), (_, minute), (_, second)] = numbers else { return None };
    if hour.value > 24 || minute.value > 59 || second.value > 60 || hour.digits > 2 || second.digits > 2 {
        return None;
    }
    let mut half = None;
    let mut begun = false;
    for (place, token) in tokens.iter().enumerate() {
        let Token::Word { text, glued } = token else {
            begun = true;
            continue;
        };
        let text = text.trim_end_matches(':');
        match second_half(text) {
            Some(second) => half = Some(second),
            // `Time: 11:00:00 PM` of sysstat 8, in any language.
            None if !begun && !after_date => {}
            // What ends a date, as 日.
            None if !begun && place == 0 && *glued => {}
            None if says_nothing(text) => {}
            None => return None,
        }
    }
    let hours = match half {
        Some(_) if hour.value > 12 => return None,
        Some(false) => hour.value % 12,
        Some(true) => hour.value % 12 + 12,
        None => hour.value,
    };
    Some(((hours * 3_600 + minute.value * 60 + second.value) as f64, half.is_some()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by a panic

    use super::*;

    fn read(text: &str, order: Order) -> Option<(i64, f64)> {
        let stamp = stamp(text)?;
        Some((stamp.days(order)?, stamp.second))
    }

    /// 5 January 2026, 09:08:07 and 21:08:07, as glibc 2.36 prints `%x %X` in locales with numbers.
    #[test]
    fn dates_of_glibcs_locales_are_read() {
        const DAYS: i64 = 20_458;
        let forms = [
            (Order::DayMonthYear, "05/01/26 09:08:07"),
            (Order::DayMonthYear, "05/01/2026 09:08:07"),
            (Order::DayMonthYear, "05.01.2026 09:08:07"),
            (Order::DayMonthYear, "5.1.2026 09:08:07"),
            (Order::DayMonthYear, " 5.01.2026  9:08:07"),
            (Order::DayMonthYear, "05. 01. 26 09:08:07"),
            (Order::DayMonthYear, "05.01.2026. 09:08:07"),
            (Order::DayMonthYear, "05-01-2026 09:08:07"),
            (Order::DayMonthYear, "05-01-26 09:08:07"),
            (Order::DayMonthYear, "05.01.2026 09.08.07"),
            (Order::DayMonthYear, "05/01/2569 09:08:07"),
            (Order::DayMonthYear, "5/1/26 09:08:07 पूर्वाह्न UTC"),
            (Order::DayMonthYear, "5/1/26 காலை 09:08:07 UTC"),
            (Order::DayMonthYear, "05/01/26 09:08:07 AM UTC"),
            (Order::DayMonthYear, "05/01/2026 09:08:07 πμ"),
            (Order::DayMonthYear, "05/01/2026 09:08:07 asubuhi"),
            (Order::MonthDayYear, "01/05/2026 09:08:07 AM"),
            (Order::MonthDayYear, "01/05/26 09:08:07"),
            (Order::YearMonthDay, "26/1/5 09:08:07"),
            (Order::YearMonthDay, "۲۶/۰۱/۰۵ ۰۹:۰۸:۰۷"),
            (Order::DayMonthYear, "2026-01-05 09:08:07"),
            (Order::DayMonthYear, "2026-01-05 09:08:07 AM"),
            (Order::DayMonthYear, "2026.01.05. 09:08:07"),
            (Order::DayMonthYear, "2026年01月05日 09时08分07秒"),
            (Order::DayMonthYear, "2026年01月05日 09時08分07秒"),
            (Order::DayMonthYear, "2026年01月05日 星期一 上午 09時08分07秒 UTC"),
            (Order::DayMonthYear, "2026년 01월 05일 09시 08분 07초"),
            (Order::DayMonthYear, "Monday, January 05, 2026 09:08:07 AM UTC"),
            (Order::DayMonthYear, "Monday, 05 January, 2026 09:08:07 AM UTC"),
            (Order::DayMonthYear, "mán  5.jan 2026 09:08:07"),
            (Order::DayMonthYear, "Isnin 05 Jan 2026 09:08:07  UTC"),
        ];
        for (order, text) in forms {
            assert_eq!(read(text, order), Some((DAYS, 32_887.0)), "{text}");
        }
        for text in [
            "01/05/2026 09:08:07 PM",
            "5/1/26 09:08:07 अपराह्न UTC",
            "2026年01月05日 星期一 下午 09時08分07秒 UTC",
        ] {
            assert_eq!(stamp(text).map(|stamp| stamp.second), Some(76_087.0), "{text}");
        }
        assert_eq!(stamp("12:00:01 AM").map(|stamp| stamp.second), Some(1.0));
        assert_eq!(stamp("Heure: 12:00:01 PM").map(|stamp| stamp.second), Some(43_201.0));
        let exact = 1_767_604_087.0;
        for text in
            ["2026-01-05T10:08:07+0100", "2026-01-05T09:08:07Z", "2026-01-05T04:08:07-05:00", "1767604087"]
        {
            let stamp = stamp(text).unwrap();
            assert_eq!((stamp.day, stamp.second), (Day::Epoch, exact), "{text}");
        }
        let arabic = stamp("الإثنين  5 يناير 2026  9:08:07").unwrap();
        assert!(matches!(arabic.day, Day::Named(_)) && arabic.second == 32_887.0, "{arabic:?}");
    }

    #[test]
    fn a_text_that_is_no_time_or_has_an_unknown_word_for_the_half_of_the_day_is_not_read() {
        for text in [
            "",
            "hello",
            "05. jan. 2026 kl. 09.08 +0000",
            "05/01/26 09:08:07 foo",
            "1 2 3 4 5 6 7",
            "05/01/26 25:08:07",
            "13:00:00 PM",
        ] {
            assert_eq!(stamp(text), None, "{text}");
        }
        assert_eq!(days([Number { value: 31, digits: 2 }; 3], Order::DayMonthYear), None);
    }
}
