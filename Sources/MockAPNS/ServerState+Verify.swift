public import Inbox

extension ServerState {
  /// Looks whether everything is as expected.
  ///
  /// - Returns: nil if the server stops, or the task is cancelled, before that is known.
  public func verify(_ verification: Verification) async -> VerificationReport? {
    let selection = viewedFile == nil ? faults.selection : nil
    return await inbox.verify(
      verification,
      at: VerificationScene(rulebook: rulebook, seed: selection?.seed, profile: selection?.chosen.reference))
  }
}
