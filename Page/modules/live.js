// The stream of server-sent events. Uses fetch, because EventSource cannot send a token.
import { request, ApiError } from "./api.js";
import { filterOf } from "./terms.js";

const RETRY_DELAYS = [500, 1000, 2000, 5000];

export class Live {
  /**
   * @param onEvent called with `(event, data)` for each event: `push`, `push.updated`, `connection`, `profile`, `gap`, …
   * @param onState called with `live`, `lost` or `ended` when the state of the connection changes.
   */
  constructor(onEvent, onState) {
    this.onEvent = onEvent;
    this.onState = onState;
    this.lastID = null;
    this.stopper = null;
  }

  /** Follows the pushes that match `q`, from now on or from the last received event. */
  follow(q) {
    this.stopper?.abort();
    this.stopper = new AbortController();
    this.run(q, this.stopper.signal);
  }

  async run(q, signal) {
    for (let failures = 0; !signal.aborted;) {
      const began = performance.now();
      try {
        const headers = this.lastID === null ? {} : { "last-event-id": this.lastID };
        const response = await request("GET", "/events", { query: filterOf(q), signal, headers });
        this.onState("live");
        await this.read(response.body, signal);
      } catch (error) {
        if (signal.aborted) return;
        // An invalid query is not retried.
        if (error instanceof ApiError && error.status === 400) return;
      }
      if (signal.aborted) return;
      failures = performance.now() - began > 5000 ? 0 : failures + 1;
      this.onState("lost");
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAYS[Math.min(failures, RETRY_DELAYS.length - 1)]));
    }
  }

  async read(body, signal) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let event = { name: "message", data: "" };
    for (;;) {
      const { value, done } = await reader.read();
      if (done || signal.aborted) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("id: ")) this.lastID = line.slice(4);
        else if (line.startsWith("event: ")) event.name = line.slice(7);
        else if (line.startsWith("data: ")) event.data += line.slice(6);
        else if (line === "" && event.data) {
          this.onEvent(event.name, JSON.parse(event.data));
          event = { name: "message", data: "" };
        }
      }
    }
  }
}
