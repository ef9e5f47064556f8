extension RecordWriter {
  /// When the answer to a push leaves.
  package enum Durability: String, CaseIterable, Sendable {
    /// After the push was written to the disk.
    case answer
    /// At once. Pushes that are not written yet are lost if the server is killed.
    case soon
  }

  /// What happens to pushes while the store fails.
  package enum FailurePolicy: String, CaseIterable, Sendable {
    /// They are answered with 503 `ServiceUnavailable`.
    case refuse
    /// They are answered as usual, and not kept.
    case drop
  }

  /// How records are kept.
  package struct Options: Sendable {
    package var durability = Durability.soon
    package var failurePolicy = FailurePolicy.refuse
    /// The age in milliseconds after which records are removed, by the server's clock; nil for no limit.
    package var retention: Int64?
    /// The number of the newest records that are in memory too.
    package var recentRecords = 32_768
    /// The size of the newest records that are in memory too, in bytes.
    package var recentBytes = 64 << 20

    /// Creates the default options.
    package init() {}
  }
}
