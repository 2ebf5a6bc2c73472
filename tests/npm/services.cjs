// Reads a JSON array of jobs from standard input, and does them with the clients of @bsv/sdk and of
// @bsv/wallet-toolbox-client.

'use strict'

const { ARC, Beef, MerklePath, Transaction, WhatsOnChain } = require('@bsv/sdk')
const { EventSource } = require('eventsource')
const toolbox = '@bsv/wallet-toolbox-client/out/src/services/'
const { ChaintracksServiceClient } = require(toolbox + 'chaintracker/chaintracks/ChaintracksServiceClient.js')
const { ARC: ToolboxArc } = require(toolbox + 'providers/ARC.js')
const { ArcSSEClient } = require(toolbox + 'providers/ArcSSEClient.js')

// Standard output is for the answers.
console.log = console.error

function linked ({ transaction, parents }) {
  const all = parents.map(hex => Transaction.fromHex(hex))
  const linked = Transaction.fromHex(transaction)
  for (const input of linked.inputs) {
    input.sourceTransaction = all.find(parent => parent.id('hex') === input.sourceTXID)
  }
  return linked
}

function tracker ({ whatsonchain, chaintracks }) {
  if (chaintracks) return new ChaintracksServiceClient('test', chaintracks)
  const tracker = new WhatsOnChain('test')
  tracker.URL = whatsonchain
  return tracker
}

const events = ({ url, token, count }) => new Promise(resolve => {
  const seen = []
  const client = new ArcSSEClient({
    baseUrl: url,
    callbackToken: token,
    EventSourceClass: EventSource,
    onEvent: event => {
      seen.push(event)
      if (seen.length < count) return
      client.close()
      resolve(seen)
    }
  })
  client.connect()
})

const jobs = {
  broadcast: async job => await new ARC(job.url, { apiKey: job.key, callbackToken: job.token }).broadcast(linked(job)),
  broadcastMany: async job => await new ARC(job.url).broadcastMany(job.all.map(linked)),
  postBeef: async job => await new ToolboxArc(job.url).postBeef(Beef.fromString(job.beef, 'hex'), [job.txid]),
  status: async job => await new ToolboxArc(job.url).getTxData(job.txid),
  verify: async job => await MerklePath.fromHex(job.bump).verify(job.txid, tracker(job)),
  events
}

async function main () {
  const chunks = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  const answers = []
  for (const job of JSON.parse(Buffer.concat(chunks).toString())) {
    answers.push(await jobs[job.do](job).catch(error => ({ error: String(error) })))
  }
  process.stdout.write(JSON.stringify(answers))
}

main()
