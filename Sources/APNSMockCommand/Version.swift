/// Which apns-mock this is.
enum Version {
  /// By semantic versioning.
  static let text = "0.1.0"
}
