/// The version of apns-mock.
enum Version {
  /// The semantic version.
  static let text = "0.1.0"
}
