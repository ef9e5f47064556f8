internal import Faults
internal import Hummingbird
internal import MockAPNS
internal import Notation

/// A profile that a request body selects: by its name or a reference such as `flaky-503?rate=0.4`, and parameter
/// values in `params`.
struct ProfileChoice {
  let chosen: ChosenProfile

  /// Resolves the selection.
  ///
  /// - Parameter text: The name or reference.
  /// - Throws: `Problem`: 400 for an invalid reference, 422 for a profile or a parameter that does not exist.
  init(_ text: String, _ body: JSONBody, _ library: ProfileLibrary) throws(Problem) {
    let reference: ProfileReference
    do {
      reference = try ProfileReference(text)
    } catch {
      throw .badRequest("name cannot be \"\(error.value)\"", hint: "Expected \(error.allowed).")
    }
    guard case .name(let name) = reference.place else {
      throw .badRequest(
        "name is the path of a file, and the server reads none for its clients",
        hint: "Send the file with PUT /api/v1/profiles/NAME first.")
    }
    guard let source = library.source(named: name) else {
      throw .unknownProfile(name, library, status: .unprocessableContent)
    }
    var values = reference.parameters
    // Null resets a parameter to its default.
    for (knob, value) in try body.scalars("params") { values[knob] = value }
    do {
      chosen = ChosenProfile(source: source, profile: try library.profile(of: source, parameters: values).profile)
    } catch {
      throw Problem(error)
    }
  }
}
