/// The order of the records of several servers, which number their records independently: by the time of their arrival, and those
/// of one server by their `seq`. It gives each record the integer that an inbox needs, its position. Positions are used only inside
/// this process: users see the server and its `seq`.
///
/// A position is the sum over all servers of the number of `seq` values up to it in this order. A cut is a boundary in the order:
/// of each server, the `seq` through which its records are before it. The order is divided by nodes, whose cuts never change.
/// Records that arrive later are behind the last node. A range between two nodes is divided when something in it is needed, until it
/// is so short that the times of all its records are read: it is then laid out, once.
///
/// A removed record changes no position: its `seq` keeps its place, and what was laid out is kept. Only beyond `runLimit` the layout
/// of the oldest pushes is forgotten; if it is needed again, a `seq` whose record was removed in the meantime is placed next to the
/// record after it.
///
/// A server that writes a record late, after a node was added, has it behind that node.
struct MergedOrder: Sendable {
  /// Of each server, the `seq` through which its records are before a boundary.
  typealias Cut = [Int]

  /// What the order reads of the servers, which are numbered from 0.
  struct Source {
    /// Returns when the records with these `seq` values of a server arrived, or those after them; fewer times if there are none.
    let samples: (_ server: Int, _ seqs: [Int]) throws -> [Int64]
    /// Returns the `seq` of the newest record of each server that arrived by each of these times.
    let seqs: (_ times: [Int64]) throws -> [[Int]]
    /// Returns when the records of a range of a server arrived, in the order of their `seq`; nil if it cannot be read now.
    let times: (_ server: Int, ClosedRange<Int>) throws -> [(seq: Int, receivedAt: Int64)]?
  }

  private struct Node: Sendable {
    /// The number of positions before it.
    let position: Int
    let cut: Cut
  }

  /// Consecutive records of one server.
  private struct Run: Sendable {
    /// The position of the first one.
    let position: Int
    let server: Int
    let seq: Int
    let count: Int
  }

  /// The runs of a range between two nodes, in the order of their positions, and those of each server.
  private struct Leaf: Sendable {
    var runs: [Run] = []
    var ofServers: [[Run]]
  }

  /// A run without its positions, as it is kept: 8 bytes.
  private struct PackedRun: Sendable {
    let server: UInt32
    let count: UInt16
  }

  /// The number of positions between two nodes from which the times of all records between them are read.
  private static let leafSize = 4096
  /// The number of parts into which a range is divided.
  private static let parts = 16
  /// The number of nodes from which those of short ranges are removed.
  private static let nodeLimit = 16_384
  /// The number of ranges whose runs are kept with their positions.
  private static let leafLimit = 64
  /// The number of runs that are kept: 64 MiB.
  private static let runLimit = 1 << 23

  private var nodes = [Node(position: 0, cut: [])]
  /// The runs of the ranges that were laid out, by the positions of the nodes before them.
  private var layouts: [Int: [PackedRun]] = [:]
  private var runCount = 0
  /// Some of them with positions.
  private var leaves: [Int: Leaf] = [:]

  /// The position of the newest record.
  var last: Int { nodes[nodes.count - 1].position }
  /// The cut after all records.
  var end: Cut { nodes[nodes.count - 1].cut }

  /// Adds the records up to a cut, which must not be before the last one. It may have further servers.
  mutating func extend(to cut: Cut) {
    let cut = cut.indices.map { max(cut[$0], $0 < end.count ? end[$0] : 0) }
    let position = cut.reduce(0, +)
    guard position > last || cut.count > end.count else { return }
    if position == last { nodes.removeLast() }
    nodes.append(Node(position: position, cut: cut))
    if nodes.count > Self.nodeLimit { removeNodes() }
  }

  /// Removes every node whose neighbors are close to each other, but not the newest ones, behind which records may be late, and not
  /// one at the end of what was laid out, unless there are many.
  private mutating func removeNodes() {
    var kept = [nodes[0]]
    for index in 1..<nodes.count {
      let (start, position) = (kept[kept.count - 1].position, nodes[index].position)
      let isEnd = (layouts[start] == nil) != (layouts[position] == nil) && nodes.count < 2 * Self.nodeLimit
      if isEnd || index >= nodes.count - Self.leafLimit || nodes[index + 1].position - start > Self.leafSize {
        kept.append(nodes[index])
      } else if let runs = layouts.removeValue(forKey: position), layouts[start] != nil {
        layouts[start]?.append(contentsOf: runs)
      } else {
        layouts[start] = nil
      }
    }
    nodes = kept
    leaves = [:]
    runCount = layouts.values.reduce(0) { $0 + $1.count }
  }

  /// Forgets the layout of the oldest half.
  private mutating func forgetLayouts() {
    for position in layouts.keys.sorted().prefix(layouts.count / 2) { layouts[position] = nil }
    leaves = [:]
    runCount = layouts.values.reduce(0) { $0 + $1.count }
  }

  /// Returns the cut after this number of positions.
  mutating func cut(after position: Int, _ source: Source) throws -> Cut {
    guard position > 0 else { return Cut(repeating: 0, count: end.count) }
    guard position < last else { return end }
    let index = try range(source) { $0.position > position }
    var cut = padded(nodes[index].cut)
    guard nodes[index].position < position else { return cut }
    for run in try leaf(index, source).runs {
      guard run.position <= position else { break }
      cut[run.server] = run.seq + min(run.count, position - run.position + 1) - 1
    }
    return cut
  }

  /// Returns the server and the `seq` at a position; nil if there is none.
  mutating func slot(at position: Int, _ source: Source) throws -> (server: Int, seq: Int)? {
    guard position > 0, position <= last else { return nil }
    let index = try range(source) { $0.position >= position }
    let start = nodes[index].position
    guard let runs = layouts[start] else {
      return try leaf(index, source).runs.last { $0.position <= position }.map {
        ($0.server, $0.seq + position - $0.position)
      }
    }
    // Without the positions of all runs: a sorted list asks for many positions in any order.
    var cut = padded(nodes[index].cut)
    var rest = position - start
    for run in runs {
      let (server, count) = (Int(run.server), Int(run.count))
      if rest <= count { return (server, cut[server] + rest) }
      cut[server] += count
      rest -= count
    }
    return nil
  }

  /// Returns the position of a record; nil if it is not before the end.
  mutating func position(of seq: Int, on server: Int, _ source: Source) throws -> Int? {
    guard server < end.count, seq > 0, seq <= end[server] else { return nil }
    let index = try range(source) { $0.cut.count > server && $0.cut[server] >= seq }
    let runs = try leaf(index, source).ofServers[server]
    guard !runs.isEmpty else { return nil }
    let run = runs[Self.first(in: runs.startIndex..<runs.endIndex - 1) { runs[$0].seq + runs[$0].count > seq }]
    return run.position + seq - run.seq
  }

  private func padded(_ cut: Cut) -> Cut { cut + repeatElement(0, count: end.count - cut.count) }

  /// Divides the range that ends with the first node for which `isBehind` returns true until it is short.
  ///
  /// - Returns: The index of the node at its start.
  private mutating func range(_ source: Source, _ isBehind: (Node) -> Bool) throws -> Int {
    while true {
      let index = Self.first(in: 1..<nodes.count - 1) { isBehind(nodes[$0]) }
      guard nodes[index].position - nodes[index - 1].position > Self.leafSize else { return index - 1 }
      try divide(index - 1, source)
    }
  }

  /// Returns the first element of a range for which a condition holds, which then holds for all after it; the end of the range if
  /// there is none.
  private static func first(in range: Range<Int>, _ holds: (Int) -> Bool) -> Int {
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = (low + high) / 2
      if holds(middle) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// Adds nodes between a node and the next one: at times when samples of their records arrived.
  private mutating func divide(_ index: Int, _ source: Source) throws {
    let (start, end) = (padded(nodes[index].cut), padded(nodes[index + 1].cut))
    var times: [Int64] = []
    for server in start.indices where start[server] < end[server] {
      let count = end[server] - start[server]
      times += try source.samples(server, (1..<Self.parts).map { start[server] + 1 + count / Self.parts * $0 })
    }
    times.sort()
    var cuts: [Cut] = [start]
    for seqs in try source.seqs(
      (1..<Self.parts).compactMap { times.isEmpty ? nil : times[times.count * $0 / Self.parts] })
    {
      let former = cuts[cuts.count - 1]
      cuts.append(start.indices.map { min(max(seqs[$0], former[$0]), end[$0]) })
    }
    cuts.append(end)
    var added = cuts.map { Node(position: $0.reduce(0, +), cut: $0) }
    // If clocks were stopped or set back, the range is divided by the numbers.
    for (one, other) in zip(added, added.dropFirst())
    where other.position - one.position > (added[added.count - 1].position - added[0].position) / 16 * 15 {
      let middle = one.cut.indices.map { (one.cut[$0] + other.cut[$0]) / 2 }
      added.append(Node(position: middle.reduce(0, +), cut: middle))
    }
    added.sort { $0.position < $1.position }
    var new: [Node] = []
    var position = nodes[index].position
    for node in added where node.position > position && node.position < nodes[index + 1].position {
      new.append(node)
      position = node.position
    }
    nodes.insert(contentsOf: new, at: index + 1)
    leaves[nodes[index].position] = nil
  }

  /// Returns the runs between a node and the next one.
  private mutating func leaf(_ index: Int, _ source: Source) throws -> Leaf {
    let position = nodes[index].position
    if let known = leaves[position] { return known }
    var isKept = true
    let runs: [PackedRun]
    if let known = layouts[position] {
      runs = known
    } else {
      (runs, isKept) = try layOut(index, source)
      if runCount > Self.runLimit { forgetLayouts() }
      if isKept {
        layouts[position] = runs
        runCount += runs.count
      }
    }
    var cut = padded(nodes[index].cut)
    var leaf = Leaf(ofServers: Array(repeating: [], count: cut.count))
    var next = position + 1
    for packed in runs {
      let (server, count) = (Int(packed.server), Int(packed.count))
      let run = Run(position: next, server: server, seq: cut[server] + 1, count: count)
      leaf.runs.append(run)
      leaf.ofServers[server].append(run)
      cut[server] += count
      next += count
    }
    guard isKept else { return leaf }
    if leaves.count >= Self.leafLimit { leaves = [:] }
    leaves[position] = leaf
    return leaf
  }

  /// Reads the times of the records between a node and the next one, and returns the runs, and whether all servers could be read.
  private func layOut(_ index: Int, _ source: Source) throws -> (runs: [PackedRun], isWhole: Bool) {
    let (start, end) = (padded(nodes[index].cut), padded(nodes[index + 1].cut))
    var isWhole = true
    var pieces: [(time: Int64, server: Int, seq: Int, last: Int)] = []
    for server in start.indices where start[server] < end[server] {
      var (seq, time) = (start[server] + 1, Int64.min)
      // A `seq` without a record belongs to the record after it, or to the last one.
      let records = try source.times(server, seq...end[server])
      isWhole = isWhole && records != nil
      for record in records ?? [] {
        time = max(time, record.receivedAt)
        pieces.append((time, server, seq, record.seq))
        seq = record.seq + 1
      }
      if seq <= end[server] { pieces.append((time, server, seq, end[server])) }
    }
    pieces.sort { ($0.time, $0.server, $0.seq) < ($1.time, $1.server, $1.seq) }
    var runs: [PackedRun] = []
    for piece in pieces {
      var count = piece.last - piece.seq + 1
      if let last = runs.last, last.server == piece.server {
        runs.removeLast()
        count += Int(last.count)
      }
      runs.append(PackedRun(server: UInt32(piece.server), count: UInt16(count)))
    }
    return (runs, isWhole)
  }
}
