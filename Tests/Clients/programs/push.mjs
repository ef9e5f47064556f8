// One push with Node's own http2 module: a JSON description on stdin, the answer as JSON on stdout.
import { readFileSync } from "node:fs";
import http2 from "node:http2";

const push = JSON.parse(readFileSync(0, "utf8"));
const options = { ca: readFileSync(push.ca) };
if (push.certificate) {
  options.cert = readFileSync(push.certificate);
  options.key = readFileSync(push.certificateKey);
}
const session = http2.connect(push.url, options);
session.on("error", (error) => {
  console.error(error);
  process.exit(1);
});

const request = session.request({ ":method": "POST", ":path": `/3/device/${push.device}`, ...push.headers });
let head;
let body = "";
request.setEncoding("utf8");
request.on("response", (headers) => (head = headers));
request.on("data", (chunk) => (body += chunk));
request.on("end", () => {
  console.log(JSON.stringify({ status: head[":status"], apnsId: head["apns-id"], body }));
  session.close();
});
request.end(push.payload);
