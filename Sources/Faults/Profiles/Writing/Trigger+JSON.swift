public import Notation

extension Trigger {
  /// Writes the trigger as an object with the keys of a profile file, without those that have their default value.
  public func write(to writer: inout JSONWriter) {
    writer.object { writer in
      switch probability {
      case .fixed(let number)?: writer.numberMember(TriggerKey.probability.rawValue, number)
      case .ramp(let from, let to, let over)?:
        writer.objectMember(TriggerKey.probability.rawValue) { writer in
          writer.objectMember(ProbabilityKey.ramp.rawValue) { writer in
            writer.numberMember(RampKey.from.rawValue, from)
            writer.numberMember(RampKey.to.rawValue, to)
            writer.member(RampKey.over.rawValue, over)
          }
        }
      case nil: break
      }
      if drawKey != .attempt { writer.member(TriggerKey.drawPer.rawValue, drawKey.rawValue) }
      let counts: [(TriggerKey, Int?)] = [(.first, first), (.after, after), (.every, every), (.times, times)]
      for (key, count) in counts {
        if let count { writer.member(key.rawValue, count) }
      }
      if countKey != .rule { writer.member(TriggerKey.timesPer.rawValue, countKey.rawValue) }
      if let overLimit { overLimit.write(to: &writer) }
      if let window { window.write(to: &writer) }
      if let afterStreams { writer.member(TriggerKey.afterStreams.rawValue, afterStreams) }
      if let maxActive { writer.member(TriggerKey.maxActive.rawValue, maxActive) }
    }
  }
}

extension Trigger.Rate {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.objectMember(TriggerKey.overLimit.rawValue) { writer in
      writer.numberMember(RateKey.limit.rawValue, limit)
      writer.member(RateKey.per.rawValue, per)
      writer.numberMember(RateKey.burst.rawValue, burst)
      writer.member(RateKey.key.rawValue, key.rawValue)
    }
  }
}

extension Trigger.Window {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.objectMember(TriggerKey.window.rawValue) { writer in
      if after > .zero || length == nil && every == nil { writer.member(WindowKey.after.rawValue, after) }
      if let length { writer.member(WindowKey.length.rawValue, length) }
      if let every { writer.member(WindowKey.every.rawValue, every) }
    }
  }
}
