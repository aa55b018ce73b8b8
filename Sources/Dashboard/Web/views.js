// The pages. Each is made once, and updates the parts that change.
import { act, app, bytes, confirmed, form, get, h, notice, number, rate, rateOf, refresh, seconds, span, time } from "/app.js";
import { bars, lines } from "/charts.js";

const states = ["queued", "active", "delayed", "done", "cached", "failed", "blacklisted", "cancelled"];
const badge = (state) => h("span", { class: `badge ${state}` }, state);
const isOpen = (job) => ["queued", "running", "paused"].includes(job.state);

function bar(job) {
  const part = (value) => (job.total ? (100 * value) / job.total : 0);
  const failed = job.failed + job.blacklisted + job.cancelled;
  return h("div", { class: "bar", role: "img", "aria-label": `${job.ended} of ${job.total} ended` },
    h("i", { class: "c-done", "width-part": part(job.done) }), h("i", { class: "c-cached", "width-part": part(job.cached) }),
    h("i", { class: "c-failed", "width-part": part(failed) }));
}

function left(job) {
  const now = rateOf(job);
  return isOpen(job) && now && now.ended > 0 ? span((job.total - job.ended) / now.ended) : "–";
}

function table(titles, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": titles.filter((title) => title).map((title) => title.text ?? title).join(", ") },
    h("table", {}, h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col", class: title.kind ?? null }, title.text ?? title)))),
      h("tbody", {}, rows)));
}

const n = (text, kind = "n") => ({ text, kind });
const cell = (kind, ...children) => h("td", { class: kind }, ...children);

// MARK: Jobs

function tiles(state) {
  const hits = state.hits + state.misses ? (100 * state.hits) / (state.hits + state.misses) : 0;
  const values = [
    ["Images a second", rate(state.ended_per_second)], ["Download", `${bytes(Math.round(state.bytes_per_second))}/s`],
    ["Queued", number(state.queued)], ["At work", number(state.active)], ["Delayed", number(state.delayed)],
    ["Workers", number(state.workers.length)], ["Cache", bytes(state.cache_bytes)], ["Hit rate", `${hits.toFixed(1)} %`],
    ["Disk free", state.disk_free == null ? "–" : bytes(state.disk_free)], ["Blacklist", number(state.blacklisted)],
  ];
  return h("dl", { class: "tiles" }, values.map(([name, value]) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value))));
}

function chart(title, keys, drawing) {
  return h("figure", { class: "card chart" },
    h("figcaption", {}, h("b", {}, title), h("span", {}, keys.map(([kind, text], place) => [place ? " " : "", h("span", { class: `key ${kind}` }, text)]))), drawing);
}

// Bytes for an axis, without decimals.
function short(value) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let rest = value, unit = 0;
  while (rest >= 1024 && unit < 3) { rest /= 1024; unit += 1; }
  return `${+rest.toFixed(rest < 10 ? 1 : 0)} ${units[unit]}`;
}

function allCharts(charts) {
  const length = charts.slot_seconds;
  const classes = new Map();
  for (const slot of charts.slots) for (const [name, count] of Object.entries(slot.failures)) classes.set(name, (classes.get(name) ?? 0) + count);
  const top = [...classes].sort((one, other) => other[1] - one[1]).slice(0, 3).map(([name]) => name);
  const kinds = ["c-failed", "c-wait", "c-accent"];
  return h("div", { class: "charts" },
    chart("Images a second", [["c-done", "downloaded"], ["c-cached", "cached"], ["c-failed", "failed"]],
      bars("Images a second over the last hour", charts, [["c-done", (slot) => slot.done / length], ["c-cached", (slot) => slot.cached / length], ["c-failed", (slot) => slot.failed / length]], (value) => String(+value.toFixed(1)))),
    chart("Download", [["c-accent", "bytes a second"]],
      bars("Bytes downloaded a second over the last hour", charts, [["c-accent", (slot) => slot.bytes / length]], (value) => short(value))),
    chart("Times, 95th percentile", [["c-accent", "fetch"], ["c-done", "transform"], ["c-wait", "publish"]],
      lines("Times of fetching, transforming and publishing over the last hour", charts, [["c-accent", (slot) => slot.fetch[1]], ["c-done", (slot) => slot.transform[1]], ["c-wait", (slot) => slot.publish[1]]], (value) => seconds(value).replace(" ", ""))),
    chart("Failures", top.length ? top.map((name, place) => [kinds[place], name]) : [["c-failed", "none"]],
      bars("Failures by class over the last hour", charts, top.map((name, place) => [kinds[place], (slot) => slot.failures[name] ?? 0]), (value) => number(Math.round(value)))));
}

function jobRow(job) {
  const now = rateOf(job);
  return h("tr", {},
    cell("n", h("a", { href: `#/jobs/${job.job}` }, String(job.job))), cell("url", h("a", { href: `#/jobs/${job.job}` }, job.name ?? "unnamed")),
    cell("", badge(job.state)), cell("", bar(job)), cell("n", `${number(job.ended)} / ${number(job.total)}`),
    cell("n hide", number(job.done)), cell("n hide", number(job.cached)), cell("n", number(job.failed + job.blacklisted)),
    cell("n hide", now && isOpen(job) ? `${rate(now.ended)}/s` : "–"), cell("n hide", left(job)));
}

function waitList(waits) {
  if (!waits.length) return null;
  return [h("h2", {}, "What waits"), table(["Host", "Why", n("Items"), "Until"],
    waits.map((wait) => h("tr", {}, cell("url", wait.host), cell("url", wait.reason ?? "–"), cell("n", `${wait.is_more ? "more than " : ""}${number(wait.items)}`), cell("", time(wait.until)))), "")];
}

function helpersOf(helpers) {
  const rest = [helpers.waiting && `${number(helpers.waiting)} images wait`, helpers.died && `${number(helpers.died)} of ${number(helpers.started)} died`];
  return [`${number(helpers.busy)} of ${number(helpers.running)} busy`, ...rest].filter(Boolean).join(", ");
}

function workerList(state, charts) {
  const deaths = charts ? charts.slots.reduce((sum, slot) => sum + slot.helper_restarts, 0) : 0;
  return [h("h2", {}, "Workers"), table([n("Worker"), "Machine", n("Process"), n("In hand"), n("Helpers", "n hide"), n("Started", "hide"), n("Last sign", "hide")],
    state.workers.map((worker) => h("tr", {}, cell("n", number(worker.id)), cell("url", worker.host), cell("n", String(worker.pid)), cell("n", number(worker.in_hand)), cell("n hide", helpersOf(worker.helpers)), cell("hide", time(worker.started_at)), cell("hide", `${span((state.now - worker.seen_at) / 1000)} ago`))), "No worker runs. Start one with: worker run"),
    h("p", { class: "hint" }, deaths === 0 ? "No helper died in the last hour." : `Helpers that died in the last hour: ${number(deaths)}. The images that they decoded end as decoder-crash if they kill a second one.`)];
}

function jobs(main) {
  const summary = h("div"), drawn = h("div"), list = h("div"), waits = h("div"), workers = h("div");
  main.replaceChildren(
    h("div", { class: "row" }, h("h1", { class: "grow" }, "Jobs"), h("button", { type: "button", class: "primary", onclick: enqueue }, "Add a job")),
    summary, drawn, h("h2", {}, "Unfinished and latest"), list, waits, workers);
  const live = () => {
    const state = app.state;
    if (!state) return;
    summary.replaceChildren(tiles(state));
    list.replaceChildren(table([n("Job"), "Name", "State", "Progress", n("Ended"), n("Done", "n hide"), n("Cached", "n hide"), n("Failed"), n("Rate", "n hide"), n("Left", "n hide")],
      state.jobs.map(jobRow), "No jobs yet. Add one here, with SQL, or with: worker enqueue URL…"));
    waits.replaceChildren(...[waitList(state.waits)].flat().filter(Boolean));
    workers.replaceChildren(...workerList(state, app.charts));
  };
  const charts = () => { if (app.charts) drawn.replaceChildren(allCharts(app.charts)); };
  live();
  charts();
  return { title: "Jobs", live, charts };
}

async function enqueue() {
  const fields = [
    h("div", { class: "field" }, h("label", { for: "f-urls" }, "URLs, one on a line"), h("textarea", { id: "f-urls", name: "urls", required: true, placeholder: "https://example.com/a.jpg" })),
    h("div", { class: "field" }, h("label", { for: "f-variants" }, "Variants, separated by spaces; none to store the sources only"), h("input", { id: "f-variants", name: "variants", placeholder: "thumb=320x240,cover,webp,q80" })),
    h("div", { class: "field" }, h("label", { for: "f-name" }, "Name"), h("input", { id: "f-name", name: "name", maxlength: "200" })),
    h("div", { class: "field" }, h("label", { for: "f-options" }, "Options"), h("input", { id: "f-options", name: "options", placeholder: "retry-failed discard-original" })),
    h("div", { class: "field" }, h("label", { for: "f-priority" }, "Priority, −100 to 100"), h("input", { id: "f-priority", name: "priority", type: "number", min: "-100", max: "100", value: "0" })),
  ];
  const values = await form("Add a job", fields, "Add it");
  if (!values) return;
  const text = (value) => (value.trim() ? value.trim() : null);
  await act("/api/enqueue", { urls: values.urls, variants: text(values.variants), name: text(values.name), options: text(values.options), priority: Number(values.priority) || 0 });
}

// MARK: A job

function job(main, [id], query) {
  const head = h("div"), failures = h("div"), list = h("div"), waits = h("div");
  const filter = { state: query.get("state") ?? "", class: query.get("class") ?? "", text: query.get("text") ?? "", order: "asc" };
  let trail = [null], asked = 0, current = null, listed = "", failureCounts = { counts: [], is_cut: false };
  const select = h("select", { id: "i-state", onchange: () => { filter.state = select.value; again(); } },
    h("option", { value: "" }, "all states"), states.map((state) => h("option", { value: state, selected: state === filter.state }, state)));
  const kind = h("input", { id: "i-class", size: "14", placeholder: "http-404", value: filter.class, onchange: () => { filter.class = kind.value.trim(); again(); } });
  const search = h("input", { id: "i-text", type: "search", placeholder: "part of the URL", value: filter.text, onchange: () => { filter.text = search.value.trim(); again(); } });
  const order = h("select", { id: "i-order", onchange: () => { filter.order = order.value; again(); } }, h("option", { value: "asc" }, "first ones first"), h("option", { value: "desc" }, "last ones first"), h("option", { value: "bytes" }, "largest first"), h("option", { value: "tries" }, "most tries first"), h("option", { value: "ended" }, "latest end first"));
  const label = (name, text, field) => h("span", {}, h("label", { for: name }, text, " "), field);
  const rows = h("div"), hint = h("span", { class: "hint", role: "status" });
  main.replaceChildren(h("p", {}, h("a", { href: "#/" }, "← Jobs")), head, waits, failures, h("h2", {}, "Items"),
    h("div", { class: "card" }, h("div", { class: "row filters", role: "search" }, label("i-state", "State", select), label("i-class", "Class", kind), label("i-text", "URL", search), label("i-order", "Order", order)), rows));
  const again = () => { trail = [null]; items(); };

  // `isQuiet`: leaves the list as it is if nothing has changed.
  async function items(isQuiet = false) {
    const mine = ++asked, after = trail[trail.length - 1];
    const wanted = new URLSearchParams({ limit: "50", [["asc", "desc"].includes(filter.order) ? "order" : "sort"]: filter.order });
    for (const name of ["state", "class", "text"]) if (filter[name]) wanted.set(name, filter[name]);
    if (after != null) wanted.set("after", after);
    let page, found = [], next = after;
    try {
      // A page looks at a bounded number of items: go on until it is full or all have been looked at.
      do {
        if (next != null) wanted.set("after", next);
        page = await get(`/api/jobs/${id}/items?${wanted}`);
        if (mine !== asked) return;
        found = found.concat(page.items);
        next = page.next ?? null;
        // An order of a large job is read over several requests.
        if (page.progress != null && !isQuiet) hint.textContent = `sorting: ${Math.floor(100 * page.progress)} %`;
      } while (next != null && found.length < 50);
    } catch (error) { if (!isQuiet) notice(error.message, true); return; }
    const more = next != null, text = JSON.stringify([found, more]);
    if (isQuiet && text === listed) return;
    listed = text;
    rows.replaceChildren(
      table([n("", "hide"), "URL", "State", n("Tries", "n hide"), n("Bytes", "n hide"), "What happened", "Ended"], found.flatMap(itemRow), "No item is like that."),
      h("div", { class: "row filters" }, h("button", { type: "button", disabled: trail.length < 2, onclick: () => { trail.pop(); items(); } }, "Back"),
        h("button", { type: "button", disabled: !more, onclick: () => { trail.push(next); items(); } }, "Next"),
        hint));
    hint.textContent = `page ${trail.length}`;
  }

  async function overview() {
    const [data, counts] = await Promise.all([get(`/api/jobs/${id}`), get(`/api/jobs/${id}/failures`)]);
    failureCounts = counts;
    draw(data.job);
    waits.replaceChildren(...[waitList(data.waits)].flat().filter(Boolean));
    if (!failures.contains(document.activeElement)) failures.replaceChildren(...failureTable(data.job, counts));
  }

  async function update() {
    // The failures of a long job take a while to be counted.
    await Promise.all([overview(), items()]);
  }

  // What a working job has done since. The list stays as it is while a row of it is open or has the focus.
  async function follow() {
    if (!current || !isOpen(current)) return;
    await overview();
    const isFirst = trail.length === 1 && ["asc", "desc"].includes(filter.order) && !filter.text && !filter.class;
    if (isFirst && !rows.querySelector("[aria-expanded=true]") && !rows.contains(document.activeElement)) await items(true);
  }

  function draw(data) {
    current = data;
    const now = rateOf(data), button = (text, action, kind = "", title = null) => h("button", { type: "button", class: kind, title, onclick: action }, text);
    const open = data.queued + data.active + data.delayed, failed = data.failed + data.blacklisted;
    head.replaceChildren(
      h("div", { class: "row" }, h("h1", { class: "grow" }, `Job ${data.job}${data.name ? `: ${data.name}` : ""}`), badge(data.state),
        data.state === "paused" ? button("Resume", () => act(`/api/jobs/${id}/resume`), "", `${number(open)} unfinished items go on`) : isOpen(data) && button("Pause", () => act(`/api/jobs/${id}/pause`), "", `${number(open)} unfinished items wait until the job is resumed`),
        (failed + data.cancelled > 0) && button("Retry failures…", () => retry(data, {})),
        isOpen(data) && button("Cancel…", async () => { if (await confirmed(`Cancel job ${id}?`, `${number(open)} unfinished items end as cancelled. What is done stays in the cache.`, "Cancel the job", true)) await act(`/api/jobs/${id}/cancel`); }, "danger")),
      bar(data), h("p", { class: "c-failed", hidden: !data.error }, data.error ?? ""),
      h("dl", { class: "tiles" }, [["Ended", `${number(data.ended)} / ${number(data.total)}`], ["Done", number(data.done)], ["Cached", number(data.cached)], ["Failed", number(failed)], ["Waiting", number(data.queued)], ["At work", number(data.active)], ["Delayed", number(data.delayed)], ["Downloaded", bytes(data.bytes)], ["Rate", now && isOpen(data) ? `${rate(now.ended)}/s` : "–"], ["Left", left(data)]]
        .map(([name, value]) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value)))));
  }

  function failureTable(data, { counts, is_cut: isCut }) {
    if (!counts.length) return [];
    return [h("h2", {}, isCut ? "Failures (of the first 10,000)" : "Failures"), table(["Class", "Host", n("Items"), ""], counts.map((count) => h("tr", {},
      cell("", h("button", { type: "button", class: "quiet", onclick: () => { kind.value = filter.class = count.class; select.value = filter.state = ""; again(); } }, count.class)), cell("url", count.host), cell("n", number(count.count)),
      cell("n", h("button", { type: "button", class: "quiet", onclick: () => retry(data, count) }, "Retry…")))), "")];
  }

  // `one`: the class and host that were asked for; else the dialog asks, and says how many items each choice touches.
  async function retry(data, one) {
    const counts = failureCounts.counts, total = data.failed + data.blacklisted + data.cancelled;
    const choice = (name, title, every) => {
      const sums = new Map();
      for (const count of counts) sums.set(count[name], (sums.get(count[name]) ?? 0) + count.count);
      return h("div", { class: "field" }, h("label", { for: `r-${name}` }, title), h("select", { id: `r-${name}`, name, onchange: say },
        h("option", { value: "" }, every), [...sums].map(([value, sum]) => h("option", { value, selected: value === one[name] }, `${value} (${failureCounts.is_cut ? "at least " : ""}${number(sum)})`))));
    };
    const what = h("p", { "aria-live": "polite" });
    const say = () => {
      const [kind, host] = [byClass.querySelector("select").value, byHost.querySelector("select").value];
      const items = counts.filter((count) => (!kind || count.class === kind) && (!host || count.host === host)).reduce((sum, count) => sum + count.count, 0);
      const touched = kind || host ? `${failureCounts.is_cut ? "At least " : ""}${number(items)} failed items` : `${number(total)} failed or cancelled items`;
      what.textContent = `${touched}${kind ? ` of class ${kind}` : ""}${host ? ` at ${host}` : ""} go back into the queue.`;
    };
    const byClass = choice("class", "Class", "all classes"), byHost = choice("host", "Host", "all hosts");
    say();
    const values = await form("Retry?", [byClass, byHost, what, h("label", {}, h("input", { type: "checkbox", name: "listed", checked: true }), " Take their URLs off the blacklist, so that they are asked for again")], "Retry");
    if (values) await act(`/api/jobs/${id}/retry`, { class: values.class || null, host: values.host || null, retry_failed: values.listed === "on" });
  }

  let last = "";
  const live = () => {
    const data = app.state?.jobs.find((one) => String(one.job) === id);
    if (!data) return;
    draw(data);
    if (!isOpen(data) && last && last !== data.state) refresh();
    last = data.state;
  };
  return { title: `Job ${id}`, update, live, end: every(follow) };
}

function itemRow(item) {
  const detail = h("tr", { hidden: true }, h("td", { colspan: "7" }));
  const button = h("button", { type: "button", class: "quiet", "aria-expanded": "false", onclick: async () => {
    detail.hidden = !detail.hidden;
    button.setAttribute("aria-expanded", String(!detail.hidden));
    if (!detail.hidden) detail.firstChild.replaceChildren(await history(item.id));
  } }, "History");
  const shows = ["done", "cached"].includes(item.state);
  return [h("tr", {}, cell("hide", shows && h("img", { class: "thumb", src: `/api/items/${item.id}/picture`, alt: "", loading: "lazy", width: "46", height: "46", onerror: (event) => event.target.remove() })),
    cell("url", item.url, " ", button), cell("", badge(item.state)), cell("n hide", number(item.attempts)), cell("n hide", item.bytes == null ? "–" : bytes(item.bytes)),
    cell("url", item.failure ? `${item.failure}: ${item.message ?? ""}` : item.message ?? "–"), cell("", item.run_at ? ["tried again ", time(item.run_at)] : time(item.finished_at))), detail];
}

async function history(id) {
  let data;
  try { data = await get(`/api/items/${id}`); } catch (error) { return h("div", { class: "history" }, error.message); }
  const lines = [];
  if (data.source) lines.push(`Source: ${data.source.format ?? "picture"} ${data.source.width ?? "?"}×${data.source.height ?? "?"}, ${bytes(data.source.size)}`);
  for (const row of data.results) if (row.variant) lines.push(`${row.variant}: ${row.format} ${row.width ?? "?"}×${row.height ?? "?"}, ${bytes(row.size)}, ${row.path ?? "not in the cache"}`);
  if (data.wait) lines.push(data.wait);
  if (data.blacklisted) lines.push(`On the blacklist for ${data.blacklisted.class}: ${data.blacklisted.message ?? ""}`);
  for (const one of data.tries) lines.push(`Asked ${new Date(one.at).toLocaleString()}: ${one.class ?? (one.http_status ? `status ${one.http_status}` : "done")}${one.received ? `, ${bytes(one.received)}` : ""}${one.address ? `, ${one.address}` : ""}${one.total ? `, ${(one.total / 1000).toFixed(1)} ms` : ""}`);
  const pin = h("button", { type: "button", class: "quiet", "aria-pressed": String(data.is_pinned), title: "Files of a kept URL are never evicted", onclick: async () => {
    if (!await act("/api/pin", { handle: data.handle, pinned: !data.is_pinned }, false)) return;
    data.is_pinned = !data.is_pinned;
    label();
  } });
  const label = () => {
    pin.textContent = data.is_pinned ? "Keep its files no longer" : "Keep its files always";
    pin.setAttribute("aria-pressed", String(data.is_pinned));
  };
  label();
  return h("div", { class: "history" }, lines.length ? h("ul", {}, lines.map((line) => h("li", {}, line))) : "Nothing has happened yet.", pin);
}

// MARK: Hosts

function hosts(main) {
  const list = h("div");
  main.replaceChildren(h("div", { class: "row" }, h("h1", { class: "grow" }, "Hosts"), h("button", { type: "button", onclick: () => limits("*") }, "Limits of the worker…")), list);
  let known = [];
  async function limits(host) {
    const record = known.find((one) => one.host === host) ?? {};
    const field = (name, text, more = {}) => h("div", { class: "field" }, h("label", { for: `l-${name}` }, text), h("input", { id: `l-${name}`, name, type: "number", min: "1", value: record[name] ?? "", ...more }));
    const fields = [h("p", { class: "hint" }, "What is left empty is as on the command line. Running workers obey within a second."),
      host === "*" && field("concurrency", "Downloads at once, of all workers"), field("per_host", "Downloads at once from a host"),
      field("rate", "Requests a second to a host", { min: "0.01", step: "any" }), field("burst", "Requests at once before the rate holds")];
    const values = await form(host === "*" ? "Limits of the worker" : `Limits of ${host}`, fields, "Set them");
    if (!values) return;
    const body = { host };
    for (const [name, value] of Object.entries(values)) if (value !== "") body[name] = Number(value);
    await act(Object.keys(body).length > 1 ? "/api/limits" : "/api/limits/reset", body);
  }
  // The limits set for a host, or else those set for each host; those of the command line are not known here.
  function limitsOf(host) {
    const own = known.find((one) => one.host === host), each = known.find((one) => one.host === "*");
    const value = (name) => own?.[name] ?? each?.[name];
    return [value("per_host") && `${number(value("per_host"))} at once`, value("rate") && `${rate(value("rate"))}/s`, value("burst") && `burst ${number(value("burst"))}`].filter(Boolean).join(", ") || "–";
  }
  const update = async () => {
    const data = await get("/api/hosts");
    known = data.limits;
    list.replaceChildren(table(["Host", n("Running"), n("Waiting"), n("Rate", "n hide"), n("Limits", "hide"), "Why it waits", "Failures", ""], data.hosts.map((host) => h("tr", {},
      cell("url", host.host), cell("n", number(host.running)), cell("n", number(host.waiting)), cell("n hide", `${rate(host.rate)}/s`), cell("hide", limitsOf(host.host)), cell("url", host.why ?? "–", host.until ? [" until ", time(host.until)] : null),
      cell("url", Object.entries(host.failures).map(([name, count]) => `${number(count)} ${name}`).join(", ") || "–"), cell("n", h("button", { type: "button", class: "quiet", onclick: () => limits(host.host) }, "Limits…")))),
      "No host has been asked yet."));
  };
  return { title: "Hosts", update, end: every(update, list) };
}

// Updates a page every three seconds, but not while a button of this part of it has the focus; the result ends that.
function every(update, part) {
  const timer = setInterval(() => { if (!document.hidden && !part?.contains(document.activeElement)) update().catch(() => {}); }, 3000);
  return () => clearInterval(timer);
}

// MARK: Blacklist, cache, schedules

function blacklist(main) {
  const list = h("div"), count = h("span", { class: "hint grow", role: "status" }), wanted = {};
  const field = (name, text, placeholder) => h("span", {}, h("label", { for: `b-${name}` }, text, " "), h("input", { id: `b-${name}`, type: "search", placeholder, onchange: (event) => { wanted[name] = event.target.value.trim(); refresh(); } }));
  let total = 0;
  const all = h("button", { type: "button", class: "danger", hidden: true, onclick: async () => {
    const which = [wanted.class && `of class ${wanted.class}`, wanted.host && `at ${wanted.host}`].filter(Boolean).join(" ");
    if (await confirmed("Take them off?", `${number(total)} URLs ${which} are taken off the blacklist. The next jobs that want them ask for them again.`, "Take them off", true))
      await act("/api/blacklist/remove", { host: wanted.host || null, class: wanted.class || null });
  } }, "Take these off…");
  main.replaceChildren(h("h1", {}, "Blacklist"), h("p", { class: "hint" }, "URLs that failed for good are not asked for again until their time is over."),
    h("div", { class: "card" }, h("div", { class: "row filters", role: "search" }, field("host", "Host", "example.com"), field("class", "Class", "http-404"), count, all), list));
  const update = async () => {
    const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    const data = await get(`/api/blacklist?${query}`);
    total = data.count;
    count.textContent = data.entries.length < 500 ? "" : `the latest 500 of ${number(total)}`;
    all.hidden = !query.size || !total;
    list.replaceChildren(table(["URL", "Class", "Message", n("Times", "n hide"), "Until", ""], data.entries.map((entry) => h("tr", {},
      cell("url", entry.url), cell("", entry.failure ?? entry.class), cell("url", entry.message ?? "–"), cell("n hide", number(entry.count)), cell("", time(entry.expires_at)),
      cell("n", h("button", { type: "button", class: "quiet", title: "The next job that wants this URL asks for it again", onclick: () => act("/api/blacklist/remove", { handle: entry.handle }) }, "Take off")))), query.size ? "No such URL is on the blacklist." : "No URL is on the blacklist."));
  };
  return { title: "Blacklist", update, end: every(update, list) };
}

function cache(main) {
  const parts = h("div");
  main.replaceChildren(h("h1", {}, "Cache"), parts);
  const update = async () => {
    const data = await get("/api/cache"), totals = data.totals, asked = totals.hits + totals.misses;
    parts.replaceChildren(
      h("dl", { class: "tiles" }, [["Files", number(totals.blobs)], ["Size", bytes(totals.bytes)], ["Reserved", bytes(totals.reserved_bytes)], ["Disk free", data.disk_free == null ? "–" : bytes(data.disk_free)], ["Hit rate", asked ? `${((100 * totals.hits) / asked).toFixed(1)} %` : "–"], ["Saved by 304", bytes(totals.revalidated_bytes)], ["Evicted", bytes(totals.evicted_bytes)]]
        .map(([name, value]) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value)))),
      h("h2", {}, "By format"), table(["Format", n("Files"), n("Size")], data.formats.map((share) => h("tr", {}, cell("", share.name), cell("n", number(share.files)), cell("n", bytes(share.bytes)))), "The cache is empty."),
      h("h2", {}, "Goes next"), table(["URL", "Variant", n("Size"), ""], data.next.map((file) => h("tr", {}, cell("url", file.url ?? "belongs to no URL any longer"), cell("", file.variant ?? "–"), cell("n", bytes(file.size)),
        cell("n", file.url && h("button", { type: "button", class: "quiet", title: "The files of this URL are never evicted", onclick: () => act("/api/pin", { handle: file.handle, pinned: true }) }, "Keep")))), "Nothing would be evicted."),
      h("h2", {}, "Kept always"), table(["URL", ""], data.pinned.map(({ url, handle }) => h("tr", {}, cell("url", url), cell("n", h("button", { type: "button", class: "quiet", title: "The files of this URL may be evicted again", onclick: () => act("/api/pin", { handle, pinned: false }) }, "No longer")))), "No URL is pinned."));
  };
  return { title: "Cache", update, end: every(update, parts) };
}

function schedules(main) {
  const list = h("div");
  main.replaceChildren(h("h1", {}, "Schedules"), list);
  const update = async () => {
    const all = await get("/api/schedules");
    list.replaceChildren(table(["Name", "When", "Next", "Last run", ""], all.map((one) => {
      const path = `/api/schedules/${encodeURIComponent(one.name)}`;
      return h("tr", {}, cell("url", one.name, " ", one.paused && badge("paused")), cell("", h("code", {}, one.cron), ` ${one.time_zone}`), cell("", one.error ?? time(one.starts_at)),
        cell("url", one.last ? [`${one.last.outcome ?? "running"} `, time(one.last.due_at), one.last.job ? [" ", h("a", { href: `#/jobs/${one.last.job}` }, `job ${one.last.job}`)] : null, one.last.message ? ` ${one.last.message}` : null] : "never"),
        cell("n", h("div", { class: "row" }, h("button", { type: "button", class: "quiet", onclick: async () => { if (await confirmed(`Run ${one.name} now?`, "Its lists are read and their URLs are enqueued, unless the job of its last run is unfinished.", "Run it")) await act(`${path}/run`); } }, "Run now…"),
          h("button", { type: "button", class: "quiet", title: one.paused ? "The schedule is due again" : "The schedule is not due until it is resumed", onclick: () => act(`${path}/${one.paused ? "resume" : "pause"}`) }, one.paused ? "Resume" : "Pause"))));
    }), "No schedules. Add one with: worker schedule add MANIFEST"));
  };
  return { title: "Schedules", update, end: every(update, list) };
}

export const views = { jobs, job, hosts, blacklist, cache, schedules };
