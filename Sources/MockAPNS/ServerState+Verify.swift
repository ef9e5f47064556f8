public import Inbox

extension ServerState {
  /// Verifies the expectations against the inbox.
  ///
  /// - Returns: The report; nil if the server stops, or the task is cancelled, before the result is known.
  public func verify(_ verification: Verification) async -> VerificationReport? {
    let selection = viewedFile == nil ? faults.selection : nil
    return await inbox.verify(
      verification,
      at: VerificationScene(rulebook: rulebook, seed: selection?.seed, profile: selection?.chosen.reference))
  }
}
