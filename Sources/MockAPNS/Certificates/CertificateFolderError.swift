/// An error in the folder of certificates and keys. Its description is one line: place, problem and repair.
public struct CertificateFolderError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file, with a line number where that helps (`Certs/provider.yaml:7`), or the setting.
  public let place: String
  /// The problem.
  public let problem: String
  /// The way to solve the problem.
  public let repair: String

  /// Creates an error.
  init(place: String, problem: String, repair: String) {
    self.place = place
    self.problem = problem
    self.repair = repair
  }

  /// The place, the problem and the repair on one line.
  public var description: String { "\(place): \(problem); \(repair)" }

  /// Runs `work` and converts file errors that it throws.
  static func wrapping<Result>(_ work: () throws -> Result) throws -> Result {
    do {
      return try work()
    } catch let error as FileError {
      throw CertificateFolderError(
        place: error.path, problem: error.problem, repair: error.repair + ", or name another folder with --certs")
    }
  }
}
