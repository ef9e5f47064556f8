package import FaultModel
internal import HTTP2Session
package import Notation
internal import TLSEngine

extension Action {
  /// Writes the action in the format of a profile file: an object whose only member is the action's name, with its
  /// fields.
  package func write(to writer: inout JSONWriter) {
    writer.object(writeMember)
  }

  private func writeMember(to writer: inout JSONWriter) {
    writer.name(name.rawValue)
    switch self {
    case .choose(let choices):
      writer.array { writer in
        for choice in choices {
          writer.object { writer in
            writer.numberMember(ProfileParser.weight, choice.weight)
            choice.action.writeMember(to: &writer)
          }
        }
      }
    default: writer.object(writeFields)
    }
  }

  private func writeFields(to writer: inout JSONWriter) {
    switch self {
    case .respond(let response): response.writeFields(to: &writer)
    case .delay(let delay): delay.writeFields(to: &writer)
    case .hang(let length, let ending), .stall(let length, let ending):
      if let length { writer.member(HoldKey.length.rawValue, length) }
      writer.member(HoldKey.endWith.rawValue, ending.rawValue)
    case .resetStream(let code): writer.errorCodeMember(ResetKey.code.rawValue, code)
    case .resetConnection(let afterAccepting):
      writer.member(ConnectionResetKey.afterAccepting.rawValue, afterAccepting)
    case .goAway(let order): order.writeFields(to: &writer)
    case .drain(let length, let response):
      writer.member(DrainKey.length.rawValue, length)
      writer.objectMember(DrainKey.respond.rawValue, response.writeFields)
    case .loseResponse(let ending): writer.member(LossKey.endWith.rawValue, ending.rawValue)
    case .dribble(let chunks, let over):
      writer.member(DribbleKey.chunks.rawValue, chunks)
      writer.member(DribbleKey.over.rawValue, over)
    case .dropHeader(let name): writer.member(DropHeaderKey.name.rawValue, name)
    case .changeID(let change): writer.member(ChangeIDKey.to.rawValue, change.rawValue)
    case .starveWindow(let length), .ignorePings(let length), .silence(let length):
      if let length { writer.member(TimeKey.length.rawValue, length) }
    case .settings(let order): order.writeFields(to: &writer)
    case .alert(let code):
      if let name = TLSAlert.name(of: code) {
        writer.member(AlertKey.name.rawValue, name)
      } else {
        writer.member(AlertKey.name.rawValue, code)
      }
    case .certificate(let use): writer.member(CertificateKey.use.rawValue, use.rawValue)
    case .sequence(let key, let steps, let onEnd):
      writer.member(SequenceKey.key.rawValue, key.rawValue)
      writer.arrayMember(SequenceKey.steps.rawValue) { writer in
        for step in steps { step.write(to: &writer) }
      }
      writer.member(SequenceKey.onEnd.rawValue, onEnd.rawValue)
    case .close, .splitBody, .truncateBody, .garbleBody, .emptyErrorBody, .refuse, .pass, .choose: break
    }
  }
}

extension Action.Response {
  fileprivate func writeFields(to writer: inout JSONWriter) {
    writer.member(ResponseKey.status.rawValue, status)
    if reason != nil || body == nil && Self.defaultReason(of: status) != nil {
      writer.member(ResponseKey.reason.rawValue, reason)
    }
    switch timestamp {
    case .relative(.zero): break
    case .relative(let duration): writer.member(ResponseKey.timestamp.rawValue, duration)
    case .absolute(let time): writer.member(ResponseKey.timestamp.rawValue, TimestampFormat.text(time) ?? "now")
    }
    if !headers.isEmpty {
      writer.objectMember(ResponseKey.headers.rawValue) { writer in
        for field in headers { writer.member(field.name, field.value) }
      }
    }
    if let body { writer.member(ResponseKey.body.rawValue, String(decoding: body, as: UTF8.self)) }
    if repeatsUntilUpdateInterval { writer.member(ResponseKey.latch.rawValue, true) }
    if reality != .real { writer.member(ResponseKey.unreal.rawValue, true) }
  }
}

extension Action.Delay {
  fileprivate func writeFields(to writer: inout JSONWriter) {
    switch self {
    case .fixed(let length): writer.member(DelayKey.fixed.rawValue, length)
    case .uniform(let min, let max):
      writer.objectMember(DelayKey.uniform.rawValue) { writer in
        writer.member(UniformKey.min.rawValue, min)
        writer.member(UniformKey.max.rawValue, max)
      }
    case .lognormal(let median, let sigma, let max):
      writer.objectMember(DelayKey.lognormal.rawValue) { writer in
        writer.member(LognormalKey.median.rawValue, median)
        writer.numberMember(LognormalKey.sigma.rawValue, sigma)
        writer.member(LognormalKey.max.rawValue, max)
      }
    }
  }
}

extension Action.GoAwayParameters {
  fileprivate func writeFields(to writer: inout JSONWriter) {
    writer.errorCodeMember(GoAwayKey.code.rawValue, code)
    writer.member(GoAwayKey.lastStream.rawValue, lastStream.rawValue)
    if !debugData.isEmpty { writer.member(GoAwayKey.debug.rawValue, debugData) }
    if twice { writer.member(GoAwayKey.twice.rawValue, true) }
    writer.member(GoAwayKey.closeAfter.rawValue, closeAfter.map(DurationFormat.text) ?? Action.Standard.never)
  }
}

extension Action.SettingsParameters {
  fileprivate func writeFields(to writer: inout JSONWriter) {
    let values: [(SettingsKey, UInt32?)] = [
      (.maxConcurrentStreams, maxConcurrentStreams), (.initialWindowSize, initialWindowSize),
      (.maxHeaderListSize, maxHeaderListSize),
    ]
    for (key, value) in values {
      if let value { writer.member(key.rawValue, value) }
    }
    if after > .zero { writer.member(SettingsKey.after.rawValue, after) }
    if delay > .zero { writer.member(SettingsKey.delay.rawValue, delay) }
    if !acknowledgesClient { writer.member(SettingsKey.acknowledgesClient.rawValue, false) }
  }
}

extension JSONWriter {
  /// Writes a member with an HTTP/2 error code, by name if it has one.
  fileprivate mutating func errorCodeMember(_ name: String, _ code: UInt32) {
    if let text = HTTP2ErrorCode(rawValue: code)?.name { member(name, text) } else { member(name, code) }
  }
}
