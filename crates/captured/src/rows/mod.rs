//! Rows that clients print as XML, HTML or JSON, as the text that they print with `\G`: every reader knows that.
//!
//! `mysql -X`, `-H`, MySQL Shell's `--json` and `--result-format`, `JSON_OBJECTAGG` and `JSON_ARRAYAGG` of a server's own tables, and the
//! exports of programs with windows.

mod json;
mod markup;

/// Rows as text, and whether the end of their document is missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) text: String,
    pub(super) is_cut: bool,
}

/// Reads the rows of a document; None where the text is none, or has no row.
pub(super) fn read(text: &str) -> Option<Rows> {
    let start = beginning(text)?;
    let rows = if text[start..].starts_with('<') {
        markup::read(&text[start..])
    } else {
        json::read(&text[start..])
    };
    Some(rows).filter(|rows| !rows.text.is_empty())
}

/// Lines before a document: the command that made it, and a client's heading.
const MOST_BEFORE: usize = 5;

/// Where a document begins. `\G` prints the name of a column before its value.
fn beginning(text: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n').take(MOST_BEFORE) {
        let indent = line.len() - line.trim_start().len();
        let bare = line.trim_start();
        if bare.starts_with(['{', '[', '<']) {
            return Some(start + indent);
        }
        if let Some(place) = [": {", ": [{"].iter().filter_map(|begin| line.find(begin)).min() {
            return Some(start + place + 2);
        }
        start += line.len();
    }
    None
}

impl Rows {
    /// What stands between two results.
    fn heading(&mut self) {
        self.text.push_str("*************************** 1. row ***************************\n");
    }

    /// A variable and its value.
    fn pair(&mut self, name: &str, value: &str) {
        self.text.push_str(&format!(
            "Variable_name: {}\n        Value: {}\n",
            one_line(name),
            one_line(value)
        ));
    }

    /// A row of other columns.
    fn row(&mut self, columns: &[(String, String)]) {
        self.heading();
        for (name, value) in columns {
            self.text.push_str(&format!("{}: {}\n", one_line(name), one_line(value)));
        }
    }

    /// A row: a variable, or other columns.
    fn record(&mut self, columns: &[(String, String)]) {
        match pair_of(columns) {
            Some((name, value)) => self.pair(name, value),
            None if !columns.is_empty() => self.row(columns),
            None => {}
        }
    }
}

/// A value of several lines is none of a variable that is read, and must not look like several.
fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
}

/// The variable and the value that columns of a row are.
fn pair_of(columns: &[(String, String)]) -> Option<(&str, &str)> {
    let named = |words: &[&str]| {
        let is_named = |name: &str| words.iter().any(|word| name.eq_ignore_ascii_case(word));
        columns.iter().find(|(name, _)| is_named(name)).map(|(_, value)| value.as_str())
    };
    // The parameters of a group of RDS have values as far as they are set.
    let name = named(&["variable_name", "parametername"])?;
    Some((name, named(&["value", "variable_value", "global_value", "parametervalue"])?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed;

    /// The variables that are read of a document.
    fn variables(document: &str) -> Vec<(String, String)> {
        let rows = read(document).unwrap_or_else(|| panic!("{document}"));
        let variables = printed::read(&rows.text).and_then(|printed| printed.variables);
        let variables = variables.unwrap_or_else(|| panic!("{document}: {}", rows.text));
        variables.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    const WANTED: [(&str, &str); 3] = [("datadir", "/d&a/"), ("sync_binlog", "0"), ("version", "8.0.36")];

    /// The variables, each between these texts.
    fn pairs(open: &str, middle: &str, close: &str) -> Vec<String> {
        WANTED.iter().map(|(name, value)| format!("{open}{name}{middle}{value}{close}")).collect()
    }

    fn in_markup() -> Vec<String> {
        let escaped = |text: String| text.replace('&', "&amp;");
        vec![
            escaped(format!(
                "<?xml version=\"1.0\"?>\n<resultset statement=\"show variables\">{}</resultset>",
                pairs(
                    "<row><field name=\"Variable_name\">",
                    "</field>\n<field name=\"Value\">",
                    "</field></row>\n"
                )
                .join("")
            )),
            escaped(format!(
                "<TABLE BORDER=1><TR><TH>Variable_name</TH><TH>Value</TH></TR>{}</TABLE>",
                pairs("<TR><TD>", "</TD><TD>", "</TD></TR>").join("")
            )),
            escaped(format!(
                "<!DOCTYPE html><html><head><meta charset=utf-8><style>a>b{{}}</style></head><body><br><table><tr><td>Variable_name<td>Value\n{}\
                 </table>",
                pairs("<tr><td class=x>", "<td>", "\n").join("")
            )),
            escaped(format!(
                "<pma_xml_export><table name=\"x\">{}</table></pma_xml_export>",
                pairs("<column name=\"Variable_name\">", "</column><column name=\"Value\">", "</column>")
                    .join("</table><table name=\"x\">")
            )),
            escaped(format!(
                "<DATA>{}</DATA>",
                pairs("<DATA_RECORD><Variable_name>", "</Variable_name><Value>", "</Value></DATA_RECORD>")
                    .join("")
            )),
        ]
    }

    fn in_json() -> Vec<String> {
        let objects = pairs("{\"Variable_name\": \"", "\", \"Value\": \"", "\"}");
        let lists = pairs("[\"", "\", \"", "\"]").join(",");
        let map = pairs("\"", "\": \"", "\"").join(", ");
        vec![
            objects.join("\n"),
            format!("[{}]", objects.join(",")),
            format!("{{\"SHOW GLOBAL VARIABLES\": [{}]}}", objects.join(",")),
            format!("{{\"hasData\":true,\"rows\":[{}],\"executionTime\":\"0.1 sec\"}}", objects.join(",")),
            format!("[{{\"type\":\"header\"}},{{\"type\":\"table\",\"data\":[{}]}}]", objects.join(",")),
            format!("[{lists}]"),
            format!("{{\"columns\":[\"Variable_name\",\"Value\"],\"rows\":[{lists}]}}"),
            format!("{{{map}}}"),
            format!("json_objectagg(a, b)\n{{{}}}\n", map.to_uppercase()),
            format!("*** 1. row ***\njson_objectagg(a, b): {{{map}}}\n1 row in set (0.00 sec)\n"),
            format!(
                "{{\"Parameters\": [{}]}}",
                objects
                    .join(",")
                    .replace("Variable_name", "ParameterName")
                    .replace("\"Value", "\"ParameterValue")
            ),
            format!("mysql> select 1;\n{{{map}, \"ft\": \"a\\\\\"\\\\\"b\"}}\n"),
        ]
    }

    #[test]
    fn variables_are_read_of_every_form_of_a_document() {
        for document in in_markup().into_iter().chain(in_json()) {
            let read = variables(&document);
            for (name, value) in WANTED {
                let is_read =
                    |(known, read): &(String, String)| known == name && read.eq_ignore_ascii_case(value);
                assert!(read.iter().any(is_read), "{name} of {document}: {read:?}");
            }
        }
        for other in [
            "",
            "{}",
            "[]",
            "<a/>",
            "{\"a\":1}",
            "[1,2]",
            "[[1,2]]",
            "<svg><text>x</text></svg>",
            "no document",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn two_statuses_and_the_columns_of_a_replica_are_read() {
        let status = |uptime: u32| {
            format!(
                "{{\"Variable_name\":\"Uptime\",\"Value\":\"{uptime}\"}}\n{{\"Variable_name\":\"Queries\",\"Value\":9}}\n"
            )
        };
        let rows = read(&(status(10) + &status(30))).unwrap();
        assert_eq!(printed::read(&rows.text).unwrap().status.seconds().unwrap(), Some(20.0));
        let both = "{\"variables\":{\"version\":\"8.0.36\",\"datadir\":\"/d\",\"port\":\"1\"},\"status\":{\"Uptime\":\"5\",\"Queries\":\"7\",\"Com_select\":\"1\"}}";
        let printed = printed::read(&read(both).unwrap().text).unwrap();
        assert_eq!(printed.variables.unwrap().get("queries"), None, "a status is no setting");
        let replica = "<resultset><row><field name=\"Replica_IO_Running\">Yes</field><field name=\"Replica_SQL_Running\">No</field>\
                       <field name=\"Last_Error\" xsi:nil=\"true\" /></row></resultset>";
        let columns = crate::replica::read(&read(replica).unwrap().text).unwrap();
        assert_eq!(columns.get("replica_sql_running"), Some("No"));
    }

    #[test]
    fn a_document_that_ends_early_gives_what_is_whole_and_says_so() {
        let row = |name: &str| {
            format!("<row><field name=\"Variable_name\">{name}</field><field name=\"Value\">1</field></row>")
        };
        let cut = format!("<resultset>{}{}", row("sync_binlog"), &row("innodb_io_capacity")[..70]);
        let rows = read(&cut).unwrap();
        assert!(
            rows.is_cut && rows.text.contains("sync_binlog") && !rows.text.contains("io_capacity"),
            "{}",
            rows.text
        );
        assert!(!read(&format!("<resultset>{}</resultset>", row("sync_binlog"))).unwrap().is_cut);
        let lines = "{\"Variable_name\":\"sync_binlog\",\"Value\":\"1\"}\n{\"Variable_name\":\"inn";
        assert!(read(lines).unwrap().is_cut);
        let deep = "[".repeat(100_000);
        assert_eq!(read(&deep), None);
        assert_eq!(read(&"<a>".repeat(100_000)), None);
    }
}
