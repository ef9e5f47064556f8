internal import APNSMockNotation

/// The syntax of device tokens.
package enum DeviceToken {
  /// Whether `bytes` are 2 to 400 hexadecimal digits of either case, an even number (Protocol.md, section 13, row
  /// 8: the length is not fixed; 64 to 160 digits were observed, 200 are announced).
  package static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    !bytes.isEmpty && bytes.count <= 400 && bytes.count.isMultiple(of: 2) && bytes.isHexadecimal
  }

  /// Whether `text` is a device token.
  package static func isWellFormed(_ text: String) -> Bool {
    return text.withBytes { isWellFormed($0) }
  }

  /// The first four and last two digits, for logs and explanations.
  package static func abbreviated(_ text: String) -> String {
    text.utf8.count <= 8 ? text : "\(text.prefix(4))…\(text.suffix(2))"
  }
}
