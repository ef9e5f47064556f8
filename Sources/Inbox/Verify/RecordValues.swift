internal import APNSRules
internal import Faults
internal import HTTPMessage
internal import Notation

extension Record {
  /// Returns the record's values for the subject of a condition; empty if it has none.
  func values(of subject: FilterSubject, for filter: borrowing Filter) -> [JSONValue] {
    switch subject {
    case .header(let name): headerValues(name)
    case .payload(let pointer):
      payloadProblem == nil ? withBody { pointer.value(in: $0) }.map { [JSONValue($0)] } ?? [] : []
    case .field(.finding): findingNames(filter)
    case .field(.is):
      states(isDuplicate: filter.isDuplicate(seq)).map { .text($0.rawValue) }
    case .field(let field): values(of: field)
    }
  }

  private func values(of field: FilterField) -> [JSONValue] {
    func text(_ text: String?) -> [JSONValue] { text.map { [.text($0)] } ?? [] }
    func number(_ number: (some BinaryInteger)?) -> [JSONValue] { number.map { [.number(String($0))] } ?? [] }
    func decoded(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    return switch field {
    case .deviceToken: text(deviceToken)
    case .topic: text(withTopic(decoded))
    case .status: number(served.status)
    case .reason: text(servedReason)
    case .outcome: text(outcome.rawValue)
    case .accepted: [.flag(accepted)]
    case .pushType: text(withHeader(facts.pushTypeText, decoded))
    case .priority: number(priority)
    case .apnsID: text(withID(decoded))
    case .collapseID: text(withHeader(facts.collapseID, decoded))
    case .pushKey: text(pushKey.text)
    case .attempt: number(attempt)
    case .rule: aftermath?.injections.map { .text($0.rule) } ?? []
    case .profile: aftermath?.injections.compactMap(\.profile).map(JSONValue.text) ?? []
    case .connection: text(connection.id)
    case .listener: number(connection.listener)
    case .keyID: text(verdict?.token?.keyID)
    case .teamID: text(verdict?.token?.teamID)
    case .since, .until: text(WrittenTime.text(receivedAt))
    case .size, .sizeGreater, .sizeLess: number(bodySize)
    case .finding, .is, .text: []
    }
  }

  private func findingNames(_ filter: borrowing Filter) -> [JSONValue] {
    guard let rulebook = filter.rulebook else { return [] }
    return findingKinds(by: rulebook, in: filter.inbox).map { .text($0.rawValue) }
  }

  private func headerValues(_ wanted: String) -> [JSONValue] {
    withHeaders { packed in
      var values: [JSONValue] = []
      HeaderList.forEachField(in: packed) { name, value in
        guard packed[name.indices].elementsEqual(wanted.utf8) else { return }
        values.append(.text(Self.shown(UnsafeRawBufferPointer(rebasing: packed[value.indices]))))
      }
      return values
    }
  }
}
