//! Clients that break the protocol, stop in the middle, or do not read: none of them may disturb
//! the server or another client.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use proptest::{prelude::*, test_runner::Config};

use crate::{
    Served, pattern,
    raw::{Client, DISCONNECT, READ, WRITE},
};

/// A well-behaved client's write and read. Its patience is that of [`Client`], longer than any bound of the server's but
/// shorter than a server that waits for others would need.
fn assert_serves(served: &Served) {
    let mut client = Client::ready(served, false);
    let data = pattern(8192, 9);
    client.request(WRITE, 0, 1, 0, 8192);
    client.send(&data);
    assert_eq!(client.simple_reply(), (0, 1));
    client.request(READ, 0, 2, 0, 8192);
    assert_eq!(client.simple_reply(), (0, 2));
    assert!(client.skip(8192) == data);
    client.request(DISCONNECT, 0, 3, 0, 0);
    assert!(client.is_closed());
}

/// Waits until only so many connections are open.
fn wait_for_connections(served: &Served, count: usize) {
    let start = Instant::now();
    while served.server.connections() != count {
        let now = served.server.connections();
        assert!(start.elapsed() < Duration::from_secs(60), "{now} connections are open, not {count}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_wrong_magic_ends_the_connection_at_any_stage() {
    let served = Served::new(8, 0);
    let mut client = Client::connect(&served);
    client.send(&[&3_u32.to_be_bytes()[..], b"IHAVENOT", &[0; 8]].concat());
    assert!(client.is_closed());
    let mut client = Client::connect(&served);
    client.send(&0x8000_0003_u32.to_be_bytes());
    assert!(client.is_closed());
    let mut client = Client::ready(&served, true);
    client.send(&[0x55; 28]);
    assert!(client.is_closed());
    assert_serves(&served);
    wait_for_connections(&served, 0);
}

#[test]
fn an_oversized_option_is_skipped_and_an_absurd_one_ends_the_connection() {
    let served = Served::new(8, 0);
    let mut client = Client::connect(&served);
    client.send(&3_u32.to_be_bytes());
    client.option(7, &vec![1; 100 << 10]);
    assert_eq!(client.option_reply().0, (1 << 31) + 9);
    client.option(7, &[0; 6]);
    while client.option_reply().0 != 1 {}
    let mut client = Client::connect(&served);
    client.send(&3_u32.to_be_bytes());
    client.send(&[b"IHAVEOPT", &7_u32.to_be_bytes()[..], &u32::MAX.to_be_bytes()].concat());
    assert!(client.is_closed());
    assert_serves(&served);
}

#[test]
fn starttls_is_refused_by_policy_and_the_negotiation_goes_on() {
    let served = Served::new(8, 0);
    let mut client = Client::connect(&served);
    client.send(&3_u32.to_be_bytes());
    client.option(5, &[]);
    let (kind, why) = client.option_reply();
    assert_eq!(kind, (1 << 31) + 2);
    assert!(String::from_utf8(why).unwrap().contains("TLS"));
    client.option(2, &[]);
    assert_eq!(client.option_reply().0, 1);
    assert!(client.is_closed());
}

#[test]
fn a_write_too_long_is_read_over_and_an_absurd_one_ends_the_connection() {
    let served = Served::new(8, 0);
    let mut client = Client::ready(&served, false);
    let len = (32 << 20) + 512;
    client.request(WRITE, 0, 5, 0, len);
    client.send(&vec![7; usize::try_from(len).unwrap()]);
    assert_eq!(client.simple_reply().1, 5);
    client.request(READ, 0, 6, 0, 512);
    assert_eq!(client.simple_reply(), (0, 6));
    assert_eq!(client.skip(512), [0; 512]);
    client.request(WRITE, 0, 7, 0, u32::MAX - 511);
    assert!(client.is_closed());
    assert_serves(&served);
}

#[test]
fn unknown_commands_and_nonsense_get_an_error_each() {
    let served = Served::new(8, 0);
    let mut client = Client::ready(&served, false);
    for (cookie, command) in [(1, 5), (2, 7), (3, 8), (4, 0xffff)] {
        client.request(command, 0, cookie, 0, 512);
        assert_eq!(client.simple_reply(), (22, cookie));
    }
    client.request(READ, 0, 5, u64::MAX - 511, 512);
    assert_eq!(client.simple_reply(), (22, 5));
    client.request(READ, 0, 6, 0, 0);
    assert_eq!(client.simple_reply(), (0, 6));
}

#[test]
fn equal_cookies_of_a_careless_client_are_each_answered() {
    let served = Served::new(8, 300);
    let mut client = Client::ready(&served, false);
    for _ in 0..100 {
        client.request(READ, 0, 77, 0, 512);
    }
    for _ in 0..100 {
        assert_eq!(client.simple_reply(), (0, 77));
        client.skip(512);
    }
}

#[test]
fn a_client_that_stops_in_the_middle_holds_up_no_other() {
    let served = Served::new(64, 0);
    let mut stuck = Vec::new();
    for _ in 0..8 {
        let mut client = Client::ready(&served, true);
        client.request(WRITE, 0, 1, 0, 32 << 20);
        client.send(&vec![3; 700 << 10]);
        stuck.push(client);
    }
    for _ in 0..20 {
        assert_serves(&served);
    }
    drop(stuck);
    wait_for_connections(&served, 0);
    assert_serves(&served);
}

#[test]
fn a_client_that_does_not_read_holds_only_memory_of_its_own() {
    for service_us in [0, 200] {
        let served = Served::new(64, service_us);
        let mut client = Client::ready(&served, false);
        client.request(WRITE, 0, 1, 0, 4 << 20);
        client.send(&pattern(4 << 20, 1));
        assert_eq!(client.simple_reply(), (0, 1));
        // Together the long ones could hold more than all the buffers that a volume has.
        let lengths = [[1 << 20; 6].as_slice(), &[4 << 20, 256 << 10, 64 << 10, 16 << 10, 512]].concat();
        let mut deaf: Vec<_> = lengths.iter().map(|_| Client::ready(&served, true)).collect();
        for (client, len) in deaf.iter_mut().zip(lengths) {
            // Sends until the server takes no more; nothing is ever read.
            client.stream.set_nonblocking(true).unwrap();
            let mut message = [0; 28];
            message[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
            message[24..].copy_from_slice(&u32::to_be_bytes(len));
            let full = Instant::now();
            while full.elapsed() < Duration::from_secs(2) && client.stream.write(&message).is_ok() {}
        }
        for _ in 0..20 {
            assert_serves(&served);
        }
        drop(deaf);
        wait_for_connections(&served, 1);
    }
}

#[test]
fn a_slow_reader_gets_every_byte_in_the_end() {
    for service_us in [0, 200] {
        let served = Served::new(64, service_us);
        let data = pattern(4 << 20, 4);
        let mut client = Client::ready(&served, false);
        client.request(WRITE, 0, 1, 0, 4 << 20);
        client.send(&data);
        assert_eq!(client.simple_reply(), (0, 1));
        for cookie in 0..16_u64 {
            client.request(READ, 0, cookie, cookie * (256 << 10), 256 << 10);
        }
        // Long enough for the server to have filled the socket.
        std::thread::sleep(Duration::from_millis(50));
        for _ in 0..16 {
            let (error, cookie) = client.simple_reply();
            let got = client.skip(256 << 10);
            let at = usize::try_from(cookie).unwrap() * (256 << 10);
            assert!(error == 0 && got == data[at..at + (256 << 10)], "cookie {cookie}");
        }
    }
}

#[test]
fn a_client_that_closes_its_half_still_gets_its_answers() {
    for service_us in [0, 2_000] {
        let served = Served::new(8, service_us);
        let mut client = Client::ready(&served, false);
        for cookie in 0..10 {
            client.request(READ, 0, cookie, 0, 4096);
        }
        client.stream.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        client.stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), 10 * (16 + 4096));
        wait_for_connections(&served, 0);
    }
}

#[test]
fn clients_that_vanish_with_requests_in_flight_leave_nothing_behind() {
    // Each stays open until its last answer, so that many are open at once.
    let served = Served::with(64, 5_000, |options| options.max_connections = 64);
    for round in 0..20 {
        let mut client = Client::ready(&served, round % 2 == 0);
        for cookie in 0..50 {
            client.request(READ, 0, cookie, 0, 64 << 10);
        }
        client.request(WRITE, 0, 99, 0, 1 << 20);
    }
    wait_for_connections(&served, 0);
    assert_eq!(served.volume.in_flight(), 0);
    assert_serves(&served);
}

#[test]
fn random_bytes_at_any_stage_crash_nothing() {
    let served = Served::new(8, 0);
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let bytes = proptest::collection::vec(any::<u8>(), 0..600);
    // A third of the requests are well-formed but for their fields, so that some get further.
    proptest!(config, |(stage in 0..3_u8, bytes in bytes, requests in proptest::collection::vec((0..9_u16, any::<u16>(), 0..40_u64, 0..40_u32), 0..8))| {
        let mut stream = match stage {
            0 => UnixStream::connect(served.path("vol.sock")).unwrap(),
            1 => {
                let mut client = Client::connect(&served);
                client.send(&3_u32.to_be_bytes());
                client.stream
            }
            _ => {
                let mut client = Client::ready(&served, requests.len() % 2 == 0);
                for &(command, flags, block, blocks) in &requests {
                    // The server may have ended the connection already.
                    let mut message = vec![0x25, 0x60, 0x95, 0x13];
                    message.extend_from_slice(&flags.to_be_bytes());
                    message.extend_from_slice(&command.to_be_bytes());
                    message.extend_from_slice(&[0; 8]);
                    message.extend_from_slice(&(block * 512).to_be_bytes());
                    message.extend_from_slice(&(blocks * 512).to_be_bytes());
                    let _ = client.stream.write_all(&message);
                }
                client.stream
            }
        };
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => prop_assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    });
    wait_for_connections(&served, 0);
    assert_serves(&served);
}
