import Foundation
import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// Statistics of many records, in little memory.
struct InboxStatisticsTests {
  @Test func distinctValuesAreCountedExactlyUpToTheLimit() {
    var count = DistinctCount(limit: 1000)
    for _ in 0..<2 { for value in 0..<1000 { count.insert(hash: value.hashValue) } }
    #expect(count.count == 1000)
  }

  @Test(arguments: [1_001, 20_000, 300_000])
  func moreDistinctValuesAreEstimated(number: Int) {
    var count = DistinctCount(limit: 1000)
    for value in 0..<number { count.insert(hash: value.hashValue) }
    // Six standard deviations of a sample of at least 500.
    #expect(abs(count.count - number) < number / 4)
  }

  @Test func percentilesAreNearlyExact() throws {
    var statistics = InboxStatistics()
    for milliseconds in 1...1000 {
      statistics.add(
        PushFixture {
          $0.sentResponse = Record.SentResponse(status: 200, latencyNanoseconds: Int64(milliseconds) * 1_000_003)
        }.record)
    }
    var writer = JSONWriter()
    writer.object { statistics.write(to: &$0, of: Inbox().snapshot(), after: 0) }
    let object = try #require(JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String: Any])
    let latency = try #require(object["latency"] as? [String: Any])
    #expect(latency["answered"] as? Int == 1000)
    for (name, expected) in [("median_ms", 500), ("p90_ms", 900), ("p99_ms", 990), ("max_ms", 1000)]
      as [(String, Double)]
    {
      let found = try #require(latency[name] as? Double)
      #expect(abs(found / expected - 1) < 0.0006, "\(name): \(found)")
    }
  }
}
