// What a payment page does of its own accord: it counts down, follows the invoice, copies, and calls a wallet when its
// payer clicks. All that it shows comes from the server's own page or goes in as text.
"use strict";

const POLL = 3000;
const POLL_UNSEEN = 15000;
const WALLETS = ["https://localhost:2121", "http://localhost:3321"];

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const sleep = (millis) => new Promise((wake) => setTimeout(wake, millis));
const main = () => find("main");
const id = main().dataset.id;

// The server's clock, less the one here.
let ahead = 0;
let source;
let timer;
let refreshing;
let tag = "";
// The chosen tab outlives a refresh, and so does the payment with a wallet: the payment that goes on, the transaction
// that the wallet has made and the shop has not answered yet, whether the shop has taken one, and what the page says.
let chosen = "address";
let paying;
let made;
let isTaken = false;
let said = "";

function word(state) {
  const { state: name, paidSatoshis: paid, dueSatoshis: due, countedSatoshis: counted } = state;
  return [name, paid, due, counted, state.refundedSatoshis, state.surplusSatoshis, state.mined].join("-");
}

function learn(state) {
  ahead = Date.parse(state.now) - Date.now();
  tick();
  if (word(state) !== main().dataset.word) refresh();
}

// Takes over the server's page as it is now.
async function refresh() {
  if (refreshing) {
    refreshing = "again";
    return;
  }
  refreshing = "once";
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (answer.ok || answer.status === 404) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      show(page);
      if (answer.status === 404) end();
    } else {
      setTimeout(refresh, wait(answer));
    }
  } catch {
    setTimeout(refresh, POLL);
  }
  const isDue = refreshing === "again";
  refreshing = undefined;
  if (isDue) refresh();
}

function show(page) {
  const had = main().contains(document.activeElement);
  document.title = page.title;
  const next = document.adoptNode(find("main", page));
  main().replaceWith(next);
  enhance();
  find("#say").textContent = next.dataset.say || find("h1").textContent;
  if (had) find("h1").focus();
}

// For how long to wait after an answer that was none.
function wait(answer) {
  return Math.max(POLL, retryAfter(answer));
}

function retryAfter(answer) {
  return 1000 * (Number(answer?.headers.get("retry-after")) || 0);
}

function follow() {
  if ("final" in main().dataset) return;
  source = new EventSource(`${id}/stream`);
  source.addEventListener("state", (event) => learn(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) poll();
  });
}

async function poll() {
  clearTimeout(timer);
  let pause = document.hidden ? POLL_UNSEEN : POLL;
  try {
    const answer = await fetch(`${id}/state`, { headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.ok) {
      tag = answer.headers.get("etag") || "";
      learn(await answer.json());
    } else if (answer.status === 404) {
      return refresh();
    } else if (answer.status !== 304) {
      pause = Math.max(pause, wait(answer));
    }
  } catch {
    // The server is away: it is asked again.
  }
  clearTimeout(timer);
  if (!("final" in main().dataset)) timer = setTimeout(poll, pause);
}

function end() {
  source?.close();
  clearTimeout(timer);
}

function tick() {
  const shown = find("[role=timer]");
  if (!shown) return;
  const seconds = Math.ceil((Date.parse(main().dataset.expires) - Date.now() - ahead) / 1000);
  const left = Math.max(0, seconds);
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  const days = Math.floor(left / 86400);
  const clock = `${two((left % 86400) / 3600)}:${two((left % 3600) / 60)}:${two(left % 60)}`;
  shown.textContent = days ? `${days} ${shown.dataset.days} ${clock}` : clock;
  // The server decides what has expired, a moment later.
  if (seconds <= 0 && seconds % 3 === 0) refresh();
}

function enhance() {
  const language = document.documentElement.lang;
  for (const time of all("time")) {
    const moment = new Date(time.dateTime);
    time.textContent = moment.toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
  }
  for (const button of all(".copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  const tabs = all("[role=tab]");
  for (const tab of tabs) {
    const panel = find(`#${tab.getAttribute("aria-controls")}`);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    find("h2", panel).hidden = true;
    tab.parentElement.hidden = false;
    tab.addEventListener("click", () => choose(panel.id));
    tab.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -tabs.indexOf(tab), End: -1 - tabs.indexOf(tab) };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const next = tabs.at((tabs.indexOf(tab) + step) % tabs.length);
      choose(next.getAttribute("aria-controls"));
      next.focus();
    });
  }
  choose(chosen);
  for (const left of all(".left")) left.hidden = false;
  const wallet = find(".wallet");
  if (wallet) {
    wallet.hidden = false;
    find("button", wallet).addEventListener("click", pay);
  }
  showPayment();
  tick();
}

function choose(name) {
  chosen = name;
  for (const tab of all("[role=tab]")) {
    const isChosen = tab.getAttribute("aria-controls") === name;
    tab.setAttribute("aria-selected", isChosen);
    tab.tabIndex = isChosen ? 0 : -1;
    find(`#${tab.getAttribute("aria-controls")}`).hidden = !isChosen;
  }
}

async function copy(button) {
  const text = button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages without TLS have no clipboard of that kind.
    const field = document.createElement("textarea");
    field.value = text;
    button.after(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    button.focus();
  }
  const label = button.dataset.label ??= button.textContent;
  button.textContent = button.dataset.done;
  find("#say").textContent = `${button.dataset.done}: ${text}`;
  await sleep(2000);
  button.textContent = label;
}

// A wallet with the interface of BRC-100: that of the browser, or one that listens on this device.
async function findWallet() {
  if (window.CWI) return (call, args) => window.CWI[call](args);
  for (const base of WALLETS) {
    const ask = async (call, args) => {
      const answer = await fetch(`${base}/${call}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Accept: "application/json" },
        body: JSON.stringify(args),
      });
      const result = await answer.json();
      if (!answer.ok) throw new Error(result.message || answer.status);
      return result;
    };
    try {
      await ask("getVersion", {});
      return ask;
    } catch {
      // The next one, perhaps.
    }
  }
}

// One payment at a time, however often the page is refreshed meanwhile.
function pay() {
  if (paying || isTaken) return;
  paying = payOnce({ ...find(".wallet button").dataset }).finally(() => {
    paying = undefined;
    showPayment();
  });
  showPayment();
}

async function payOnce(texts) {
  try {
    made ??= await make(texts);
  } catch (error) {
    say(`${texts.failed}: ${error.message || error}`);
  }
  if (made) await tell(texts);
}

function say(text) {
  said = text;
  showPayment();
}

function showPayment() {
  const button = find(".wallet button");
  if (!button) {
    // Nothing is due. If something is due again, that is another payment.
    if (!paying) [isTaken, said] = [false, ""];
    return;
  }
  button.disabled = Boolean(paying) || isTaken;
  button.dataset.pay ??= button.textContent;
  button.textContent = made && !paying ? button.dataset.again : button.dataset.pay;
  find(".wallet [role=status]").textContent = said;
}

// Has the wallet pay what is due. Answers the transaction with what it takes to verify it (BRC-95).
async function make(texts) {
  say(texts.asked);
  const wallet = await findWallet();
  if (!wallet) {
    say(texts.missing);
    return undefined;
  }
  const { script, due } = main().dataset;
  const result = await wallet("createAction", {
    description: `Invoice ${id}`,
    outputs: [{ lockingScript: script, satoshis: Number(due), outputDescription: `Invoice ${id}` }],
    options: { acceptDelayedBroadcast: false },
  });
  if (result.tx) return result.tx;
  const { reference } = result.signableTransaction;
  return (await wallet("signAction", { reference, spends: {} })).tx;
}

// Tells the shop of the transaction, and again as long as the shop has not decided.
async function tell(texts) {
  say(texts.sending);
  let reason = "";
  for (let pause = 500; pause <= 8000; pause *= 2) {
    let answer;
    try {
      answer = await fetch(`${id}/transaction`, {
        method: "POST",
        headers: { "Content-Type": "application/octet-stream" },
        body: Uint8Array.from(made),
      });
      // A front end may answer something else than a problem.
      const problem = answer.ok ? {} : await answer.json().catch(() => ({}));
      reason = problem.detail || answer.status;
      if (answer.ok || isFinal(answer.status, problem.code)) {
        made = undefined;
        isTaken = answer.ok;
        return say(answer.ok ? texts.sent : `${texts.answered}: ${reason}. ${texts.look}`);
      }
    } catch (error) {
      reason = error.message;
    }
    await sleep(Math.max(pause, retryAfter(answer)));
  }
  say(`${texts.unsent}: ${reason}`);
}

// Whether a refusal stays the same if the same transaction comes again.
function isFinal(status, code) {
  return status >= 400 && status < 500 && status !== 408 && status !== 429 && code !== "payment-in-flight";
}

enhance();
follow();
setInterval(tick, 1000);
find("#print").hidden = false;
find("#print").addEventListener("click", () => print());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && source?.readyState === EventSource.CLOSED) poll();
});
addEventListener("pageshow", (event) => {
  if (event.persisted) refresh();
});
