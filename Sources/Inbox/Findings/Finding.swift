/// An error of the provider, with the records that prove it. Findings never change a response.
public struct Finding: Sendable, Equatable {
  /// The kind of error.
  public let kind: Kind
  /// The `seq` of the record that the finding is about: the retry, not the attempt before it.
  public let seq: Int
  /// The `seq` of each record that proves the finding, ascending, including `seq`. Some may have been evicted.
  public let evidence: [Int]
  /// A description of what happened, with values from these records.
  public let explanation: String

  /// Creates a finding about these records.
  public init(_ kind: Kind, seq: Int, evidence: [Int], explanation: String) {
    self.kind = kind
    self.seq = seq
    self.evidence = evidence
    self.explanation = explanation
  }
}
