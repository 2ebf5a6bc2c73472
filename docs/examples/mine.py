# Mines one block on regtest with the identity of an alias of protocol 0.2.
# python3 mine.py ALIAS COOKIE_FILE NODE_URL SERVICE_URL
import base64, hashlib, json, struct, sys, urllib.request

ALIAS, COOKIE_FILE, NODE_URL, SERVICE_URL = sys.argv[1:]
INPUT_LENGTH = 4 + 1 + 36  # The version, the count of inputs and the outpoint of a coinbase transaction.


def post(url, body, headers={}):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read().decode()


def node(method, *params):
    with open(COOKIE_FILE, "rb") as file:
        credentials = base64.b64encode(file.read().strip()).decode()
    answer = post(NODE_URL, {"method": method, "params": params}, {"Authorization": f"Basic {credentials}"})
    return json.loads(answer)["result"]


def with_identity(coinbase2, candidate):
    job = {"miningCandidate": candidate, "getInfo": node("getinfo")}
    body = {"blockHeight": candidate["height"], "alias": ALIAS, "coinbase2": coinbase2, "jobData": job}
    try:
        return post(SERVICE_URL + "/coinbase2", body)
    except OSError as error:
        print("The service gives no identity:", error.read().decode() if hasattr(error, "read") else error)
        return coinbase2  # A block without an identity is as good as any other.


def double_sha256(data):
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def header_of(candidate, coinbase, nonce):
    root = double_sha256(coinbase)
    for sibling in candidate["merkleProof"]:
        root = double_sha256(root + bytes.fromhex(sibling)[::-1])
    previous, bits = bytes.fromhex(candidate["prevhash"])[::-1], int(candidate["nBits"], 16)
    version, time = candidate["version"], candidate["time"]
    return struct.pack("<i32s32sIII", version, previous, root, time, bits, nonce)


candidate = node("getminingcandidate", True)
own = bytes.fromhex(candidate.pop("coinbase"))
# The first part ends after the unlocking script, whose length is one byte.
split = INPUT_LENGTH + 1 + own[INPUT_LENGTH]
coinbase2 = with_identity(own[split:].hex(), candidate)
coinbase = own[:split] + bytes.fromhex(coinbase2)
bits = int(candidate["nBits"], 16)
target = (bits & 0xFFFFFF) << 8 * ((bits >> 24) - 3)
nonce = 0
while int.from_bytes(double_sha256(header_of(candidate, coinbase, nonce)), "little") > target:
    nonce += 1
if node("submitminingsolution", {"id": candidate["id"], "nonce": nonce, "coinbase": coinbase.hex()}) is not True:
    sys.exit("The node has refused the block")
identity = "without an identity" if coinbase == own else f"with the identity of {ALIAS}"
print(f"The node has accepted block {candidate['height']} {identity}")
