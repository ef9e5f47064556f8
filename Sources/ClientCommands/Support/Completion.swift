import APNSMockRules
package import ArgumentParser
import APNSMockFaults
import APNSMockInbox
import APNSMockPlatformLibc

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ArgumentHelp {
  /// Returns the help of an option or argument with a value.
  ///
  /// - Parameters:
  ///   - placeholder: What the value is, in angle brackets after the flag: `host:port`, `file`, `duration`.
  ///   - text: The description.
  package static func value(_ placeholder: String, _ text: String) -> ArgumentHelp {
    ArgumentHelp(text, valueName: placeholder)
  }
}

/// The values that a shell completes, for several commands.
extension CompletionKind {
  /// Files with expectations, fixtures, rules or profiles, and folders.
  package static let yamlOrJSON = file(extensions: ["yaml", "yml", "json"])
  static let environment = list(["sandbox", "production"])
  static let pushType = list(PushType.allCases.map(\.text))
  /// Conditions on findings, the only field of a query whose values are known.
  static let query = list(Finding.Kind.allCases.map { "finding:\($0.rawValue)" })
  /// Names of fault profiles, and files with profiles.
  package static let profile = custom { words, _, prefix in
    ProfileCandidates(words: words, prefix: prefix, environment: Environment.variables).all
  }
}

/// The fault profiles that complete an argument.
struct ProfileCandidates {
  /// The words of the command line. `--profiles` names a folder of profiles, as `APNS_MOCK_PROFILES` does.
  let words: [String]
  /// The text before the cursor.
  let prefix: String
  let environment: [String: String]

  /// The names, then the files and folders in the folder that the prefix names.
  var all: [String] { names + files }

  private var names: [String] {
    guard let folder = folder ?? environment.given(Setting.profiles.variable) else { return ProfileLibrary().names }
    return ProfileLibrary().reloading(folder: folder).library.names
  }

  private var folder: String? {
    let flag = Setting.profiles.flag
    if let word = words.last(where: { $0.hasPrefix(flag + "=") }) { return String(word.dropFirst(flag.count + 1)) }
    return words.lastIndex(of: flag).flatMap { words.dropFirst($0 + 1).first }
  }

  private var files: [String] {
    let parent = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
    let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.isEmpty ? "." : parent)) ?? []
    return names.filter { !$0.hasPrefix(".") }.sorted().compactMap { name in
      if let folder = opendir(parent + name) {
        closedir(folder)
        return parent + name + "/"
      }
      return name.hasSuffix(".yaml") || name.hasSuffix(".yml") ? parent + name : nil
    }
  }
}
