// A BRC-100 wallet (@bsv/wallet-toolbox-client) as web pages reach it: JSON over HTTP at a port of this computer. It
// broadcasts through a stand-in for ARC before the node that the environment names, and connects to nobody else.
//
// POST /METHOD calls that method of the wallet. /fund answers a script with which to fund the wallet, and /funded takes
// the transaction that pays this script. POST and GET /v1/tx are the stand-in's. The first line of output is the port.

'use strict'

require('fake-indexeddb/auto')
const http = require('http')
const {
  Beef, CachedKeyDeriver, FetchHttpClient, P2PKH, PrivateKey, ProtoWallet, PublicKey, Transaction, Utils
} = require('@bsv/sdk')
const {
  Services, StorageIdb, StorageProvider, Wallet, WalletStorageManager
} = require('@bsv/wallet-toolbox-client')

const { RPC_URL, RPC_USER, RPC_PASSWORD, WALLET_PORT } = process.env
const CHAIN = 'test'

// No request of the wallet's services leaves this computer.
const onlyHere = async (url, options) => {
  if (!['127.0.0.1', 'localhost'].includes(new URL(url).hostname)) throw new Error(`${url} is elsewhere`)
  return await fetch(url, options)
}

async function ask (method, ...params) {
  const authorization = 'Basic ' + Buffer.from(`${RPC_USER}:${RPC_PASSWORD}`).toString('base64')
  const body = JSON.stringify({ method, params })
  const reply = await onlyHere(RPC_URL, { method: 'POST', headers: { authorization }, body })
  const { result, error } = await reply.json()
  if (error) throw new Error(error.message)
  return result
}

const headers = {
  currentHeight: async () => await ask('getblockcount'),
  getPresentHeight: async () => await ask('getblockcount'),
  findHeaderForHeight: async height => {
    const header = await ask('getblockheader', await ask('getblockhash', height))
    const { hash, version, time, nonce, merkleroot: merkleRoot } = header
    const previousHash = header.previousblockhash ?? '00'.repeat(32)
    return { height, hash, version, previousHash, merkleRoot, time, bits: parseInt(header.bits, 16), nonce }
  }
}

// Broadcasts as ARC does: submits the unmined transactions, parents first.
async function broadcast ({ rawTx }) {
  const bytes = Utils.toArray(rawTx, 'hex')
  const isBeef = /^0[12]00beef/i.test(rawTx)
  const transactions = isBeef
    ? Beef.fromBinary(bytes).txs.filter(tx => tx.bumpIndex === undefined).map(tx => tx.tx)
    : [/^.{8}0000000000ef/i.test(rawTx) ? Transaction.fromEF(bytes) : Transaction.fromBinary(bytes)]
  for (const transaction of transactions) {
    await ask('sendrawtransaction', transaction.toHex()).catch(error => {
      if (!/already/.test(error.message)) throw error
    })
  }
  return await status(transactions.at(-1).id('hex'))
}

async function status (txid) {
  await ask('getrawtransaction', txid)
  return { txid, txStatus: 'SEEN_ON_NETWORK', extraInfo: '', competingTxs: null }
}

function servicesAt (arcUrl) {
  const options = Services.createDefaultOptions(CHAIN)
  const httpClient = new FetchHttpClient(onlyHere)
  Object.assign(options, { arcUrl, arcConfig: { httpClient }, arcGorillaPoolUrl: undefined, chaintracks: headers })
  const services = new Services(options)
  for (const name of ['Bitails', 'WhatsOnChain']) services.postBeefServices.remove(name)
  return services
}

async function openWallet (arcUrl) {
  const keyDeriver = new CachedKeyDeriver(PrivateKey.fromRandom())
  const storage = new WalletStorageManager(keyDeriver.identityKey)
  const wallet = new Wallet({ chain: CHAIN, keyDeriver, storage, services: servicesAt(arcUrl) })
  const provider = new StorageIdb(StorageProvider.createStorageBaseOptions(CHAIN))
  await provider.migrate('wallet', PrivateKey.fromRandom().toPublicKey().toString())
  await provider.makeAvailable()
  await storage.addWalletStorageProvider(provider)
  return wallet
}

// A payer of the wallet derives the key as BRC-29 specifies.
const sender = new ProtoWallet(PrivateKey.fromRandom())
const remittance = { derivationPrefix: 'dGVzdA==', derivationSuffix: 'ZnVuZA==' }

async function fund (wallet) {
  const { publicKey: counterparty } = await wallet.getPublicKey({ identityKey: true })
  const keyID = `${remittance.derivationPrefix} ${remittance.derivationSuffix}`
  const { publicKey } = await sender.getPublicKey({ protocolID: [2, '3241645161d8'], keyID, counterparty })
  return { script: new P2PKH().lock(PublicKey.fromString(publicKey).toAddress()).toHex() }
}

async function funded (wallet, { tx, outputIndexes }) {
  const { publicKey: senderIdentityKey } = await sender.getPublicKey({ identityKey: true })
  const outputs = outputIndexes.map(outputIndex => ({
    outputIndex, protocol: 'wallet payment', paymentRemittance: { ...remittance, senderIdentityKey }
  }))
  return await wallet.internalizeAction({ tx: Utils.toArray(tx, 'hex'), outputs, description: 'funds of a test' })
}

async function answer (wallet, request, body) {
  const name = request.url.slice(1)
  const args = body === '' ? {} : JSON.parse(body)
  switch (name) {
    case 'v1/tx': return await broadcast(args)
    case 'fund': return await fund(wallet)
    case 'funded': return await funded(wallet, args)
  }
  if (name.startsWith('v1/tx/')) return await status(name.slice('v1/tx/'.length))
  return await wallet[name](args, 'localhost')
}

async function main () {
  let wallet
  const server = http.createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    response.setHeader('Access-Control-Allow-Origin', '*')
    response.setHeader('Access-Control-Allow-Headers', '*')
    response.setHeader('Access-Control-Allow-Private-Network', 'true')
    response.setHeader('Content-Type', 'application/json')
    if (request.method === 'OPTIONS') return response.end()
    try {
      response.end(JSON.stringify(await answer(wallet, request, Buffer.concat(chunks).toString())))
    } catch (error) {
      response.statusCode = 400
      response.end(JSON.stringify({ isError: true, message: String(error.stack ?? error), ...error }))
    }
  })
  await new Promise(resolve => server.listen(Number(WALLET_PORT ?? 0), '127.0.0.1', resolve))
  wallet = await openWallet(`http://127.0.0.1:${server.address().port}`)
  process.stdout.write(`${server.address().port}\n`)
  // The program that started this one has ended.
  process.stdin.on('end', () => process.exit()).resume()
}

main()
