"""Drives Chromium for tests: reads one command per line as JSON, and answers each with a line of JSON.

A command is [page, action, arguments]; `pages` are numbered from 0 on, in the order in which they were opened.
"""

import json
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from playwright.sync_api import sync_playwright

pages = []


def post(url, args):
    headers = {"Content-Type": "application/json"}
    try:
        answer = urlopen(Request(url, json.dumps(args).encode(), headers))
    except HTTPError as error:
        answer = error
    return json.load(answer)


class Page:
    def __init__(self, browser, options):
        script = options.pop("init", None)
        permissions = options.pop("permissions", None)
        blocked = options.pop("block", None)
        wallet = options.pop("wallet", None)
        self.context = browser.new_context(**options)
        if blocked:
            self.context.route(blocked, lambda route: route.abort())
        if wallet:
            self.context.expose_function("askWallet", lambda call, args: post(f"{wallet}/{call}", args))
        if script:
            self.context.add_init_script(script)
        if permissions is not None:
            self.context.grant_permissions(permissions)
        self.page = self.context.new_page()
        self.requests = []
        self.complaints = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self.note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def note(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def goto(self, url):
        answer = self.page.goto(url)
        return answer and answer.status

    def run(self, script, argument=None):
        return self.page.evaluate(script, argument)

    def wait(self, script):
        # A page's Content-Security-Policy blocks playwright's own way to wait for this.
        deadline = time.monotonic() + 60
        while not self.page.evaluate(script):
            if time.monotonic() > deadline:
                raise TimeoutError(f"timed out: {script}")
            self.page.wait_for_timeout(5)

    def click(self, selector):
        self.page.click(selector)

    def press(self, key):
        self.page.keyboard.press(key)

    def add(self, path):
        """Runs a script in the page in spite of its Content-Security-Policy. axe-core needs this."""
        self.page.evaluate(open(path, encoding="utf-8").read())

    def screenshot(self, path):
        self.page.screenshot(path=path, full_page=True)

    def pdf(self, path):
        self.page.pdf(path=path)

    def told(self):
        """The requests and the errors of the page since the last call."""
        told = {"requests": self.requests, "complaints": self.complaints}
        self.requests, self.complaints = [], []
        return told

    def close(self):
        self.context.close()


chromium, *flags = sys.argv[1:]
with sync_playwright() as playwright:
    fixed = ["--no-sandbox", "--disable-background-networking"]
    browser = playwright.chromium.launch(executable_path=chromium, args=fixed + flags)
    for line in sys.stdin:
        number, action, arguments = json.loads(line)
        try:
            if action == "open":
                pages.append(Page(browser, *arguments))
                answer = {"ok": len(pages) - 1}
            else:
                answer = {"ok": getattr(pages[number], action)(*arguments)}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
