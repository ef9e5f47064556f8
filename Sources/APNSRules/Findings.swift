internal import Foundation
internal import HTTPMessage

/// What a push tells about its provider beyond the verdict (CONTRACT.md, findings). Looked for when somebody reads a
/// record, not when the push arrives.
extension Rulebook {
  /// `missing-push-type`, and `would-not-show` for what APNs accepts and a device drops (APNS.md sections 5 and 6).
  /// Meant for accepted pushes. What the three modes answer differently is a finding in `apple` only, as their table
  /// says.
  ///
  /// - Parameters:
  ///   - facts: the push's facts.
  ///   - headers: the packed header fields the facts were read from.
  ///   - body: its payload.
  public func findings(_ facts: PushFacts, headers: UnsafeRawBufferPointer, body: [UInt8]) -> [String] {
    var findings: [String] = []
    if mode == .apple, facts.pushTypeText == nil { findings.append("missing-push-type") }
    if wouldNotShow(facts, headers: headers, body: body) { findings.append("would-not-show") }
    return findings
  }

  private func wouldNotShow(_ facts: PushFacts, headers: UnsafeRawBufferPointer, body: [UInt8]) -> Bool {
    if mode == .apple, facts.pushType == .background, facts.priority == 10 { return true }
    guard let json = Payload.parse(body) else { return mode == .apple }
    guard let payload = json as? [String: Any] else { return true }
    let isForWallet = facts.topic.map { headers.part($0.indices).hasPrefix("pass.") } ?? facts.topicIsFromCertificate
    let aps = payload["aps"].map(AppleDictionary.init)
    switch facts.pushType {
    case .mdm: return payload["mdm"] == nil
    case .voip, .complication, .fileprovider, .pushtotalk, .location: return false
    case .liveactivity: return aps.map { !$0.updatesActivity } ?? true
    case .widgets, .controls: return aps.map { !$0.isTrue("content-changed") } ?? true
    case .background: return aps.map { !$0.isSilent } ?? true
    case .alert, nil:
      // Wallet passes and MDM commands have no aps at all (APNS.md section 6.2).
      guard let aps else { return payload["mdm"] == nil && !(payload.isEmpty && isForWallet) }
      return !aps.showsSomething
    }
  }
}

/// The `aps` dictionary of a payload.
private struct AppleDictionary {
  var members: [String: Any]

  /// Anything but a dictionary is as good as an empty one.
  init(_ json: Any) { members = json as? [String: Any] ?? [:] }

  func has(_ key: String) -> Bool { members[key] != nil }

  func isTrue(_ key: String) -> Bool { members[key] as? Bool ?? false }

  var showsSomething: Bool { has("alert") || has("badge") || has("sound") }

  /// `content-available: 1` and nothing to show (APNS.md section 5).
  var isSilent: Bool { isTrue("content-available") && !showsSomething }

  /// What a Live Activity always has, and what its start has besides (APNS.md section 6.3).
  var updatesActivity: Bool {
    guard members["timestamp"] is NSNumber, has("content-state") else { return false }
    switch members["event"] as? String {
    case "start": return has("attributes-type") && has("attributes") && has("alert")
    case "update", "end": return true
    default: return false
    }
  }
}
