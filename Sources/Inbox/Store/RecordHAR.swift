internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockNotation

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// HTTP Archive 1.2 of records: one entry each. What the format has no member for is in members that begin with `_`.
extension Record {
  /// The text before the first entry, and after the last one.
  static let harOpening = Array(
    #"{"log":{"version":"1.2","creator":{"name":"apns-mock","version":"1"},"pages":[],"entries":["#.utf8)
  static let harEnd = Array("\n]}}\n".utf8)

  /// Writes the record as an entry.
  func writeHAREntry(to writer: inout JSONWriter, findings: [String]) {
    let milliseconds = Double((sentResponse.latencyNanoseconds ?? 0) / 1000) / 1000
    writer.object { writer in
      writer.member("startedDateTime", TimestampFormat.text(receivedAt) ?? "1970-01-01T00:00:00.000Z")
      writer.member("time", milliseconds)
      writer.objectMember("request", writeHARRequest)
      writer.objectMember("response", writeHARResponse)
      writer.objectMember("cache") { _ in }
      writer.objectMember("timings") { writer in
        writer.member("send", 0)
        writer.member("wait", milliseconds)
        writer.member("receive", 0)
      }
      writer.member("connection", connection.id)
      writer.objectMember("_apns_mock") { writer in
        writer.member("seq", name)
        writer.member("outcome", outcome.rawValue)
        writer.member("accepted", accepted)
        writer.member("attempt", attempt)
        writer.member("stream", stream)
        writer.member("client", connection.client)
        writer.member("rule", wireDetails?.injections.first?.rule)
        writer.member("findings", findings)
      }
    }
  }

  private func writeHARRequest(_ writer: inout JSONWriter) {
    let headers = self.headers
    writer.member("method", text(facts.method) ?? "POST")
    writer.member("url", url(authority: headers.first { $0.name == ":authority" }?.value))
    writer.member("httpVersion", harVersion)
    writer.arrayMember("cookies") { _ in }
    Self.writeHARFields(headers, to: &writer)
    writer.arrayMember("queryString") { _ in }
    if bodySize > 0 {
      writer.objectMember("postData") { writer in
        let body = body
        writer.member("mimeType", payloadProblem == nil ? "application/json" : "application/octet-stream")
        writer.arrayMember("params") { _ in }
        writer.member("text", String(decoding: body, as: UTF8.self))
        if String(validating: body, as: UTF8.self) == nil {
          writer.member("_base64", Data(body).base64EncodedString())
        }
      }
    }
    writer.member("headersSize", -1)
    writer.member("bodySize", bodySize)
  }

  private func writeHARResponse(_ writer: inout JSONWriter) {
    let reason = sentReason
    let content = reason.map { reason in
      var writer = JSONWriter()
      writer.object { $0.member("reason", reason) }
      return String(decoding: writer.bytes, as: UTF8.self)
    }
    // As browsers export a request without a response.
    writer.member("status", sentResponse.status ?? 0)
    writer.member("statusText", reason ?? "")
    writer.member("httpVersion", harVersion)
    writer.arrayMember("cookies") { _ in }
    Self.writeHARFields(sentResponse.status == nil ? [] : apnsID.map { [("apns-id", $0)] } ?? [], to: &writer)
    writer.objectMember("content") { writer in
      writer.member("size", content?.utf8.count ?? 0)
      writer.member("mimeType", content == nil ? "x-unknown" : "application/json")
      writer.member("text", content ?? "")
    }
    writer.member("redirectURL", "")
    writer.member("headersSize", -1)
    writer.member("bodySize", -1)
    if let reset = wireDetails?.reset { writer.member("_error", "stream reset: \(reset)") }
  }

  private static func writeHARFields(_ fields: [(name: String, value: String)], to writer: inout JSONWriter) {
    writer.arrayMember("headers") { writer in
      for field in fields {
        writer.object { writer in
          writer.member("name", field.name)
          writer.member("value", field.value)
        }
      }
    }
  }

  private var harVersion: String { connection.http == .http2 ? "HTTP/2" : "HTTP/1.1" }

  /// Returns the absolute URL of the request; characters that a URL cannot have are percent-encoded.
  private func url(authority: String?) -> String {
    let isAuthority = { (byte: UInt8) in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || "-._:[]".utf8.contains(byte)
    }
    let host = authority.flatMap { $0.isEmpty || !$0.utf8.allSatisfy(isAuthority) ? nil : $0 }
    let path = text(facts.path) ?? "/"
    var encoded = path.hasPrefix("/") ? "" : "/"
    for byte in path.utf8 {
      if isAuthority(byte) && byte != UInt8(ascii: "[") && byte != UInt8(ascii: "]") || "/~%?=&+".utf8.contains(byte) {
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        encoded += "%" + (digits.utf8.count == 1 ? "0" : "") + digits
      }
    }
    return "https://\(host ?? "localhost")\(encoded)"
  }
}
