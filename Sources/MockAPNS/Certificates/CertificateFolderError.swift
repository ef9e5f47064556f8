/// What is wrong in the folder of certificates and keys, on one line: where, what, and how to repair it.
public struct CertificateFolderError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file, with a line where that helps (`Certs/provider.yaml:7`), or the setting.
  public let place: String
  /// What is wrong there.
  public let problem: String
  /// What to do about it.
  public let repair: String

  /// An error from parts.
  init(place: String, problem: String, repair: String) {
    self.place = place
    self.problem = problem
    self.repair = repair
  }

  /// All three.
  public var description: String { "\(place): \(problem); \(repair)" }

  /// Does `work` on the folder's files; what cannot be read or written there is said as an error of the folder.
  static func wrapping<Result>(_ work: () throws -> Result) throws -> Result {
    do {
      return try work()
    } catch let error as FileError {
      throw CertificateFolderError(
        place: error.path, problem: error.problem, repair: error.repair + ", or name another folder with --certs")
    }
  }
}
