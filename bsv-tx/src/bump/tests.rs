use super::*;
use crate::merkle::MerkleTree;
use crate::sha256d;

/// The example of BRC-74, which marks the second and the third transaction, and carries two nodes
/// that can be computed.
const EXAMPLE: &str = "fe8a6a0c000c04fde80b0011774f01d26412f0d16ea3f0447be0b5ebec67b0782e321a7a01cbdf7f734e30fde90b02004e53753e3fe4667073063a17987292cfdea278824e9888e52180581d7188d8fdea0b025e441996fc53f0191d649e68a200e752fb5f39e0d5617083408fa179ddc5c998fdeb0b0102fdf405000671394f72237d08a4277f4435e5b6edf7adc272f25effef27cdfe805ce71a81fdf50500262bccabec6c4af3ed00cc7a7414edea9c5efa92fb8623dd6160a001450a528201fdfb020101fd7c010093b3efca9b77ddec914f8effac691ecb54e2c81d0ab81cbc4c4b93befe418e8501bf01015e005881826eb6973c54003a02118fe270f03d46d02681c8bc71cd44c613e86302f8012e00e07a2bb8bb75e5accff266022e1e5e6e7b4d6d943a04faadcf2ab4a22f796ff30116008120cafa17309c0bb0e0ffce835286b3a2dcae48e4497ae2d2b7ced4f051507d010a00502e59ac92f46543c23006bff855d96f5e648043f0fb87a7a5949e6a9bebae430104001ccd9f8f64f4d0489b30cc815351cf425e0e78ad79a589350e4341ac165dbe45010301010000af8764ce7e1cc132ab5ed2229a005c87201c9a5ee15c0f91dd53eff31ab30cd4";

const EXAMPLE_TXIDS: [&str; 3] = [
    "304e737fdfcb017a1a322e78b067ecebb5e07b44f0a36ed1f01264d2014f7711",
    "d888711d588021e588984e8278a2decf927298173a06737066e43f3e75534e00",
    "98c9c5dd79a18f40837061d5e0395ffb52e700a2689e641d19f053fc9619445e",
];

const DUPLICATE: u8 = flags::DUPLICATE;
const SIBLING: u8 = flags::SIBLING;
const TXID: u8 = flags::TXID;

/// A level of an encoded BUMP: for each node its place, its flags, and the byte that fills its
/// hash.
fn level(nodes: &[(u64, u8, u8)]) -> Vec<u8> {
    let mut bytes = vec![nodes.len() as u8];
    for (offset, flags, hash) in nodes {
        write_var_int(&mut bytes, *offset);
        bytes.push(*flags);
        if *flags != DUPLICATE {
            bytes.extend_from_slice(&[*hash; 32]);
        }
    }
    bytes
}

/// A BUMP at height 7.
fn read(levels: &[&[(u64, u8, u8)]]) -> Result<Bump, BumpError> {
    let levels: Vec<u8> = levels.iter().flat_map(|nodes| level(nodes)).collect();
    let count = levels_of(&levels);
    Bump::from_bytes(&[&[7, count], levels.as_slice()].concat())
}

/// Counts the levels in encoded bytes. Each level must have few nodes with small places.
fn levels_of(mut bytes: &[u8]) -> u8 {
    let mut count = 0;
    while let [nodes, rest @ ..] = bytes {
        bytes = rest;
        for _ in 0..*nodes {
            bytes = &bytes[if bytes[1] == DUPLICATE { 2 } else { 34 }..];
        }
        count += 1;
    }
    count
}

fn txids(count: u8) -> Vec<Txid> {
    (0..count).map(|number| Txid::from_bytes(sha256d(&[number]))).collect()
}

#[test]
fn the_example_of_the_standard() {
    let bytes = hex::decode(EXAMPLE).unwrap();
    let bump = Bump::from_bytes(&bytes).unwrap();
    assert_eq!(bump.to_bytes(), bytes);
    assert_eq!(bump.height(), 813_706);
    let root = "57aab6e6fb1b697174ffb64e062c4728f2ffd33ddcfa02a43b64d8cd29b483b4";
    assert_eq!(bump.root().to_string(), root);
    let txids: Vec<_> = EXAMPLE_TXIDS.iter().map(|txid| txid.parse().unwrap()).collect();
    assert_eq!(bump.txids().collect::<Vec<_>>(), txids[1..]);
    assert_eq!(bump.leaves().collect::<Vec<_>>(), txids);
    for txid in &txids {
        assert_eq!(bump.branch(txid).unwrap().root(txid), Some(bump.root()));
    }
    assert_eq!(bump.branch(&Txid::from_bytes([0; 32])), None);
    for len in 0..bytes.len() {
        assert!(Bump::from_bytes(&bytes[..len]).is_err(), "cut at {len}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(Bump::from_bytes(&longer), Err(DecodeError::TrailingBytes(1).into()));
}

#[test]
fn any_transactions_of_small_blocks_lead_to_the_root() {
    for count in 1..=7 {
        let txids = txids(count);
        let tree = MerkleTree::of(&txids);
        let branches: Vec<_> =
            txids.iter().enumerate().map(|(at, txid)| (*txid, tree.branch(at).unwrap())).collect();
        for chosen in 1..1_u16 << count {
            let is_chosen = |at: usize| chosen >> at & 1 == 1;
            let chosen: Vec<_> = (0..branches.len())
                .filter(|at| is_chosen(*at))
                .map(|at| branches[at].clone())
                .collect();
            let bump = Bump::of(9, &chosen).unwrap();
            assert_eq!((bump.height(), Some(bump.root())), (9, tree.root()));
            assert_eq!(Bump::from_bytes(&bump.to_bytes()).as_ref(), Ok(&bump));
            assert!(bump.txids().eq(chosen.iter().map(|(txid, _)| *txid)));
            for (txid, branch) in &chosen {
                assert_eq!(bump.branch(txid).as_ref(), Some(branch));
            }
            let one_by_one = chosen.chunks(1).map(|one| Bump::of(9, one).unwrap());
            assert_eq!(one_by_one.reduce(|all, one| all.combine(&one).unwrap()), Some(bump));
        }
    }
}

#[test]
fn nothing_is_carried_that_can_be_computed() {
    let txids = txids(8);
    let tree = MerkleTree::of(&txids);
    let branches = [0, 1, 6].map(|at| (txids[at], tree.branch(at).unwrap()));
    let bump = Bump::of(1, &branches).unwrap();
    let places: Vec<Vec<_>> =
        bump.levels.iter().map(|level| level.iter().map(|node| node.offset).collect()).collect();
    assert_eq!(places, [vec![0, 1, 6, 7], vec![1, 2], vec![]]);
}

#[test]
fn paths_of_different_blocks_do_not_combine() {
    let bump_of = |height, count, at: usize| {
        let txids = txids(count);
        Bump::of(height, &[(txids[at], MerkleTree::of(&txids).branch(at).unwrap())]).unwrap()
    };
    let bump = bump_of(1, 4, 0);
    assert!(bump.combine(&bump_of(1, 4, 3)).is_ok());
    assert_eq!(bump.combine(&bump_of(2, 4, 3)), Err(BumpError::DifferentBlocks));
    assert_eq!(bump.combine(&bump_of(1, 3, 2)), Err(BumpError::DifferentBlocks));
    assert_eq!(Bump::of(1, &[]), Err(BumpError::Levels(0)));
    let branch = |count: u8| (txids(count)[0], MerkleTree::of(&txids(count)).branch(0).unwrap());
    assert_eq!(Bump::of(1, &[branch(2), branch(3)]), Err(BumpError::DifferentBlocks));
    let of_other_root = MerkleBranch { position: 1, siblings: vec![Sibling::Hash([1; 32])] };
    let different = Bump::of(1, &[branch(2), (txids(2)[1], of_other_root)]);
    assert_eq!(different, Err(BumpError::DifferentBlocks));
    let misplaced = MerkleBranch { position: 2, siblings: vec![Sibling::Hash([1; 32])] };
    assert_eq!(Bump::of(1, &[(txids(1)[0], misplaced)]), Err(BumpError::TooWide(1)));
}

#[test]
fn what_is_no_tree_is_refused() {
    let both = [(0, TXID, 1), (1, SIBLING, 2)];
    assert!(read(&[&both]).is_ok());
    assert!(read(&[&[(1, SIBLING, 2), (0, TXID, 1)]]).is_ok(), "nodes stand in any order");
    assert!(read(&[&[(0, TXID, 1), (1, DUPLICATE, 0)]]).is_ok());
    assert!(read(&[&[(0, TXID, 1)]]).is_ok(), "the only transaction of a block");
    let missing = |level, offset| BumpError::MissingNode { level, offset };
    let misplaced = |level, offset| BumpError::MisplacedDuplicate { level, offset };
    for (levels, error) in [
        (vec![&[][..]], missing(0, 0)),
        (vec![&[(0, DUPLICATE, 0)]], missing(0, 1)),
        (vec![&[(1, TXID, 1)]], missing(0, 0)),
        (vec![&[(0, TXID, 1)], &[]], missing(0, 1)),
        (vec![&both, &[]], missing(1, 1)),
        (vec![&both, &[(2, SIBLING, 3), (3, SIBLING, 4)]], missing(1, 1)),
        (vec![&[(2, TXID, 1), (3, SIBLING, 2)]], BumpError::TooWide(1)),
        (vec![&[(0, TXID, 1), (1, TXID, 2), (2, TXID, 1), (3, TXID, 2)]], BumpError::TooWide(1)),
        (vec![&[(0, TXID, 1), (0, TXID, 1)]], BumpError::SameOffset { level: 0, offset: 0 }),
        (
            vec![&[(0, TXID, 1), (1, DUPLICATE, 0), (1, SIBLING, 1)]],
            BumpError::SameOffset { level: 0, offset: 1 },
        ),
        (
            vec![&both, &[(0, SIBLING, 9), (1, SIBLING, 1)]],
            BumpError::WrongHash { level: 1, offset: 0 },
        ),
        (
            vec![&[(0, TXID, 1), (1, TXID, 2), (2, TXID, 1), (3, TXID, 2)], &[(1, DUPLICATE, 0)]],
            BumpError::WrongHash { level: 1, offset: 1 },
        ),
        (vec![&[(0, DUPLICATE, 0), (1, TXID, 1)]], misplaced(0, 0)),
        (
            vec![&[(0, TXID, 1), (1, DUPLICATE, 0), (2, TXID, 1), (3, TXID, 2)], &[]],
            misplaced(0, 1),
        ),
        (vec![&[(0, TXID, 1), (1, DUPLICATE, 0), (3, DUPLICATE, 0)]], misplaced(0, 3)),
        (vec![&[(0, 3, 1)]], BumpError::Flags { level: 0, flags: 3 }),
        (vec![&both, &[(1, TXID, 1)]], BumpError::Flags { level: 1, flags: TXID }),
    ] {
        assert_eq!(read(&levels), Err(error), "{levels:?}");
    }
}

#[test]
fn heights_and_levels_have_bounds() {
    let with_height = |height: &str| Bump::from_bytes(&hex::decode(height).unwrap());
    assert_eq!(with_height("ff000000000100000001"), Err(BumpError::Height(1 << 32)));
    assert_eq!(with_height("0700"), Err(BumpError::Levels(0)));
    assert_eq!(with_height("0741"), Err(BumpError::Levels(65)));
    let highest = MerkleBranch { position: u64::MAX, siblings: vec![Sibling::Hash([3; 32]); 64] };
    let bump = Bump::of(u32::MAX, &[(Txid::from_bytes([1; 32]), highest.clone())]).unwrap();
    assert_eq!(Bump::from_bytes(&bump.to_bytes()).as_ref(), Ok(&bump));
    assert_eq!(bump.branch(&Txid::from_bytes([1; 32])), Some(highest));
}
