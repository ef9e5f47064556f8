import Foundation
import Testing

@testable import APNSMockNotation

@Suite struct WrittenTimeTests {
  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (1_454_948_015_990, "2016-02-08T16:13:35.990Z"),
      (-1, "1969-12-31T23:59:59.999Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"), (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
      (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] as [(Int64, String)])
  func writesAndReadsBack(milliseconds: Int64, text: String) {
    #expect(TimestampFormat.text(milliseconds) == text)
    #expect(TimestampFormat.milliseconds(text) == milliseconds)
  }

  /// From 1583 on: for earlier years, Foundation uses the Julian calendar, which RFC 3339 does not.
  @Test func agreesWithFoundation() {
    let style = Date.ISO8601FormatStyle()
    for seconds in stride(from: Int64(-12_200_000_000), to: 250_000_000_000, by: 99_991_003) {
      let text = Date(timeIntervalSince1970: Double(seconds)).formatted(style)
      #expect(TimestampFormat.text(seconds * 1000) == text.replacing("Z", with: ".000Z"))
    }
  }

  @Test(arguments: [Int64.min, -62_167_219_200_001, 253_402_300_800_000, Int64.max])
  func yearsOutsideRFC3339AreNotWritten(milliseconds: Int64) {
    #expect(TimestampFormat.text(milliseconds) == nil)
  }

  @Test(
    arguments: [
      ("2026-01-31T12:00:00Z", 1_769_860_800_000), ("2026-01-31t12:00:00z", 1_769_860_800_000),
      ("2026-01-31 12:00:00Z", 1_769_860_800_000), ("2026-01-31T13:30:00+01:30", 1_769_860_800_000),
      ("2026-01-31T11:00:00-01:00", 1_769_860_800_000), ("2026-01-31T12:00:00.5Z", 1_769_860_800_500),
      ("2026-01-31T12:00:00.123999999Z", 1_769_860_800_123),
    ] as [(String, Int64)])
  func readsTheFormsOfRFC3339(text: String, milliseconds: Int64) {
    #expect(TimestampFormat.milliseconds(text) == milliseconds)
  }

  @Test(arguments: [
    "", "now", "2026-01-31", "2026-01-31T12:00:00", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
    "2026-01-31T24:00:00Z", "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00Zx", "1769860800", "+026-01-31T12:00:00Z",
    "2026-01-31T12:00:00+1:00", "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
  ])
  func rejectsInvalidTimes(text: String) {
    #expect(TimestampFormat.milliseconds(text) == nil)
  }
}

/// Dates of HTTP header fields.
@Suite struct HTTPDateTests {
  @Test(arguments: [
    ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000),
    ("Sat, 29 Feb 2020 23:59:59 GMT", 1_583_020_799_000), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799_000),
  ])
  func dates(text: String, milliseconds: Int64) {
    #expect(HTTPDate.text(milliseconds) == text)
    #expect(HTTPDate.milliseconds(text) == milliseconds)
  }

  @Test(arguments: [
    "", "Thu, 01 Jan 1970", "Thu, 32 Jan 1970 00:00:00 GMT", "Thu, 01 Foo 1970 00:00:00 GMT",
    "Xyz, 01 Jan 1970 00:00:00 GMT",
    "Thu, 01 Jan 1970 00:00:00 UTC", "Thu, 01 Jan 1970 25:00:00 GMT", "Thursday, 01-Jan-70 00:00:00 GMT",
    "Thu Jan  1 00:00:00 1970", "Thu, 1 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00Z",
  ])
  func invalidDates(text: String) {
    #expect(HTTPDate.milliseconds(text) == nil)
  }

  @Test func timesWithoutDate() {
    #expect(HTTPDate.text(-1) == nil)
    #expect(HTTPDate.text(.max) == nil)
  }
}

@Suite struct WrittenDurationTests {
  @Test(
    arguments: [
      (.zero, "0s"), (.nanoseconds(12), "12ns"), (.nanoseconds(4700), "4.7us"), (.nanoseconds(999_999), "999.99us"),
      (.microseconds(1800), "1.8ms"), (.nanoseconds(1_804_999), "1.8ms"), (.milliseconds(45), "45ms"),
      (.milliseconds(1500), "1.5s"), (.seconds(5), "5s"), (.seconds(723), "12m3s"), (.seconds(3600), "1h"),
      (.seconds(3600) + .milliseconds(1050), "1h1.05s"), (.seconds(86_400 * 3 + 61), "72h1m1s"),
      (.seconds(-300), "-5m"), (.seconds(Int64.min), "-2562047788015215h30m7s"),
    ] as [(Duration, String)])
  func writes(duration: Duration, text: String) {
    #expect(DurationFormat.text(duration) == text)
  }

  @Test(
    arguments: [
      ("1h", .seconds(3600)), ("1.5s", .milliseconds(1500)), ("12m3s", .seconds(723)), ("250ms", .milliseconds(250)),
      ("-5m", .seconds(-300)), ("0s", .zero), ("2d", .seconds(172_800)), ("10us", .microseconds(10)),
      ("7ns", .nanoseconds(7)),
    ] as [(String, Duration)])
  func reads(text: String, duration: Duration) {
    #expect(DurationFormat.duration(text) == duration)
  }

  @Test(arguments: [
    "", "-", "5", "s", "1 h", "1hour", "--5s", "1.2.3s", "1e3s", "nan", "infs", "99999999999999999h", "5m-3s",
  ])
  func rejectsInvalidDurations(text: String) {
    #expect(DurationFormat.duration(text) == nil)
  }
}

@Suite struct WrittenSizeTests {
  @Test(arguments: [
    ("0", 0), ("4096", 4096), ("3.5K", 3584), ("3.5KiB", 3584), ("1 MiB", 1_048_576), ("2GiB", 2_147_483_648),
    ("1b", 1),
  ])
  func reads(text: String, bytes: Int) {
    #expect(SizeFormat.bytes(text) == bytes)
  }

  @Test(arguments: ["", "K", "-1", "1KB5", "1TiB", "1e3", "99999999999999999999"])
  func rejectsInvalidSizes(text: String) {
    #expect(SizeFormat.bytes(text) == nil)
  }
}
