internal import APNSMockEmbeddedFiles
internal import APNSMockTLSEngine

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The web UI's modules and style sheets as one file each, so that a browser needs few requests instead of one per file. A script
/// that is `async` in the page stays a file of its own: it does not wait for the others.
///
/// The sources stay separate modules, which a browser can also load from `/page/modules/main.js`.
struct WebUIBundle {
  /// The name of the script.
  static let scriptName = "app.js"
  /// The name of the script that the other one loads later, and its module.
  private static let (laterName, laterEntry) = ("later.js", "modules/later.js")
  /// The name of the style sheet.
  static let styleName = "app.css"

  /// A file that a browser loads.
  struct File {
    let bytes: [UInt8]
    /// The bytes in the gzip format.
    let compressed: [UInt8]
    /// The checksum of the bytes, in hexadecimal.
    let version: String

    fileprivate init(_ text: String) {
      bytes = Array(text.utf8)
      compressed = Gzip.compressed(bytes)
      version = String(Gzip.checksum(bytes), radix: 16)
    }
  }

  /// The page that loads the scripts and the style sheet.
  let page: String
  /// The content security policy's source expression of the style in the page, which is drawn before the style sheet is loaded.
  let styleHash: String
  /// The script, which has all modules that the page's script imports in the order of their dependencies, and the style
  /// sheet, which has all that the page links in the order of the links; by their names.
  let files: [String: File]

  /// Creates the bundle of these files, of which `index.html` is the page.
  init(_ files: [String: EmbeddedFile]) {
    var lines: [Substring] = []
    var styles: [String] = []
    var scripts: [String: String] = [:]
    func tag(_ name: String) -> String { "\(WebUIRoutes.folder)\(name)?v=" }
    for line in (files["index.html"]?.text ?? "").split(separator: "\n", omittingEmptySubsequences: false) {
      if line.contains("rel=\"stylesheet\"") {
        if styles.isEmpty {
          lines.append("  <link rel=\"stylesheet\" href=\"\(tag(Self.styleName))\">")
        }
        styles.append(files[Self.file(in: line)]?.text ?? "")
      } else if line.contains("type=\"module\"") {
        let (entry, isAsync) = (Self.file(in: line), line.contains(" async "))
        let name = isAsync ? entry.split(separator: "/").last.map(String.init) ?? entry : Self.scriptName
        var modules = ModuleBundler(files: files)
        if !isAsync { modules.script += "globalThis.apnsMock = { modules };\n" }
        modules.add(entry)
        scripts[name] = modules.script
        if !isAsync {
          modules.script = "const { modules } = globalThis.apnsMock;\n"
          modules.add(Self.laterEntry)
          scripts[Self.laterName] = modules.script
        }
        lines.append("  <script type=\"module\"\(isAsync ? " async" : "") src=\"\(tag(name))\"></script>")
      } else {
        lines.append(line)
      }
    }
    // The module of the other script is known by its name after that was loaded.
    let later = scripts[Self.laterName].map { "\(tag(Self.laterName))\(File($0).version)" } ?? ""
    scripts[Self.scriptName] = scripts[Self.scriptName]?.replacing(
      "import(\"./later.js\")", with: "import(\"\(later)\").then(() => modules[\"\(Self.laterEntry)\"])")
    var bundled = scripts.mapValues { File($0) }
    bundled[Self.styleName] = File(styles.joined(separator: "\n"))
    page = bundled.reduce(lines.joined(separator: "\n")) { page, file in
      page.replacing(tag(file.key), with: tag(file.key) + file.value.version)
    }
    let style = page.split(separator: "<style>", maxSplits: 1).last?.prefix { $0 != "<" } ?? ""
    styleHash = Self.hash(style)
    self.files = bundled
  }

  /// Returns the source expression by which a content security policy allows an inline script or style.
  static func hash(_ text: some StringProtocol) -> String {
    let words = Array(text.utf8).withUnsafeBytes { SHA256.words(of: $0) }
    let bytes = [words.0, words.1, words.2, words.3].flatMap { word in
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> UInt64($0)) }
    }
    return "'sha256-\(Data(bytes).base64EncodedString())'"
  }

  /// Returns the modules that another one imports, with it, as one script.
  static func script(of entry: String, in files: [String: EmbeddedFile]) -> String {
    var modules = ModuleBundler(files: files)
    modules.add(entry)
    return modules.script
  }

  /// Returns the name of the file that a tag loads from `/page/`.
  private static func file(in tag: Substring) -> String {
    let start = tag.ranges(of: WebUIRoutes.folder).first?.upperBound ?? tag.endIndex
    return String(tag[start...].prefix { $0 != "\"" })
  }
}

/// Converts modules to functions that return their exports, in one script.
///
/// Supports what the web UI's modules use: each import in one line, declarations with `export`, no cycles.
private struct ModuleBundler {
  let files: [String: EmbeddedFile]
  var script = "const modules = {};\n"
  private var added: Set<String> = []

  init(files: [String: EmbeddedFile]) { self.files = files }

  /// Adds a module after the modules that it imports.
  mutating func add(_ path: String) {
    guard added.insert(path).inserted, let text = files[path]?.text else { return }
    var body = ""
    var exports: [Substring] = []
    // Comments and indentation are a fifth of the modules. Between two lines with an odd number of backticks is a text.
    var isInText = false
    for whole in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let line = isInText ? whole : whole.drop { $0 == " " }
      if !isInText, line.isEmpty || ["//", "/**", "* ", "*/"].contains(where: line.hasPrefix) { continue }
      if line.utf8.count(where: { $0 == UInt8(ascii: "`") }) % 2 == 1 { isInText.toggle() }
      if line.hasPrefix("import ") {
        let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
        let source = parts.count > 1 ? Self.resolve(parts[1], from: path) : ""
        add(source)
        body += Self.declaration(of: parts[0], from: source)
      } else if line.hasPrefix("export ") {
        let declaration = line.dropFirst("export ".count)
        let words = declaration.split(separator: " ", maxSplits: 3)
        let name = words.drop { ["async", "function", "class", "const"].contains($0) }.first ?? ""
        exports.append(name.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" })
        body += declaration
      } else {
        body += line
      }
      body += "\n"
    }
    script += "modules[\"\(path)\"] = (() => {\n\(body)return { \(exports.joined(separator: ", ")) };\n})();\n"
  }

  /// Returns the declaration that replaces an import.
  ///
  /// - Parameter clause: The import up to the name of its file, such as `import { a, b as c } from `.
  private static func declaration(of clause: Substring, from path: String) -> String {
    let names = clause.dropFirst("import ".count).replacing(" from ", with: "")
    if names.hasPrefix("* as ") { return "const \(names.dropFirst("* as ".count)) = modules[\"\(path)\"];" }
    return "const \(names.replacing(" as ", with: ": ")) = modules[\"\(path)\"];"
  }

  /// Returns the path of the module that another one imports as `reference`, such as `../dom.js`.
  private static func resolve(_ reference: Substring, from path: String) -> String {
    var parts = path.split(separator: "/").dropLast()
    for part in reference.split(separator: "/") where part != "." {
      if part == ".." { parts = parts.dropLast() } else { parts.append(part) }
    }
    return parts.joined(separator: "/")
  }
}
