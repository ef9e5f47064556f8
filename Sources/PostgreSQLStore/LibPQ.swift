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
  static let shared = LibPQ()

  #if canImport(Darwin)
    private static let files = [
      "libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib", "/usr/local/opt/libpq/lib/libpq.5.dylib",
    ]
  #else
    private static let files = ["libpq.so.5"]
  #endif

  private init?() {
    guard let library = Self.files.lazy.compactMap({ dlopen($0, RTLD_NOW | RTLD_LOCAL) }).first else { return nil }
    /// Returns a function of the library as the type that its declaration in `libpq-fe.h` has in Swift.
    func function<Function>(_ name: String, as type: Function.Type = Function.self) -> Function? {
      dlsym(library, name).map { unsafeBitCast($0, to: type) }
    }
    guard let connect: @convention(c) (Texts, Texts, Int32) -> Connection? = function("PQconnectdbParams"),
      let status: @convention(c) (Connection) -> Int32 = function("PQstatus"),
      let errorMessage: @convention(c) (Connection) -> Text? = function("PQerrorMessage"),
      let finish: @convention(c) (Connection) -> Void = function("PQfinish"),
      let socket: @convention(c) (Connection) -> Int32 = function("PQsocket"),
      let serverVersion: @convention(c) (Connection) -> Int32 = function("PQserverVersion"),
      let setNonBlocking: @convention(c) (Connection, Int32) -> Int32 = function("PQsetnonblocking"),
      let send: @convention(c) (Connection, Text) -> Int32 = function("PQsendQuery"),
      let sendWithParameters:
        @convention(c) (
          Connection, Text, Int32, UnsafePointer<UInt32>?, Texts?, UnsafePointer<Int32>?, UnsafePointer<Int32>?, Int32
        ) -> Int32 = function("PQsendQueryParams"),
      let flush: @convention(c) (Connection) -> Int32 = function("PQflush"),
      let isBusy: @convention(c) (Connection) -> Int32 = function("PQisBusy"),
      let resultStatus: @convention(c) (Result) -> Int32 = function("PQresultStatus"),
      let resultErrorField: @convention(c) (Result, Int32) -> Text? = function("PQresultErrorField"),
      let clear: @convention(c) (Result) -> Void = function("PQclear"),
      let rowCount: @convention(c) (Result) -> Int32 = function("PQntuples"),
      let isNull: @convention(c) (Result, Int32, Int32) -> Int32 = function("PQgetisnull"),
      let value: @convention(c) (Result, Int32, Int32) -> UnsafeMutablePointer<CChar>? = function("PQgetvalue"),
      let length: @convention(c) (Result, Int32, Int32) -> Int32 = function("PQgetlength"),
      let columnType: @convention(c) (Result, Int32) -> UInt32 = function("PQftype"),
      let putCopyData: @convention(c) (Connection, Text, Int32) -> Int32 = function("PQputCopyData"),
      let putCopyEnd: @convention(c) (Connection, Text?) -> Int32 = function("PQputCopyEnd"),
      let nextResult: @convention(c) (Connection) -> Result? = function("PQgetResult"),
      let consumeInput: @convention(c) (Connection) -> Int32 = function("PQconsumeInput"),
      let processOfServer: @convention(c) (Connection) -> Int32 = function("PQbackendPID"),
      let setNoticeProcessor:
        @convention(c) (
          Connection, @convention(c) (UnsafeMutableRawPointer?, Text?) -> Void, UnsafeMutableRawPointer?
        ) -> UnsafeRawPointer? = function("PQsetNoticeProcessor")
    else { return nil }
    self.connect = connect
    self.status = status
    self.errorMessage = errorMessage
    self.finish = finish
    self.socket = socket
    self.serverVersion = serverVersion
    self.setNonBlocking = setNonBlocking
    self.send = send
    self.sendWithParameters = sendWithParameters
    self.flush = flush
    self.isBusy = isBusy
    self.resultStatus = resultStatus
    self.resultErrorField = resultErrorField
    self.clear = clear
    self.rowCount = rowCount
    self.isNull = isNull
    self.value = value
    self.length = length
    self.columnType = columnType
    self.putCopyData = putCopyData
    self.putCopyEnd = putCopyEnd
    self.nextResult = nextResult
    self.consumeInput = consumeInput
    self.processOfServer = processOfServer
    self.setNoticeProcessor = setNoticeProcessor
  }
}
