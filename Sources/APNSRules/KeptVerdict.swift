/// A verdict without strong references, which records can store, copy and discard as plain bytes.
///
/// The owner of the record must keep the referenced objects alive for as long; see `forEachReferent`.
package struct KeptVerdict: Sendable {
  /// The facts of the request.
  package let facts: PushFacts
  private let planned: CheckSet
  private let credential: Verdict.Credential
  private let rejection: Unmanaged<Rejection>?
  private let provider: Unmanaged<ProviderToken>?

  /// Packs a verdict.
  package init(_ verdict: borrowing Verdict) {
    facts = verdict.facts
    planned = verdict.planned
    credential = verdict.credential
    rejection = verdict.rejection.map { .passUnretained($0) }
    provider = verdict.token.map { .passUnretained($0) }
  }

  /// Whether the push is accepted.
  package var isAccepted: Bool { rejection == nil }

  /// The provider token, if one was parsed.
  package var token: ProviderToken? { provider?.takeUnretainedValue() }

  /// The unpacked verdict.
  package var verdict: Verdict {
    var verdict = Verdict(facts: facts)
    verdict.planned = planned
    verdict.credential = credential
    verdict.token = token
    if let rejection { verdict.reject(rejection.takeUnretainedValue()) }
    return verdict
  }

  /// Calls `body` with each object that must be kept alive.
  @inline(__always)
  package func forEachReferent(_ body: (Unmanaged<AnyObject>) -> Void) {
    if let provider { body(.fromOpaque(provider.toOpaque())) }
    if let rejection { body(.fromOpaque(rejection.toOpaque())) }
  }
}
