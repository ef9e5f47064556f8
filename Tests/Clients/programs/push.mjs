// Pushes with Node's own http2 module: a JSON description on stdin, the last answer as JSON on stdout.
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import tls from "node:tls";

const push = JSON.parse(readFileSync(0, "utf8"));
const options = { ca: readFileSync(push.ca) };
if (push.certificate) {
  options.cert = readFileSync(push.certificate);
  options.key = readFileSync(push.certificate_key);
}
if (push.tls) {
  options.minVersion = options.maxVersion = `TLSv${push.tls}`;
}
if (push.address) {
  // A resolver of one's own: what a hosts file would do, for this connection alone.
  options.lookup = (_, wanted, done) =>
    wanted.all ? done(null, [{ address: push.address, family: 4 }]) : done(null, push.address, 4);
}
if (!push.alpn) {
  options.createConnection = ({ hostname, port }) =>
    tls.connect({ ...options, host: hostname, port: Number(port), servername: hostname });
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

function sendOne(session) {
  return new Promise((resolve, reject) => {
    const request = session.request({ ":method": "POST", ":path": `/3/device/${push.device}`, ...push.headers });
    let head;
    let body = "";
    request.setEncoding("utf8");
    request.on("error", reject);
    request.on("response", (headers) => (head = headers));
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => resolve({ status: head[":status"], apns_id: head["apns-id"], body }));
    request.end(push.payload);
  });
}

let answers;
for (let count = 0; count < push.connections; count += 1) {
  const session = http2.connect(push.url, options);
  session.on("error", fail);
  // All streams are opened at once, before the server's SETTINGS can have been read.
  answers = await Promise.all(Array.from({ length: push.streams }, () => sendOne(session))).catch(fail);
  answers[0].alpn = session.alpnProtocol || null;
  options.session = session.socket.getSession();
  await new Promise((resolve) => session.close(resolve));
}
console.log(JSON.stringify({ ...answers[0], statuses: answers.map((answer) => answer.status) }));
