// The banner that the server is not reachable.
import { h } from "./dom.js";
import { icon } from "./icons.js";

const PATIENCE = 3000; // milliseconds without a connection until the banner appears

export class Reachability {
  constructor() {
    this.banner = h("div", { class: "banner is-unreachable", role: "alert", hidden: true });
    document.getElementById("banner").after(this.banner);
    this.timer = null;
  }

  /** `state` is that of the event stream: `live` or `lost`. */
  set(state) {
    if (state === "live") {
      clearTimeout(this.timer);
      this.timer = null;
      this.banner.hidden = true;
      this.banner.replaceChildren();
      return;
    }
    this.timer ??= setTimeout(() => {
      this.banner.hidden = false;
      this.banner.append(icon("warning"), h("span", {}, "Server is not reachable. The page shows what it last received and connects again when the server is back."));
    }, PATIENCE);
  }
}
