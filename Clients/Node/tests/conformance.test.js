'use strict';

// The conformance vectors of all client libraries, see Clients/Conformance/README.md.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { test } = require('node:test');

const { ApnsMockError, ApnsMockExpectationError } = require('..');
const { AdminAPI } = require('../lib/admin-api.js');
const { ApnsMock } = require('../lib/apns-mock.js');
const { temporaryFolder } = require('./support.js');

const folder = path.join(__dirname, '..', '..', 'Conformance');
const vectors = ['requests.json', 'inbox.json'].flatMap((name) =>
  JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8')),
);

/** The calls of vectors. Each returns its result as a JSON value. */
const calls = {
  reset: async (apns, { keep }) => apns.reset({ keep }),
  profile: async (apns, { reference, seed }) => void (await apns.profile(reference, { seed })),
  rule: async (apns, { rule, ttl_ms: ttl }) => void (await apns.rule(rule, { ttl })),
  device: async (apns, { token, state, since }) =>
    void (await apns.device(token)[state]({ since: since && new Date(since) })),
  clock_freeze: async (apns, { now }) => void (await apns.clock.freeze(now && new Date(now))),
  clock_advance: async (apns, { by_ms: by }) => void (await apns.clock.advance(by)),
  clock_real: async (apns) => void (await apns.clock.real()),
  pushes: async (apns, { query, filter }) => seqs(await apns.pushes(query ?? filter)),
  wait: async (apns, { query, filter, count, timeout_ms: timeout, settle_ms: settle }) => {
    const number = count.exactly > 0 ? `==${count.exactly}` : count.at_least ?? count.exactly;
    return seqs(await apns.wait({ count: number, timeout, settle, query, ...filter }));
  },
  verify: async (apns, { document, expectations }) => void (await apns.verify(document ?? expectations)),
  assert_nothing_lost: (apns) => apns.assertNothingLost(),
  check: (apns, { fail_on_findings: failOnFindings, fail_on_rejected: failOnRejected }) =>
    apns.check({ failOnFindings, failOnRejected }),
  findings: async (apns, { query, filter }) => (await apns.findings(query ?? filter)).map(({ finding }) => finding),
  report: (apns) => apns.report(),
  export: (apns, { query, filter }) => apns.export(query ?? filter),
  import: async (apns, { text }, context) => {
    const file = path.join(temporaryFolder(context), 'pushes.ndjson');
    fs.writeFileSync(file, text);
    await apns.import(file);
  },
};

function call(apns, { call: name, arguments: values }, context) {
  if (!Object.hasOwn(calls, name)) throw new Error(`the Node client has no call "${name}"`);
  return calls[name](apns, values, context);
}

function seqs(records) {
  return records.map(({ seq }) => seq);
}

/** Starts a server that responds to each request with the response of the next exchange. */
async function fakeServer(context, exchanges) {
  const remaining = [...exchanges];
  const problems = [];
  const server = http.createServer(async (request, response) => {
    const chunks = await request.toArray();
    const url = new URL(request.url, 'http://localhost');
    const next = remaining.shift();
    if (next === undefined) {
      problems.push(`unexpected request ${request.method} ${request.url}`);
      response.writeHead(599).end();
      return;
    }
    const found = { method: request.method, path: url.pathname };
    for (const name of new Set(url.searchParams.keys())) {
      found.query = { ...found.query, [name]: url.searchParams.getAll(name) };
    }
    const text = Buffer.concat(chunks).toString('utf8');
    if (text !== '') Object.assign(found, 'text' in next.request ? { text } : { body: JSON.parse(text) });
    try {
      assert.deepEqual(found, next.request);
    } catch (error) {
      problems.push(error.message);
    }
    response.writeHead(next.response.status).end(next.response.text ?? JSON.stringify(next.response.body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => server.close());
  return { address: `127.0.0.1:${server.address().port}`, remaining, problems };
}

for (const vector of vectors) {
  test(vector.name, async (context) => {
    const fake = await fakeServer(context, vector.exchanges);
    const connectionError = (cause) => cause;
    const apns = new ApnsMock({ settings: {}, api: new AdminAPI(fake.address), connectionError }, vector.scope);
    const made = call(apns, vector, context);
    if (vector.error === undefined) {
      assert.deepEqual(await made, vector.result);
    } else {
      await assert.rejects(made, (error) => {
        assert.equal(error.message, vector.error.text);
        assert(error instanceof (vector.error.kind === 'expectation' ? ApnsMockExpectationError : ApnsMockError));
        if (vector.error.kind === 'request') assert.equal(error.status, vector.exchanges.at(-1).response.status);
        return true;
      });
    }
    assert.deepEqual(fake.problems, []);
    assert.deepEqual(fake.remaining, [], 'requests that the client did not make');
  });
}

test('an unknown call names the call and the client', () => {
  assert.throws(() => call({}, { call: 'subscribe' }), /the Node client has no call "subscribe"/);
});
