internal import Hummingbird

/// The description of all routes, these among them.
struct DescriptionRoutes: Sendable {
  let version: String

  var routes: [Route] { [.get("/openapi.json", show)] }

  // Made when somebody asks, which few do.
  private func show(_ request: Request, _ context: BasicRequestContext) -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: APIDescription(version: version).json)))
  }
}
