"""Prints the key of a user, derived from 24 words by nothing but Python's standard library:

    python3 user_key.py USER_ID[@ACCOUNT] WORD...

USER_ID counts the users of the account, which is 0 if nothing else is said.
"""
import hashlib
import hmac
import sys

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def add(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    if a == b:
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def public(key):
    point, total = G, None
    while key:
        if key & 1:
            total = add(total, point)
        point, key = add(point, point), key >> 1
    return bytes([2 + total[1] % 2]) + total[0].to_bytes(32, "big")


def child(key, chain_code, number):
    head = b"\0" + key.to_bytes(32, "big") if number >> 31 else public(key)
    tag = hmac.new(chain_code, head + number.to_bytes(4, "big"), hashlib.sha512).digest()
    return (int.from_bytes(tag[:32], "big") + key) % N, tag[32:]


words = " ".join(sys.argv[2:])
seed = hashlib.pbkdf2_hmac("sha512", words.encode(), b"mnemonic", 2048)
tag = hmac.new(b"Bitcoin seed", seed, hashlib.sha512).digest()
key, chain_code = int.from_bytes(tag[:32], "big"), tag[32:]
user, _, account = sys.argv[1].partition("@")
for number in (44 | 1 << 31, 236 | 1 << 31, int(account or 0) | 1 << 31, 2, int(user)):
    key, chain_code = child(key, chain_code, number)
print(public(key).hex())
