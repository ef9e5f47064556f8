internal import APNSMockHTTPMessage
package import APNSMockNotation

/// The content of a Live Activity push (Protocol.md, section 6.3).
package struct ActivityContent: Sendable, Equatable {
  /// The value of `event`.
  package enum Event: String, CaseIterable, Sendable {
    case start, update, end
  }

  package let event: Event
  /// `timestamp`, in seconds since 1970.
  package let timestamp: Double
  /// `dismissal-date` of the event `end`, in milliseconds since 1970; nil without one.
  package private(set) var dismissalDate: ServerTime?
  /// `attributes-type` of the event `start`.
  package private(set) var attributesType: String?

  /// An activity is active for at most eight hours, so an older `timestamp` is of no activity that could be updated, and a
  /// device ignores one that is more than eight hours ahead.
  static let longestTime: Int64 = 8 * 3600

  /// Reads a payload.
  ///
  /// - Parameters:
  ///   - payload: The body of a push.
  ///   - now: The time at which the device has it, in milliseconds since 1970.
  /// - Returns: nil if the payload or one of its members is such that a device ignores the push.
  package init?(payload: UnsafeRawBufferPointer, at now: ServerTime) {
    guard let summary = try? PayloadSummary(payload), let aps = summary.dictionaryRange,
      let content = try? ActivityContent(aps: payload.part(aps), at: now)
    else { return nil }
    self = content
  }

  /// Reads the object `aps`.
  ///
  /// - Parameter aps: Valid JSON.
  /// - Throws: `DisplayProblem` if a device ignores the push.
  init(aps: UnsafeRawBufferPointer, at now: ServerTime) throws(DisplayProblem) {
    let members = ActivityMembers(aps)
    let time = try members.requiredDate("timestamp", at: now)
    let name = try members.requiredText("event")
    guard let event = Event(rawValue: name) else {
      throw .activity("event", "is \(Explanation.quoted(name)), not start, update or end")
    }
    (self.event, timestamp) = (event, time)
    if let problem = timeProblem(at: now) { throw problem }
    try members.requireObject("content-state", of: event)
    if event == .start {
      attributesType = try members.requiredText("attributes-type", of: event)
      try members.requireObject("attributes", of: event)
      try members.requireAlert()
    }
    try members.checkOptional()
    if let date = try members.date("stale-date", at: now), date < Double(now / 1000 - Self.longestTime) {
      throw .activity("stale-date", "is \(ActivityDate.text(date, at: now)): the content is outdated when it arrives")
    }
    if let date = try members.date("dismissal-date", at: now), event == .end {
      dismissalDate = ServerTime(min(max(date, 0), 1e12) * 1000)
    }
  }

  /// Returns why a device ignores the push because of its `timestamp`; nil if it does not. The event `end` is not checked
  /// (observed: forum 776165).
  ///
  /// - Parameter now: The time at which the device has the push, in milliseconds since 1970.
  package func timeProblem(at now: ServerTime) -> DisplayProblem? {
    let seconds = Double(now) / 1000
    guard event != .end else { return nil }
    if timestamp > seconds + Double(Self.longestTime) {
      return .activity("timestamp", "is \(ActivityDate.text(timestamp, at: now)), more than 8 hours ahead")
    }
    if timestamp < seconds - Double(Self.longestTime) {
      return .activity(
        "timestamp",
        "is \(ActivityDate.text(timestamp, at: now)), more than 8 hours ago, which is longer than an activity lasts")
    }
    return nil
  }
}

/// Dates of Live Activity pushes, in seconds since 1970.
private enum ActivityDate {
  /// Ten years, in seconds: no date of a push is that far away.
  private static let longTime = 315_360_000.0
  /// From 1970 to 2001, in seconds: the reference date of Swift's `Date`.
  private static let referenceDate = 978_307_200.0

  /// Returns the unit in which a number is a time within ten years of `now`, if that is not the second.
  static func smallUnit(of number: Double, at now: ServerTime) -> String? {
    let units = [("seconds", 1), ("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9)]
    let unit = units.first { abs(number / $0.1 - Double(now) / 1000) < longTime }?.0
    return unit == "seconds" ? nil : unit
  }

  /// Returns a date for an explanation, with a guess how it came about.
  static func text(_ seconds: Double, at now: ServerTime) -> String {
    let number = Int64(exactly: seconds).map(String.init) ?? "\(seconds)"
    // Beyond the years that a timestamp can have.
    let time = abs(seconds) < 1e11 ? TimestampFormat.text(Int64(seconds) * 1000) : nil
    let text = "\(number)\(time.map { " (\($0))" } ?? "")"
    if abs(seconds + referenceDate - Double(now) / 1000) < longTime {
      return text + ", which counts from 2001, as Swift's JSONEncoder does by default,"
    }
    return abs(seconds) < longTime ? text + ", which is a duration, not a UNIX time," : text
  }
}

/// The members of an `aps` that Live Activities use.
private struct ActivityMembers {
  private let aps: UnsafeRawBufferPointer

  init(_ aps: UnsafeRawBufferPointer) { self.aps = aps }

  /// Returns a member's value; nil if it is absent or null. Of members with the same name the last one counts.
  private func value(_ name: StaticString, in json: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    var scanner = JSONScanner(json)
    guard scanner.enterObject() else { return nil }
    var found: UnsafeRawBufferPointer?
    while let member = scanner.nextMember() {
      guard json.part(member.name).equals(name) else { continue }
      found = json.part(member.value)
    }
    return found?.first == UInt8(ascii: "n") ? nil : found
  }

  private func value(_ name: StaticString) -> UnsafeRawBufferPointer? { value(name, in: aps) }

  /// Returns a date in seconds since 1970; nil if the member is absent.
  ///
  /// - Throws: `DisplayProblem` if it is not a number, or in another unit.
  func date(_ name: StaticString, at now: ServerTime) throws(DisplayProblem) -> Double? {
    guard let json = value(name) else { return nil }
    guard let number = Self.number(json) else {
      throw .activity(name, "is not a number: send the UNIX time in seconds")
    }
    if let unit = ActivityDate.smallUnit(of: number, at: now) {
      throw .activity(name, "is a time in \(unit): send the UNIX time in seconds")
    }
    return number
  }

  func requiredDate(_ name: StaticString, at now: ServerTime) throws(DisplayProblem) -> Double {
    guard let date = try date(name, at: now) else {
      throw .activity(name, "is missing: send the UNIX time in seconds")
    }
    return date
  }

  /// Returns a string that is not empty.
  ///
  /// - Parameter event: The event that needs the member; nil if all do.
  func requiredText(_ name: StaticString, of event: ActivityContent.Event? = nil) throws(DisplayProblem) -> String {
    guard let json = value(name) else { throw .missing(name, of: event) }
    guard json.first == UInt8(ascii: "\"") else { throw .activity(name, "is not a string") }
    guard json.count > 2 else { throw .activity(name, "is an empty string") }
    return JSONScanner.unescaped(UnsafeRawBufferPointer(rebasing: json.dropFirst().dropLast()))
  }

  func requireObject(_ name: StaticString, of event: ActivityContent.Event) throws(DisplayProblem) {
    guard let json = value(name) else { throw .missing(name, of: event) }
    guard json.first == UInt8(ascii: "{") else { throw .activity(name, "is not an object") }
  }

  /// Checks the alert of a start: without title and body nothing appears (observed: APNSwift#232).
  func requireAlert() throws(DisplayProblem) {
    guard let alert = value("alert") else { throw .missing("alert", of: .start) }
    switch alert.first {
    case UInt8(ascii: "\"") where alert.count > 2: return
    case UInt8(ascii: "\""): throw .activity("alert", "is an empty string")
    case UInt8(ascii: "{"):
      let names: [StaticString] = ["title", "body", "title-loc-key", "loc-key"]
      guard names.contains(where: { isText(value($0, in: alert)) }) else {
        throw .activity("alert", "has neither title nor body, so that nothing starts")
      }
    default: throw .activity("alert", "is neither a string nor an object")
    }
  }

  /// Returns whether a title or body shows something: a string, or an object with the key of a localized one.
  private func isText(_ json: UnsafeRawBufferPointer?) -> Bool {
    guard let json else { return false }
    if json.first == UInt8(ascii: "{") { return isText(value("loc-key", in: json)) }
    return json.first == UInt8(ascii: "\"") && json.count > 2
  }

  /// Checks the types of members that may be absent, of every event.
  func checkOptional() throws(DisplayProblem) {
    if let alert = value("alert"), alert.first != UInt8(ascii: "{"), alert.first != UInt8(ascii: "\"") {
      throw .activity("alert", "is neither a string nor an object")
    }
    if let score = value("relevance-score"), Self.number(score) == nil {
      throw .activity("relevance-score", "is not a number")
    }
    if let channel = value("input-push-channel"), channel.first != UInt8(ascii: "\"") || channel.count == 2 {
      throw .activity("input-push-channel", "is not a string with a channel id")
    }
    if let token = value("input-push-token"), Self.number(token) != 1 {
      throw .activity("input-push-token", "is not the number 1")
    }
  }

  private static func number(_ json: UnsafeRawBufferPointer) -> Double? {
    guard let first = json.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first) else { return nil }
    return Double(String(decoding: json, as: UTF8.self))
  }
}

extension DisplayProblem {
  fileprivate static func activity(_ name: StaticString, _ problem: String) -> DisplayProblem {
    .activity(member: name.description, problem: problem)
  }

  fileprivate static func missing(_ name: StaticString, of event: ActivityContent.Event?) -> DisplayProblem {
    .activity(name, "is missing\(event.map { ", which the event \($0) needs" } ?? "")")
  }
}
