// The inbox view: search, list and the selected push; and the stream of new pushes, which can be paused.
import { ApiError, get, hasServer } from "./api.js";
import { serverNow } from "./clock.js";
import { Columns } from "./columns.js";
import { showMessage } from "./copy.js";
import { seriesOf } from "./attempts.js";
import { button, h, replace } from "./dom.js";
import { count, counted, pushes, setStart } from "./format.js";
import { List } from "./list.js";
import { attemptsOf, MAX_KEYS, Records } from "./records.js";
import { go, linkOf, shown } from "./route.js";
import { roving } from "./roving.js";
import { Search } from "./search.js";
import { isSeq } from "./seq.js";
import { recount, recountNow, setPaused, setSearch, snapshot } from "./snapshot.js";
import { searchedTexts } from "./terms.js";
import { splitter } from "./splitter.js";
import { suggestions } from "./suggestions.js";
import { Toolbar } from "./toolbar.js";
import { visible } from "./visible.js";

const SORTS = [["", "Newest"], ["seq", "Oldest"], ["status", "Status"], ["reason", "Reason"], ["topic", "Topic"], ["device_token", "Token"], ["-attempt", "Attempts"], ["-size", "Size"], ["-latency", "Latency"]];
const BATCH = 80; // milliseconds in which events are collected
const PENDING = 200; // milliseconds after which a list that loads looks so
const MAX_QUEUED = 2000;
const PRESENCE_INTERVAL = 3000; // milliseconds between checks whether the open push was deleted

export class Inbox {
  /**
   * `callbacks`: `onPause()` is called when the state or the number of queued pushes changed, `onClock()` if the server's clock was moved.
   */
  constructor(detail, actions, callbacks) {
    this.detail = detail;
    this.actions = actions;
    this.callbacks = callbacks;
    this.isPaused = false;
    this.missed = false; // whether a change during a pause requires a reload
    this.unseen = 0;
    this.queued = new Map(); // the pushes that arrived during a pause, by seq
    this.dropped = 0; // the number of those that were not kept
    this.hasFailed = false; // whether the server did not list the pushes
    this.batch = [];
    this.retried = new Set(); // the keys of pushes whose loaded attempts are out of date
    this.records = new Records(() => this.changedRecords(), (former, seq) => this.list.selection.replace(former, seq));
    const columns = new Columns(() => { this.list.drawAgain(); this.loadStart(); });
    this.list = new List(this.records, columns, {
      open: (seq) => this.open(seq), searchedTexts: () => searchedTexts(snapshot.q), search: actions.addCondition, onDrawn: () => this.loadAttempts(),
      onSelect: () => this.toolbar?.update(), onReload: () => this.reload(),
    });
    this.search = new Search(() => this.records.rows.values());
    this.count = h("span", {});
    this.searched = null;
    this.selectedCount = h("span", {});
    this.fold = button("Group retries", () => go({ fold: !shown.fold }), { class: "small choice", title: "One row for all attempts of a push" });
    this.toolbar = new Toolbar(this.list, this.records, { query: () => this.records.q, onChange: () => this.refresh({ isForced: true }), onSize: (...size) => this.showSize(...size) });
    this.old = h("p", { class: "old-results", role: "status", hidden: true });
    const pane = h("div", { class: "list-pane" }, this.search.element, this.old,
      h("div", { class: "list-head" }, h("p", { class: "list-count", role: "status" }, this.count, this.selectedCount),
        roving(h("div", { class: "list-tools" }, this.toolbar.element, h("span", { class: "list-options" }, this.toolbar.selectAll, this.fold, this.narrowTools(), h("span", { class: "column-chooser" }, columns.chooser))))), this.list.element);
    this.element = h("div", { class: "inbox" }, pane, splitter(pane), detail.element);
    setInterval(() => document.hidden || this.checkPresence(), PRESENCE_INTERVAL);
  }

  /** What a list without columns has in place of their heads: the order, and a mode in which a tap selects. */
  narrowTools() {
    this.order = h("select", { "aria-label": "Sort by", class: "sort-picker", on: { change: () => go({ sort: this.order.value }) } },
      SORTS.map(([value, name]) => h("option", { value }, name)));
    this.marking = button("Select", () => {
      this.list.isTapSelecting = !this.list.isTapSelecting;
      this.marking.setAttribute("aria-pressed", String(this.list.isTapSelecting));
      if (!this.list.isTapSelecting) this.list.selection.set(null);
    }, { class: "small choice", "aria-pressed": "false", title: "Select pushes by a tap" });
    return h("span", { class: "narrow-tools" }, this.order, this.marking);
  }

  /** The number of new pushes that are not shown while the page is paused. */
  get waiting() {
    return this.isPaused ? this.queued.size + this.dropped + this.list.unseen : 0;
  }

  /** Whether the server has not received any pushes. */
  get isFirstTime() {
    return this.records.total === 0 && this.records.evicted === 0;
  }

  /** Loads the list; returns a promise of its end. */
  start() {
    this.setPending(true);
    const loaded = this.reload();
    if (shown.push !== null) this.showPush();
    return loaded;
  }

  changed(now, before) {
    this.fold.setAttribute("aria-pressed", String(now.fold));
    this.order.value = SORTS.some(([value]) => value === now.sort) ? now.sort : "";
    this.list.columns.draw();
    if (now.fold !== before.fold) this.list.drawAgain();
    if (now.q !== before.q || now.fold !== before.fold || now.sort !== before.sort) this.reload();
    if (now.view === "inbox" && (now.push !== before.push || now.tab !== before.tab || before.view !== "inbox")) this.showPush();
  }

  open(seq) {
    const id = this.records.row(seq)?.apns?.id;
    this.actions.open(seq, id ? linkOf({ id, seq }) : null);
  }

  showPush() {
    const isKnown = isSeq(shown.push);
    if (isKnown) this.list.select(shown.push);
    this.list.setOpened(isKnown ? shown.push : null);
    if (shown.push === null) {
      const hadFocus = this.detail.element.contains(document.activeElement);
      this.detail.showNothing({ isFirstTime: this.isFirstTime });
      if (hadFocus) this.list.box.focus({ preventScroll: true });
      return;
    }
    this.list.revealWhenKnown(shown.push);
    this.detail.show(shown.push, shown.tab);
  }

  /** Closes the open push if it was deleted. */
  async checkPresence() {
    const push = shown.push;
    if (!isSeq(push) || this.detail.record?.seq !== push) return;
    const page = await get("/pushes", { seqs: push, kind: "*", limit: 1, fields: "seq" }).catch(() => null);
    if (!page || page.matched !== 0 || shown.push !== push) return;
    showMessage(`Push #${push} was deleted`);
    go({ push: null }, { quietly: true });
    this.refresh();
  }

  // Loading

  /** Loads the results of the current search. */
  reload() {
    this.processBatch(); // These match the previous search.
    this.fold.setAttribute("aria-pressed", String(shown.fold));
    return this.load(() => {
      // What is not in this list is not acted on.
      this.list.selection.prune();
      this.list.toTop();
      if (shown.push !== null) this.list.revealWhenKnown(shown.push);
      this.showUnopened();
    });
  }

  /** Shows what is beside the list while no push is open. */
  showUnopened() {
    if (shown.push === null && shown.view === "inbox") this.detail.showNothing({ isFirstTime: this.isFirstTime });
  }

  /** Reloads the results and keeps the scroll position, even during a pause if `isForced`. For changes that the stream does not contain. */
  refresh({ isForced = false } = {}) {
    this.missed = this.isPaused;
    if (isForced) recountNow();
    if (this.isPaused && !isForced) return;
    const newest = this.records.seqAt(0) ?? 0;
    this.load(() => {
      if (!this.records.sort) this.list.keepPlace(this.records.countAfter(newest));
      this.list.selection.prune();
      this.checkPresence();
      this.showUnopened();
    });
  }

  async load(onLoaded) {
    const load = (this.newestLoad = {});
    const pending = setTimeout(() => this.newestLoad === load && this.setPending(true), PENDING);
    try {
      await this.loadNow(onLoaded);
    } finally {
      clearTimeout(pending);
      if (this.newestLoad === load) this.setPending(false);
    }
  }

  /** Shows that the list is loaded, if that takes a while. */
  setPending(isPending) {
    this.list.element.classList.toggle("is-pending", isPending);
    this.list.box.setAttribute("aria-busy", String(isPending));
  }

  async loadNow(onLoaded) {
    this.queued = new Map();
    this.dropped = 0;
    this.search.showError(null);
    try {
      await this.loadRecords();
      // After a restart without a store, other pushes have these numbers.
      this.list.attempts = null;
      this.retried.clear();
      this.hasFailed = false;
      this.markOld(false);
      this.loadStart();
      onLoaded();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.missed ||= this.isPaused; // What was queued is not in the list.
      if (error.status === 400 && shown.sort && error.message.startsWith("sort ")) go({ sort: "" }, { quietly: true });
      else if (error.status === 400) this.showInvalid(error);
      else {
        this.hasFailed = true;
        this.list.showNotice(h("div", { class: "empty" }, h("p", { class: "notice is-error" }, error.message), button("Try again", () => this.reload())));
      }
    }
    this.callbacks.onPause();
  }

  /** Loads the search and follows it. An invalid search leaves the list as it is; if there is none yet, all pushes are loaded. */
  async loadRecords() {
    const { followed } = this;
    // Before loading, so that no push between the two is missed.
    this.followQuery(shown.q);
    try {
      const search = shown.q;
      await this.records.load(search, { sort: shown.sort, isGrouped: shown.fold }, (share) => this.showProgress(share));
      setSearch(search);
    } catch (error) {
      if (error instanceof ApiError && error.status === 400) {
        this.followQuery(followed ?? "");
        if (followed === undefined) await this.records.load("");
      }
      throw error;
    }
  }

  /** Loads the time of the first push, if a column counts from it. */
  async loadStart() {
    if (!this.list.columns.ids.includes("since")) return;
    const page = await get("/pushes", { limit: 1, fields: "received_at" }).catch(() => null);
    if (!page?.items.length) return;
    setStart(page.items[0].received_at);
    this.list.drawAgain();
  }

  /** Explains an invalid search. The list keeps the results of the search before, and says so. */
  showInvalid(error) {
    this.search.showError(error);
    setSearch(snapshot.q, error);
    this.markOld(true);
    this.showUnopened();
  }

  markOld(isOld) {
    const { q } = snapshot;
    this.element.classList.toggle("has-old-results", isOld);
    this.old.hidden = !isOld;
    replace(this.old, isOld && [h("span", {}, "The list has the results of ", q ? ["the search ", h("code", {}, visible(q, { limit: 200 }))] : "no search", ", because this one is invalid. "),
      button(q ? "Back to that search" : "Show all", () => go({ q }), { class: "small" })]);
  }

  followQuery(query) {
    if (this.followed === query) return;
    this.followed = query;
    this.follow(query);
  }

  /** Shows which share of the inbox a long search has examined; null at its end. */
  showProgress(share) {
    if (this.searched === share) return;
    this.searched = share;
    this.changedRecords();
  }

  changedRecords() {
    this.list.selection.addLoaded();
    const { length, evicted } = this.records;
    replace(this.count, this.searched !== null ? `Searched ${Math.floor(100 * this.searched)} % of the pushes` : this.countText(),
      this.searched === null && evicted > 0 && `, ${count(evicted)} older ones were evicted`);
    this.list.box.setAttribute("aria-label", this.records.sort ? "Pushes, sorted" : "Pushes, newest first");
    this.list.showNotice(length ? null : this.emptyNotice());
    this.toolbar.update();
    this.list.draw();
  }

  /** How many pushes the list has, of how many. Of a list that is not read completely it is at least the number of those read. */
  countText() {
    const { matched, total, q, loaded, newer, attempts, isGrouped } = this.records;
    if (isGrouped) return `${pushes(matched)}, ${counted(attempts, "attempt")}`;
    const all = matched === null ? Math.max(total, loaded.length + newer.length) : Math.max(total, matched);
    const of = q && matched !== all ? ` of ${count(all)}` : "";
    const known = matched ?? loaded.length + newer.length;
    return `${matched === null ? "at least " : ""}${of ? `${count(known)}${of} pushes` : pushes(known)}`;
  }

  showSize(number, isLoading) {
    const text = number > 1 ? `, ${count(number)} selected${isLoading ? ", loading the others …" : ""}` : "";
    if (this.selectedCount.textContent !== text) this.selectedCount.textContent = text;
  }

  emptyNotice() {
    const { q, total } = this.records;
    if (q && total) {
      if (this.suggested?.q !== q) this.suggested = { q, element: suggestions(q, (one) => this.search.completion.anyValues(one)) };
      return h("div", { class: "empty" }, h("p", {}, "No pushes match."), this.suggested.element, h("p", { class: "field-row" }, button(`Show all ${pushes(total)}`, () => go({ q: "" }), { class: "primary" }), button("Search syntax", (event) => {
        event.stopPropagation(); // A click outside of the sheet closes it.
        this.search.showSheet(true);
      })));
    }
    return h("div", { class: "empty" }, h("p", {}, "No pushes yet."), h("p", { class: "quiet" }, "Pushes appear here when a provider sends them."),
      h("p", { class: "field-row" }, button("Connect a client", () => go({ view: "connect" }), { class: "primary" }), hasServer() && button("Send a test push", () => this.detail.compose())));
  }

  /** Loads all attempts of the visible pushes, for grouped rows. */
  async loadAttempts() {
    if (!shown.fold) {
      this.list.attempts = null;
      return;
    }
    const attempts = (this.list.attempts ??= new Map());
    // A push that was accepted at once has no other attempts.
    const rows = [...this.list.drawn.values()].map((one) => one.row).filter((row) => row && (row.attempt > 1 || row.outcome !== "accepted"));
    const wanted = rows.filter((row) => !attempts.has(row.seq) || this.retried.has(row.push_key)).slice(0, MAX_KEYS);
    if (!wanted.length) return;
    for (const row of wanted) {
      this.retried.delete(row.push_key);
      if (!attempts.has(row.seq)) attempts.set(row.seq, null);
    }
    const found = seriesOf(await attemptsOf([...new Set(wanted.map((row) => row.push_key))]));
    for (const series of found) for (const one of series) attempts.set(one.seq, series);
    // Those whose request failed are requested at another drawing.
    const known = new Set(found.flat().map((one) => one.push_key));
    for (const row of wanted) if (attempts.get(row.seq) === null && !known.has(row.push_key)) attempts.delete(row.seq);
    if (found.length) this.list.draw();
  }

  // Live

  onEvent(event, record) {
    if (Date.parse(record.received_at) > serverNow() + 2000) this.callbacks.onClock();
    if (this.isPaused) {
      if (this.queued.has(record.seq) || (event === "push" && this.queued.size < MAX_QUEUED)) this.queued.set(record.seq, record);
      else {
        this.missed = true;
        if (event === "push") this.dropped += 1;
      }
      this.callbacks.onPause();
      return;
    }
    this.batch.push(record);
    this.timer ??= setTimeout(() => this.processBatch(), BATCH);
  }

  async processBatch() {
    const { batch, records } = this;
    clearTimeout(this.timer);
    this.timer = null;
    this.batch = [];
    for (const record of batch) {
      if (shown.fold) this.retried.add(record.push_key);
      this.detail.update(record);
    }
    if (this.retried.size > MAX_QUEUED) {
      this.retried.clear();
      this.list.attempts?.clear();
    }
    const found = records.addAll(batch);
    const added = typeof found === "number" ? found : await found;
    if (!records.isGrouped) records.total += added;
    this.list.grew(added);
    this.changedRecords();
    if (added && document.hidden) this.unseen += added;
    this.callbacks.onPause();
    recount();
  }

  togglePause() {
    this.isPaused = !this.isPaused;
    this.list.isPaused = this.isPaused;
    this.list.setUnseen(this.list.unseen);
    if (this.isPaused) {
      // What was collected before the pause is in the list, and counted.
      setPaused(true, Math.max(this.records.newest, ...this.batch.map((record) => record.seq)));
      this.processBatch();
    } else {
      setPaused(false);
      const queued = this.queued;
      this.queued = new Map();
      if (this.missed) this.refresh();
      else {
        this.batch.push(...queued.values());
        this.processBatch();
      }
    }
    this.callbacks.onPause();
  }

  /** Called when the page becomes visible. */
  pageShown() {
    this.unseen = 0;
    this.callbacks.onPause();
  }

  // Moving

  move(step) {
    if (shown.view !== "inbox") return;
    const seq = this.list.adjacent(step);
    if (seq === null) return;
    this.list.select(seq);
    this.list.reveal(seq);
    if (shown.push !== null) this.open(seq);
  }

  openSelected() {
    if (this.list.selected !== null) this.open(this.list.selected);
  }

  openAttempt(step) {
    const seq = this.detail.adjacentAttempt(step);
    if (seq !== null) this.actions.open(seq);
  }

  /** Adds the row under the cursor to the selection, or removes it. */
  toggleSelected() {
    this.list.selection.mark();
  }

  /** Reduces the selection to the row under the cursor; returns whether there was more. */
  reduceSelection() {
    if (this.list.selection.size < 2 && !this.list.selection.isMarking) return false;
    this.list.selection.set(this.list.selected);
    return true;
  }
}
