// A provider on Node's http2 with one session. The first line of stdin describes the server, each further line a push; each push that
// ends is a line of stdout, with its status or its error's code. See support/incidents.py.
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { createInterface } from "node:readline";

const DEADLINE = 1000; // milliseconds
let provider;
let session;

function connected() {
  // A session that has received GOAWAY is closed, but not destroyed until its last stream has ended.
  if (!session || session.destroyed) {
    const opened = http2.connect(provider.url, { ca: readFileSync(provider.ca) });
    opened.on("error", () => {});
    if (provider.watches) {
      opened.on("goaway", () => {
        session = session === opened ? undefined : session;
      });
    }
    session = opened;
  }
  return session;
}

function push(device) {
  let status;
  const ended = (result) => console.log(JSON.stringify({ device, result }));
  let stream;
  try {
    stream = connected().request({ ":method": "POST", ":path": `/3/device/${device}`, ...provider.headers });
  } catch (error) {
    if (!provider.catches) {
      throw error;
    }
    return ended(error.code);
  }
  stream.on("error", () => {});
  stream.on("response", (headers) => (status = headers[":status"]));
  stream.on("close", () => (status || !provider.watches ? ended(status ?? stream.rstCode) : push(device)));
  if (provider.watches) {
    stream.setTimeout(DEADLINE, () => stream.close(http2.constants.NGHTTP2_CANCEL));
  }
  stream.resume();
  stream.end('{"aps":{"alert":"hello"}}');
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const said = JSON.parse(line);
  if (provider) {
    push(said.device);
  } else {
    provider = said;
  }
});
