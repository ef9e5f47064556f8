internal import APNSMockRules
internal import APNSMockInbox

/// The tables of the database.
enum Schema {
  /// The version of this program's tables, in the table `contents`.
  static let version = 7
  /// The oldest version whose tables are changed.
  static let oldestVersion = 4

  /// Checks that the database and the schema can be used. Changes nothing.
  ///
  /// - Returns: The version of the tables; nil if there are none yet.
  @discardableResult
  static func check(_ connection: Connection, _ schema: String) throws -> Int? {
    let encoding = try connection.query("SHOW server_encoding").text(0, 0) ?? ""
    guard encoding == "UTF8" else { throw PostgreSQLError.encoding(encoding) }
    guard try exists(connection, schema) else { return nil }
    let isAllowed = try connection.query(
      "SELECT has_schema_privilege($1, 'USAGE') AND has_schema_privilege($1, 'CREATE')", [schema])
    guard isAllowed.number(0, 0) == 1 else {
      throw PostgreSQLError.forbidden("this user may not use the schema \(schema)")
    }
    let columns = try connection.query(
      """
      SELECT count(*) FILTER (WHERE table_name = 'push' AND column_name IN ('seq', 'arrived_ns', 'push_key')), \
      count(*) FILTER (WHERE table_name = 'contents' AND column_name IN ('version', 'last_seq', 'last_connection')), \
      count(*) \
      FROM information_schema.columns WHERE table_schema = $1 AND table_name IN \
      ('push', 'contents', 'pushes', 'connection', 'provider_token', 'check_list', 'name', 'server', 'message', 'epoch', \
      'state', 'block')
      """, [schema])
    guard columns.number(0, 2) != 0 else { return nil }
    guard columns.number(0, 0) == 3, columns.number(0, 1) == 3 else { throw PostgreSQLError.foreign(schema: schema) }
    let version = Int(try connection.query("SELECT min(version) FROM contents").number(0, 0) ?? 0)
    guard version > 0 else { throw PostgreSQLError.foreign(schema: schema) }
    guard version <= Self.version else { throw PostgreSQLError.newer(schema: schema, version: version) }
    guard version >= oldestVersion else { throw PostgreSQLError.tooOld(schema: schema, version: version) }
    return version
  }

  private static func exists(_ connection: Connection, _ schema: String) throws -> Bool {
    try connection.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]).count > 0
  }

  /// Creates the tables in an empty schema, or changes those of an older version.
  ///
  /// - Parameters:
  ///   - lock: The lock of the schema, which this server has.
  ///   - report: Is called with a sentence before work that may take long.
  static func prepare(_ connection: Connection, _ lock: ActiveLock, _ report: (String) -> Void) throws {
    let schema = lock.address.schema
    try connection.transaction {
      // Only if it is missing, because the user may lack the right to create schemas.
      if try !exists(connection, schema) { try connection.run("CREATE SCHEMA \"\(schema)\"") }
      guard let version = try check(connection, schema) else { return try connection.run(tables) }
      guard version < Self.version else { return }
      report(
        "changing the tables of the schema \(schema) to the format of this version, which can take minutes: "
          + "stop servers of older versions, which cannot write any more"
      )
      try connection.withPatience(changeTime) {
        try connection.run("SET LOCAL lock_timeout TO '60s'")
        try connection.run("SELECT version FROM contents FOR UPDATE")
        if version < 5 { try connection.run(oneWriter) }
        try connection.run(serverState)
        try connection.run(blocks)
        try connection.run(
          """
          INSERT INTO block SELECT \(Block.firstOfSeq), min(received_at), max(received_at) FROM push \
          WHERE received_at IS NOT NULL GROUP BY 1
          """)
        try connection.run("UPDATE contents SET version = \(Self.version)")
        try lock.checkIsHeld(connection)
      }
    }
  }

  /// The time that a change of the tables may take: it reads all pushes to create an index.
  private static let changeTime = Duration.seconds(3600)

  private static var tables: String {
    let columns = RecordColumn.allCases.map { column in
      let type = column.isBytes ? "bytea" : column.isNumber ? "bigint" : "text COLLATE \"C\""
      return "\(column.name) \(type)\(column == .seq ? " PRIMARY KEY" : "")"
    }
    return """
      CREATE TABLE push (\(columns.joined(separator: ", ")));
      CREATE INDEX push_device_token ON push (left(device_token, 200));
      CREATE INDEX push_push_key ON push (push_key);
      CREATE INDEX push_apns_id ON push (left(lower(apns_id), 200));
      CREATE INDEX push_received_at ON push (received_at);
      CREATE INDEX push_pending ON push (seq) WHERE outcome = 'pending';
      -- Rejected pushes are few, and are looked for often. A reason may be longer than a value in an index.
      CREATE INDEX push_status ON push (status, seq) WHERE status <> 200;
      CREATE INDEX push_reason ON push (seq) WHERE reason IS NOT NULL;
      CREATE TABLE connection (
        id bigserial PRIMARY KEY, name text, listener bigint, environment text, client text, sni text, tls text,
        http text, certificate text, opened_ns bigint, identity bigint);
      CREATE TABLE provider_token (
        id bigserial PRIMARY KEY, key_id text, team_id text, issued_at bigint, signature text, identity bigint);
      CREATE TABLE check_list (id bigserial PRIMARY KEY, names text UNIQUE);
      CREATE TABLE name (name text PRIMARY KEY);
      CREATE TABLE contents (
        version integer NOT NULL, last_seq bigint NOT NULL, emptied_through bigint NOT NULL, count bigint NOT NULL,
        bytes bigint NOT NULL, evicted bigint NOT NULL, last_evicted bigint NOT NULL, last_connection bigint NOT NULL,
        seed bigint, reserved_seq bigint NOT NULL, last_batch bigint NOT NULL);
      INSERT INTO contents VALUES (\(version), 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0);
      \(epoch)
      \(serverState)
      \(blocks)
      \(view)
      """
  }

  private static let blocks =
    "CREATE TABLE block (first_seq bigint PRIMARY KEY, oldest bigint NOT NULL, newest bigint NOT NULL);"

  /// The number of takeovers, which only the active server increments, and the URL of that server.
  private static let epoch = """
    CREATE TABLE epoch (number bigint NOT NULL, url text);
    INSERT INTO epoch VALUES (0, NULL);
    """

  /// `StoredServerState`, and the pushes in the storage of APNs.
  private static let serverState = """
    CREATE TABLE IF NOT EXISTS state (name text PRIMARY KEY, value text NOT NULL);
    CREATE INDEX IF NOT EXISTS push_of_storage ON push (seq) WHERE \(DeliveryState.isOfStorage);
    """

  /// Changes the tables of version 4, to which several servers wrote.
  private static let oneWriter = """
    DROP TABLE server, message;
    DROP INDEX push_pending;
    ALTER TABLE push DROP COLUMN server;
    CREATE INDEX push_pending ON push (seq) WHERE outcome = 'pending';
    ALTER TABLE contents DROP COLUMN last_message, DROP COLUMN removed_through,
      ADD COLUMN reserved_seq bigint NOT NULL DEFAULT 0, ADD COLUMN last_batch bigint NOT NULL DEFAULT 0;
    UPDATE contents SET reserved_seq = last_seq;
    \(epoch)
    """

  /// The documented view, whose columns stay the same in later versions.
  private static let view = """
    CREATE VIEW pushes AS SELECT
      push.seq, to_timestamp(received_at / 1000.0) AS received_at, to_timestamp(finished_at / 1000.0) AS finished_at,
      kind, outcome, accepted, status, reason, delivery, attempt,
      lpad(to_hex(push_key), 16, '0') AS push_key, device_token, topic, push_type, priority, collapse_id, apns_id, rule,
      latency_ns / 1e6 AS latency_ms, payload_size, connection.name AS connection, stream, listener, environment, client,
      key_id, team_id, verdict_reason, detail, payload
    FROM push LEFT JOIN connection ON connection.id = push.connection
      LEFT JOIN provider_token ON provider_token.id = push.token
    WHERE push.seq > (SELECT emptied_through FROM contents);
    """
}
