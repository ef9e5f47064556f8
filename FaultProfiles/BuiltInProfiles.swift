/// The fault profiles that are part of the program, as their files have them.
package enum BuiltInProfiles {
  /// Name and YAML text of each, in the order of the documentation.
  package static let all: [(name: String, text: String)] = files.map {
    ($0.name, String(decoding: $0.bytes, as: UTF8.self))
  }

  private static let files: [(name: String, bytes: [UInt8])] = [
    ("healthy", PackageResources.healthy_yaml),
    ("flaky-503", PackageResources.flaky_503_yaml),
    ("rate-limited-429", PackageResources.rate_limited_429_yaml),
    ("unregistered-410", PackageResources.unregistered_410_yaml),
    ("expired-jwt-403", PackageResources.expired_jwt_403_yaml),
    ("token-update-storm", PackageResources.token_update_storm_yaml),
    ("bad-token-400", PackageResources.bad_token_400_yaml),
    ("wrong-environment-key", PackageResources.wrong_environment_key_yaml),
    ("brownout", PackageResources.brownout_yaml),
    ("goaway-storm", PackageResources.goaway_storm_yaml),
    ("connection-reset", PackageResources.connection_reset_yaml),
    ("shutdown-rolling", PackageResources.shutdown_rolling_yaml),
    ("tls-handshake-stall", PackageResources.tls_handshake_stall_yaml),
    ("tls-bad-certificate", PackageResources.tls_bad_certificate_yaml),
    ("single-stream", PackageResources.single_stream_yaml),
    ("stream-throttle", PackageResources.stream_throttle_yaml),
    ("half-open", PackageResources.half_open_yaml),
    ("ack-lost", PackageResources.ack_lost_yaml),
    ("odd-answers", PackageResources.odd_answers_yaml),
    ("chaos-mix", PackageResources.chaos_mix_yaml),
    ("channel-limit", PackageResources.channel_limit_yaml),
    ("broadcast-flaky", PackageResources.broadcast_flaky_yaml),
  ]
}
