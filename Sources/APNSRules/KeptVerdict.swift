/// A verdict as records keep it: it holds on to nothing, so that it can be written, copied and thrown away as bytes are.
///
/// Whoever keeps it sees to it that what the verdict refers to stays there as long: `forEachReferent`.
package struct KeptVerdict: Sendable {
  /// What the request says.
  package let facts: PushFacts
  private let planned: CheckSet
  private let credential: Verdict.Credential
  private let rejection: Unmanaged<Rejection>?
  private let provider: Unmanaged<ProviderToken>?

  /// The same as `verdict` says.
  package init(_ verdict: borrowing Verdict) {
    facts = verdict.facts
    planned = verdict.planned
    credential = verdict.credential
    rejection = verdict.rejection.map { .passUnretained($0) }
    provider = verdict.token.map { .passUnretained($0) }
  }

  /// Whether APNs takes the push.
  package var isAccepted: Bool { rejection == nil }

  /// The provider token, if one came and was looked at.
  package var token: ProviderToken? { provider?.takeUnretainedValue() }

  /// What was kept.
  package var verdict: Verdict {
    var verdict = Verdict(facts: facts)
    verdict.planned = planned
    verdict.credential = credential
    verdict.token = token
    if let rejection { verdict.reject(rejection.takeUnretainedValue()) }
    return verdict
  }

  /// Calls `body` with each of the objects that have to stay.
  @inline(__always)
  package func forEachReferent(_ body: (Unmanaged<AnyObject>) -> Void) {
    if let provider { body(.fromOpaque(provider.toOpaque())) }
    if let rejection { body(.fromOpaque(rejection.toOpaque())) }
  }
}
