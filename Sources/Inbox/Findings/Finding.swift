/// One thing that a provider does wrong, with the records that show it. Findings judge; they never change an answer.
public struct Finding: Sendable, Equatable {
  /// What is wrong.
  public let kind: Kind
  /// The number of the record that earns it: the retry, not what was retried.
  public let seq: Int
  /// The numbers of the records that prove it, ascending, `seq` among them. Some may have been pushed out of the inbox.
  public let evidence: [Int]
  /// What happened, in words and with the values of these records.
  public let explanation: String

  /// A finding about these records.
  public init(_ kind: Kind, seq: Int, evidence: [Int], explanation: String) {
    self.kind = kind
    self.seq = seq
    self.evidence = evidence
    self.explanation = explanation
  }
}
