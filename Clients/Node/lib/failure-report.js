'use strict';

const shownPushes = 50;

/**
 * Returns the text that is printed for a failed test: the inbox, the seed, the active profile and the findings.
 *
 * @param {import('./apns-mock.js').ApnsMock} apns
 */
async function failureReport(apns) {
  const [{ reference, seed }, newest, findings] = await Promise.all([
    apns.activeProfile(),
    apns.pushes({ order: 'desc', limit: shownPushes }),
    apns.findings(),
  ]);
  const lines = [`apns-mock: profile ${reference}, seed ${seed}`];
  lines.push(newest.length === 0 ? 'inbox: no pushes' : `inbox, the last ${newest.length} pushes:`);
  lines.push(...newest.reverse().map((record) => `  ${pushLine(record)}`));
  lines.push(findings.length === 0 ? 'findings: none' : 'findings:');
  lines.push(...findings.map((finding) => `  ${findingLine(finding)}`));
  return lines.join('\n');
}

function pushLine(record) {
  const { seq, attempt, received_at: time, request, apns, fault } = record;
  const parts = [
    String(seq),
    time.slice(11, 23),
    abbreviated(request.device_token ?? '-'),
    apns.topic ?? '-',
    `attempt ${attempt}`,
    response(record),
  ];
  if (fault?.rule) parts.push(`rule ${fault.rule}`);
  return parts.join('  ');
}

/** Returns the response that the provider received. */
function response({ outcome, served }) {
  if (served.status !== null) return served.reason === null ? `${served.status}` : `${served.status} ${served.reason}`;
  return served.reset === null ? outcome : `reset ${served.reset}`;
}

function abbreviated(token) {
  return token.length > 12 ? `${token.slice(0, 6)}…${token.slice(-4)}` : token;
}

function findingLine({ finding, count, summary, records, more }) {
  const pushes = records.map(({ seq }) => seq).reverse();
  return `${finding} ×${count}: ${summary} (push ${pushes.join(', ')}${more > 0 ? ` and ${more} before` : ''})`;
}

module.exports = { failureReport };
