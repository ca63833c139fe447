//! XTS as IEEE 1619-2007 has it, and what the store adds.

use super::*;

/// The keys of the vectors for AES-256, digits of e and of pi.
const KEY: [&str; 2] = [
    "2718281828459045235360287471352662497757247093699959574966967627",
    "3141592653589793238462643383279502884197169399375105820974944592",
];

/// Vector 10, whole: sector 0xff.
const VECTOR_10: &str = "\
    1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b5d31e276f8fe4a8d66b317f9ac683f44\
    680a86ac35adfc3345befecb4bb188fd5776926c49a3095eb108fd1098baec70aaa66999a72a82f27d848b21d4a741b0\
    c5cd4d5fff9dac89aeba122961d03a757123e9870f8acf1000020887891429ca2a3e7a7d7df7b10355165c8b9a6d0a7d\
    e8b062c4500dc4cd120c0f7418dae3d0b5781c34803fa75421c790dfe1de1834f280d7667b327f6c8cd7557e12ac3a0f\
    93ec05c52e0493ef31a12d3d9260f79a289d6a379bc70c50841473d1a8cc81ec583e9645e07b8d9670655ba5bbcfecc6\
    dc3966380ad8fecb17b6ba02469a020a84e18e8f84252070c13e9f1f289be54fbc481457778f616015e1327a02b140f1\
    505eb309326d68378f8374595c849d84f4c333ec4423885143cb47bd71c5edae9be69a2ffeceb1bec9de244fbe15992b\
    11b77c040f12bd8f6a975a44a0f90c29a9abc3d4d893927284c58754cce294529f8614dcd2aba991925fedc4ae74ffac\
    6e333b93eb4aff0479da9a410e4450e0dd7ae4c6e2910900575da401fc07059f645e8b7e9bfdef33943054ff84011493\
    c27b3429eaedb4ed5376441a77ed43851ad77f16f541dfd269d50d6a5f14fb0aab1cbb4c1550be97f7ab4066193c4caa\
    773dad38014bd2092fa755c824bb5e54c4f36ffda9fcea70b9c6e693e148c151";

/// The beginnings of vectors 11 to 14.
const VECTORS: [(u64, &str); 4] = [
    (0xffff, "77a31251618a15e6b92d1d66dffe7b50b50bad552305ba0217a610688eff7e11"),
    (0xff_ffff, "e387aaa58ba483afa7e8eb469778317ecf4cf573aa9d4eac23f2cdf914e4e200"),
    (0xffff_ffff, "bf53d2dade78e822a4d949a9bc6766b01b06a8ef70d26748c6a7fc36d80ae4c5"),
    (0xff_ffff_ffff, "64497e5a831e4a932c09be3e5393376daa599548b816031d224bbf50a818ed23"),
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn cipher() -> Cipher {
    let key: Vec<u8> = KEY.iter().flat_map(|half| bytes(half)).collect();
    Cipher::new(&DataKey::new(key.try_into().unwrap()).unwrap())
}

fn encrypted(cipher: &Cipher, plain: &[u8], offset: u64) -> Vec<u8> {
    let mut all = Vec::new();
    let put = |part: &[u8], at: u64| {
        assert_eq!(at, offset + u64::try_from(all.len()).unwrap());
        all.extend_from_slice(part);
        Ok(())
    };
    cipher.encrypt(plain, offset, put).unwrap();
    all
}

#[test]
fn sectors_are_encrypted_as_the_standard_s_vectors_are() {
    let plain: Vec<u8> = (0..=255_u8).cycle().take(SECTOR).collect();
    let cipher = cipher();
    assert_eq!(encrypted(&cipher, &plain, 0xff * SECTOR_BYTES), bytes(VECTOR_10));
    for (sector, begin) in VECTORS {
        assert_eq!(encrypted(&cipher, &plain, sector * SECTOR_BYTES)[..32], bytes(begin), "{sector:x}");
    }
}

#[test]
fn a_run_of_sectors_is_what_its_sectors_are_alone_and_decrypts() {
    let cipher = cipher();
    let len = PART_BYTES + 5 * SECTOR;
    let plain: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let offset = 7 * SECTOR_BYTES;
    let mut whole = encrypted(&cipher, &plain, offset);
    for at in [0, 1, 8, 9, PART_BYTES / SECTOR, len / SECTOR - 1] {
        let from = at * SECTOR;
        let alone = encrypted(&cipher, &plain[from..from + SECTOR], offset + u64::try_from(from).unwrap());
        assert_eq!(whole[from..from + SECTOR], alone, "{at}");
    }
    // The ninth sector is one that no layer has.
    whole[8 * SECTOR..9 * SECTOR].fill(0);
    cipher.decrypt(&mut whole, offset).unwrap();
    let mut expected = plain;
    expected[8 * SECTOR..9 * SECTOR].fill(0);
    assert!(whole == expected);
}

#[test]
fn equal_halves_of_a_key_and_parts_of_sectors_are_refused() {
    DataKey::new([7; DATA_KEY_BYTES]).unwrap_err();
    let cipher = cipher();
    for (offset, len) in [(1, SECTOR), (0, 511), (256, 256)] {
        let error = cipher.decrypt(&mut vec![1; len], offset).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        cipher.encrypt(&vec![1; len], offset, |_, _| Ok(())).unwrap_err();
    }
    assert_eq!(format!("{:?} {cipher:?}", DataKey(zeroize::Zeroizing::new([1; 64]))), "DataKey Cipher");
}
