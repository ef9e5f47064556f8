/// How the databases of the stores differ in the SQL of conditions.
package enum SQLDialect: Sendable {
  case sqlite, postgresql
}

/// A condition in SQL with its parameters, which are `$1`, `$2` and so on in both dialects.
package struct SQLCondition {
  /// The condition.
  package private(set) var sql = "seq > $1 AND seq < $2"
  /// The values of the parameters, as texts.
  package private(set) var parameters: [String?]
  /// The table with the rows, with the index to use unless the database finds the best.
  package private(set) var table = "push"
  private let dialect: SQLDialect

  /// Creates the condition of a query: its range, and the conditions on columns.
  package init(_ query: StoreQuery, _ dialect: SQLDialect) {
    self.dialect = dialect
    parameters = [String(query.after), String(query.before)]
    for condition in query.conditions { add(condition) }
  }

  private mutating func add(_ condition: ColumnCondition) {
    let name = condition.column.name
    let tests: [String] =
      switch condition.test {
      case .texts(let texts, _) where texts.isEmpty: []
      case .texts(let texts, let foldsCase): [test(condition.column, texts, foldsCase: foldsCase)]
      case .ranges(let ranges):
        ranges.map { range in
          let lower = parameter(String(range.lowerBound))
          return range.lowerBound == range.upperBound
            ? "\(name) = \(lower)" : "\(name) BETWEEN \(lower) AND \(parameter(String(range.upperBound)))"
        }
      }
    let test = tests.isEmpty ? "1 = 0" : tests.joined(separator: " OR ")
    append(condition.isNegated ? "(\(name) IS NULL OR NOT (\(test)))" : "(\(test))")
    if dialect == .sqlite, condition.column == .status, !condition.isNegated, case .ranges(let ranges) = condition.test,
      !ranges.contains(where: { $0.contains(200) })
    {
      // SQLite does not conclude from the ranges that it may use this index.
      append("status <> 200")
      table = "push INDEXED BY push_status"
    }
  }

  private mutating func test(_ column: RecordColumn, _ texts: [String], foldsCase: Bool) -> String {
    // Device tokens are stored in lower case.
    let folds = foldsCase || column == .deviceToken
    guard dialect == .postgresql else {
      let list = texts.map { parameter($0) }.joined(separator: ", ")
      return "\(column.name)\(foldsCase ? " COLLATE NOCASE" : "") IN (\(list))"
    }
    let value = folds && column != .deviceToken ? "lower(\(column.name))" : column.name
    let list = texts.map { parameter(folds ? $0.lowercasedASCII : $0) }
    let test = "\(value) IN (\(list.joined(separator: ", ")))"
    guard column == .deviceToken || column == .apnsID && folds else { return test }
    // What the index contains: values may be longer than it allows.
    return "\(test) AND left(\(value), 200) IN (\(list.map { "left(\($0), 200)" }.joined(separator: ", ")))"
  }

  /// Adds a condition in SQL.
  package mutating func append(_ condition: String) { sql += " AND " + condition }

  /// Adds bytes as a parameter of PostgreSQL and returns its name.
  package mutating func parameter(bytes: [UInt8]) -> String {
    parameter("\\x" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()) + "::bytea"
  }

  private mutating func parameter(_ value: String) -> String {
    // Texts of PostgreSQL cannot contain zeros: question marks replace them.
    parameters.append(
      dialect == .postgresql && value.contains("\0") ? String(value.map { $0 == "\0" ? "?" : $0 }) : value)
    return "$\(parameters.count)"
  }
}

extension String {
  /// The text with ASCII letters in lower case, as `lower` of PostgreSQL returns it with the collation `C`.
  fileprivate var lowercasedASCII: String {
    String(decoding: utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}

extension RecordStore {
  /// Calls `visit` with the records of a query, which `read` returns part by part, until it returns false.
  ///
  /// Records are visited after the database is free again, because `visit` may read other ones.
  ///
  /// - Parameter read: Returns the first records, and the `seq` of the last row if there may be more.
  package func forEach(
    _ query: StoreQuery, _ visit: (borrowing Record) -> Bool,
    read: (StoreQuery, _ limit: Int) throws -> (records: [Record], last: Int?)
  ) throws {
    var rest = query
    // Few at first: often the first one is enough.
    var limit = 8
    while true {
      let (records, last) = try read(rest, limit)
      for index in records.indices { guard visit(records[index]) else { return } }
      guard let last else { return }
      if query.newestFirst { rest.before = last } else { rest.after = last }
      limit = 256
    }
  }
}
