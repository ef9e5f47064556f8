/// The devices and topics that the server knows, with which those of a push are compared when its findings are read.
package struct KnownTargets: Sendable {
  /// Returns what a device token that is not registered was probably meant as; nil if it is registered, or unlike all that
  /// are. The argument is the rest of the path after `/3/device/`.
  let deviceTokenProblem: @Sendable (UnsafeRawBufferPointer) -> String?
  /// Returns what an unknown topic was probably meant as; nil if it is known, or unlike all that are.
  let topicProblem: @Sendable (UnsafeRawBufferPointer) -> String?

  /// Creates the comparisons.
  package init(
    deviceTokenProblem: @escaping @Sendable (UnsafeRawBufferPointer) -> String?,
    topicProblem: @escaping @Sendable (UnsafeRawBufferPointer) -> String?
  ) {
    self.deviceTokenProblem = deviceTokenProblem
    self.topicProblem = topicProblem
  }
}
