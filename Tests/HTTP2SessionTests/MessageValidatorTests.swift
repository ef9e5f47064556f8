import CAPNSMockNghttp2
import APNSMockHTTPMessage
import Testing

@testable import APNSMockHTTP2Session

/// Malformed requests (RFC 9113 section 8), detected from their fields, bodies and trailers.
@Suite struct MessageCheckTests {
  private static let usual = [
    (":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/3/device/00"),
  ]

  /// The section of RFC 9113 and a description, the fields, and the expected violation.
  @Test(
    arguments: [
      ("8.3.1 a request", usual, nil),
      ("8.3.1 host for :authority", usual.filter { $0.0 != ":authority" } + [("host", "localhost")], nil),
      ("8.3.1 host besides :authority", usual + [("host", "localhost")], nil),
      ("8.3.1 OPTIONS *", changed((":method", "OPTIONS"), (":path", "*")), nil),
      ("8.3.1 a scheme that is not of the web", changed((":scheme", "a+b-1.c"), (":path", "x")), nil),
      ("8.5 CONNECT", [(":method", "CONNECT"), (":authority", "localhost:443")], nil),
      ("8.2.2 te: trailers", usual + [("te", "Trailers")], nil),
      ("8.2.1 an empty value", usual + [("x-y", "")], nil),
      ("8.2.1 spaces within a value", usual + [("x-y", "a b\tc")], nil),
      (
        "8.2.1 what no value may have, where the rules look",
        usual + [("apns-topic", "a\0"), ("authorization", "\u{7f}"), ("apns-id", " a"), ("apns-priority", "5\t")], nil
      ),
      ("8.3.1 no path", usual.dropLast(), .missingControlData),
      ("8.3.1 no method", Array(usual.dropFirst()), .missingControlData),
      ("8.3.1 no scheme", usual.filter { $0.0 != ":scheme" }, .missingControlData),
      ("8.3.1 neither :authority nor host", usual.filter { $0.0 != ":authority" }, .missingControlData),
      ("8.3.1 nothing", [], .missingControlData),
      ("8.5 CONNECT with a path", changed((":method", "CONNECT")), .missingControlData),
      ("8.5 CONNECT to nowhere", [(":method", "CONNECT")], .missingControlData),
      ("8.3.1 an empty path", changed((":path", "")), .controlData),
      ("8.3.1 an empty method", changed((":method", "")), .controlData),
      ("8.3.1 an empty scheme", changed((":scheme", "")), .controlData),
      ("8.3.1 an empty :authority", changed((":authority", "")), .controlData),
      ("8.3.1 an empty host", usual + [("host", "")], .controlData),
      ("8.3.1 a path without a slash", changed((":path", "3/device/00")), .controlData),
      ("8.3.1 the same, the scheme in capitals", changed((":scheme", "HTTPS"), (":path", "x")), .controlData),
      ("8.3.1 POST *", changed((":path", "*")), .controlData),
      ("APNs does not check a space in a path", changed((":path", "/3/device/ 00")), nil),
      ("8.3.1 a control character in a path", changed((":path", "/3/device/\u{1F}00")), .controlData),
      ("8.3.1 a space in a method", changed((":method", "PO ST")), .controlData),
      ("8.3.1 a scheme that begins with a digit", changed((":scheme", "1https")), .controlData),
      ("8.3.1 a space in :authority", changed((":authority", "local host")), .controlData),
      ("8.3.1 a space in host", usual + [("host", "local host")], .controlData),
      ("8.3.1 a user in :authority", changed((":authority", "me@localhost")), .controlData),
      ("8.3.1 a user in host", usual + [("host", "me:secret@localhost")], .controlData),
      ("8.3.1 a path twice", usual + [(":path", "/")], .repeatedPseudoField),
      ("8.3.1 host twice", usual + [("host", "localhost"), ("host", "localhost")], .repeatedPseudoField),
      ("8.3 a pseudo-header field behind others", usual.dropLast() + [("x-y", "z"), (":path", "/")], .latePseudoField),
      ("8.3 a pseudo-header field of answers", usual + [(":status", "200")], .unknownPseudoField),
      ("8.3 an unknown pseudo-header field", usual + [(":x", "y")], .unknownPseudoField),
      ("8.3 only a colon", usual + [(":", "y")], .unknownPseudoField),
      ("8.2.1 a capital letter", usual + [("apns-Topic", "a")], .fieldName),
      ("8.2.1 a name without letters", usual + [("", "a")], .fieldName),
      ("8.2.1 a control character", usual + [("x-y", "a\nb")], .fieldValue),
      ("8.2.1 a space before a value", usual + [("x-y", " a")], .fieldValue),
      ("8.2.1 a tab behind a value", usual + [("x-y", "a\t")], .fieldValue),
      (
        "8.2.1 a control character in a field of APNs that no rule judges", usual + [("apns-collapse-id", "a\0")],
        .fieldValue
      ),
      ("8.2.2 connection", usual + [("connection", "close")], .connectionField),
      ("8.2.2 keep-alive", usual + [("keep-alive", "timeout=5")], .connectionField),
      ("8.2.2 proxy-connection", usual + [("proxy-connection", "close")], .connectionField),
      ("8.2.2 transfer-encoding", usual + [("transfer-encoding", "chunked")], .connectionField),
      ("8.2.2 upgrade", usual + [("upgrade", "h2c")], .connectionField),
      ("8.2.2 te: gzip", usual + [("te", "gzip")], .connectionField),
      ("8.1.1 content-length twice", usual + [("content-length", "0"), ("content-length", "0")], .contentLength),
      ("8.1.1 content-length with a sign", usual + [("content-length", "+0")], .contentLength),
      ("8.1.1 content-length of nothing", usual + [("content-length", "")], .contentLength),
      ("8.1.1 content-length that does not fit", usual + [("content-length", "99999999999999999999")], .contentLength),
    ] as [(String, [(String, String)], MessageViolation?)])
  func fields(_ what: String, _ fields: [(String, String)], _ violation: MessageViolation?) {
    var validator = MessageValidator()
    let found = Self.validate(fields, isTrailer: false, by: &validator)
    #expect(found ?? validator.validateHeaderBlock(isTrailer: false, endsStream: true) == violation, "\(what)")
  }

  @Test func bodies() {
    for (length, size, isComplete, violation) in [
      (nil, 7, true, nil), ("7", 7, true, nil), ("7", 7, false, nil), ("7", 6, false, nil), ("0", 0, true, nil),
      ("7", 6, true, .contentLength), ("7", 8, false, .contentLength), ("0", 1, false, .contentLength),
    ] as [(String?, Int, Bool, MessageViolation?)] {
      var validator = MessageValidator()
      let fields = Self.usual + (length.map { [("content-length", $0)] } ?? [])
      #expect(Self.validate(fields, isTrailer: false, by: &validator) == nil)
      #expect(
        validator.validateBody(size: size, isComplete: isComplete) == violation, "\(length ?? "none"), \(size) bytes")
    }
  }

  @Test func trailers() {
    for (fields, endsStream, violation) in [
      ([("x-y", "z")], true, nil), ([], true, nil), ([("x-y", "z")], false, .endlessTrailers),
      ([(":path", "/")], true, .latePseudoField), ([("X", "z")], true, .fieldName),
      ([("connection", "close")], true, .connectionField), ([("apns-topic", "a\0")], true, .fieldValue),
    ] as [([(String, String)], Bool, MessageViolation?)] {
      var validator = MessageValidator()
      #expect(Self.validate(Self.usual, isTrailer: false, by: &validator) == nil)
      #expect(validator.validateHeaderBlock(isTrailer: false, endsStream: false) == nil)
      let found = Self.validate(fields, isTrailer: true, by: &validator)
      #expect(found ?? validator.validateHeaderBlock(isTrailer: true, endsStream: endsStream) == violation, "\(fields)")
    }
  }

  /// Every byte at every position gets the same verdict as from nghttp2.
  @Test(arguments: [1, 7, 8, 9, 17])
  func bytes(count: Int) {
    for position in 0..<count {
      for byte in UInt8.min...UInt8.max {
        var text = [UInt8](repeating: UInt8(ascii: "/"), count: count)
        text[position] = byte
        let place = "\(byte) at \(position)"
        #expect(
          Self.passes("x-y", text) == (nghttp2_check_header_value_rfc9113(text, count) != 0), "value, \(place)")
        #expect(
          Self.passes(":path", text) == (byte == UInt8(ascii: " ") || nghttp2_check_path(text, count) != 0),
          "path, \(place)")
        var name = [UInt8](repeating: UInt8(ascii: "x"), count: count)
        name[position] = byte
        // A leading colon makes it a pseudo-header field, which has other rules.
        guard name[0] != UInt8(ascii: ":") else { continue }
        #expect(Self.passes(name, []) == (nghttp2_check_header_name(name, count) != 0), "name, \(place)")
      }
    }
  }

  private static func changed(_ fields: (String, String)...) -> [(String, String)] {
    usual.map { usual in fields.first { $0.0 == usual.0 } ?? usual }
  }

  private static func validate(
    _ fields: [(String, String)], isTrailer: Bool, by validator: inout MessageValidator
  ) -> MessageViolation? {
    for (name, value) in fields {
      let violation = Array(name.utf8).withUnsafeBytes { name in
        Array(value.utf8).withUnsafeBytes { validator.validateField(name, $0, isTrailer: isTrailer) }
      }
      if let violation { return violation }
    }
    return nil
  }

  private static func passes(_ name: String, _ value: [UInt8]) -> Bool { passes(Array(name.utf8), value) }

  private static func passes(_ name: [UInt8], _ value: [UInt8]) -> Bool {
    var validator = MessageValidator()
    return name.withUnsafeBytes { name in value.withUnsafeBytes { validator.validateField(name, $0, isTrailer: false) }
    } == nil
  }
}
