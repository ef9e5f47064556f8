// The banners about the server's status: the store of the inbox fails, or has failed, and what that means for pushes; where pushes are forwarded to.
import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { count, counted, pushes } from "./format.js";
import { icon } from "./icons.js";
import { visible } from "./visible.js";

const INTERVAL = 2000; // milliseconds


export class StoreState {
  constructor() {
    this.banner = h("div", { class: "banner is-unreachable", role: "alert", hidden: true });
    this.upstream = h("div", { class: "banner", role: "status", hidden: true });
    document.getElementById("banner").after(this.upstream, this.banner);
  }

  /** Looks at the status now and then, if there is anything that can change. */
  async start() {
    const { store, upstream } = await get("/status");
    if (!store && !upstream) return;
    this.show(store);
    this.showUpstream(upstream);
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, INTERVAL));
      if (!document.hidden) {
        await get("/status").then((status) => {
          this.show(status.store);
          this.showUpstream(status.upstream);
        }, () => {});
      }
    }
  }

  /** `upstream` is the member of the status; null if pushes are not forwarded. */
  showUpstream(upstream) {
    if (!upstream) return;
    const { url, answered, refused, unknown, waiting, problems } = upstream;
    const newest = problems.at(-1);
    const text = [
      `Relaying to ${url}: ${count(answered)} answered, ${count(refused)} refused, ${count(unknown)} undecided, ${count(waiting)} waiting.`,
      newest && `${newest.text}${newest.count > 1 ? ` (${counted(newest.count, "time")})` : ""}.`,
    ].filter(Boolean).join(" ");
    if (text === this.upstreamText) return;
    this.upstreamText = text;
    this.upstream.hidden = false;
    replace(this.upstream, icon("warning"), h("span", {}, visible(text)));
  }

  /** `store` is the member of the status; null if the inbox has none. */
  show(store) {
    const { problem, on_failure: policy, lost, refused } = store ?? {};
    const consequence = policy === "drop" ? "pushes are answered and not kept" : "pushes are answered 503";
    const text = [
      problem && `The store of the inbox fails: ${problem}.`,
      problem && !problem.startsWith("reading: ") && `Until it works, ${consequence}.`,
      lost > 0 && `Lost because the store failed: ${pushes(lost)}.`,
      problem && refused > 0 && `Refused: ${pushes(refused)}.`,
    ].filter(Boolean).join(" ");
    if (text === this.text) return;
    this.text = text;
    this.banner.hidden = !text;
    replace(this.banner, text && icon("warning"), text && h("span", {}, visible(text)));
  }
}
