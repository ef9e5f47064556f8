internal import APNSMockPlatformLibc

/// The functions of libpq, PostgreSQL's client library. It is loaded when it is needed, so that the program starts without
/// it; its functions and their types are the same in all versions since PostgreSQL 9.
struct LibPQ: Sendable {
  typealias Connection = OpaquePointer
  typealias Result = OpaquePointer
  typealias Text = UnsafePointer<CChar>
  typealias Texts = UnsafePointer<Text?>

  let connect: @convention(c) (Texts, Texts, Int32) -> Connection?
  let status: @convention(c) (Connection) -> Int32
  let errorMessage: @convention(c) (Connection) -> Text?
  let finish: @convention(c) (Connection) -> Void
  let socket: @convention(c) (Connection) -> Int32
  let serverVersion: @convention(c) (Connection) -> Int32
  let setNonBlocking: @convention(c) (Connection, Int32) -> Int32
  let send: @convention(c) (Connection, Text) -> Int32
  let sendWithParameters:
    @convention(c) (
      Connection, Text, Int32, UnsafePointer<UInt32>?, Texts?, UnsafePointer<Int32>?, UnsafePointer<Int32>?, Int32
    ) -> Int32
  let flush: @convention(c) (Connection) -> Int32
  let isBusy: @convention(c) (Connection) -> Int32
  let resultStatus: @convention(c) (Result) -> Int32
  let resultErrorField: @convention(c) (Result, Int32) -> Text?
  let clear: @convention(c) (Result) -> Void
  let rowCount: @convention(c) (Result) -> Int32
  let isNull: @convention(c) (Result, Int32, Int32) -> Int32
  let value: @convention(c) (Result, Int32, Int32) -> UnsafeMutablePointer<CChar>?
  let length: @convention(c) (Result, Int32, Int32) -> Int32
  let columnType: @convention(c) (Result, Int32) -> UInt32
  let putCopyData: @convention(c) (Connection, Text, Int32) -> Int32
  let putCopyEnd: @convention(c) (Connection, Text?) -> Int32
  let nextResult: @convention(c) (Connection) -> Result?
  let consumeInput: @convention(c) (Connection) -> Int32
  let processOfServer: @convention(c) (Connection) -> Int32
  let setNoticeProcessor:
    @convention(c) (
      Connection, @convention(c) (UnsafeMutableRawPointer?, Text?) -> Void, UnsafeMutableRawPointer?
    ) -> UnsafeRawPointer?

  /// The value of `status` for a usable connection.
  static let connectionOK: Int32 = 0
  /// The values of `resultStatus` for a command without rows, one with rows, and one that expects the data of COPY.
  static let (commandOK, tuplesOK, copyIn): (Int32, Int32, Int32) = (1, 2, 4)
  /// The field of an error with its SQLSTATE, and that with its primary message.
  static let (sqlState, primaryMessage) = (Int32(UInt8(ascii: "C")), Int32(UInt8(ascii: "M")))

  /// The library; nil if this machine does not have it.
  static let shared: LibPQ? = files.lazy.compactMap { dlopen($0, RTLD_NOW | RTLD_LOCAL) }.first.flatMap {
    try? LibPQ($0)
  }

  #if canImport(Darwin)
    private static let files = [
      "libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib", "/usr/local/opt/libpq/lib/libpq.5.dylib",
    ]
  #else
    private static let files = ["libpq.so.5"]
  #endif

  private struct MissingFunction: Error {}

  private init(_ library: UnsafeMutableRawPointer) throws {
    /// Returns a function of the library as the type that its declaration in `libpq-fe.h` has in Swift.
    func function<Function>(_ name: String) throws -> Function {
      guard let address = dlsym(library, name) else { throw MissingFunction() }
      return unsafeBitCast(address, to: Function.self)
    }
    connect = try function("PQconnectdbParams")
    status = try function("PQstatus")
    errorMessage = try function("PQerrorMessage")
    finish = try function("PQfinish")
    socket = try function("PQsocket")
    serverVersion = try function("PQserverVersion")
    setNonBlocking = try function("PQsetnonblocking")
    send = try function("PQsendQuery")
    sendWithParameters = try function("PQsendQueryParams")
    flush = try function("PQflush")
    isBusy = try function("PQisBusy")
    resultStatus = try function("PQresultStatus")
    resultErrorField = try function("PQresultErrorField")
    clear = try function("PQclear")
    rowCount = try function("PQntuples")
    isNull = try function("PQgetisnull")
    value = try function("PQgetvalue")
    length = try function("PQgetlength")
    columnType = try function("PQftype")
    putCopyData = try function("PQputCopyData")
    putCopyEnd = try function("PQputCopyEnd")
    nextResult = try function("PQgetResult")
    consumeInput = try function("PQconsumeInput")
    processOfServer = try function("PQbackendPID")
    setNoticeProcessor = try function("PQsetNoticeProcessor")
  }
}
