public import APNSRules

/// What the meaning of a filter depends on besides its words. A condition that needs what is nil is an error.
public struct FilterContext: Sendable {
  /// Milliseconds since 1970 by the server's clock: what `since:-5m` counts from.
  public var now: Int64?
  /// What findings are made by.
  public var rulebook: Rulebook?
  /// The pushes of which `is:duplicate` picks some: those that were there then, so it cannot be waited for.
  public var snapshot: InboxSnapshot?
  /// Where the records are, for the findings that several of them prove.
  public var inbox: Inbox?
  /// The names of rules, profiles, reasons and findings; other names are errors. Nil accepts any name.
  public var known: KnownNames?

  /// A context; the empty one is enough for everything but relative times, `finding` and `is:duplicate`.
  public init(
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
