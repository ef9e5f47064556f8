// The details of one push: title, attempts and six tabs.
import { download, get, hasServer, text } from "./api.js";
import { attemptsStrip } from "./attempts.js";
import { compareAttempts } from "./compare.js";
import { openComposer } from "./composer.js";
import { copy, showError, showMessage } from "./copy.js";
import { deliveryLine } from "./delivery.js";
import { button, h, replace, throttled } from "./dom.js";
import { fullTime, numberOf, tail } from "./format.js";
import { icon } from "./icons.js";
import { linkOf, linkToPush, partsOf, TABS } from "./route.js";
import { outcomeText } from "./outcomes.js";
import { roving } from "./roving.js";
import { nameOf } from "./row.js";
import { isSeq } from "./seq.js";
import { responseText, headline } from "./summary.js";
import { quoted } from "./terms.js";
import { authTab } from "./tabs/auth.js";
import { headersTab } from "./tabs/headers.js";
import { payloadTab } from "./tabs/payload.js";
import { seriesOf, timelineTab } from "./tabs/timeline.js";
import { verdictTab } from "./tabs/verdict.js";
import { previewTab } from "./preview/preview.js";
import { visible } from "./visible.js";

const PENDING = 200; // milliseconds after which a push that loads is named instead of the former one
const LIMIT = 10000; // milliseconds after which a request for a push fails

const BUILDERS = {
  preview: previewTab, payload: payloadTab, headers: headersTab, auth: authTab, verdict: verdictTab, timeline: timelineTab,
};

export class Detail {
  /**
   * `actions`: `close()`, `tab(name)`, `open(seq)`, `search(q)`, `addCondition(text)`, `found(seq, link)`. `welcome` is the element for an empty server,
   * `overview` the panel that is shown while no push is selected.
   */
  constructor(actions, welcome, overview) {
    this.actions = actions;
    this.welcome = welcome;
    this.overview = overview;
    this.record = null;
    this.attempts = [];
    this.tab = "preview";
    this.pending = null; // the timer of the push that is loaded
    this.hasFailed = false; // whether the server did not send the wanted push
    this.reloadAttempts = throttled(() => this.record && this.loadAttempts(this.record), 500);
    this.element = h("section", { class: "detail", "aria-label": "Selected push" });
    this.showNothing();
  }

  showNothing({ isFirstTime = false } = {}) {
    this.record = null;
    this.wanted = null;
    this.endLoading();
    this.element.classList.toggle("is-welcome", isFirstTime);
    if (isFirstTime) return replace(this.element, this.welcome);
    if (!this.element.contains(this.overview.element)) {
      replace(this.element, h("p", { class: "detail-hint quiet" }, "Select a push to see its preview and the reason for its response. ",
        h("kbd", {}, "j"), " ", h("kbd", {}, "k"), " move, ", h("kbd", {}, "Enter"), " opens, ", h("kbd", {}, "?"), " shows all keyboard shortcuts."),
      this.overview.element);
    }
    this.overview.draw();
  }

  /** Shows a push, given by its seq or by a link. */
  async show(push, tab) {
    this.tab = tab;
    if (this.record?.seq === push) {
      this.wanted = push;
      this.endLoading();
      return this.draw();
    }
    // Another tab of a push that is loaded already.
    if (this.pending !== null && this.wanted === push) return;
    const wanted = (this.wanted = push);
    this.endLoading();
    this.pending = setTimeout(() => this.showPending(push), PENDING);
    let record;
    try {
      record = await this.load(push);
    } catch (error) {
      if (this.wanted !== wanted) return;
      return this.showFailure(push, error);
    }
    if (this.wanted !== wanted) return;
    this.endLoading();
    this.element.classList.remove("is-welcome");
    this.record = record;
    // Keeps the known attempts when switching between them.
    if (!this.attempts.some((one) => one.seq === record.seq)) this.attempts = [record];
    if (push !== record.seq) this.actions.found(record.seq, push);
    this.draw();
    this.loadAttempts(record);
  }

  /** Names the push that is loaded, without actions: those of the former push would not concern it. */
  showPending(push) {
    this.record = null;
    this.element.classList.remove("is-welcome");
    this.element.setAttribute("aria-busy", "true");
    const hadFocus = this.element.contains(document.activeElement);
    replace(this.element, h("header", { class: "detail-head" }, h("div", { class: "detail-line" },
      h("h2", { class: "detail-title", tabindex: "-1" }, `Loading push ${nameOfPush(push)} …`), this.closer())));
    if (hadFocus) this.element.querySelector("h2").focus();
  }

  /** Shows why a push is not loaded; a button requests it again if the server may have it. */
  showFailure(push, error) {
    this.endLoading();
    this.record = null;
    this.hasFailed = !(error.status < 500);
    this.element.classList.remove("is-welcome");
    replace(this.element, this.closer(), h("div", { class: "detail-empty", role: "alert" }, h("p", {}, this.hasFailed && `Push ${nameOfPush(push)}: `, error.message), error.hint && h("p", { class: "quiet" }, error.hint),
      this.hasFailed && button("Try again", () => this.show(push, this.tab))));
  }

  /** Requests a push again that the server did not send. */
  retry() {
    if (this.hasFailed && this.wanted !== null) this.show(this.wanted, this.tab);
  }

  endLoading() {
    clearTimeout(this.pending);
    this.pending = null;
    this.hasFailed = false;
    this.element.removeAttribute("aria-busy");
  }

  /** Loads a push by its seq, or by a link. A link to a push that another inbox had finds the one with its apns-id. */
  async load(push) {
    const options = { limit: LIMIT };
    if (isSeq(push)) return get(`/pushes/${push}`, undefined, options);
    const { id, attempt, seq } = partsOf(push);
    if (seq !== null) {
      const named = await get(`/pushes/${seq}`, undefined, options).catch((error) => {
        if (error.status < 500) return null;
        throw error;
      });
      if (named?.apns?.id?.toLowerCase() === id.toLowerCase()) return named;
      showMessage(`#${seq} is not the push of this link here; this is ${attempt ? `attempt ${attempt}` : "the newest push"} with its apns-id`, true);
    }
    if (attempt === null) return get(`/pushes/${encodeURIComponent(id)}`, undefined, options);
    const page = await get("/pushes", { q: `id:${quoted(id)} attempt:${attempt} kind:*`, order: "desc", limit: 1 }, options);
    return page.items[0] ?? get(`/pushes/${encodeURIComponent(id)}`, undefined, options);
  }

  /** Loads the attempts with the same key, from the latest first attempt on. */
  async loadAttempts(record) {
    const query = { push_key: record.push_key, order: "asc", limit: 200,
      fields: "seq,attempt,outcome,accepted,received_at,served,fault.rule,fault.draw,fault.p" };
    const page = await get("/pushes", query).catch(() => null);
    if (!page || this.record?.seq !== record.seq) return;
    this.attempts = seriesOf(record, page.items);
    if (!this.attempts.length) return;
    const { id } = record.apns ?? {};
    if (id) this.actions.found(record.seq, linkOf({ id, attempt: this.attempts.length > 1 ? record.attempt : null, seq: record.seq }));
    this.drawAttempts();
  }

  drawAttempts() {
    const steps = attemptsStrip(this.attempts, this.record, this.actions.open);
    replace(this.strip, steps && h("div", { class: "attempts-list" }, steps),
      this.attempts.length > 1 && button("Side by side", () => compareAttempts(this.attempts.map((one) => one.seq)), { class: "small", title: "Show the attempts side by side" }));
  }

  /** Handles a changed push: a delayed one completed, or the shown one was retried. */
  update(record) {
    if (!this.record) return;
    // The event of a push that was opened before it arrived changes nothing.
    if (record.seq === this.record.seq && JSON.stringify(record) !== JSON.stringify(this.record)) {
      this.record = record;
      this.draw();
    }
    if (record.push_key === this.record.push_key) this.reloadAttempts();
  }

  /** Draws the push again, if one is shown. */
  redraw() {
    if (this.record) this.draw();
  }

  /** The attempt `step` after the one shown; null at the ends. */
  adjacentAttempt(step) {
    const here = this.attempts.findIndex((one) => one.seq === this.record?.seq);
    return this.attempts[here + step]?.seq ?? null;
  }

  draw() {
    const { record } = this;
    const body = this.element.querySelector(".tab-panel");
    const isSame = body?.dataset.seq === String(record.seq) && body.dataset.tab === this.tab;
    const scroll = isSame ? body.scrollTop : 0;
    const hadFocus = document.activeElement?.id?.startsWith("tab-") ? `tab-${this.tab}` : null;
    this.strip = h("div", { class: "attempts" });
    this.drawAttempts();
    const panel = h("div", {
      class: "tab-panel", role: "tabpanel", id: "tab-panel", "aria-labelledby": `tab-${this.tab}`, tabindex: "0",
      data: { seq: record.seq, tab: this.tab },
    }, BUILDERS[this.tab](record, this.actions));
    const tabs = this.tabs();
    replace(this.element, this.head(), this.strip, tabs, panel);
    panel.scrollTop = scroll;
    // On a narrow screen the tabs are wider than it. Sideways only: the page itself must not scroll.
    const tab = tabs.querySelector("[aria-selected=true]");
    tabs.scrollLeft = tab.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
    if (hadFocus) document.getElementById(hadFocus)?.focus();
  }

  closer() {
    return h("button", { type: "button", class: "plain detail-close", title: "Back to the list (Esc)",
      "aria-label": "Close the push", on: { click: () => this.actions.close() } }, icon("close"));
  }

  head() {
    const { record } = this;
    const title = headline(record);
    const response = responseText(record);
    return h("header", { class: "detail-head" },
      h("div", { class: "detail-line" },
        h("span", { class: `badge is-${record.outcome}` }, icon(record.outcome), `${response} ${record.served?.reason ?? outcomeText(record.outcome)}`),
        h("h2", { class: "detail-title" }, title.isOurs ? title.text : visible(title.text, { limit: 300 })),
        this.closer()),
      deliveryLine(record), this.facts(),
      roving(h("div", { class: "detail-actions", role: "group", "aria-label": "Actions on this push" },
        hasServer() && button("Edit and send", () => this.edit(), { class: "small", title: "Change headers and payload, then send (e)", "aria-label": "Edit and send again" }),
        h("span", { class: "quiet" }, "Copy"),
        button("link", () => copy(linkToPush(), "the link"), { class: "small", title: "Copy a link to this push", "aria-label": "Copy link" }),
        button("id", () => this.copyID(), { class: "small", title: "Copy the apns-id (y)", "aria-label": "Copy id" }),
        hasServer() && button("curl", () => this.copyText("curl", "the curl command"), { class: "small", title: "Copy as a curl command" }),
        button("JSON", () => copy(JSON.stringify(record, null, 2), "the record"), { class: "small", title: "Copy the record" }),
        hasServer() && h("span", { class: "quiet" }, "Save"),
        hasServer() && button(".apns", () => this.saveForSimulator(), { class: "small", title: "Save a file for xcrun simctl push" }))));
  }

  /** The number, the findings, and buttons that add a condition to the search. */
  facts() {
    const { record } = this;
    const all = [
      ["topic", record.apns?.topic], ["token", record.request?.device_token, tail(record.request?.device_token)], ["reason", record.served?.reason],
      ["type", record.apns?.push_type], ["connection", record.connection?.id], ["attempt", record.attempt > 1 ? record.attempt : null], ["rule", record.fault?.rule],
    ];
    return h("div", { class: "detail-line is-facts" }, h("span", { class: "quiet", title: fullTime(record.received_at) }, numberOf(record)), record.attempt > 1 && h("span", { class: "chip" }, `attempt ${record.attempt}`),
      (record.findings ?? []).map((finding) => h("span", { class: "chip is-finding" }, icon("flag"), nameOf(finding))), roving(h("div", { class: "detail-terms", role: "group", "aria-label": "Add to the search" }, all.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([field, value, shown]) =>
      button([h("span", { class: "quiet" }, `${field} `), visible(String(shown ?? value), { limit: 80 })], () => this.actions.addCondition(`${field}:${quoted(value)}`),
        { class: "term", title: `Search ${field}:${value}` })))));
  }

  /** Opens the form that edits a copy of a push: the one shown, or another if there is none. */
  edit(other = null) {
    // While a push is loaded, the former one may still be visible.
    const seq = this.pending === null ? this.record?.seq ?? other : isSeq(this.wanted) ? this.wanted : null;
    if (seq === null) return;
    this.compose(seq);
  }

  /** Opens the form for a new push, or for a copy of one. */
  compose(seq = null) {
    openComposer(seq, (id, result) => {
      showMessage(`Sent: ${result}`);
      if (id !== null) this.actions.openLink(id);
    });
  }

  saveForSimulator() {
    const { seq } = this.record;
    // Asks first, so that an error is shown instead of saved.
    text(`/pushes/${seq}/apns`).then(() => download(`/pushes/${seq}/apns`, {}, `push-${seq}.apns`)).catch(showError);
  }

  copyID() {
    if (this.record && this.pending === null) copy(this.record.apns?.id ?? String(this.record.seq), "the apns-id");
  }

  copyText(what, name) {
    text(`/pushes/${this.record.seq}/${what}`).then((content) => copy(content, name), showError);
  }

  tabs() {
    const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Push details",
      on: { keydown: (event) => this.onTabKey(event) } });
    for (const [index, name] of TABS.entries()) {
      const isHere = name === this.tab;
      list.append(button(name[0].toUpperCase() + name.slice(1), () => this.actions.tab(name), {
        role: "tab", id: `tab-${name}`, class: "tab", "aria-selected": String(isHere), "aria-controls": "tab-panel",
        tabindex: isHere ? "0" : "-1", title: `Key ${index + 1}`,
      }));
    }
    return list;
  }

  onTabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.actions.tab(TABS[(TABS.indexOf(this.tab) + step + TABS.length) % TABS.length]);
  }
}

/** How a push that is not loaded is named: by its number, or by the apns-id of a link. */
function nameOfPush(push) {
  if (isSeq(push)) return `#${push}`;
  const { id, seq } = partsOf(push);
  return seq === null ? id : `#${seq}`;
}
