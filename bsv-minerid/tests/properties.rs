//! Properties of every coinbase2, document and JSON text, tested with random ones.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::sync::{Arc, LazyLock};

use bsv_minerid::formats::{
    BlockBind, BlockBindJob, BlockInfo, Coinbase2, Coinbase2Error, Document, Extensions,
    IdentityScript, MinerParams,
};
use bsv_minerid::store::RedbIdentityStore;
use bsv_minerid::{
    CanonicalJson, Identity, JobData, Keystore, MinerContact, MinerIds, Network, PlainKeys,
};
use bsv_tx::{
    BlockHash, MerkleRoot, OutPoint, PrivateKey, PublicKey, Script, Signature, Txid, sha256,
    sha256d,
};
use proptest::array::uniform32;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

const VCTX: &str = "6839008199026098cc78bf5f34c9a6bdf7a8009c9f019f8399c7ca1945b4a4ff";

/// A coinbase2, with its own independent reader and writer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    /// The rest of the unlocking script.
    script_end: Vec<u8>,
    sequence: [u8; 4],
    outputs: Vec<(u64, Vec<u8>)>,
    lock_time: [u8; 4],
}

impl Parts {
    /// Reads a coinbase2 whose sequence number begins at an offset.
    fn read_from(offset: usize, bytes: &[u8]) -> Option<Self> {
        let (script_end, rest) = bytes.split_at_checked(offset)?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (count, mut rest) = read_len(rest)?;
        let mut outputs = Vec::new();
        for _ in 0..count {
            let (satoshis, after) = rest.split_first_chunk()?;
            let (len, after) = read_len(after)?;
            let (script, after) = after.split_at_checked(usize::try_from(len).ok()?)?;
            outputs.push((u64::from_le_bytes(*satoshis), script.to_vec()));
            rest = after;
        }
        let (script_end, lock_time) = (script_end.to_vec(), rest.try_into().ok()?);
        Some(Self { script_end, sequence: *sequence, outputs, lock_time })
    }

    fn read(&self, bytes: &[u8]) -> Self {
        Self::read_from(self.script_end.len(), bytes).unwrap()
    }

    fn write(&self) -> Vec<u8> {
        [self.script_end.clone(), self.write_from_sequence()].concat()
    }

    fn write_from_sequence(&self) -> Vec<u8> {
        let mut out = self.sequence.to_vec();
        write_len(&mut out, self.outputs.len());
        for (satoshis, script) in &self.outputs {
            out.extend(satoshis.to_le_bytes());
            write_len(&mut out, script.len());
            out.extend(script);
        }
        out.extend(self.lock_time);
        out
    }

    fn with_output(&self, script: &[u8]) -> Self {
        let mut longer = self.clone();
        longer.outputs.push((0, script.to_vec()));
        longer
    }

    /// The same with another rest of the unlocking script.
    fn tagged(&self) -> Result<Self, TestCaseError> {
        let tagged = Self { script_end: b"/a pool/".to_vec(), ..self.clone() };
        prop_assume!(readings(&tagged.write()) == [tagged.script_end.len()]);
        Ok(tagged)
    }
}

/// Reads a number in its shortest form.
fn read_len(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (size, least) = match first {
        0xfd => (2, 0xfd),
        0xfe => (4, 0x1_0000),
        0xff => (8, 0x1_0000_0000),
        small => return Some((small.into(), rest)),
    };
    let (digits, rest) = rest.split_at_checked(size)?;
    let len = digits.iter().rev().fold(0, |len, digit| len << 8 | u64::from(*digit));
    (len >= least).then_some((len, rest))
}

fn write_len(out: &mut Vec<u8>, len: usize) {
    match len {
        0..0xfd => out.push(len as u8),
        0xfd..0x1_0000 => out.extend([0xfd, len as u8, (len >> 8) as u8]),
        _ => out.extend([0xfe, len as u8, (len >> 8) as u8, (len >> 16) as u8, (len >> 24) as u8]),
    }
}

/// The pushes of a script that consists only of pushes.
fn read_pushes(mut script: &[u8]) -> Vec<&[u8]> {
    let mut pushes = Vec::new();
    while let [op, rest @ ..] = script {
        let (len, rest) = match (op, rest) {
            (0..=0x4b, _) => (usize::from(*op), rest),
            (0x4c, [len, rest @ ..]) => (usize::from(*len), rest),
            (0x4d, [a, b, rest @ ..]) => (u16::from_le_bytes([*a, *b]).into(), rest),
            _ => panic!("no test needs longer ones"),
        };
        pushes.push(&rest[..len]);
        script = &rest[len..];
    }
    pushes
}

fn script() -> impl Strategy<Value = Vec<u8>> {
    let boundaries = vec![0, 1, 0x4b, 0x4c, 0xfc, 0xfd, 0xff, 0x100, 0xffff, 0x1_0000];
    prop_oneof![
        8 => vec(any::<u8>(), 0..40),
        // The pushes that have number opcodes.
        1 => (0..0x82_u8).prop_map(|byte| vec![byte]),
        1 => (select(boundaries), any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
    ]
}

fn parts() -> impl Strategy<Value = Parts> {
    let few = vec((any::<u64>(), script()), 1..6);
    let many = prop_oneof![1..600_usize, 251..255_usize].prop_flat_map(|count| {
        let output = (any::<u64>(), vec(any::<u8>(), 0..3));
        vec(output, count)
    });
    let script_end = prop_oneof![Just(Vec::new()), vec(any::<u8>(), 1..=100)];
    let sequence = prop_oneof![Just([0xff; 4]), any::<[u8; 4]>()];
    (script_end, sequence, prop_oneof![3 => few, 1 => many], any::<[u8; 4]>())
        .prop_map(|(script_end, sequence, outputs, lock_time)| Parts {
            script_end,
            sequence,
            outputs,
            lock_time,
        })
        .prop_filter("reads in another way too", |parts| {
            readings(&parts.write()) == [parts.script_end.len()]
        })
}

/// The offsets at which the sequence number of a coinbase2 may begin. The offset 0 excludes others
/// if that number is `ffffffff`.
fn readings(bytes: &[u8]) -> Vec<usize> {
    if bytes.starts_with(&[0xff; 4]) && Parts::read_from(0, bytes).is_some() {
        return vec![0];
    }
    let is_reading = |offset: &usize| {
        let parts = Parts::read_from(*offset, bytes);
        parts.is_some_and(|parts| *offset == 0 || !parts.outputs.is_empty())
    };
    (0..=100).filter(is_reading).collect()
}

/// Bytes that read as a coinbase2 in several ways, or nearly so: they are mostly zeros and ones.
fn nearly_a_coinbase2() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![6 => Just(0_u8), 2 => Just(1), 1 => 2..12_u8];
    (vec(byte, 0..60), option::of(parts())).prop_map(|(mut bytes, parts)| {
        bytes.extend(parts.map(|parts| parts.write()).unwrap_or_default());
        bytes
    })
}

/// A character of a JSON string: itself, or escaped in one of the possible ways.
fn spelled(c: char, way: u8) -> String {
    let short = match c {
        '"' => Some("\\\""),
        '\\' => Some("\\\\"),
        '/' => Some("\\/"),
        '\u{8}' => Some("\\b"),
        '\t' => Some("\\t"),
        '\n' => Some("\\n"),
        '\u{c}' => Some("\\f"),
        '\r' => Some("\\r"),
        _ => None,
    };
    let must_be_escaped = c < ' ' || c == '"' || c == '\\';
    match (way % 3, short) {
        (0, Some(short)) => short.to_owned(),
        (1, _) if !must_be_escaped => c.to_string(),
        _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
    }
}

/// The only spelling of a character that a node prints.
fn canonical(c: char) -> String {
    match c {
        '/' => "/".to_owned(),
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => spelled(c, 0),
        '\0'..' ' | '\u{7f}' => format!("\\u00{:02x}", c as u8),
        _ => c.to_string(),
    }
}

/// A JSON text in any spelling, with the node's spelling of it.
type Spellings = (String, String);

fn json_string() -> impl Strategy<Value = Spellings> {
    let any_char = prop_oneof![any::<char>(), (0..0x80_u8).prop_map(char::from)];
    vec((any_char, any::<u8>()), 0..12).prop_map(|chars| {
        let any: String = chars.iter().map(|(c, way)| spelled(*c, *way)).collect();
        let one: String = chars.iter().map(|(c, _)| canonical(*c)).collect();
        (format!("\"{any}\""), format!("\"{one}\""))
    })
}

fn space() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,3}"
}

fn json_object(value: impl Strategy<Value = Spellings>) -> impl Strategy<Value = Spellings> {
    let members = vec((json_string(), value, space(), space()), 0..5);
    (members, space()).prop_map(|(members, end)| {
        let (any, one): (Vec<_>, Vec<_>) = members
            .into_iter()
            .map(|((any_key, key), (any_value, value), before, after)| {
                (format!("{before}{any_key}{after}:{before}{any_value}{after}"), key + ":" + &value)
            })
            .unzip();
        (format!("{{{}{end}}}", any.join(",")), format!("{{{}}}", one.join(",")))
    })
}

fn json() -> impl Strategy<Value = Spellings> {
    let twice = |text: String| (text.clone(), text);
    let leaf = prop_oneof![
        select(vec!["null", "true", "false"]).prop_map(move |text| twice(text.to_owned())),
        r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?".prop_map(twice),
        json_string(),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        let array = (vec((inner.clone(), space()), 0..5)).prop_map(|items| {
            let (any, one): (Vec<_>, Vec<_>) = items
                .into_iter()
                .map(|((any, one), space)| (format!("{space}{any}{space}"), one))
                .unzip();
            (format!("[{}]", any.join(",")), format!("[{}]", one.join(",")))
        });
        prop_oneof![array, json_object(inner)]
    })
}

fn contact() -> impl Strategy<Value = MinerContact> {
    vec((json_string(), json()), 0..5).prop_map(|members| {
        let mut contact = MinerContact::default();
        for ((_, key), (value, _)) in members {
            let key: String = serde_json::from_str(&key).unwrap();
            contact.set(&key, CanonicalJson::from_text(&value).unwrap());
        }
        contact
    })
}

/// The inputs of all extensions.
#[derive(Clone, Debug)]
struct Job {
    bind: Option<([u8; 32], Vec<[u8; 32]>)>,
    info: Option<[u64; 2]>,
    fee_spec: Option<Spellings>,
    params: Option<[u64; 4]>,
}

fn job() -> impl Strategy<Value = Job> {
    let bind = (any::<[u8; 32]>(), vec(uniform32(any::<u8>()), 0..6));
    let parts = (
        option::of(bind),
        option::of(any::<[u64; 2]>()),
        option::of(json_object(json())),
        option::of(any::<[u64; 4]>()),
    );
    parts.prop_map(|(bind, info, fee_spec, params)| Job { bind, info, fee_spec, params })
}

fn display(mut hash: [u8; 32]) -> String {
    hash.reverse();
    hex::encode(hash)
}

impl Job {
    fn to_json(&self) -> String {
        let mut candidate = vec![r#""height":1"#.to_owned()];
        if let Some((previous, branches)) = &self.bind {
            let branches: Vec<_> =
                branches.iter().map(|branch| format!("{:?}", display(*branch))).collect();
            candidate.push(format!(r#""merkleProof":[{}]"#, branches.join(",")));
            candidate.push(format!(r#""prevhash":"{}""#, display(*previous).to_uppercase()));
        }
        if let Some([count, size]) = self.info {
            candidate.push(format!(r#""sizeWithoutCoinbase":{size},"num_tx":{count}"#));
        }
        let mut job = vec![format!(r#""miningCandidate":{{{}}}"#, candidate.join(","))];
        if let Some((spec, _)) = &self.fee_spec {
            job.push(format!(r#""feeSpec":{spec}"#));
        }
        if let Some([block, policy, mined, consensus]) = self.params {
            job.push(format!(
                r#""getInfo":{{"maxminedblocksize":{mined},"maxblocksize":{block},
                "maxstackmemoryusageconsensus":{consensus},"maxstackmemoryusagepolicy":{policy}}}"#
            ));
        }
        format!("{{{}}}", job.join(","))
    }

    /// The part of a document that this job provides, with the comma before it.
    fn extensions(&self, parts: &Parts) -> String {
        let mut members = Vec::new();
        if let Some((previous, branches)) = &self.bind {
            members.push(format!(
                r#""blockbind":{{"prevBlockHash":"{}","modifiedMerkleRoot":"{}"}}"#,
                display(*previous),
                display(modified_merkle_root(parts, branches))
            ));
        }
        if let Some([count, size]) = self.info {
            let info = format!(r#"{{"txCount":{count},"sizeWithoutCoinbase":{size}}}"#);
            members.push(format!(r#""blockinfo":{info}"#));
        }
        if let Some((_, spec)) = &self.fee_spec {
            members.push(format!(r#""feeSpec":{spec}"#));
        }
        if let Some([block, policy, mined, consensus]) = self.params {
            members.push(format!(
                "\"minerparams\":\
                {{\"policy\":{{\"blockmaxsize\":{block},\"maxstackmemoryusagepolicy\":{policy}}},\
                \"consensus\":{{\"excessiveblocksize\":{mined},\
                \"maxstackmemoryusageconsensus\":{consensus}}}}}"
            ));
        }
        match members.is_empty() {
            true => String::new(),
            false => format!(r#","extensions":{{{}}}"#, members.join(",")),
        }
    }
}

fn modified_merkle_root(parts: &Parts, branches: &[[u8; 32]]) -> [u8; 32] {
    modified_root(&parts.with_output(&[0x00, 0x6a]), branches)
}

/// The Merkle root of a block whose coinbase transaction ends with `parts` from the sequence number
/// on, and has zeros for an unlocking script.
fn modified_root(parts: &Parts, branches: &[[u8; 32]]) -> [u8; 32] {
    let start = format!("0100000001{}ffffffff08{}", "00".repeat(32), "00".repeat(8));
    let end = parts.write_from_sequence();
    let txid = sha256d(&[hex::decode(start).unwrap(), end].concat());
    branches.iter().fold(txid, |hash, branch| sha256d(&[hash, *branch].concat()))
}

/// An identity of generation 1.0.
fn miner_info_identity() -> Arc<Identity> {
    static SERVICE: LazyLock<(tempfile::TempDir, MinerIds<RedbIdentityStore>)> =
        LazyLock::new(|| {
            let dir = tempfile::tempdir().unwrap();
            let keystore = |name: &str| {
                Keystore::open(&dir.path().join(name), None, PlainKeys::Allowed, "test").unwrap()
            };
            let store = RedbIdentityStore::open(&dir.path().join("minerid"), "test").unwrap();
            let ids = MinerIds::open(store, keystore("keystore"), Network::Regtest).unwrap();
            ids.generate_miner_info(&"pool".parse().unwrap(), &keystore("revocation")).unwrap();
            (dir, ids)
        });
    SERVICE.1.get("pool").unwrap()
}

/// An identity that was rotated once and publishes its miner's name, with its two keys.
fn identity() -> (Arc<Identity>, PublicKey, PublicKey) {
    static SERVICE: LazyLock<(tempfile::TempDir, MinerIds<RedbIdentityStore>)> =
        LazyLock::new(|| {
            let dir = tempfile::tempdir().unwrap();
            let keys = dir.path().join("keystore");
            let keystore = Keystore::open(&keys, None, PlainKeys::Allowed, "test").unwrap();
            let store = RedbIdentityStore::open(&dir.path().join("minerid"), "test").unwrap();
            let ids = MinerIds::open(store, keystore, Network::Regtest).unwrap();
            let alias = "pool".parse().unwrap();
            ids.generate(&alias).unwrap();
            let vctx = format!("{VCTX}:7").parse().unwrap();
            ids.adopt_vctx(&alias, vctx, &PrivateKey::generate().unwrap()).unwrap();
            let contact = MinerContact::from_json(r#"{"name":"pool"}"#).unwrap();
            ids.set_contact(&alias, &contact).unwrap();
            ids.rotate_without_node(&alias, false).unwrap();
            (dir, ids)
        });
    let identity = SERVICE.1.get("pool").unwrap();
    let record = identity.record();
    (identity, record.previous_key().public_key, record.current_key().public_key)
}

fn document() -> impl Strategy<Value = Document> {
    let key = || {
        any::<[u8; 32]>().prop_filter_map("not a key", |bytes| PrivateKey::from_bytes(&bytes).ok())
    };
    let bind = (any::<[u8; 32]>(), any::<[u8; 32]>()).prop_map(|(block, root)| BlockBind {
        previous_block: BlockHash::from_bytes(block),
        modified_merkle_root: MerkleRoot::from_bytes(root),
    });
    let info = any::<[u64; 2]>().prop_map(|[tx_count, size_without_coinbase]| BlockInfo {
        tx_count,
        size_without_coinbase,
    });
    let fee_spec =
        json_object(json()).prop_map(|(text, _)| CanonicalJson::from_text(&text).unwrap());
    let params = any::<[u64; 4]>().prop_map(|[block, policy, mined, consensus]| MinerParams {
        block_max_size: block,
        max_stack_memory_usage_policy: policy,
        excessive_block_size: mined,
        max_stack_memory_usage_consensus: consensus,
    });
    let extensions = (option::of(bind), option::of(info), option::of(fee_spec), option::of(params))
        .prop_map(|(block_bind, block_info, fee_spec, miner_params)| Extensions {
            block_bind,
            block_info,
            fee_spec,
            miner_params,
        });
    let vctx = (any::<[u8; 32]>(), any::<u32>())
        .prop_map(|(txid, vout)| OutPoint { txid: Txid::from_bytes(txid), vout });
    (any::<u32>(), (key(), key()), vctx, contact(), extensions).prop_map(
        |(height, (previous, current), vctx, miner_contact, extensions)| Document {
            height,
            previous_miner_id: previous.public_key(),
            previous_miner_id_signature: previous.sign(vctx.txid.as_bytes()),
            miner_id: current.public_key(),
            vctx,
            miner_contact,
            extensions,
        },
    )
}

/// Nearly valid JSON text, which gets far into a parser.
fn any_text() -> impl Strategy<Value = String> {
    let cut = (json(), any::<prop::sample::Index>(), any::<char>()).prop_map(
        |((text, _), place, inserted)| {
            let place = text.char_indices().map(|(at, _)| at).nth(place.index(text.len()));
            let (before, after) = text.split_at(place.unwrap_or(text.len()));
            format!("{before}{inserted}{after}")
        },
    );
    let tokens = select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\ude00", "0", "-", "1e9",
        "null", " ", "\u{7f}", "😀", "\"a\"",
    ]);
    prop_oneof![any::<String>(), cut, vec(tokens, 0..20).prop_map(|tokens| tokens.concat()),]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_coinbase2_gains_one_output_and_is_otherwise_the_same(
        parts in parts(),
        script in script(),
    ) {
        let bytes = parts.write();
        prop_assert_eq!(&parts.read(&bytes), &parts);
        let coinbase2 = Coinbase2::parse(&bytes).unwrap();
        let result = coinbase2.with_output(&Script::from_bytes(script.clone())).unwrap();
        prop_assert_eq!(&parts.read(&result), &parts.with_output(&script));
        prop_assert_eq!(result, parts.with_output(&script).write());
    }

    #[test]
    fn a_coinbase2_reads_in_one_way_or_is_refused(bytes in nearly_a_coinbase2()) {
        let readings = readings(&bytes);
        let expected = match readings[..] {
            [] => Err(Coinbase2Error::Malformed),
            [offset] => Ok(offset),
            [first, second, ..] => Err(Coinbase2Error::Ambiguous(first, second)),
        };
        let read = Coinbase2::parse(&bytes).map(|coinbase2| {
            let result = coinbase2.with_output(&Script::from_bytes([0x6a])).unwrap();
            let grown = |offset: &usize| {
                let before = Parts::read_from(*offset, &bytes);
                before.map(|before| before.with_output(&[0x6a]).write()) == Some(result.clone())
            };
            (0..=100).find(grown).unwrap()
        });
        match read {
            Err(Coinbase2Error::NoOutput) => prop_assert_eq!((expected, bytes[4]), (Ok(0), 0)),
            read => prop_assert_eq!(read, expected),
        }
    }

    #[test]
    fn an_answer_says_what_was_asked_and_names_the_key_that_signed(
        parts in parts(),
        job in job(),
        height in 1..=i32::MAX as u32,
    ) {
        let (identity, previous, current) = identity();
        let bytes = parts.write();
        let job_data = JobData::from_json(&job.to_json()).unwrap();
        let answer = identity.coinbase2(height, &bytes, &job_data).unwrap();
        prop_assert_eq!(&identity.coinbase2(height, &bytes, &job_data).unwrap(), &answer);

        let (satoshis, script) = parts.read(&answer).outputs.pop().unwrap();
        prop_assert_eq!(satoshis, 0);
        prop_assert_eq!(answer.to_vec(), parts.with_output(&script).write());
        let tagged = parts.tagged()?;
        let answer = identity.coinbase2(height, &tagged.write(), &job_data).unwrap();
        prop_assert_eq!(answer.to_vec(), tagged.with_output(&script).write());

        let pushes = read_pushes(script.strip_prefix(&[0x00, 0x6a]).unwrap());
        let [prefix, document, signature] = pushes[..] else { panic!("{pushes:?}") };
        prop_assert_eq!(prefix, [0xac, 0x1e, 0xed, 0x88]);
        let signature = Signature::from_der(signature).unwrap();
        prop_assert!(current.verify(&sha256(document), &signature));

        let text = str::from_utf8(document).unwrap();
        let start = text.find(r#""prevMinerIdSig":""#).unwrap() + 18;
        let succession = &text[start..start + text[start..].find('"').unwrap()];
        let preimage = format!("{previous}{current}{VCTX}");
        let digest = sha256(&hex::decode(preimage).unwrap());
        prop_assert!(previous.verify(&digest, &succession.parse().unwrap()));
        let expected = format!(
            "{{\"version\":\"0.2\",\"height\":{height},\"prevMinerId\":\"{previous}\",\
            \"prevMinerIdSig\":\"{succession}\",\"minerId\":\"{current}\",\
            \"vctx\":{{\"txId\":\"{VCTX}\",\"vout\":7}},\"minerContact\":{{\"name\":\"pool\"}}{}}}",
            job.extensions(&parts)
        );
        prop_assert_eq!(text, expected);
    }

    #[test]
    fn a_reference_is_one_output_more_and_binds_to_the_block(
        parts in parts(),
        txid in any::<[u8; 32]>(),
        previous_block in any::<[u8; 32]>(),
        merkle_branch in vec(any::<[u8; 32]>(), 0..13),
    ) {
        let identity = miner_info_identity();
        let bytes = parts.write();
        let previous = BlockHash::from_bytes(previous_block);
        let job = BlockBindJob { previous_block: previous, merkle_branch };
        let ask = |bytes: &[u8]| {
            let txid = Txid::from_bytes(txid);
            identity.preview_coinbase2_with_reference(txid, bytes, &job).unwrap()
        };
        let answer = ask(&bytes);
        prop_assert_eq!(&ask(&bytes), &answer);
        let (satoshis, script) = parts.read(&answer).outputs.pop().unwrap();
        prop_assert_eq!(satoshis, 0);
        prop_assert_eq!(answer.to_vec(), parts.with_output(&script).write());
        let tagged = parts.tagged()?;
        prop_assert_eq!(ask(&tagged.write()).to_vec(), tagged.with_output(&script).write());

        let rest = script.strip_prefix(&[0x00, 0x6a, 0x04, 0x60, 0x1d, 0xfa, 0xce]).unwrap();
        let pushes = read_pushes(rest);
        let [version, named, bind, signature] = pushes[..] else { panic!("{pushes:?}") };
        prop_assert_eq!((version, named), (&[0][..], &txid[..]));
        let root = modified_root(&parts.with_output(&script[..42]), &job.merkle_branch);
        let expected = sha256(&[root, previous_block].concat());
        prop_assert_eq!(bind, expected);
        let signature = Signature::from_der(signature).unwrap();
        prop_assert!(identity.public_key().verify(&expected, &signature));
    }

    #[test]
    fn a_document_reads_back(document in document()) {
        let text = document.to_json();
        let read = Document::from_json(&text).unwrap();
        prop_assert_eq!(&read.to_json(), &text);
        prop_assert_eq!(read, document);
    }

    #[test]
    fn an_output_script_reads_back(
        document in script(),
        signature in script(),
    ) {
        let script = IdentityScript { document, signature };
        prop_assert_eq!(IdentityScript::parse(&script.to_script()), Ok(script));
    }

    #[test]
    fn a_json_text_has_one_spelling_of_the_same_value((any, one) in json()) {
        let json = CanonicalJson::from_text(&any).unwrap();
        prop_assert_eq!(json.as_str(), &one);
        prop_assert_eq!(CanonicalJson::from_text(&one), Ok(json));
        // serde_json cannot represent numbers beyond its range.
        if let Ok(value) = serde_json::from_str::<Value>(&any) {
            prop_assert_eq!(serde_json::from_str::<Value>(&one).unwrap(), value);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in any_text()) {
        if let Ok(json) = CanonicalJson::from_text(&text) {
            prop_assert_eq!(CanonicalJson::from_text(json.as_str()), Ok(json));
        }
        if let Ok(contact) = MinerContact::from_json(&text) {
            prop_assert_eq!(MinerContact::from_json(&contact.to_json()), Ok(contact));
        }
        let _ = JobData::from_json(&text);
        let _ = Document::from_json(&text);
    }

    #[test]
    fn a_text_is_the_string_that_was_meant(text in vec(any::<char>(), 0..20)) {
        let text: String = text.into_iter().collect();
        let json = CanonicalJson::string(&text);
        prop_assert_eq!(CanonicalJson::from_text(json.as_str()), Ok(json.clone()));
        prop_assert_eq!(serde_json::from_str::<String>(json.as_str()).unwrap(), text);
    }
}
