// Reads a JSON array of jobs about BEEF from standard input, and does them with @bsv/sdk.

'use strict'

const { Beef, BEEF_V2, MerklePath, P2PKH, PrivateKey, Script, Transaction, Utils } = require('@bsv/sdk')

const chain = roots => ({
  currentHeight: async () => 0,
  isValidRootForHeight: async (root, height) => roots[height] === root
})

async function check ({ beef, roots, scripts }) {
  const bytes = Utils.toArray(beef, 'hex')
  const parsed = Beef.fromBinary(bytes)
  if (!await parsed.verify(chain(roots))) return { error: 'not verified' }
  const txid = parsed.atomicTxid ?? Transaction.fromBEEF(bytes).id('hex')
  if (scripts) {
    const read = parsed.atomicTxid === undefined ? Transaction.fromBEEF : Transaction.fromAtomicBEEF
    if (!await read(bytes).verify(chain(roots))) return { error: 'scripts not verified' }
  }
  return { txid }
}

// Makes new Merkle paths each time, since the package combines them in place.
function subjectOf ({ subject, transactions, bumps }) {
  const all = new Map([subject, ...transactions].map(hex => {
    const transaction = Transaction.fromHex(hex)
    return [transaction.id('hex'), transaction]
  }))
  for (const path of bumps.map(hex => MerklePath.fromHex(hex))) {
    for (const leaf of path.path[0]) if (leaf.txid) all.get(leaf.hash).merklePath = path
  }
  for (const transaction of all.values()) {
    for (const input of transaction.inputs) input.sourceTransaction = all.get(input.sourceTXID)
  }
  return all.get(Transaction.fromHex(subject).id('hex'))
}

function make (job) {
  const version2 = new Beef(BEEF_V2)
  version2.mergeTransaction(subjectOf(job))
  const txid = subjectOf(job).id('hex')
  return {
    forms: [
      subjectOf(job).toHexBEEF(),
      subjectOf(job).toHexAtomicBEEF(),
      version2.toHex(),
      Utils.toHex(version2.toBinaryAtomic(txid))
    ],
    extended: subjectOf(job).toHexEF()
  }
}

// Spends an output of a mined transaction with a first transaction, and that one with a payment to a script.
async function pay ({ wif, source, vout, bump, script, satoshis, fee }) {
  const key = PrivateKey.fromWif(wif)
  const own = new P2PKH().lock(key.toAddress())
  const spend = async (sourceTransaction, sourceOutputIndex, outputs) => {
    const transaction = new Transaction()
    transaction.addInput({ sourceTransaction, sourceOutputIndex, unlockingScriptTemplate: new P2PKH().unlock(key) })
    const left = sourceTransaction.outputs[sourceOutputIndex].satoshis
    const paid = outputs.reduce((sum, output) => sum + output.satoshis, fee)
    for (const output of [...outputs, { lockingScript: own, satoshis: left - paid }]) transaction.addOutput(output)
    await transaction.sign()
    return transaction
  }
  const mined = Transaction.fromHex(source)
  mined.merklePath = MerklePath.fromHex(bump)
  const before = await spend(mined, vout, [])
  const payment = await spend(before, 0, [{ lockingScript: Script.fromHex(script), satoshis }])
  return { txid: payment.id('hex'), forms: [payment.toHexBEEF(), payment.toHexAtomicBEEF()] }
}

function rootOf ({ bump, txid }) {
  const path = MerklePath.fromHex(bump)
  return { height: path.blockHeight, root: path.computeRoot(txid) }
}

async function answer (job) {
  try {
    if (job.pay !== undefined) return await pay(job.pay)
    if (job.path !== undefined) return rootOf(job.path)
    return job.make === undefined ? await check(job) : make(job.make)
  } catch (error) {
    return { error: String(error) }
  }
}

async function main () {
  const chunks = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  const answers = []
  for (const job of JSON.parse(Buffer.concat(chunks).toString())) answers.push(await answer(job))
  process.stdout.write(JSON.stringify(answers))
}

main()
