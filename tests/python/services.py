"""Reads a JSON array of jobs from standard input, and does them with the clients of bsv-sdk."""

import asyncio
import json
import sys
import warnings

warnings.simplefilter("ignore")

from bsv import MerklePath, Transaction  # noqa: E402
from bsv.broadcasters.arc import ARC, ARCConfig  # noqa: E402
from bsv.broadcasters.arcade import Arcade, ArcadeConfig  # noqa: E402
from bsv.chaintrackers import WhatsOnChainTracker  # noqa: E402


def linked(job):
    parents = {it.txid(): it for it in map(Transaction.from_hex, job["parents"])}
    transaction = Transaction.from_hex(job["transaction"])
    for spent in transaction.inputs:
        spent.source_transaction = parents.get(spent.source_txid)
        if spent.source_transaction and "bumps" in job:
            spent.source_transaction.merkle_path = MerklePath.from_hex(job["bumps"][spent.source_txid])
    return transaction


def client(job):
    if job["client"] == "arcade":
        return Arcade(job["url"], ArcadeConfig(api_key=job.get("key")))
    return ARC(job["url"], ARCConfig(api_key=job.get("key"), format=job.get("format")))


def broadcast(job):
    result = asyncio.run(client(job).broadcast(linked(job)))
    return {name: getattr(result, name, None) for name in ("status", "code", "txid", "message", "description")}


def status(job):
    service = client(job)
    state = service.check_transaction_status(job["txid"])
    return {**state, **service.categorize_transaction_status(state)}


def verify(job):
    tracker = WhatsOnChainTracker("test")
    tracker.URL = job["whatsonchain"]
    return asyncio.run(MerklePath.from_hex(job["bump"]).verify(job["txid"], tracker))


def answer(job):
    try:
        return {"broadcast": broadcast, "status": status, "verify": verify}[job["do"]](job)
    except Exception as error:
        return {"error": repr(error)}


print(json.dumps([answer(job) for job in json.load(sys.stdin)]))
