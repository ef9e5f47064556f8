import Testing

@testable import APNSMockInbox

/// Which of the oldest records of a store exceed its limits.
@Suite struct ExcessRecordsTests {
  /// Returns how many records of ten bytes with these times are removed, if those from 100 to 200 are kept, 200 being now.
  static func removed(_ times: [Int64], maxRecords: Int = .max, maxBytes: Int = .max, next: Int64? = nil) -> Int {
    var batch = StoreBatch()
    (batch.maxRecords, batch.maxBytes, batch.keptTimes) = (maxRecords, maxBytes, 100...200)
    (batch.contents.count, batch.contents.bytes) = (times.count, 10 * times.count)
    var excess = ExcessRecords(batch, of: batch.contents)
    for (index, time) in times.enumerated() {
      guard excess.examine(seq: index + 1, receivedAt: time, size: 10) else { break }
    }
    if excess.unresolved != nil, let next { excess.resolve(nextReceivedAt: next) }
    #expect(excess.removed.lastSeq == excess.removed.count && excess.removed.bytes == 10 * excess.removed.count)
    return excess.removed.count
  }

  @Test(
    arguments: [
      ([50, 99, 100, 150], 2), ([50, 300], 1), ([300, 50, 150], 2), ([300, 300, 50, 300, 99, 300, 150], 5),
      ([300, 150, 50], 0), ([300], 0), ([200, 50], 0), ([], 0),
    ] as [([Int64], Int)])
  func age(times: [Int64], expected: Int) { #expect(Self.removed(times) == expected) }

  @Test func numberAndSize() {
    #expect(Self.removed([150, 150, 150], maxRecords: 2) == 1)
    #expect(Self.removed([300, 300, 150], maxRecords: 1) == 2)
    #expect(Self.removed([150, 150, 150], maxBytes: 15) == 2)
    #expect(Self.removed([150, 150], maxBytes: 1) == 1)
    #expect(Self.removed([50, 150], maxBytes: 1) == 1)
  }

  /// More than one step removes arrived while the clock was ahead: the next record decides.
  @Test(arguments: [(50, 2000), (100, 0), (nil, 0)] as [(Int64?, Int)])
  func manyFromAClockThatWasAhead(next: Int64?, expected: Int) {
    #expect(Self.removed(Array(repeating: 300, count: StoreBatch.removalLimit), next: next) == expected)
  }
}
