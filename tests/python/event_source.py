"""Prints the id of each event of a stream, as a page reads it with the EventSource of Chromium."""

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
    # A page of the same origin: the wallet's listener lets pages of others read nothing.
    page.goto(url.replace("/stream", "?limit=1"))
    page.evaluate(READ, [url, types])
    # Until the test ends this process.
    while True:
        page.wait_for_timeout(60_000)
