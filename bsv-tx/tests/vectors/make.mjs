// Makes transactions.json, what an implementation that shares no code with this crate says about
// random transactions, signatures, keys, pushes and Merkle trees. The same file every time.
//
// Made with node 20 and @bsv/sdk 2.1.0, installed outside the repository:
//
//     mkdir /tmp/oracle && cd /tmp/oracle
//     npm install --ignore-scripts @bsv/sdk@2.1.0
//     node /path/to/bsv-tx/tests/vectors/make.mjs
//
// The tests need neither: they read the JSON.

import { createRequire } from 'node:module'
import { writeFileSync } from 'node:fs'

// The package is looked up where the script is run, not where it stands.
const require = createRequire(`${process.cwd()}/`)
const sdk = require('@bsv/sdk')
const { BigNumber, Hash, HD, LockingScript, MerklePath, P2PKH, PrivateKey, Script } = sdk
const { Transaction, TransactionSignature, UnlockingScript, Utils } = sdk

const TRANSACTIONS = 230
const KEYS = 50
const EXTENDED_KEYS = 12
const MOST_LEAVES = 33

// xorshift32.
let state = 0x42535654
function random () {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return state >>> 0
}
const below = n => random() % n
const pick = list => list[below(list.length)]
const bytes = length => Array.from({ length }, () => random() >>> 24)
const hex = data => Utils.toHex(Array.from(data))

// The seed's bytes over and over: long data that takes little room in the file.
const repeat = (seed, length) => Array.from({ length }, (_, i) => seed[i % seed.length])

const U64_MAX = (1n << 64n) - 1n
const AMOUNTS = [0n, 1n, 546n, 0xffffffffn, 1n << 32n, 2_100_000_000_000_000n, (1n << 53n) - 1n,
  1n << 53n, (1n << 53n) + 1n, (1n << 63n) - 1n, 1n << 63n, U64_MAX]
const randomAmount = () =>
  below(3) === 0 ? pick(AMOUNTS) : ((BigInt(random()) << 32n) | BigInt(random())) >> BigInt(below(64))

// The library takes amounts as JavaScript numbers, exact to 2^53 only. At run time it hands them on
// to its big numbers, which read decimal text as well.
const amount = n => n.toString()

const VERSIONS = [1, 2, 1, 2, 0, 3, -1, -2, 0x7fffffff, -0x80000000, 0x10000001]
const SEQUENCES = [0xffffffff, 0xffffffff, 0xfffffffe, 0, 1, 0x80000000]
const LOCK_TIMES = [0, 0, 1, 499999999, 500000000, 0x7fffffff, 0x80000000, 0xffffffff]
const SCRIPT_LENGTHS = [0, 1, 0x4b, 0x4c, 0xfc, 0xfd, 0xff, 0x100]

function scriptBytes () {
  switch (below(8)) {
    case 0: return bytes(pick(SCRIPT_LENGTHS))
    case 1: return new P2PKH().lock(bytes(20)).toBinary()
    case 2: return new Script().writeOpCode(0).writeOpCode(0x6a).writeBin(bytes(below(90))).toBinary()
    default: return bytes(below(30))
  }
}

function howMany () {
  return pick([0, 1, 1, 1, 2, 2, 3, 4, 5, below(21)])
}

function makeTransaction (at) {
  const inputs = Array.from({ length: at === 0 ? 20 : howMany() }, () => ({
    sourceTXID: hex(bytes(32)),
    sourceOutputIndex: pick([0, 1, 2, 0xff, 0x10000, 0xffffffff, random()]),
    unlockingScript: UnlockingScript.fromBinary(scriptBytes()),
    sequence: below(3) === 0 ? random() : pick(SEQUENCES)
  }))
  const outputs = Array.from({ length: at === 1 ? 20 : howMany() }, () => ({
    satoshis: amount(randomAmount()),
    lockingScript: LockingScript.fromBinary(scriptBytes())
  }))
  const lockTime = below(3) === 0 ? random() : pick(LOCK_TIMES)
  const transaction = new Transaction(pick(VERSIONS), inputs, outputs, lockTime)
  // Few, for the size of the file.
  if (at === 2) inputs[0] = { ...inputs[0] ?? makeTransaction(0).inputs[0], unlockingScript: UnlockingScript.fromBinary(bytes(0xffff)) }
  if (at === 3) outputs[0] = { satoshis: amount(1n), lockingScript: LockingScript.fromBinary(bytes(0x10000)) }
  return transaction
}

// The fields beside the bytes show that each is read from its place.
const describe = transaction => ({
  hex: transaction.toHex(),
  txid: transaction.id('hex'),
  version: transaction.version,
  lock_time: transaction.lockTime,
  inputs: transaction.inputs.map(input =>
    [input.sourceOutputIndex, input.unlockingScript.toBinary().length, input.sequence]),
  outputs: transaction.outputs.map(output =>
    [output.satoshis, output.lockingScript.toBinary().length])
})

const { SIGHASH_ALL, SIGHASH_NONE, SIGHASH_SINGLE, SIGHASH_FORKID, SIGHASH_ANYONECANPAY } =
  TransactionSignature
const SCOPES = [0, SIGHASH_ANYONECANPAY].flatMap(anyone =>
  [SIGHASH_ALL, SIGHASH_NONE, SIGHASH_SINGLE].map(base => base | SIGHASH_FORKID | anyone))

function digest (transaction, index, satoshis, script, scope) {
  const input = transaction.inputs[index]
  return hex(Hash.hash256(TransactionSignature.format({
    sourceTXID: input.sourceTXID,
    sourceOutputIndex: input.sourceOutputIndex,
    sourceSatoshis: amount(satoshis),
    transactionVersion: transaction.version,
    otherInputs: transaction.inputs.filter((_, i) => i !== index),
    outputs: transaction.outputs,
    inputIndex: index,
    subscript: script,
    inputSequence: input.sequence,
    lockTime: transaction.lockTime,
    scope
  })))
}

const SCRIPT_CODE_LENGTHS = [0, 1, 0x4b, 0x4c, 0xfc, 0xfd, 0xff, 0x100, 0xffff, 0x10000]

function makeSighash (transactions, at, index, scriptLength) {
  const seed = bytes(7)
  const script = Script.fromBinary(repeat(seed, scriptLength))
  const satoshis = randomAmount()
  return {
    transaction: at,
    input: index,
    satoshis: satoshis.toString(),
    script_seed: hex(seed),
    script_length: scriptLength,
    digests: SCOPES.map(scope => digest(transactions[at], index, satoshis, script, scope))
  }
}

function makeSighashes (transactions) {
  const cases = []
  transactions.forEach((transaction, at) => {
    const count = transaction.inputs.length
    const indices = new Set([0, transaction.outputs.length - 1, transaction.outputs.length, count - 1])
    for (const index of indices) {
      if (index < 0 || index >= count || cases.length >= 260) continue
      cases.push(makeSighash(transactions, at, index, SCRIPT_CODE_LENGTHS[cases.length % 10]))
    }
  })
  return cases
}

async function makeSpends (transactions, keys) {
  const spends = []
  for (let at = 4; spends.length < 60; at++) {
    const transaction = transactions[at]
    if (transaction.inputs.length === 0) continue
    const index = below(transaction.inputs.length)
    const key = below(keys.length)
    const satoshis = randomAmount()
    const locking = new P2PKH().lock(keys[key].toPublicKey().toHash())
    const unlocking = []
    for (const anyone of [false, true]) {
      for (const outputs of ['all', 'none', 'single']) {
        const template = new P2PKH().unlock(keys[key], outputs, anyone, amount(satoshis), locking)
        unlocking.push((await template.sign(transaction, index)).toHex())
      }
    }
    spends.push({ transaction: at, input: index, key, satoshis: satoshis.toString(), unlocking })
  }
  return spends
}

function makeKeys () {
  const order = new BigNumber('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141', 16)
  const edges = [new BigNumber(1), new BigNumber(2), new BigNumber(256), order.subn(1)]
  return Array.from({ length: KEYS }, (_, i) => new PrivateKey(edges[i] ?? new BigNumber(bytes(32))))
}

const describeKey = key => ({
  private: key.toHex(),
  public: key.toPublicKey().toString(),
  wif: [key.toWif([0x80]), key.toWif([0xef])],
  address: [key.toAddress([0x00]), key.toAddress([0x6f])]
})

function makeExtendedKeys () {
  return Array.from({ length: EXTENDED_KEYS }, (_, i) => {
    const node = new HD()
    if (i % 2 === 1) node.constants = { pubKey: 0x043587cf, privKey: 0x04358394 }
    node.fromSeed(bytes(pick([16, 32, 64])))
    const child = i % 4 < 2 ? node : node.derive(`m/${below(100)}'/${below(100)}`)
    // Children start over with the main network's constants.
    child.constants = node.constants
    return { text: child.toString(), wif: child.privKey.toWif() }
  })
}

function makePushes () {
  const lengths = [0, 1, 2, 0x14, 0x20, 0x4a, 0x4b, 0x4c, 0x4d, 0xfe, 0xff, 0x100, 0x101, 0xfffe,
    0xffff, 0x10000, 0x10001]
  return lengths.map(length => {
    const seed = bytes(7)
    const data = repeat(seed, length)
    const script = new Script().writeBin(data).toHex()
    const prefix = script.slice(0, script.length - 2 * length)
    if (script !== prefix + hex(data)) throw new Error(`push of ${length}`)
    return { seed: hex(seed), length, prefix }
  })
}

function makeNumbers () {
  const numbers = [-1, ...Array.from({ length: 17 }, (_, n) => n)]
  return numbers.map(number => ({
    data: hex(new BigNumber(number).toSm('little')),
    script: new Script().writeNumber(number).toHex()
  }))
}

function makeTree (count) {
  const txids = Array.from({ length: count }, () => hex(bytes(32)))
  const leaves = txids.map((hash, offset) => ({ offset, hash, txid: true }))
  // Left to itself, `extract` fails for the last of an odd number of leaves.
  if (count % 2 === 1 && count > 1) leaves.push({ offset: count, duplicate: true })
  const whole = new MerklePath(1, [leaves])
  const root = whole.computeRoot()
  const branches = txids.map((txid, position) => {
    if (whole.computeRoot(txid) !== root) throw new Error(`leaf ${position} of ${count}`)
    // A tree of one leaf has no siblings, and `extract` makes up one.
    if (count === 1) return []
    const branch = whole.extract([txid])
    if (branch.computeRoot(txid) !== root) throw new Error(`branch ${position} of ${count}`)
    return branch.path.map((level, height) => {
      const sibling = level.find(leaf => leaf.offset === ((position >> height) ^ 1))
      return sibling.duplicate ? null : sibling.hash
    })
  })
  return { txids, root, branches }
}

const transactions = Array.from({ length: TRANSACTIONS }, (_, at) => makeTransaction(at))
const keys = makeKeys()
const sections = {
  transactions: transactions.map(describe),
  sighashes: makeSighashes(transactions),
  keys: keys.map(describeKey),
  spends: await makeSpends(transactions, keys),
  extended_keys: makeExtendedKeys(),
  pushes: makePushes(),
  numbers: makeNumbers(),
  trees: Array.from({ length: MOST_LEAVES }, (_, i) => makeTree(i + 1))
}
// One line for each item, so that a change shows in a diff.
const text = Object.entries(sections).map(([name, items]) =>
  `"${name}": [\n${items.map(item => JSON.stringify(item)).join(',\n')}\n]`)
writeFileSync(new URL('transactions.json', import.meta.url), `{\n${text.join(',\n')}\n}\n`)
