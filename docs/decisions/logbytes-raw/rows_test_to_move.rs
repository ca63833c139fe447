    /// What servers were measured to write: updates with and without an index change, pairs, and the lengths of c and pad.
    #[test]
    fn a_transaction_writes_what_servers_were_measured_to_write() {
        let of = |maker, (index_updates, plain_updates, delete_inserts): (u32, u32, u32), c, pad| {
            let logs = Logs { maker, ..LOGS };
            let mix =
                Mix { index_updates, plain_updates, delete_inserts, ..Mix::of(&shape(None, None, None)) };
            let lengths = RowLengths { c, pad };
            [logs.redo(mix, false, lengths), logs.binlog(mix, false, lengths)]
        };
        let measured = [
            (Maker::MariaDb, (0, 1, 0), 30, 30, [348.0, 399.0]),
            (Maker::MariaDb, (1, 0, 0), 120, 60, [477.0, 610.0]),
            (Maker::MariaDb, (0, 0, 1), 600, 300, [2_289.0, 3_125.0]),
            (Maker::MariaDb, (1, 1, 1), 120, 60, [1_499.0, 2_139.0]),
            (Maker::MariaDb, (1, 1, 1), 60, 1_500, [3_913.0, 11_744.0]),
            (Maker::MariaDb, (0, 10, 0), 600, 300, [12_886.0, 25_849.0]),
            (Maker::MySql, (0, 1, 0), 600, 300, [2_015.0, 2_125.0]),
            (Maker::MySql, (1, 1, 1), 120, 60, [2_452.0, 1_742.0]),
            (Maker::MySql, (1, 1, 1), 600, 300, [4_686.0, 6_073.0]),
            (Maker::MySql, (0, 10, 0), 120, 60, [3_945.0, 5_010.0]),
        ];
        for (maker, mix, c, pad, [redo, binlog]) in measured {
            let modelled = of(maker, mix, c, pad);
            near(modelled[0], redo, 1.15);
            near(modelled[1], binlog, 1.05);
        }
    }

