package import APNSMockNotation

/// A push as users name it: by its `seq`; in a view of several servers by server and `seq`, such as `load_1:4711`.
package enum PushName: Sendable, Hashable, CustomStringConvertible {
  /// A record of the only server.
  case seq(Int)
  /// A record of a view of several servers.
  case ofServer(RecordOrigin)

  /// The name as text.
  package var description: String {
    switch self {
    case .seq(let seq): String(seq)
    case .ofServer(let origin): origin.text
    }
  }
}

/// A record of a view of several servers, as its server knows it.
package struct RecordOrigin: Sendable, Hashable {
  /// The name of the server: that of its schema.
  package let server: String
  /// The `seq` of the record on that server.
  package let seq: Int

  /// Creates the description of a record.
  package init(server: String, seq: Int) { (self.server, self.seq) = (server, seq) }

  /// Reads a text such as `load_1:4711`; nil for another one.
  package init?(_ text: some StringProtocol) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let seq = Int(parts[1])
    else { return nil }
    self.init(server: String(parts[0]), seq: seq)
  }

  /// Both, such as `load_1:4711`.
  package var text: String { "\(server):\(seq)" }
}

extension Record {
  /// The record as users name it.
  package var name: PushName { origin.map(PushName.ofServer) ?? .seq(seq) }

  /// The `seq` by which its server knows it.
  var serverSeq: Int { origin?.seq ?? seq }

  /// Returns the name of another record of the same server.
  ///
  /// - Parameter seq: The `seq` by which the server knows it.
  func name(ofOther seq: Int) -> PushName {
    origin.map { .ofServer(RecordOrigin(server: $0.server, seq: seq)) } ?? .seq(seq)
  }
}

extension Inbox {
  /// Whether the inbox is a view of several servers, in which users name pushes by server and `seq`.
  package var isOfSeveralServers: Bool { writer?.store.isOfSeveralServers ?? false }

  /// Returns the record with this `seq` as users name it. The name is also a cursor: the record may be missing.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func name(ofSeq seq: Int) throws(StoreUnavailable) -> PushName {
    guard let store = writer?.store, store.isOfSeveralServers else { return .seq(seq) }
    do {
      return try store.origin(of: seq).map(PushName.ofServer) ?? .seq(0)
    } catch {
      throw StoreUnavailable(error)
    }
  }

  /// Returns the `seq` of a record that a view of several servers names by server and number; nil if there is no such server, or if it
  /// has no such `seq` yet. The record may be missing.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  func seq(of origin: RecordOrigin) throws(StoreUnavailable) -> Int? {
    do {
      return try writer?.store.seq(of: origin)
    } catch {
      throw StoreUnavailable(error)
    }
  }

  /// Returns the `seq` of those of these records that are after `seq`, in ascending order.
  func seqs(_ names: [PushName], after seq: Int) throws(StoreUnavailable) -> [Int] {
    var found: [Int] = []
    for name in names {
      switch name {
      case .seq(let seq): found.append(seq)
      case .ofServer(let origin): if let seq = try self.seq(of: origin) { found.append(seq) }
      }
    }
    return found.filter { $0 > seq }.sorted()
  }

  /// Returns the record that a view of several servers names by server and number; nil if there is none.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func record(_ origin: RecordOrigin) throws(StoreUnavailable) -> Record? {
    guard let seq = try seq(of: origin), let record = try record(seq: seq), record.origin == origin else { return nil }
    return record
  }
}

extension JSONWriter {
  /// Writes the name of a push as a value: a number, or a text such as `load_1:4711`.
  package mutating func push(_ name: PushName) {
    switch name {
    case .seq(let seq): integer(seq)
    case .ofServer(let origin): string(origin.text)
    }
  }

  /// Writes the name of a push as a member; null for nil.
  package mutating func member(_ name: String, _ push: PushName?) {
    guard let push else { return nullMember(name) }
    self.name(name)
    self.push(push)
  }

  /// Writes the names of pushes as a member.
  package mutating func member(_ name: String, _ pushes: [PushName]) {
    arrayMember(name) { writer in
      for push in pushes { writer.push(push) }
    }
  }
}
