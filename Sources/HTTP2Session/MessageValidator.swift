internal import CAPNSMockNghttp2
internal import APNSMockHTTPMessage

/// A violation of HTTP/2's message rules by a request (RFC 9113 section 8). The server resets the stream.
package enum MessageViolation: UInt8, Sendable, CaseIterable, CustomStringConvertible {
  /// Sections 8.2 and 8.2.1.
  case fieldName, fieldValue
  /// Section 8.2.2.
  case connectionField
  /// Section 8.3.
  case unknownPseudoField, latePseudoField, repeatedPseudoField
  /// Section 8.3.1.
  case controlData, missingControlData
  /// Section 8.1.1.
  case contentLength
  /// Section 8.1.
  case endlessTrailers

  /// A description for the log.
  package var description: String {
    switch self {
    case .fieldName: "the name of a field has a capital letter, or a character that no name may have"
    case .fieldValue: "the value of a field has a control character, or leading or trailing space"
    case .connectionField:
      "it has a field of HTTP/1 connections (connection, keep-alive, proxy-connection, transfer-encoding, upgrade, or te with more than trailers)"
    case .unknownPseudoField: "it has a pseudo-header field that requests do not have"
    case .latePseudoField: "a pseudo-header field follows other fields, or is in trailers"
    case .repeatedPseudoField: "a pseudo-header field, or host, is repeated"
    case .controlData: ":method, :scheme, :authority, :path or host has a value that it cannot have"
    case .missingControlData: "it lacks :method, :scheme, :path or :authority, or CONNECT has more than :authority"
    case .contentLength: "content-length is not the length of its body"
    case .endlessTrailers: "its trailers do not end the stream"
    }
  }

  /// What to change, in one sentence.
  package var remedy: String {
    switch self {
    case .fieldName: "Write the names of fields in lower case, with the characters of a token"
    case .fieldValue: "Remove control characters, and space at the beginning and the end"
    case .connectionField: "Remove the field"
    case .unknownPseudoField: "Send :method, :scheme, :authority and :path only"
    case .latePseudoField: "Send the pseudo-header fields first"
    case .repeatedPseudoField: "Send the field once"
    case .controlData: "Correct the value"
    case .missingControlData: "Send :method, :scheme, :authority and :path"
    case .contentLength: "Send the number of bytes of the body, not of its characters, or omit the field"
    case .endlessTrailers: "End the stream with the trailers"
    }
  }
}

/// Validates the HTTP/2 rules of a request while its parts are received.
///
/// nghttp2 can validate too, but it checks each byte separately and does not report the violation. Measured: nghttp2's
/// validation took 10 % of the CPU time per push, this one half of that. nghttp2's functions are used only for unusual
/// names and values.
struct MessageValidator {
  private struct Marks: OptionSet {
    let rawValue: UInt16

    static let method = Marks(rawValue: 1 << 0)
    static let scheme = Marks(rawValue: 1 << 1)
    static let authority = Marks(rawValue: 1 << 2)
    static let path = Marks(rawValue: 1 << 3)
    static let host = Marks(rawValue: 1 << 4)
    /// A field that is no pseudo-header field was received.
    static let others = Marks(rawValue: 1 << 5)
    static let isConnect = Marks(rawValue: 1 << 6)
    static let isOptions = Marks(rawValue: 1 << 7)
    /// The scheme is `http` or `https`.
    static let isWeb = Marks(rawValue: 1 << 8)
    /// The path begins with `/`.
    static let isRooted = Marks(rawValue: 1 << 9)
    /// The path is `*`.
    static let isAsterisk = Marks(rawValue: 1 << 10)
    /// The client waits for status 100 before it sends the body.
    static let expectsContinue = Marks(rawValue: 1 << 11)
  }

  private var marks: Marks = []
  /// The value of `content-length`; negative if there is none.
  private var length: Int64 = -1

  // MARK: - Fields

  /// Validates a field.
  ///
  /// - Parameter isTrailer: Whether the field is in the trailer section.
  @inline(__always)
  mutating func validateField(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isTrailer: Bool
  ) -> MessageViolation? {
    guard let first = name.first else { return .fieldName }
    if first == UInt8(ascii: ":") { return validatePseudoField(name, value, isTrailer: isTrailer) }
    marks.insert(.others)
    guard name.isUsualName || nghttp2_check_header_name(name.text, name.count) != 0 else { return .fieldName }
    if Self.mayBeSpecial(first), let violation = validateSpecialField(name, value) { return violation }
    // A value that HTTP forbids (a control character in apns-topic, trailing space in the provider token) is left
    // to the APNs rules for the headers that they validate.
    let isValid =
      value.isUsualValue || nghttp2_check_header_value_rfc9113(value.text, value.count) != 0
      || (name.isValidatedByRules && !isTrailer)
    return isValid ? nil : .fieldValue
  }

  /// Returns whether a name may be one that `validateSpecialField` handles, by its first byte.
  @inline(__always)
  private static func mayBeSpecial(_ first: UInt8) -> Bool {
    switch first {
    case UInt8(ascii: "c"), UInt8(ascii: "e"), UInt8(ascii: "h"), UInt8(ascii: "k"), UInt8(ascii: "p"),
      UInt8(ascii: "t"), UInt8(ascii: "u"):
      true
    default: false
    }
  }

  private mutating func validatePseudoField(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isTrailer: Bool
  ) -> MessageViolation? {
    let mark: Marks
    switch name.count {
    case 5 where name.equals(":path"): mark = .path
    case 7 where name.equals(":method"): mark = .method
    case 7 where name.equals(":scheme"): mark = .scheme
    case 10 where name.equals(":authority"): mark = .authority
    default: return .unknownPseudoField
    }
    if isTrailer || marks.contains(.others) { return .latePseudoField }
    if marks.contains(mark) { return .repeatedPseudoField }
    marks.insert(mark)
    guard let first = value.first else { return .controlData }
    switch mark {
    case .path:
      // APNs does not check the characters of the path: a device token with spaces is a bad one.
      guard value.isText(from: 0x20) || nghttp2_check_path(value.text, value.count) != 0 else { return .controlData }
      if first == UInt8(ascii: "/") { marks.insert(.isRooted) }
      if value.equals("*") { marks.insert(.isAsterisk) }
    case .method:
      if value.equals("POST") { break }
      guard nghttp2_check_method(value.text, value.count) != 0 else { return .controlData }
      if value.equals("CONNECT") { marks.insert(.isConnect) }
      if value.equals("OPTIONS") { marks.insert(.isOptions) }
    case .scheme:
      guard value.isScheme else { return .controlData }
      // Its case does not matter (RFC 3986 section 3.1).
      if value.equals("https") || value.isInAnyCase("http") || value.isInAnyCase("https") {
        marks.insert(.isWeb)
      }
    default:
      guard value.isAuthority else { return .controlData }
    }
    return nil
  }

  /// Validates fields that HTTP/2 forbids or that concern the whole request.
  private mutating func validateSpecialField(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) -> MessageViolation? {
    if name.equals("content-length") {
      guard length < 0, let number = value.wholeNumber else { return .contentLength }
      length = number
    } else if name.equals("host") {
      if marks.contains(.host) { return .repeatedPseudoField }
      marks.insert(.host)
      guard !value.isEmpty, value.isAuthority else { return .controlData }
    } else if name.equals("expect") {
      if value.isInAnyCase("100-continue") { marks.insert(.expectsContinue) }
    } else if name.equals("te") {
      guard value.isInAnyCase("trailers") else { return .connectionField }
    } else if name.equals("connection") || name.equals("keep-alive") || name.equals("proxy-connection")
      || name.equals("transfer-encoding") || name.equals("upgrade")
    {
      return .connectionField
    }
    return nil
  }

  // MARK: - Parts

  /// Validates the end of a header block.
  ///
  /// - Parameter isTrailer: Whether it is the trailer section.
  mutating func validateHeaderBlock(isTrailer: Bool, endsStream: Bool) -> MessageViolation? {
    if isTrailer { return endsStream ? nil : .endlessTrailers }
    if marks.contains(.isConnect) {
      length = -1
      return marks.contains(.authority) && marks.isDisjoint(with: [.scheme, .path]) ? nil : .missingControlData
    }
    guard marks.isSuperset(of: [.method, .scheme, .path]), !marks.isDisjoint(with: [.authority, .host]) else {
      return .missingControlData
    }
    let isPathValid =
      !marks.contains(.isWeb) || marks.contains(.isRooted) || marks.isSuperset(of: [.isOptions, .isAsterisk])
    return isPathValid ? nil : .controlData
  }

  /// Whether the client waits for status 100 before it sends the body (RFC 9110 section 10.1.1).
  var expectsContinue: Bool { marks.contains(.expectsContinue) }

  /// Validates the body size against `content-length`.
  ///
  /// - Parameter isComplete: Whether the body is complete.
  func validateBody(size: Int, isComplete: Bool) -> MessageViolation? {
    let size = Int64(size)
    return length < 0 || size == length || (size < length && !isComplete) ? nil : .contentLength
  }
}

extension UnsafeRawBufferPointer {
  fileprivate var text: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }

  /// - Parameter text: The text to compare with, in lower case.
  fileprivate func isInAnyCase(_ text: String) -> Bool { String(decoding: self, as: UTF8.self).lowercased() == text }

  /// Whether all bytes are lower-case letters or hyphens.
  @inline(__always)
  fileprivate var isUsualName: Bool {
    allSatisfy(byte: { $0 &- 0x61 < 26 || $0 == 0x2d }) { word in
      let (letters, hyphens) = (word.marks(from: 0x61, through: 0x7a), word.marks(from: 0x2d, through: 0x2d))
      return word & .highBits == 0 && letters | hyphens == .highBits
    }
  }

  /// Whether there are no control characters, and no space at either end.
  @inline(__always)
  fileprivate var isUsualValue: Bool { isText(from: 0x20) && first != 0x20 && last != 0x20 }

  /// Whether the APNs rules validate the value of this header.
  fileprivate var isValidatedByRules: Bool {
    equals("authorization") || equals("apns-id") || equals("apns-topic") || equals("apns-push-type")
      || equals("apns-priority") || equals("apns-expiration")
  }

  /// RFC 3986 section 3.2, without user information (RFC 9113 section 8.3.1).
  fileprivate var isAuthority: Bool { nghttp2_check_authority(text, count) != 0 && !contains(UInt8(ascii: "@")) }

  /// RFC 3986 section 3.1.
  fileprivate var isScheme: Bool {
    func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }
    guard let first, isLetter(first) else { return false }
    return allSatisfy { isLetter($0) || $0 &- 0x30 < 10 || $0 == 0x2b || $0 == 0x2d || $0 == 0x2e }
  }
}

/// The fields of the header block being received. They are appended to the request together, when the block is
/// complete or the received bytes are consumed, which costs less than field by field.
///
/// The memory is shared by the sessions of one thread (`RequestStreamPool`), so each session moves its fields to
/// their request before the next one runs.
struct FieldBuffer {
  /// The size of the memory in bytes. A header list within the limit has fewer bytes when packed.
  static let capacity = HTTP2Limits.maxHeaderListSize

  /// The stream the fields belong to; 0 for none.
  private(set) var stream: Int32 = 0
  /// The number of fields.
  private(set) var count = 0
  /// The bytes of rejected fields of the stream, counted as header lists are.
  var excess = 0
  /// How much the stream's header list may still grow before it exceeds the limit.
  private var remaining = 0
  private var size = 0
  private let memory: UnsafeMutableRawPointer

  /// - Parameter memory: A buffer of `capacity` bytes.
  init(memory: UnsafeMutableRawPointer) { self.memory = memory }

  /// Begins a header block of a request that may already have fields.
  ///
  /// - Parameter isTrailer: Whether the block is a trailer section, which is counted as a list of its own.
  mutating func begin(of request: borrowing HTTPRequest, isTrailer: Bool) {
    removeAll()
    stream = request.stream
    remaining = request.headersTooLarge ? 0 : Self.capacity - (isTrailer ? 0 : request.headers.listSize)
  }

  /// Discards all fields.
  mutating func removeAll() {
    stream = 0
    count = 0
    size = 0
    remaining = 0
  }

  /// Appends a field.
  ///
  /// - Returns: false if the list would exceed the limit; then this field and all later ones are rejected.
  @inline(__always)
  mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
    let counted = name.count &+ value.count &+ 32
    guard counted <= remaining else {
      remaining = 0
      return false
    }
    remaining &-= counted
    HeaderList.pack(name: name, value: value, to: memory + size)
    size &+= HeaderList.size(name: name.count, value: value.count)
    count &+= 1
    return true
  }

  /// Appends the received fields to their request.
  func append(to request: inout HTTPRequest) {
    request.headers.append(packed: UnsafeRawBufferPointer(start: memory, count: size), count: count)
  }
}
