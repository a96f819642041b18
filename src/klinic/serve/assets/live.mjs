// What every page does: it listens to the server, refreshes what has changed, and keeps ages true.
// Nothing that a log says becomes markup here: pieces of a page come escaped from the server, all else is set as text.

let words = null;

export async function say(key, values = {}) {
  words ??= fetch(`/words.json?lang=${document.documentElement.lang.slice(0, 2)}`)
    .then((answer) => answer.json())
    .catch(() => (words = null));
  const found = (await words)?.[key] ?? key;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

// Calls act(runs) when something has changed, and once more after the connection was lost; runs: ids, null for "any".
export function listen(act) {
  listeners.add(act);
}

const listeners = new Set();
const tell = (runs) => listeners.forEach((act) => act(runs));

// Runs act now or after what is under way, never twice at once and no more often than the pause says.
export function paced(act, pause = 300) {
  let busy = false;
  let again = false;
  return async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    do {
      again = false;
      try {
        await act();
      } catch {
        // The server is away for the moment: the next event asks again.
      }
      await new Promise((done) => setTimeout(done, pause));
    } while (again);
    busy = false;
  };
}

let source = null;

function connect() {
  const lost = document.querySelector("[data-lost]");
  const own = (source = new EventSource("/events"));
  let met = false;
  own.addEventListener("hello", () => {
    lost.hidden = true;
    if (met) tell(null);
    met = true;
  });
  own.addEventListener("news", (event) => tell(JSON.parse(event.data).runs));
  own.addEventListener("error", async () => {
    lost.textContent = await say("lost");
    lost.hidden = own.readyState === EventSource.OPEN || source !== own;
    if (own.readyState === EventSource.CLOSED && source === own) setTimeout(() => source === own && again(), 2000);
  });
}

function again() {
  connect();
  tell(null);
}

function leave() {
  if (source) source.close();
  source = null;
}

// A browser keeps few connections to a server: pages that nobody sees hold none.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) leave();
  else if (!source) again();
});
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => event.persisted && !source && again());

// A region whose newest state the server has: [data-live] names the address, "" this page's own.
function region(element) {
  const refresh = paced(async () => {
    const answer = await fetch(element.dataset.live || location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(`${element.id}-now`);
    const old = document.getElementById(`${element.id}-now`);
    if (!fresh || !old || fresh.isEqualNode(old)) return;
    const held = document.activeElement;
    const key = old.contains(held) ? keyOf(held) : null;
    for (const details of old.querySelectorAll("details[id][open]")) fresh.querySelector(`#${CSS.escape(details.id)}`)?.setAttribute("open", "");
    old.replaceWith(document.adoptNode(fresh));
    if (key) [...fresh.querySelectorAll("a, button, summary")].find((one) => keyOf(one) === key)?.focus({ preventScroll: true });
    ages();
  }, Number(element.dataset.pause || 500));
  listen(refresh);
}

const keyOf = (element) => element.id || element.getAttribute("href") || element.value || element.textContent;

// "3 minutes ago", kept true while the page is open.
const UNITS = [["days", 86400, 172800], ["hours", 3600, 3600], ["minutes", 60, 60]];

export async function ages() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    const seconds = Date.now() / 1000 - Number(time.dataset.age);
    const [unit, size] = UNITS.find(([, , least]) => seconds >= least) ?? ["seconds", 1];
    const text = await say(unit, { n: Math.max(0, Math.floor(seconds / size)) });
    if (time.textContent !== text) time.textContent = text;
  }
}

const count = paced(async () => {
  const badge = document.querySelector("[data-open]");
  const { open } = await (await fetch("/alerts/count.json")).json();
  badge.textContent = String(open);
  badge.title = await say("open", { n: open });
  badge.hidden = !open;
}, 1000);

for (const element of document.querySelectorAll("[data-live]")) region(element);
for (const element of document.querySelectorAll("[data-reload]")) {
  listen((runs) => (runs === null || runs.includes(element.dataset.run)) && location.reload());
}
for (const element of document.querySelectorAll("[data-wait]")) setTimeout(() => location.reload(), Number(element.dataset.wait));
listen(count);
count();
ages();
setInterval(ages, 5000);
connect();
