package import APNSRules

/// The context in which a filter is parsed. A condition that needs a property that is nil is an error.
package struct FilterContext: Sendable {
  /// Milliseconds since 1970 by the server's clock, the reference for times such as `since:-5m`.
  package var now: Int64?
  /// The rules that determine findings.
  package var rulebook: Rulebook?
  /// The records among which `is:duplicate` finds duplicates. Later records are not considered, so a wait cannot use
  /// it.
  package var snapshot: InboxSnapshot?
  /// The inbox of the records, for findings that depend on several of them.
  package var inbox: Inbox?
  /// The valid names of rules, profiles, reasons and findings; other names are errors. Nil to accept any name.
  package var known: KnownNames?

  /// Creates a context. The empty context is sufficient except for relative times, `finding` and `is:duplicate`.
  package init(
    now: Int64? = nil, rulebook: Rulebook? = nil, snapshot: InboxSnapshot? = nil, inbox: Inbox? = nil,
    known: KnownNames? = nil
  ) {
    self.known = known
    self.now = now
    self.rulebook = rulebook
    self.snapshot = snapshot
    self.inbox = inbox
  }
}
