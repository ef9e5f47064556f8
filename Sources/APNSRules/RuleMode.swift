/// How the mock responds where the evidence about APNs is not conclusive; the README lists the differences.
public enum RuleMode: String, Sendable, CaseIterable {
  /// Observed behaviour of APNs. The default.
  case apple
  /// Only documented behaviour.
  case strict
  /// Accepts everything that any provider was reported to succeed with.
  case lenient
}

/// The environment of APNs that the mock imitates (Protocol.md, section 1.1).
public enum PushEnvironment: String, Sendable, CaseIterable {
  /// `api.sandbox.push.apple.com`, for development builds.
  case sandbox
  /// `api.push.apple.com`.
  case production
}
