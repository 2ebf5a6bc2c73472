"""Reads a JSON array of jobs about BEEF from standard input, and does them with bsv-sdk."""

import asyncio
import json
import sys
import warnings

warnings.simplefilter("ignore")

from bsv import (  # noqa: E402
    P2PKH,
    MerklePath,
    PrivateKey,
    Script,
    Transaction,
    TransactionInput,
    TransactionOutput,
)
from bsv.transaction.beef import BEEF_V2, Beef, parse_beef  # noqa: E402

BEEF_V1 = bytes.fromhex("0100beef")


class Chain:
    def __init__(self, roots):
        self.roots = roots

    async def is_valid_root_for_height(self, root, height):
        return self.roots.get(str(height)) == root

    async def current_height(self):
        return 0


def check(job):
    chain = Chain(job["roots"])
    data = bytes.fromhex(job["beef"])
    is_atomic = data[:4] == bytes.fromhex("01010101")
    subject = data[4:36][::-1].hex() if is_atomic else None
    if data[36:40] == BEEF_V1 if is_atomic else data[:4] == BEEF_V1:
        # In version 1, the package can verify only the whole transaction, including all scripts.
        transaction = Transaction.from_beef(data[36:] if is_atomic else data)
        verified = not job["scripts"] or asyncio.run(transaction.verify(chain))
        subject = transaction.txid()
    else:
        verified = asyncio.run(parse_beef(data).verify(chain))
    return {"txid": subject} if verified else {"error": "not verified"}


def subject_of(job):
    """Makes new Merkle paths each time, since the package combines them in place."""
    transactions = [Transaction.from_hex(text) for text in [job["subject"], *job["transactions"]]]
    every = {transaction.txid(): transaction for transaction in transactions}
    for path in (MerklePath.from_hex(text) for text in job["bumps"]):
        for leaf in path.path[0]:
            if leaf.get("txid"):
                every[leaf["hash_str"]].merkle_path = path
    for transaction in transactions:
        for spent in transaction.inputs:
            spent.source_transaction = every.get(spent.source_txid)
    return transactions[0]


def make(job):
    version_2 = Beef(version=BEEF_V2)
    version_2.merge_transaction(subject_of(job))
    txid = subject_of(job).txid()
    forms = [subject_of(job).to_beef(), version_2.to_binary(), version_2.to_binary_atomic(txid)]
    return {"forms": [form.hex() for form in forms], "extended": subject_of(job).to_ef().hex()}


def pay(job):
    """Spends an output of a mined transaction with a first transaction, and that one with a payment to a script."""
    key = PrivateKey(job["wif"])
    own = P2PKH().lock(key.public_key().hash160())

    def spend(source, vout, outputs):
        paid = sum(output.satoshis for output in outputs) + job["fee"]
        change = TransactionOutput(own, source.outputs[vout].satoshis - paid)
        spent = TransactionInput(
            source_transaction=source, source_output_index=vout, unlocking_script_template=P2PKH().unlock(key)
        )
        transaction = Transaction([spent], [*outputs, change])
        transaction.sign()
        return transaction

    mined = Transaction.from_hex(job["source"])
    mined.merkle_path = MerklePath.from_hex(job["bump"])
    before = spend(mined, job["vout"], [])
    payment = spend(before, 0, [TransactionOutput(Script(job["script"]), job["satoshis"])])
    atomic = Beef(version=BEEF_V2)
    atomic.merge_transaction(payment)
    txid = payment.txid()
    return {"txid": txid, "forms": [payment.to_beef().hex(), atomic.to_binary_atomic(txid).hex()]}


def root_of(job):
    path = MerklePath.from_hex(job["bump"])
    return {"height": path.block_height, "root": path.compute_root(job["txid"])}


def answer(job):
    try:
        if "pay" in job:
            return pay(job["pay"])
        if "path" in job:
            return root_of(job["path"])
        return make(job["make"]) if "make" in job else check(job)
    except Exception as error:
        return {"error": repr(error)}


print(json.dumps([answer(job) for job in json.load(sys.stdin)]))
