"""Reads the QR codes in a picture (PNG) or on the pages of a document (PDF) with ZXing.

Writes a grey copy (PGM) of each picture beside it, for another library, and prints the paths and the texts as JSON.
"""

import json
import sys

import pypdfium2
import zxingcpp
from PIL import Image

DOTS_PER_POINT = 3


def pictures(path):
    if not path.endswith(".pdf"):
        return [Image.open(path)]
    return [page.render(scale=DOTS_PER_POINT).to_pil() for page in pypdfium2.PdfDocument(path)]


read = []
for place, picture in enumerate(pictures(sys.argv[1])):
    picture = picture.convert("L")
    greys = f"{sys.argv[1]}.{place}.pgm"
    picture.save(greys)
    texts = [code.text for code in zxingcpp.read_barcodes(picture)]
    read.append({"greys": greys, "texts": texts})
print(json.dumps(read))
