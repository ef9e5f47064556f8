import Foundation

#if canImport(Glibc)
  import Glibc

  private let streamSocket = Int32(SOCK_STREAM.rawValue)
#else
  import Darwin

  private let streamSocket = SOCK_STREAM
#endif

/// An HTTP/1.1 client on a bare socket, so that tests can send what no library would.
struct RawClient: Sendable {
  let port: Int

  struct Answer: Sendable {
    var status = 0
    var headers: [String: String] = [:]
    var body: [UInt8] = []

    var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as a JSON object.
    var object: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
    }

    /// The `hint` of a problem document.
    var hint: String { object["hint"] as? String ?? "" }
    /// The `detail` of a problem document.
    var detail: String { object["detail"] as? String ?? "" }
  }

  /// Makes a request. `host` and `content-length` are added unless they are given.
  func request(_ method: String, _ path: String, _ headers: [(String, String)] = [], body: String? = nil) async
    -> Answer
  {
    var headers = headers
    if !headers.contains(where: { $0.0 == "host" }) { headers.append(("host", "127.0.0.1:\(port)")) }
    if let body, !headers.contains(where: { $0.0 == "content-length" || $0.0 == "transfer-encoding" }) {
      headers.append(("content-length", String(body.utf8.count)))
    }
    headers.append(("connection", "close"))
    let head = "\(method) \(path) HTTP/1.1\r\n" + headers.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n"
    return await exchange(head + (body ?? ""))
  }

  func get(_ path: String, _ headers: [(String, String)] = []) async -> Answer { await request("GET", path, headers) }

  /// Sends a JSON body.
  func send(_ method: String, _ path: String, _ json: String) async -> Answer {
    await request(method, path, [("content-type", "application/json")], body: json)
  }

  /// Sends `text` as it is and reads until the server closes.
  ///
  /// - Parameter closesAfterwards: says that nothing more will come, by closing this side.
  func exchange(_ text: String, closesAfterwards: Bool = false) async -> Answer {
    await withCheckedContinuation { continuation in
      // On a thread of its own: those of the pools are few, and the server's handlers need them.
      Thread.detachNewThread {
        continuation.resume(returning: Self.parse(self.blockingExchange(text, closesAfterwards)))
      }
    }
  }

  private func blockingExchange(_ text: String, _ closesAfterwards: Bool) -> [UInt8] {
    let connection = socket(AF_INET, streamSocket, 0)
    guard connection >= 0 else { return [] }
    defer { close(connection) }
    signal(SIGPIPE, SIG_IGN)
    var timeout = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(connection, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard isConnected else { return [] }
    let bytes = Array(text.utf8)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
      guard count > 0 else { break }
      sent += count
    }
    if closesAfterwards { shutdown(connection, Int32(SHUT_WR)) }
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return received }
      received += buffer[..<count]
    }
  }

  private static func parse(_ bytes: [UInt8]) -> Answer {
    let separator = Array("\r\n\r\n".utf8)
    guard let end = bytes.indices.first(where: { bytes[$0...].starts(with: separator) }) else { return Answer() }
    let lines = String(decoding: bytes[..<end], as: UTF8.self).components(separatedBy: "\r\n")
    var answer = Answer()
    answer.status = Int(lines.first?.split(separator: " ").dropFirst().first ?? "") ?? 0
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      answer.headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
    }
    answer.body = Array(bytes[(end + 4)...])
    return answer
  }
}
