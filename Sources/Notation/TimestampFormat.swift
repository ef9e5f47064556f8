/// A time by the server's clock, which tests can set: milliseconds since 1970.
package typealias ServerTime = Int64

/// A time by the machine's monotonic clock, which nothing sets: nanoseconds since an unspecified start.
package typealias MonotonicTime = Int64

/// Formats and parses timestamps: RFC 3339 in UTC with milliseconds. Internally they are milliseconds since 1970 by
/// the server's clock.
///
/// Uses integer arithmetic: formatters based on floating point occasionally lose a millisecond. It is also fast; a
/// list of a thousand records has some three thousand timestamps.
package enum TimestampFormat {
  /// Returns a timestamp such as `2026-11-21T06:42:06.123Z`; nil outside of the years 0 to 9999, which RFC 3339
  /// cannot represent.
  package static func text(_ milliseconds: Int64) -> String? {
    guard range.contains(milliseconds) else { return nil }
    let (days, rest) = floorDivision(milliseconds, by: 86_400_000)
    let date = civil(fromDays: Int(days))
    let time = Int(rest)
    return padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2) + "T"
      + padded(time / 3_600_000, 2) + ":" + padded(time / 60_000 % 60, 2) + ":" + padded(time / 1000 % 60, 2) + "."
      + padded(time % 1000, 3) + "Z"
  }

  /// Parses an RFC 3339 timestamp with or without a fraction, in any time zone, to milliseconds since 1970; nil if
  /// it is invalid or, in UTC, outside of the years 0 to 9999.
  package static func milliseconds(_ text: some StringProtocol) -> Int64? {
    var reader = DigitReader(text)
    guard let year = reader.number(4, in: 0...9999), reader.take("-") != nil, let month = reader.number(2, in: 1...12),
      reader.take("-") != nil, let day = reader.number(2, in: 1...daysIn(month: month, year: year)),
      reader.take("Tt ") != nil, let hour = reader.number(2, in: 0...23), reader.take(":") != nil,
      let minute = reader.number(2, in: 0...59), reader.take(":") != nil, let second = reader.number(2, in: 0...60)
    else { return nil }
    var fraction = 0
    if reader.take(".") != nil {
      guard let value = reader.thousandths() else { return nil }
      fraction = value
    }
    var zone = 0
    if reader.take("Zz") == nil {
      guard let sign = reader.take("+-"), let hours = reader.number(2, in: 0...23), reader.take(":") != nil,
        let minutes = reader.number(2, in: 0...59)
      else { return nil }
      zone = (hours * 60 + minutes) * (sign == UInt8(ascii: "-") ? -60_000 : 60_000)
    }
    guard reader.isAtEnd else { return nil }
    let days = daysFromCivil(year: year, month: month, day: day)
    let time = Int64(days * 86_400_000 + hour * 3_600_000 + minute * 60_000 + second * 1000 + fraction - zone)
    return range.contains(time) ? time : nil
  }

  /// The representable timestamps, from the beginning of the year 0 to the end of 9999.
  package static let range: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999

  private static func padded(_ value: Int, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static func floorDivision(_ value: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }

  private static func daysIn(month: Int, year: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  // The two conversions count from 0000-03-01 in eras of 400 years, so that the leap day is the last of its year
  // (H. Hinnant, "chrono-compatible low-level date algorithms").

  private static func civil(fromDays days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  private static func daysFromCivil(year: Int, month: Int, day: Int) -> Int {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}

/// Formats and parses the dates of HTTP header fields, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7). The
/// obsolete forms are not accepted.
package enum HTTPDate {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
  /// The days of the week from 1970-01-01 on.
  private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

  /// Returns the date of a time in milliseconds since 1970; nil before 1970 and after the year 9999.
  package static func text(_ milliseconds: Int64) -> String? {
    guard milliseconds >= 0, let stamp = TimestampFormat.text(milliseconds) else { return nil }
    let parts = stamp.split { "-T.".contains($0) }
    let month = Int(parts[1]).map { months[$0 - 1] } ?? ""
    return "\(weekdays[Int(milliseconds / 86_400_000 % 7)]), \(parts[2]) \(month) \(parts[0]) \(parts[3]) GMT"
  }

  /// Returns the time of a date in milliseconds since 1970; nil if it is invalid.
  package static func milliseconds(_ text: String) -> Int64? {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 6, parts[5] == "GMT", parts[0].hasSuffix(","), weekdays.contains(String(parts[0].dropLast())),
      let month = months.firstIndex(of: parts[2])
    else { return nil }
    return TimestampFormat.milliseconds("\(parts[3])-\(month < 9 ? "0" : "")\(month + 1)-\(parts[1])T\(parts[4])Z")
  }
}

/// Reads text of digits and separators.
private struct DigitReader {
  private var rest: ArraySlice<UInt8>

  init(_ text: some StringProtocol) { rest = Array(text.utf8)[...] }

  var isAtEnd: Bool { rest.isEmpty }

  /// Reads a number of exactly `count` digits.
  mutating func number(_ count: Int, in range: ClosedRange<Int>) -> Int? {
    var value = 0
    for _ in 0..<count {
      guard let digit = digit() else { return nil }
      value = value * 10 + digit
    }
    return range.contains(value) ? value : nil
  }

  /// Reads the digits after a decimal point, in thousandths; further digits are dropped.
  mutating func thousandths() -> Int? {
    guard var value = digit() else { return nil }
    for _ in 0..<2 { value = value * 10 + (digit() ?? 0) }
    while digit() != nil {}
    return value
  }

  /// Reads the next character if it is one of `characters`.
  mutating func take(_ characters: String) -> UInt8? {
    guard let first = rest.first, characters.utf8.contains(first) else { return nil }
    return rest.popFirst()
  }

  private mutating func digit() -> Int? {
    guard let first = rest.first, (0x30...0x39).contains(first) else { return nil }
    rest.removeFirst()
    return Int(first) - 0x30
  }
}
