// The frame of the page: the session, the live state, the routes, and what all views share.
import { views } from "/views.js";

export const app = { state: null, charts: null, secret: "", rates: new Map() };

// An element; children that are no elements become text, so that nothing from outside is markup.
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "width-part") element.style.width = `${value}%`;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

// MARK: Numbers and times

const whole = new Intl.NumberFormat("en");
export const number = (value) => whole.format(value ?? 0);
export function bytes(value) {
  let rest = value ?? 0, unit = 0;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  while (rest >= 1024 && unit < units.length - 1) { rest /= 1024; unit += 1; }
  return `${unit === 0 ? rest : rest.toFixed(1)} ${units[unit]}`;
}
export const rate = (value) => (value >= 100 ? number(Math.round(value)) : (value ?? 0).toFixed(1));
export function seconds(value) {
  if (value == null) return "–";
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${+value.toFixed(1)} s`;
}
export function span(value) {
  const total = Math.max(0, Math.round(value)), days = Math.floor(total / 86400), hours = Math.floor(total / 3600) % 24;
  const minutes = Math.floor(total / 60) % 60, rest = total % 60;
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${rest} s` : `${rest} s`;
}
export function time(milliseconds) {
  if (milliseconds == null) return "–";
  const date = new Date(milliseconds);
  return h("time", { datetime: date.toISOString(), title: date.toISOString() }, date.toLocaleString());
}

// MARK: Requests

export async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  if (answer.status === 401) location.reload();
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error ?? answer.statusText);
  return body;
}

// `refreshes`: whether the page is read again; that closes what is open in its rows.
export async function act(path, body = {}, refreshes = true) {
  try {
    const answer = await fetch(path, {
      method: "POST", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", "X-CSRF-Token": app.secret },
    });
    const result = await answer.json();
    if (!answer.ok) throw new Error(result.error ?? answer.statusText);
    notice(result.message);
    if (refreshes) await refresh();
    return true;
  } catch (error) {
    notice(error.message, true);
    return false;
  }
}

let noticeTimer;
export function notice(text, isBad = false) {
  const element = document.getElementById("notice");
  element.textContent = text;
  element.classList.toggle("bad", isBad);
  element.hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => { element.hidden = true; }, isBad ? 9000 : 4000);
}

// Asks before something is done, and says what it will touch.
export function confirmed(title, text, button, isDangerous = false) {
  return form(title, [h("p", {}, text)], button, isDangerous);
}

// A dialog with fields; gives their values by name, or nothing if it was left.
export function form(title, fields, button, isDangerous = false) {
  const dialog = document.getElementById("dialog");
  return new Promise((done) => {
    const content = h("form", { method: "dialog" },
      h("h2", { id: "dialog-title" }, title), fields,
      h("div", { class: "row" },
        h("button", { type: "button", onclick: () => dialog.close("") }, "Leave it"),
        h("button", { type: "submit", value: "yes", class: isDangerous ? "danger" : "primary" }, button)));
    dialog.replaceChildren(content);
    dialog.returnValue = "";
    dialog.onclose = () => done(dialog.returnValue === "yes" ? Object.fromEntries(new FormData(content)) : null);
    dialog.showModal();
  });
}

// MARK: Routes

let current = null;

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/").map(decodeURIComponent);
  const name = page === "" || page === "jobs" ? (rest[0] ? "job" : "jobs") : page;
  const view = views[name] ?? views.jobs;
  current?.end?.();
  // A question about another page's row.
  document.getElementById("dialog").close("");
  const main = document.getElementById("main");
  current = view(main, rest, new URLSearchParams(query ?? ""));
  const tab = name === "job" ? "jobs" : name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${current.title ?? "Jobs"} · PrefetchWorker`;
  refresh();
}

export async function refresh() {
  try { await current?.update?.(); } catch (error) { notice(error.message, true); }
}

// MARK: Live

function take(state) {
  const before = app.state;
  // Rates of jobs over the last ten seconds or so.
  for (const job of state.jobs) {
    const known = app.rates.get(job.job) ?? [];
    known.push({ at: state.now, ended: job.ended, bytes: job.bytes });
    while (known.length > 2 && state.now - known[0].at > 10000) known.shift();
    app.rates.set(job.job, known);
  }
  app.state = state;
  const suspend = document.getElementById("suspend");
  suspend.hidden = false;
  suspend.textContent = state.suspended_since ? "Go on with all" : "Pause all";
  current?.live?.(before);
}

export function rateOf(job) {
  const known = app.rates.get(job.job) ?? [];
  if (known.length < 2) return null;
  const [first, last] = [known[0], known[known.length - 1]], time = (last.at - first.at) / 1000;
  return time > 0.5 ? { ended: (last.ended - first.ended) / time, bytes: (last.bytes - first.bytes) / time } : null;
}

function listen() {
  const live = document.getElementById("live");
  const events = new EventSource("/api/stream");
  events.onmessage = (event) => {
    live.textContent = "live";
    live.className = "live on";
    take(JSON.parse(event.data));
  };
  events.onerror = () => {
    live.textContent = "no connection";
    live.className = "live off";
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  };
}

async function charts() {
  try { app.charts = await get("/api/charts"); current?.charts?.(); } catch { /* The next round asks again. */ }
}

async function begin() {
  const session = await get("/api/session");
  app.secret = session.csrf;
  document.getElementById("logout").hidden = session.login !== "yes";
  document.getElementById("logout").onclick = async () => {
    await fetch("/logout", { method: "POST", headers: { "X-CSRF-Token": app.secret } });
    location.reload();
  };
  document.getElementById("suspend").onclick = async () => {
    const jobs = (app.state?.jobs ?? []).filter((job) => ["queued", "running"].includes(job.state)).length;
    if (app.state?.suspended_since) {
      const goes = await confirmed("Go on with all jobs?", `Workers go on with ${jobs} unfinished jobs. Jobs that are paused by themselves stay paused.`, "Go on with all");
      if (goes) await act("/api/resume-all");
      return;
    }
    const yes = await confirmed("Pause all jobs?", `Workers claim nothing more of ${jobs} unfinished jobs and of new ones, until you go on. Downloads that have begun are finished.`, "Pause all");
    if (yes) await act("/api/pause-all");
  };
  app.state = await get("/api/state");
  window.addEventListener("hashchange", () => { route(); document.getElementById("main").focus(); });
  route();
  take(app.state);
  listen();
  await charts();
  setInterval(charts, 5000);
}

begin();
