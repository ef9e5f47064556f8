package import APNSMockInbox

/// Why a database cannot be used. Its description is a sentence, or begins one, for people.
package enum PostgreSQLError: Error, CustomStringConvertible {
  /// This machine does not have libpq.
  case missingLibrary
  /// The database cannot be reached.
  case unreachable(String)
  /// The user or the password is wrong, or the user lacks a right.
  case forbidden(String)
  /// The database has no connection to spare.
  case full(String)
  /// The database can only be read.
  case readOnly(String)
  /// There is no such database.
  case missingDatabase(String)
  /// The URL is invalid.
  case invalidURL(String)
  /// The database has another encoding than UTF-8.
  case encoding(String)
  /// PostgreSQL is too old.
  case oldServer(version: Int)
  /// A row has a value that this program cannot have written.
  case damaged(DamagedRow)
  /// A pooler is between the server and the database.
  case pooler
  /// Another server has taken over the schema.
  case superseded
  /// The schema has tables of another program.
  case foreign(schema: String)
  /// The schema was written by a newer version of this program.
  case newer(schema: String, version: Int)
  /// The connection was lost while a transaction ended, so that it is unknown whether it took effect.
  case commitUnknown(String)
  /// Any other error of the database.
  case other(String)

  /// - Parameters:
  ///   - state: The SQLSTATE; nil if the error is one of libpq.
  init(state: String?, message: String) {
    let lines = message.split(separator: "\n").map { line in
      let isFatal = line.contains("FATAL:")
      let text = isFatal ? line.split(separator: "FATAL:", maxSplits: 1).last ?? line : line
      return String(text.drop { $0 == " " || $0 == "\t" })
    }
    let text = lines.first ?? "unknown error"
    switch state {
    case "28P01", "28000", "42501": self = .forbidden(text)
    // The database ends, or is not ready yet.
    case "57P01", "57P02", "57P03": self = .unreachable(text)
    case "53300": self = .full(text)
    case "25006": self = .readOnly(text)
    case "3D000": self = .missingDatabase(text)
    case nil where message.contains("session is read-only"): self = .readOnly(text)
    case nil where text.hasPrefix("invalid ") || text.hasPrefix("definition of service"): self = .invalidURL(text)
    case nil
    where message.contains("too many clients") || message.contains("too many connections")
      || message.contains("connection slots"):
      self = .full(text)
    case nil
    where message.contains("password") || message.contains("authentication") || message.contains("pg_hba.conf")
      || message.contains("role \"") || message.contains("permission denied"):
      self = .forbidden(text)
    case nil where message.contains("database \"") && message.contains("does not exist"): self = .missingDatabase(text)
    case nil: self = .unreachable(text)
    default: self = .other(text)
    }
  }

  package var description: String {
    switch self {
    case .missingLibrary:
      "the client library of PostgreSQL (libpq) is missing: install it, for example with apt-get install libpq5"
    case .unreachable(let text):
      "\(text): check that PostgreSQL runs, and the host and port in the URL"
    case .forbidden(let text):
      "\(text): check the user in the URL, the password (~/.pgpass, PGPASSWORD or the URL), and the rights of the user"
    case .full(let text):
      "\(text): set max_connections of PostgreSQL to more than ten for each server, or stop what else uses it"
    case .readOnly(let text): "\(text): use the primary server, or set default_transaction_read_only to off"
    case .missingDatabase(let text): "\(text): create it with createdb, or correct the URL"
    case .invalidURL(let text): "\(text): the URL has the form \(PostgreSQLAddress.allowed)"
    case .encoding(let encoding):
      "the database has the encoding \(encoding): create one with createdb --encoding UTF8 --template template0"
    case .oldServer(let version):
      "PostgreSQL \(version / 10_000) is too old: use version 14 or newer"
    case .damaged(let row):
      "\(row): restore a backup, or stop the server that uses the schema and run psql with \"\(row.repair)\""
    case .pooler:
      "the URL leads to a connection pooler, which may end or share sessions: give the address of PostgreSQL itself"
    case .superseded: "another server has taken over the schema, because this one was stopped or cut off for too long"
    case .foreign(let schema):
      "the schema \(schema) has tables of another program: choose another one with ?schema=NAME at the end of the URL"
    case .newer(let schema, let version):
      "the schema \(schema) was written by a newer version of apns-mock (format \(version), this one knows "
        + "\(Schema.version)): use that version, or choose another schema with ?schema=NAME at the end of the URL"
    case .commitUnknown(let text): text
    case .other(let text): "\(text): check the log of PostgreSQL"
    }
  }
}
