internal import APNSMockRules
internal import GRDB
internal import APNSMockInbox

/// The tables of the database, and how older versions of them are changed.
enum Schema {
  /// The version of this program, in `PRAGMA user_version`.
  static let version = 5

  /// The oldest version that is changed.
  static let oldestVersion = 4

  /// Creates the tables in a new database, or changes those of an older version.
  static func migrate(_ db: Database, from version: Int) throws {
    if version == 0 { try db.execute(sql: tables) }
    try db.execute(sql: serverState)
    try db.execute(sql: "PRAGMA user_version = \(Self.version)")
  }

  private static var tables: String {
    let columns = RecordColumn.allCases.map { column in
      let type = column.isBytes ? "BLOB" : column.isNumber ? "INTEGER" : "TEXT"
      return "\(column.name) \(type)\(column == .seq ? " PRIMARY KEY" : "")"
    }
    return """
      CREATE TABLE push (\(columns.joined(separator: ", ")));
      CREATE INDEX push_pending ON push (seq) WHERE outcome = 'pending';
      -- Rejected pushes are few, and are looked for often.
      CREATE INDEX push_status ON push (seq, status) WHERE status <> 200;
      CREATE INDEX push_reason ON push (reason) WHERE reason IS NOT NULL;
      CREATE TABLE connection (
        id INTEGER PRIMARY KEY, name TEXT, listener INTEGER, environment TEXT, client TEXT, sni TEXT,
        tls TEXT, http TEXT, certificate TEXT, opened_ns INTEGER, identity INTEGER);
      CREATE TABLE provider_token (
        id INTEGER PRIMARY KEY, key_id TEXT, team_id TEXT, issued_at INTEGER, signature TEXT, identity INTEGER);
      CREATE TABLE check_list (id INTEGER PRIMARY KEY, names TEXT UNIQUE);
      CREATE TABLE name (name TEXT PRIMARY KEY) WITHOUT ROWID;
      CREATE TABLE block (
        first_seq INTEGER PRIMARY KEY, oldest INTEGER, newest INTEGER,
        \(RecordColumn.Hashed.allCases.map { "\($0.rawValue) BLOB" }.joined(separator: ", ")));
      CREATE TABLE contents (
        last_seq INTEGER, reserved_seq INTEGER, emptied_through INTEGER, count INTEGER, bytes INTEGER, evicted INTEGER,
        last_evicted INTEGER, last_connection INTEGER);
      INSERT INTO contents VALUES (0, 0, 0, 0, 0, 0, 0, 0);
      \(view)
      """
  }

  /// `StoredServerState`, and the pushes in the storage of APNs.
  private static let serverState = """
    CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS push_of_storage ON push (seq) WHERE \(DeliveryState.isOfStorage);
    """

  /// The documented view, whose columns stay the same in later versions.
  private static let view = """
    CREATE VIEW pushes AS SELECT
      push.seq, strftime('%Y-%m-%dT%H:%M:%fZ', received_at / 1000.0, 'unixepoch') AS received_at,
      strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS finished_at,
      kind, outcome, accepted, status, reason, delivery, attempt, printf('%016x', push_key) AS push_key, device_token,
      topic, push_type, priority, collapse_id, apns_id, rule, latency_ns / 1e6 AS latency_ms, payload_size,
      connection.name AS connection, stream, listener, environment, client, key_id, team_id, verdict_reason, detail,
      payload
    FROM push LEFT JOIN connection ON connection.id = push.connection
      LEFT JOIN provider_token ON provider_token.id = push.token
    WHERE push.seq > (SELECT emptied_through FROM contents);
    """
}
