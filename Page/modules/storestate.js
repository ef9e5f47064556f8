// The banner that the store of the inbox fails, or has failed, and what that means for pushes.
import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { visible } from "./visible.js";

const INTERVAL = 2000; // milliseconds

const pushes = (number) => `${count(number)} ${number === 1 ? "push" : "pushes"}`;

export class StoreState {
  constructor() {
    this.banner = h("div", { class: "banner is-unreachable", role: "alert", hidden: true });
    document.getElementById("banner").after(this.banner);
  }

  /** Looks at the store now and then, if the inbox has one. */
  async start() {
    const { store } = await get("/status");
    if (!store) return;
    this.show(store);
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, INTERVAL));
      if (!document.hidden) await get("/status").then((status) => this.show(status.store), () => {});
    }
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
