/// How the mock answers where the evidence about APNs is open; the table stands at the end of CONTRACT.md.
public enum RuleMode: String, Sendable, CaseIterable {
  /// What APNs was seen to do. The default.
  case apple
  /// Only what Apple documents.
  case strict
  /// Whatever any provider was ever reported to get through with.
  case lenient
}

/// Which of the two worlds of APNs the mock stands for (APNS.md section 1.1).
public enum PushEnvironment: String, Sendable, CaseIterable {
  /// `api.sandbox.push.apple.com`, for development builds.
  case sandbox
  /// `api.push.apple.com`.
  case production
}
