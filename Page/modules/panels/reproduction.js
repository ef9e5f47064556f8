// Commands that reproduce a finding.

// The built-in profiles that provoke a mistake, by kind of finding.
const PROFILES = {
  "retried-permanent": "bad-token-400", "retried-410": "unregistered-410", "hot-retry": "flaky-503", "no-backoff": "flaky-503", "abandoned": "flaky-503",
  "jwt-churn": "token-update-storm", "jwt-stale": "expired-jwt-403", "after-goaway": "goaway-storm", "excess-streams": "stream-throttle", "duplicate": "ack-lost",
};

/** Returns texts and commands for a kind of finding. `seq` is a push that has it. */
export function reproduction(finding, seq) {
  const profile = PROFILES[finding];
  return [
    profile && { text: `Activate the profile ${profile}, and run the provider again:`, command: `apns-mock profile use ${profile}` },
    seq && { text: "Send the newest of these pushes again:", command: `apns-mock get ${seq} --curl | TOKEN=$(apns-mock token provider) sh` },
    { text: "List all pushes with this finding:", command: `apns-mock ls finding:${finding}` },
    { text: "Fail a test run with this finding:", command: `apns-mock exec --fail-on-findings ${finding} -- PROGRAM` },
  ].filter(Boolean);
}
