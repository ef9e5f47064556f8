package import APNSMockFaultModel
package import APNSMockNotation

/// The text of a profile and its origin.
package struct ProfileSource: Sendable, Equatable, Codable {
  /// The origin of a profile's text.
  package enum Origin: Sendable, Equatable, Codable {
    /// Part of the program.
    case builtIn
    /// A file, by its path.
    case file(String)
    /// Uploaded to the running server.
    case uploaded
    /// Given in a request in place of a name.
    case inline

    /// The origin as shown in lists: `built-in`, the path of a file, `api` or `inline`.
    package var text: String {
      switch self {
      case .builtIn: "built-in"
      case .file(let path): path
      case .uploaded: "api"
      case .inline: "inline"
      }
    }
  }

  /// The profile's name, unless the text declares another.
  package let name: String
  /// The text in YAML.
  package let text: String
  /// The origin of the text.
  package let origin: Origin

  /// Creates a source.
  package init(name: String, text: String, origin: Origin) {
    self.name = name
    self.text = text
    self.origin = origin
  }

  /// The name of the source in problems: the path of a file, otherwise a name.
  var file: String {
    switch origin {
    case .file(let path): path
    case .builtIn: "built-in/\(name).yaml"
    case .uploaded, .inline: name
    }
  }
}

/// A profile that is ready to run, and its warnings.
package struct LoadedProfile: Sendable, Equatable {
  /// The profile, merged with its base profiles and with the values of its parameters substituted.
  package let profile: Profile
  /// The warnings, in the order of the file.
  package let warnings: [ProfileProblem]
}

/// A profile's name or file path, with the values of its parameters: `black-friday?limit=2&rate=0.5`.
package struct ProfileReference: Sendable, Equatable, CustomStringConvertible {
  /// The location of the profile.
  package enum Place: Sendable, Equatable {
    /// The name of a profile in the library.
    case name(String)
    /// The path of a file.
    case file(String)
  }

  /// The location of the profile.
  package var place: Place
  /// Values of its parameters as written.
  package var parameters: [String: String]

  /// Creates a reference.
  package init(_ place: Place, parameters: [String: String] = [:]) {
    self.place = place
    self.parameters = parameters
  }

  /// Parses a reference. Names and values of parameters are percent-decoded. The text refers to a file if it
  /// contains a slash or ends with `.yaml` or `.yml`.
  ///
  /// - Throws: `InvalidSettingValue`.
  package init(_ text: String) throws(InvalidSettingValue) {
    guard text.utf8.count <= 8192 else {
      throw InvalidSettingValue(value: text.shortened, allowed: "at most 8192 bytes")
    }
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    if name.contains("/") || ProfileFileReader.endings.contains(where: name.hasSuffix) {
      place = .file(name)
    } else if let problem = ProfileName.problem(with: name) {
      throw InvalidSettingValue(
        value: name.shortened, allowed: "a profile such as flaky-503?rate=0.5, or a file; \(problem)")
    } else {
      place = .name(name)
    }
    parameters = [:]
    guard parts.count == 2 else { return }
    for pair in parts[1].split(separator: "&") {
      let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if let value = sides.last, value.contains("%"), PercentEncoding.decode(value) == nil {
        let share = WrittenNumber.share(String(value).filter { $0 != " " })
        throw InvalidSettingValue(
          value: String(pair).shortened,
          allowed: (share.map { "a number in 0..1: did you mean \($0)? Otherwise " } ?? "")
            + "a percent sign written as %25, and a number without one")
      }
      guard sides.count == 2, let key = PercentEncoding.decode(sides[0]), let value = PercentEncoding.decode(sides[1]),
        !key.isEmpty,
        parameters.updateValue(value, forKey: key) == nil
      else {
        throw InvalidSettingValue(
          value: String(pair).shortened, allowed: "distinct parameters with values, such as ?rate=0.5&streak=2")
      }
    }
  }

  /// The reference in the format that `init(_:)` parses.
  package var description: String {
    var text =
      switch place {
      case .name(let name), .file(let name): name
      }
    for (index, pair) in parameters.sorted(by: { $0.key < $1.key }).enumerated() {
      text +=
        (index == 0 ? "?" : "&") + PercentEncoding.encode(pair.key, except: ":/") + "="
        + PercentEncoding.encode(pair.value, except: ":/")
    }
    return text
  }
}
