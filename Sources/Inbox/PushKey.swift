internal import APNSRules
internal import Faults

extension Record {
  /// What makes attempts the same push, from the body as far as it was kept.
  ///
  /// Computed when asked for: most records are never looked at.
  public var pushKey: String {
    withHeaders { headers in
      withBody { body in
        PushKey.text(
          headers: headers, facts: facts, defaultTopic: connection.certificate?.defaultTopic, body: body)
      }
    }
  }
}
