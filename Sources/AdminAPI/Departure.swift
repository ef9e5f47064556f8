internal import Hummingbird

/// A client that goes away while it is being answered.
enum Departure {
  /// Answers a request, and cancels the work for it when its client closes the connection.
  ///
  /// The connection ends with the answer, which says so: what its client sends meanwhile is looked at for its end alone.
  static func endsWork(of request: Request, _ answer: () async throws -> Response) async throws -> Response {
    var response = try await request.body.consumeWithCancellationOnInboundClose { _ in try await answer() }
    response.headers[.connection] = "close"
    return response
  }
}
