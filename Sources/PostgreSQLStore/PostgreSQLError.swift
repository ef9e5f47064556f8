internal import APNSMockInbox

/// Why a database cannot be used. Its description is a sentence, or begins one, for people.
package struct PostgreSQLError: Error, CustomStringConvertible {
  /// What callers distinguish.
  enum Kind {
    /// The database can only be read.
    case readOnly
    /// The connection was lost while a transaction ended, so that it is unknown whether it took effect.
    case commitUnknown
    case other
  }

  let kind: Kind
  package let description: String

  private init(_ description: String, kind: Kind = .other) { (self.description, self.kind) = (description, kind) }

  /// - Parameters:
  ///   - state: The SQLSTATE; nil if the error is one of libpq.
  init(state: String?, message: String) {
    let lines = message.split(separator: "\n").map { line in
      let isFatal = line.contains("FATAL:")
      let text = isFatal ? line.split(separator: "FATAL:", maxSplits: 1).last ?? line : line
      return String(text.drop { $0 == " " || $0 == "\t" })
    }
    let text = lines.first ?? "unknown error"
    func says(_ parts: String...) -> Bool { state == nil && parts.contains { message.contains($0) } }
    switch state {
    case "25006",
      _ where says("session is read-only"):
      self.init("\(text): use the primary server, or set default_transaction_read_only to off", kind: .readOnly)
    case nil where text.hasPrefix("invalid ") || text.hasPrefix("definition of service"):
      self.init("\(text): the URL has the form \(PostgreSQLAddress.allowed)")
    case "53300",
      _ where says("too many clients", "too many connections", "connection slots"):
      self.init(
        "\(text): set max_connections of PostgreSQL to more than ten for each server, or stop what else uses it")
    case "28P01", "28000", "42501",
      _ where says("password", "authentication", "pg_hba.conf", "role \"", "permission denied"):
      self = .forbidden(text)
    case "3D000",
      nil where message.contains("database \"") && message.contains("does not exist"):
      self.init("\(text): create it with createdb, or correct the URL")
    // The database ends, or is not ready yet.
    case "57P01", "57P02", "57P03", nil: self = .unreachable(text)
    default: self = .other(text)
    }
  }

  static let missingLibrary = Self(
    "the client library of PostgreSQL (libpq) is missing: install it, for example with apt-get install libpq5")

  static func unreachable(_ text: String) -> Self {
    Self("\(text): check that PostgreSQL runs, and the host and port in the URL")
  }

  static func forbidden(_ text: String) -> Self {
    Self(
      "\(text): check the user in the URL, the password (~/.pgpass, PGPASSWORD or the URL), and the rights of the user")
  }

  static func encoding(_ encoding: String) -> Self {
    Self("the database has the encoding \(encoding): create one with createdb --encoding UTF8 --template template0")
  }

  static func oldServer(version: Int) -> Self {
    Self("PostgreSQL \(version / 10_000) is too old: use version 14 or newer")
  }

  /// A row has a value that this program cannot have written.
  static func damaged(_ row: DamagedRow) -> Self {
    Self("\(row): restore a backup, or stop the server that uses the schema and run psql with \"\(row.repair)\"")
  }

  /// A schema of a view has totals that a server cannot have written.
  static func damaged(schema: String, _ row: DamagedRow) -> Self {
    Self(
      "the schema \(schema) is damaged: \(row): restore a backup, or stop its server and run psql with SET search_path TO \(schema) and "
        + "\"\(row.repair)\"")
  }

  /// A schema of a view has another number of rows of totals than one.
  static func damaged(schema: String, rows: Int) -> Self {
    Self("the schema \(schema) is damaged: its table contents has \(rows) rows in place of one: restore a backup")
  }

  static let pooler = Self(
    "the URL leads to a connection pooler, which may end or share sessions: give the address of PostgreSQL itself")

  /// Another server has taken over the schema.
  package static let superseded = Self(
    "another server has taken over the schema, because this one was stopped or cut off for too long")

  static func foreign(schema: String) -> Self {
    Self(
      "the schema \(schema) has tables of another program: choose another one with ?schema=NAME at the end of the URL")
  }

  static func foreign(viewed schema: String) -> Self {
    Self("the schema \(schema) has tables of another program: choose a pattern that leaves it out")
  }

  static func older(schema: String, version: Int) -> Self {
    Self(
      "the schema \(schema) has the format \(version) of an older version, this one reads \(Schema.version): start a server of this "
        + "version with it, which changes its tables, and wait until that server is ready")
  }

  static func newer(schema: String, version: Int) -> Self {
    Self(
      "the schema \(schema) was written by a newer version of apns-mock (format \(version), this one knows "
        + "\(Schema.version)): use that version, or choose another schema with ?schema=NAME at the end of the URL")
  }

  static func tooOld(schema: String, version: Int) -> Self {
    Self(
      "the schema \(schema) has the format \(version) of an older version that was not released: choose another schema with "
        + "?schema=NAME at the end of the URL")
  }

  static func commitUnknown(_ text: String) -> Self { Self(text, kind: .commitUnknown) }

  static func other(_ text: String) -> Self { Self("\(text): check the log of PostgreSQL") }
}
