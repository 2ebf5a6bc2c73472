"""Reads a stream of events with the EventSource of a page in Chromium, and prints the id of each event."""

import sys

from playwright.sync_api import sync_playwright

READ = """
([url, types]) => {
    const source = new EventSource(url);
    source.addEventListener("open", () => tell("open"));
    for (const type of types) {
        source.addEventListener(type, (event) => tell(`${event.lastEventId} ${JSON.parse(event.data).id}`));
    }
}
"""

chromium, url, *types = sys.argv[1:]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(
        executable_path=chromium, args=["--no-sandbox", "--disable-background-networking"]
    )
    page = browser.new_page()
    page.expose_function("tell", lambda line: print(line, flush=True))
    # The page must have the same origin, since the wallet's listener lets no other page read.
    page.goto(url.replace("/stream", "?limit=1"))
    page.evaluate(READ, [url, types])
    # Runs until the test ends this process.
    while True:
        page.wait_for_timeout(60_000)
