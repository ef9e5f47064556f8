import Testing

@testable import APNSMockSchemasView

/// Servers whose records exist only as times.
private struct Servers {
  /// Of each server, when the records with its `seq` values arrived, in ascending order of these.
  var records: [[(seq: Int, receivedAt: Int64)]]

  var end: MergedOrder.Cut { records.map { $0.last?.seq ?? 0 } }

  var source: MergedOrder.Source {
    let records = records
    return MergedOrder.Source(
      samples: { server, seqs in
        seqs.compactMap { seq in records[server].first { $0.seq >= seq }?.receivedAt }
      },
      seqs: { times in
        times.map { time in records.map { $0.last { $0.receivedAt <= time }?.seq ?? 0 } }
      },
      times: { server, range in records[server].filter { range.contains($0.seq) } })
  }

  /// Adds records to all servers, the times of which are those of `clock`; some `seq` values have no record.
  mutating func add(_ count: Int, _ random: inout SystemRandomNumberGenerator, clock: (Int) -> Int64) {
    for number in 0..<count {
      let server = Int.random(in: 0..<records.count, using: &random)
      let gap = Int.random(in: 0..<100, using: &random) == 0 ? Int.random(in: 1...50, using: &random) : 0
      records[server].append(((records[server].last?.seq ?? 0) + 1 + gap, clock(number)))
    }
  }
}

/// A way in which the clocks of servers run.
enum Clock: CaseIterable {
  case even, stopped, backwards, bursts, outliers

  func time(_ number: Int) -> Int64 {
    switch self {
    case .even: Int64(number)
    case .stopped: 5
    case .backwards: Int64(-number)
    case .bursts: Int64(number / 9000)
    case .outliers: number % 500 == 0 ? (number % 1000 == 0 ? Int64.max : Int64.min) : Int64(number)
    }
  }
}

@Suite struct MergedOrderTests {
  /// Checks that each record has one position, the order of the records of a server is kept, and cuts agree with positions.
  private static func check(_ order: inout MergedOrder, _ servers: Servers) throws -> [Int: (server: Int, time: Int64)]
  {
    var found: [Int: (server: Int, time: Int64)] = [:]
    for (server, records) in servers.records.enumerated() {
      var last = 0
      for record in records {
        let position = try #require(try order.position(of: record.seq, on: server, servers.source))
        #expect(position > last && position <= order.last && found[position] == nil)
        last = position
        found[position] = (server, record.receivedAt)
      }
    }
    for position in [0, 1, 2, order.last / 3, order.last / 2, order.last - 1, order.last] where position >= 0 {
      let cut = try order.cut(after: position, servers.source)
      #expect(cut.reduce(0, +) == position)
      for (server, records) in servers.records.enumerated() {
        for record in records.prefix(50) + records.suffix(50) {
          let isBefore = try #require(try order.position(of: record.seq, on: server, servers.source)) <= position
          #expect(isBefore == (record.seq <= cut[server]))
        }
      }
    }
    return found
  }

  @Test(arguments: Clock.allCases, [1, 2, 7]) func eachRecordHasOnePosition(clock: Clock, count: Int) throws {
    var random = SystemRandomNumberGenerator()
    var servers = Servers(records: Array(repeating: [], count: count))
    var order = MergedOrder()
    order.extend(to: servers.end)
    #expect(order.last == 0)
    servers.add(9000, &random) { clock.time($0) }
    order.extend(to: servers.end)
    let first = try Self.check(&order, servers)
    // Positions stay when others are added.
    servers.add(3000, &random) { clock.time(9000 + $0) }
    order.extend(to: servers.end)
    let second = try Self.check(&order, servers)
    for (position, record) in first { #expect(second[position]?.server == record.server) }
    #expect(second.keys.filter { first[$0] == nil }.allSatisfy { $0 > (first.keys.max() ?? 0) })
  }

  @Test(arguments: [Clock.even, .bursts]) func recordsAreInTheOrderOfTheirTimes(clock: Clock) throws {
    var random = SystemRandomNumberGenerator()
    var servers = Servers(records: Array(repeating: [], count: 5))
    servers.add(30_000, &random) { clock.time($0) }
    var order = MergedOrder()
    order.extend(to: servers.end)
    let times = try Self.check(&order, servers).sorted { $0.key < $1.key }.map(\.value.time)
    #expect(times == times.sorted())
  }

  @Test func aServerThatAppearsLaterIsBehindTheOthers() throws {
    var order = MergedOrder()
    var servers = Servers(records: [[(1, 10), (2, 20)]])
    order.extend(to: servers.end)
    servers.records.append([])
    order.extend(to: servers.end)
    #expect(order.last == 2)
    servers.records[0].append((3, 40))
    servers.records[1] = [(1, 5), (4, 30)]
    order.extend(to: servers.end)
    #expect(order.last == 7)
    let positions = try servers.records.enumerated().map { server, records in
      try records.map { try order.position(of: $0.seq, on: server, servers.source) }
    }
    // The numbers 2 and 3 of the second server, which have no record, belong to 4.
    #expect(positions == [[1, 2, 7], [3, 6]])
    #expect(try order.position(of: 5, on: 1, servers.source) == nil)
    #expect(try order.position(of: 1, on: 2, servers.source) == nil)
    #expect(try order.position(of: 0, on: 0, servers.source) == nil)
  }

  @Test func numbersStayWhenNodesAreRemoved() throws {
    var order = MergedOrder()
    var servers = Servers(records: [[], []])
    for number in 1...20_000 {
      servers.records[number % 2].append(((number + 1) / 2, Int64(number)))
      order.extend(to: servers.end)
    }
    for number in stride(from: 1, through: 20_000, by: 997) {
      #expect(try order.position(of: (number + 1) / 2, on: number % 2, servers.source) == number)
    }
  }

  @Test(arguments: Clock.allCases) func numbersStayWhenRecordsAreRemoved(clock: Clock) throws {
    var random = SystemRandomNumberGenerator()
    var servers = Servers(records: [[], [], []])
    var order = MergedOrder()
    servers.add(20_000, &random) { clock.time($0) }
    order.extend(to: servers.end)
    let before = try Self.check(&order, servers)
    for server in servers.records.indices { servers.records[server].removeAll { _ in Bool.random(using: &random) } }
    let after = try Self.check(&order, servers)
    #expect(after.count < before.count)
    for (position, record) in after { #expect(before[position]?.server == record.server) }
  }

  @Test func aPositionHasAServerAndANumber() throws {
    var random = SystemRandomNumberGenerator()
    var servers = Servers(records: [[], [], []])
    servers.add(9000, &random) { Int64($0) }
    var order = MergedOrder()
    order.extend(to: servers.end)
    for position in stride(from: 1, through: order.last, by: 7) {
      let slot = try #require(try order.slot(at: position, servers.source))
      #expect(try order.position(of: slot.seq, on: slot.server, servers.source) == position)
    }
    #expect(try order.slot(at: 0, servers.source) == nil)
    #expect(try order.slot(at: order.last + 1, servers.source) == nil)
  }

  @Test func aServerThatCannotBeReadHasItsPlaceLater() throws {
    let servers = Servers(records: [[(1, 10), (2, 30)], [(1, 20), (2, 40)]])
    var order = MergedOrder()
    order.extend(to: servers.end)
    let whole = servers.source
    let partial = MergedOrder.Source(
      samples: whole.samples, seqs: whole.seqs, times: { try $0 == 1 ? nil : whole.times($0, $1) })
    #expect(try order.position(of: 2, on: 0, partial) == 4)
    #expect(try order.position(of: 2, on: 0, whole) == 3)
  }
}
