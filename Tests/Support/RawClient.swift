import Foundation
import Testing

/// An HTTP/1.1 client on a plain socket, so that tests can send what no library would.
package struct RawClient: Sendable {
  package let port: Int

  package init(port: Int) { self.port = port }

  package struct Response: Sendable {
    package fileprivate(set) var status = 0
    package fileprivate(set) var headers: [String: String] = [:]
    package fileprivate(set) var body: [UInt8] = []

    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as a JSON object.
    package var object: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
    }

    /// The objects under `items`.
    package var items: [[String: Any]] { object["items"] as? [[String: Any]] ?? [] }
    /// The objects under `problems`.
    package var problems: [[String: Any]] { object["problems"] as? [[String: Any]] ?? [] }
    /// The `hint` of a problem document.
    package var hint: String { object["hint"] as? String ?? "" }
    /// The `detail` of a problem document.
    package var detail: String { object["detail"] as? String ?? "" }
  }

  /// Sends a request and returns the response. Adds `host` and `content-length` unless they are given.
  package func request(_ method: String, _ path: String, _ headers: [(String, String)] = [], body: String? = nil) async
    -> Response
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

  package func get(_ path: String, _ headers: [(String, String)] = []) async -> Response {
    await request("GET", path, headers)
  }

  /// Sends a JSON body.
  package func send(_ method: String, _ path: String, _ json: String) async -> Response {
    await request(method, path, [("content-type", "application/json")], body: json)
  }

  /// Sends a YAML body.
  package func sendYAML(_ method: String, _ path: String, _ text: String) async -> Response {
    await request(method, path, [("content-type", "application/yaml")], body: text)
  }

  /// Sends `text` unchanged and reads until the server closes.
  ///
  /// - Parameter closesAfterwards: Whether to close the sending side after `text`.
  package func exchange(_ text: String, closesAfterwards: Bool = false) async -> Response {
    let bytes = await onOwnThread { blockingExchange(text, closesAfterwards) }
    if bytes == nil { Issue.record("The server has not closed the connection within two minutes.") }
    return Self.parse(bytes ?? [])
  }

  private func blockingExchange(_ text: String, _ closesAfterwards: Bool) -> [UInt8]? {
    let connection = open(text)
    defer { connection.close() }
    if closesAfterwards { connection.closeOutput() }
    return connection.readToEnd()
  }

  /// Connects and sends `text`.
  package func open(_ text: String) -> RawConnection {
    let connection = RawConnection(port: port)
    connection.write(text)
    return connection
  }

  /// Sends `beginning`, and then `more` repeatedly until the server closes.
  ///
  /// - Returns: How often `more` was sent, at most `count` times.
  package func dribble(_ beginning: String, _ more: String, every pause: Duration, atMost count: Int) async -> Int {
    let connection = open(beginning)
    defer { connection.close() }
    for number in 0..<count {
      try? await Task.sleep(for: pause)
      if connection.isClosedByPeer || !connection.write(more) { return number }
    }
    return count
  }

  private static func parse(_ bytes: [UInt8]) -> Response {
    let separator = Array("\r\n\r\n".utf8)
    guard let end = bytes.indices.first(where: { bytes[$0...].starts(with: separator) }) else { return Response() }
    let lines = String(decoding: bytes[..<end], as: UTF8.self).components(separatedBy: "\r\n")
    var response = Response()
    response.status = Int(lines.first?.split(separator: " ").dropFirst().first ?? "") ?? 0
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      response.headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
    }
    response.body = Array(bytes[(end + 4)...])
    return response
  }
}
