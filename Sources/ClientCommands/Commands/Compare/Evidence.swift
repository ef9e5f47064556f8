import APNSMockRules
import APNSMockHTTPMessage
import MockAPNS
import APNSMockNotation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The answers to probes. It contains no secrets: requests have placeholders for tokens and topics, answers only status,
/// reason, names of header fields and what happened to the connection.
struct Evidence: Codable, Sendable {
  /// The answer of one server.
  struct Answer: Codable, Sendable, Equatable {
    /// Nil without a response.
    var status: Int?
    var reason: String?
    /// The names of the header fields of the response.
    var headers: [String]?
    /// What happened instead of a response, or the value of a setting.
    var event: String?

    /// The answer in one line.
    var text: String {
      let parts = [status.map(String.init), reason, event].compactMap(\.self)
      return parts.isEmpty ? "no answer" : parts.joined(separator: " ")
    }

    /// Whether the answers differ for a provider. Header fields are information only.
    func differs(from other: Answer) -> Bool {
      status != other.status || reason != other.reason || event != other.event
    }
  }

  /// The answers to one probe.
  struct Result: Codable, Sendable {
    var name: String
    var section: String
    var fact: String
    /// The request, with placeholders.
    var sent: [String]
    var bodyBytes: Int
    var mock: Answer
    var upstream: Answer

    /// Whether the answers differ.
    var isDeviating: Bool { mock.differs(from: upstream) }
  }

  static let newestFormat = 1
  private static let sizeLimit = 8 << 20

  var format = Self.newestFormat
  var date: String
  /// The URL of the service.
  var endpoint: String
  /// Why probes were not sent; nil if all were.
  var stopped: String?
  var results: [Result] = []

  /// Creates evidence without answers.
  init(endpoint: String) {
    self.endpoint = endpoint
    // The day only: the time is not needed.
    date = String((TimestampFormat.text(ServerClock().now) ?? "").prefix(10))
  }

  /// Reads a file.
  ///
  /// - Throws: `CommandFailure` if it is no file of `--report`.
  init(fileAt path: String) throws {
    let bytes = try Files.contents(of: path, limit: Self.sizeLimit)
    do {
      self = try JSONDecoder().decode(Evidence.self, from: Data(bytes))
    } catch {
      throw CommandFailure(.usage, "\(path) is no file of apns-mock compare --report")
    }
    guard format == Self.newestFormat else {
      throw CommandFailure(.usage, "\(path) has format \(format), use a newer version of apns-mock: this one knows 1")
    }
  }

  /// The file's content.
  var json: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { Array($0) } ?? []
  }

  /// Adds the values of the first SETTINGS (Protocol.md, section 9.1).
  mutating func addSettings(mock: ProbeResult.Settings?, upstream: ProbeResult.Settings?) {
    func add(_ name: String, _ value: (ProbeResult.Settings) -> UInt32?) {
      func answer(_ settings: ProbeResult.Settings?) -> Answer {
        Answer(event: settings.map { value($0).map(String.init) ?? "absent" })
      }
      results.append(
        Result(
          name: "settings/\(name)", section: "9.1", fact: "the first SETTINGS", sent: [], bodyBytes: 0,
          mock: answer(mock), upstream: answer(upstream)))
    }
    add("max-concurrent-streams") { $0.maxConcurrentStreams }
    add("max-header-list-size") { $0.maxHeaderListSize }
  }
}

extension Evidence.Result {
  init(_ probe: ProtocolProbe, mock: Evidence.Answer, upstream: Evidence.Answer) {
    self.init(
      name: probe.name, section: probe.fact.section, fact: probe.fact.text,
      sent: probe.fields.filter { $0.name != ":scheme" && $0.name != ":authority" }.map {
        "\($0.name): \($0.value.utf8.count > 300 ? "\($0.value.utf8.count) bytes" : $0.value)"
      },
      bodyBytes: probe.body.count, mock: mock, upstream: upstream)
  }
}

extension Evidence.Answer {
  init(_ answer: UpstreamAnswer) {
    switch answer.result {
    case .response(let response):
      var names: [String] = []
      response.headers.forEachField { name, _ in
        let name = response.headers.string(name)
        if name != ":status", names.count < 20 { names.append(String(name.prefix(64))) }
      }
      self.init(status: answer.status, reason: answer.reason, headers: names)
    case .excluded: self.init(event: "GOAWAY")
    case .refused: self.init(event: "refused")
    case .unknown: self.init(event: "connection or stream ended")
    }
  }
}
