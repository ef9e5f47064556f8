internal import Hummingbird
internal import MockAPNS
internal import APNSMockNotation

/// The certificate authority whose chain is to be presented.
struct RotationRequest {
  var authority = ServerChain.Authority.next

  static let schema = MapSchema(
    "RotationRequest", RotationRequest(), .defaulted("to", \.authority, .word, "The certificate authority."))
}

/// Routes that show and switch the certificate chain of the server.
struct CertificateRoutes: Sendable {
  let state: ServerState

  var routes: [Route] { [.get("/certificates", show), .post("/certificates/rotate", rotate)] }

  private func show(_ request: Request, _ context: AdminContext) -> Response { shown }

  private func rotate(_ request: Request, _ context: AdminContext) async throws -> Response {
    let authority = try await JSONBody(request).parse(RotationRequest.schema.parse).authority
    do {
      try state.chain.use(authority)
    } catch let error as CertificateFolderError {
      throw Problem(
        status: .conflict, detail: "\(error.location): \(error.problem)",
        hint: error.repair.prefix(1).uppercased() + error.repair.dropFirst() + ".")
    }
    return shown
  }

  private var shown: Response {
    let (certificates, authority) = (state.certificates, state.chain.authority)
    return .json { writer in
      writer.member("chain", authority.rawValue)
      writer.objectMember("current") { writer in
        writer.member("path", certificates.caPath)
        writer.member("fingerprint", certificates.caFingerprint)
      }
      guard let fingerprint = certificates.nextCAFingerprint else { return writer.nullMember("next") }
      writer.objectMember("next") { writer in
        writer.member("path", certificates.nextCAPath)
        writer.member("fingerprint", fingerprint)
      }
    }
  }
}
