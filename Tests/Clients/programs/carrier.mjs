// Node's http2 with one session at a time. The first line of stdin describes the server, each further line a request; the
// result of each is a line of stdout. See support/conducts/carriers.py.
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { createInterface } from "node:readline";

const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM } = http2.constants;
const CLOSE_MS = 100; // after which a canceled stream that has not closed counts as lost
const sessions = new Set();
let server;
let current;

function connect() {
  const session = http2.connect(server.url, { ca: readFileSync(server.ca) });
  sessions.add(session);
  const forget = () => (current = current === session ? undefined : current);
  session.on("error", forget);
  session.on("connect", () => (session.isConnected = true));
  session.on("goaway", (code, lastStream) => {
    session.lastStream = lastStream;
    forget();
  });
  session.on("close", () => {
    sessions.delete(session);
    forget();
  });
  return session;
}

function failure(session, stream, error) {
  if (!session.isConnected) {
    return /CERT|SELF_SIGNED/.test(error?.cause?.code) ? "untrusted" : "unconnected";
  }
  const isAbove = session.lastStream !== undefined && stream.id > session.lastStream;
  return isAbove || stream.rstCode === NGHTTP2_REFUSED_STREAM ? "refused" : "lost";
}

function send(request) {
  if (current?.destroyed) {
    current = undefined;
  }
  const session = request.own_connection ? connect() : (current ??= connect());
  let hasEnded = false;
  const end = (result) => {
    if (hasEnded) {
      return;
    }
    hasEnded = true;
    if (request.own_connection) {
      session.close();
    }
    console.log(JSON.stringify({ id: request.id, ...result }));
  };
  let stream;
  try {
    stream = session.request({ ":method": "POST", ":path": request.path, ...request.headers });
  } catch (error) {
    return end({ error: "unconnected", detail: error.code });
  }
  let status;
  let body = "";
  let isComplete = false;
  let error;
  stream.setEncoding("utf8");
  stream.on("response", (headers) => (status = headers[":status"]));
  stream.on("data", (text) => (body += text));
  stream.on("end", () => (isComplete = status !== undefined && !stream.rstCode));
  stream.on("error", (cause) => (error = cause));
  const cancel = () => {
    if (session.isConnected) {
      stream.close(NGHTTP2_CANCEL);
    } else {
      session.destroy();
    }
    // Node does not always notice that a socket was reset: then its session and streams stay open.
    setTimeout(() => {
      if (!hasEnded) {
        session.destroy();
        end({ error: "lost", detail: "canceled" });
      }
    }, CLOSE_MS);
  };
  const timer = setTimeout(cancel, request.cancel_ms || server.deadline_ms);
  stream.on("close", () => {
    clearTimeout(timer);
    end(isComplete ? { status, body } : { error: failure(session, stream, error), detail: error?.code ?? `${stream.rstCode}` });
  });
  if (request.apart_ms) {
    setTimeout(() => stream.end(request.body), request.apart_ms);
  } else {
    stream.end(request.body);
  }
}

createInterface({ input: process.stdin })
  .on("line", (text) => {
    const line = JSON.parse(text);
    if (!server) {
      server = line;
    } else if (line.retire) {
      current?.close();
      current = undefined;
    } else {
      send(line);
    }
  })
  .on("close", () => sessions.forEach((session) => session.close()));
