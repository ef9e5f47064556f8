/// The documentation page of a provider library, as it is in the documentation.
package struct ClientPage: Sendable {
  /// The name of the page's file without its extension, such as `NodeAPN`.
  package let file: String
  /// The page in Markdown.
  package let text: String

  /// All pages.
  package static let all: [ClientPage] = files.map {
    ClientPage(file: $0.name, text: String(decoding: $0.bytes, as: UTF8.self))
  }

  private static let files: [(name: String, bytes: [UInt8])] = [
    ("A2", PackageResources.A2_md),
    ("APNSwift", PackageResources.APNSwift_md),
    ("Aioapns", PackageResources.Aioapns_md),
    ("AndrewBarbaAPNS2", PackageResources.AndrewBarbaAPNS2_md),
    ("Apnotic", PackageResources.Apnotic_md),
    ("Apns4erl", PackageResources.Apns4erl_md),
    ("ApnsPHP", PackageResources.ApnsPHP_md),
    ("CorePush", PackageResources.CorePush_md),
    ("Curl", PackageResources.Curl_md),
    ("CurlCffi", PackageResources.CurlCffi_md),
    ("DotAPNS", PackageResources.DotAPNS_md),
    ("FitomadAPNS", PackageResources.FitomadAPNS_md),
    ("Gaurun", PackageResources.Gaurun_md),
    ("Gorush", PackageResources.Gorush_md),
    ("Httpx", PackageResources.Httpx_md),
    ("Kalyke", PackageResources.Kalyke_md),
    ("NodeAPN", PackageResources.NodeAPN_md),
    ("NodeHTTP2", PackageResources.NodeHTTP2_md),
    ("PHPCurl", PackageResources.PHPCurl_md),
    ("Pigeon", PackageResources.Pigeon_md),
    ("Pushok", PackageResources.Pushok_md),
    ("Pushy", PackageResources.Pushy_md),
    ("PyAPNs2", PackageResources.PyAPNs2_md),
    ("Rpush", PackageResources.Rpush_md),
    ("SideshowAPNS2", PackageResources.SideshowAPNS2_md),
  ]

  /// The library's name: the title of the page.
  package var library: String { String(text.prefix { $0 != "\n" }.drop { $0 == "#" || $0 == " " }) }

  /// The section with the code or settings to paste, without its title; empty if the page has none.
  package var section: String {
    guard let title = text.firstRange(of: "## What to paste\n") else { return "" }
    let rest = text[title.upperBound...]
    let end = rest.firstRange(of: "\n## ")?.lowerBound ?? rest.endIndex
    return String(rest[..<end].drop { $0 == "\n" })
  }
}
