internal import Hummingbird

/// The route of the OpenAPI description.
struct DescriptionRoutes: Sendable {
  let version: String

  var routes: [Route] { [.get("/openapi.json", show)] }

  // Generated on demand, because it is rarely requested.
  private func show(_ request: Request, _ context: BasicRequestContext) -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: APIDescription(version: version).json)))
  }
}
