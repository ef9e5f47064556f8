/// Parses sizes in bytes.
public enum WrittenSize {
  /// Parses a number, decimals allowed, with one of the units `B K KiB M MiB G GiB` (each 1024 times the previous
  /// one) or without a unit. Nil if the text is invalid, or for 8 EiB or more.
  public static func bytes(_ text: some StringProtocol) -> Int? {
    let digits = text.prefix { ("0"..."9").contains($0) || $0 == "." }
    let unit = text.dropFirst(digits.count).drop { $0 == " " }
    let factor: Double
    switch unit.lowercased() {
    case "", "b": factor = 1
    case "k", "kib": factor = 1024
    case "m", "mib": factor = 1_048_576
    case "g", "gib": factor = 1_073_741_824
    default: return nil
    }
    guard let value = Double(digits) else { return nil }
    return Int(exactly: (value * factor).rounded(.down))
  }
}
