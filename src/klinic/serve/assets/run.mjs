// The run page: the report, drawn anew when the run has grown.
import { ages, listen, paced, say } from "/assets/live.mjs";

const place = document.getElementById("report");

if (place) {
  const report = globalThis.klinicReport;
  const { run, lang, theme } = place.dataset;
  report.mount(place, { lang, theme, switches: false });
  const gone = document.querySelector("[data-gone]");
  let shown = "";
  const refresh = paced(async () => {
    const answer = await fetch(`/run/${run}/data`);
    if (answer.status === 404) {
      gone.textContent = await say("gone");
      gone.hidden = false;
      return;
    }
    if (!answer.ok) return;
    const text = await answer.text();
    gone.hidden = true;
    if (text === shown) return;
    shown = text;
    report.update(JSON.parse(text));
    place.dataset.last = String(JSON.parse(text).run.last);
    const time = document.querySelector(".tools time[data-age]");
    if (time && answer.headers.has("x-changed")) time.dataset.age = answer.headers.get("x-changed");
    await ages();
  }, 250);
  listen((runs) => {
    if (runs === null || runs.includes(run)) refresh();
  });
  refresh();
}
