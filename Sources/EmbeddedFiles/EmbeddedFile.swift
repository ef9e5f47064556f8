private import CAPNSMockEmbeddedFiles

/// A text file of this repository that is part of the program. `Sources/CEmbeddedFiles` lists the files.
package struct EmbeddedFile: Sendable {
  /// The name by which the program knows the file.
  package let name: String
  // Constant memory of the program.
  private nonisolated(unsafe) let content: UnsafePointer<CChar>

  /// The file's text.
  package var text: String { String(cString: content) }

  /// The files of the web UI, named by their paths in `Page`.
  package static let page = list(apns_page_files())
  /// The built-in fault profiles, in the order of the documentation.
  package static let faultProfiles = list(apns_fault_profiles())
  /// The parts of the OpenAPI description of the admin API.
  package static let apiDescription = list(apns_api_description())
  /// The documentation pages of provider libraries, named by their files without the extension.
  package static let clientPages = list(apns_client_pages())

  private static func list(_ first: UnsafePointer<apns_embedded_file>?) -> [EmbeddedFile] {
    var files: [EmbeddedFile] = []
    var next = first
    while let file = next, let name = file.pointee.name, let text = file.pointee.text {
      files.append(EmbeddedFile(name: String(cString: name), content: text))
      next = file + 1
    }
    return files
  }
}
