extension InboxSnapshot {
  /// The numbers of the pushes that APNs took though it had taken the same push before, as far back as the inbox goes.
  ///
  /// Takes a walk through the whole inbox and, for its time, some twenty bytes for each push that was accepted.
  func duplicates() -> Set<Int> {
    var taken: Set<PushFingerprint> = []
    var duplicates: Set<Int> = []
    records.forEach(in: Selection()) { record in
      if record.accepted, !taken.insert(PushFingerprint(record)).inserted { duplicates.insert(record.seq) }
      return true
    }
    return duplicates
  }
}
