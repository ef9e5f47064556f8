import APNSMockPostgreSQLStore
import Testing

struct PostgreSQLAddressTests {
  @Test(arguments: [
    ("postgres://anna@db/inbox", "postgres://anna@db/inbox", "apns_mock", Int?.none),
    ("postgresql://anna:se:c%40ret@db:5433/inbox", "postgresql://anna@db:5433/inbox", "apns_mock", nil),
    ("postgres:///inbox?host=/tmp&schema=one&memory_records=8", "postgres:///inbox?host=/tmp&schema=one", "one", 8),
    ("postgres://db/inbox?password=secret&user=anna", "postgres://db/inbox?user=anna", "apns_mock", nil),
    ("postgres://db/inbox?sslpassword=secret", "postgres://db/inbox", "apns_mock", nil),
  ])
  func aURLIsReadAndShownWithoutItsPassword(text: String, place: String, schema: String, recent: Int?) throws {
    let address = try PostgreSQLAddress(text)
    #expect((address.place, address.schema) == (place, schema))
    #expect(address.recentRecords == recent)
  }

  @Test(arguments: [
    "schema=", "schema=Mixed", "schema=1st", "schema=a-b", "schema=pg_x", "schema=a%22b", "memory_records=0",
    "memory_records=x", "memory_records",
  ])
  func anInvalidParameterIsNamed(parameter: String) throws {
    let name = parameter.prefix { $0 != "=" }
    let error = #expect(throws: PostgreSQLAddress.InvalidParameter.self) {
      try PostgreSQLAddress("postgres://db/inbox?\(parameter)")
    }
    #expect(error?.allowed.hasPrefix(name) == true)
  }

  @Test(arguments: [
    ("postgres://anna:se:c@r?et@db/inbox?schema=X", "postgres://…@db/inbox?schema=X"),
    ("postgre://anna:secret@db/inbox", "postgre://…@db/inbox"), ("postgres:anna:secret@db", "postgres://…@db"),
    ("postgres://db/inbox?password=se@cret&schema=X", "postgres://db/inbox?password=…&schema=X"),
    ("host=db dbname=inbox password=secret", "host=…"), ("postgres", "postgres"), ("", ""),
    ("sqlite://x", "sqlite://x"),
  ])
  func anInvalidURLIsShownWithoutPasswords(text: String, shown: String) {
    #expect(PostgreSQLAddress.withoutSecrets(text) == shown)
  }

  @Test(arguments: [("postgres://db", true), ("postgresql:///x", true), ("postgre://db", false), ("sqlite:x", false)])
  func onlyURLsOfPostgreSQLAreAddresses(text: String, isAddress: Bool) {
    #expect(PostgreSQLAddress.isAddress(text) == isAddress)
  }
}
