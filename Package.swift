// swift-tools-version: 6.2
import PackageDescription

// Set by `make fuzz`, to flags of the compiler: adds the target `Fuzz` and compiles all targets with the coverage instrumentation of
// libFuzzer.
let fuzzFlags = Context.environment["APNS_MOCK_FUZZ"]
let isFuzzed = fuzzFlags != nil

let strict: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (fuzzFlags.map { [.unsafeFlags(["-sanitize=fuzzer"] + $0.split(separator: " ").map(String.init))] } ?? [])

/// Returns a product that the library does not need.
func ofProgram(_ name: String, _ package: String) -> Target.Dependency {
  .product(name: name, package: package, condition: .when(traits: ["Program"]))
}

let package = Package(
  name: "apns-mock",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "apns-mock", targets: ["APNSMockCommand"]),
    .library(name: "MockAPNS", targets: ["MockAPNS"]),
    .library(name: "MockAPNSTesting", targets: ["MockAPNSTesting"]),
  ],
  traits: [
    .default(enabledTraits: ["Program"]),
    .trait(
      name: "Program",
      description:
        "The packages that only the program needs. A package that uses MockAPNS or MockAPNSTesting needs none of them."),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CAPNSMockNghttp2", pkgConfig: "libnghttp2",
      providers: [.apt(["libnghttp2-dev"]), .brew(["libnghttp2"])]),
    .systemLibrary(
      name: "CAPNSMockOpenSSL", pkgConfig: "openssl",
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(name: "CAPNSMockMemory"),
    .systemLibrary(name: "CAPNSMockSQLiteSettings"),
    // Darwin, Musl or Glibc, so that other files need no conditional imports.
    .target(name: "APNSMockPlatformLibc", swiftSettings: strict),
    .target(
      name: "APNSMockNotation", dependencies: [.product(name: "Yams", package: "Yams")], swiftSettings: strict),
    .target(name: "APNSMockHTTPMessage", dependencies: ["APNSMockPlatformLibc"], swiftSettings: strict),
    .target(
      name: "APNSMockTLSEngine", dependencies: ["CAPNSMockOpenSSL", "APNSMockNotation", "APNSMockPlatformLibc"],
      swiftSettings: strict),
    .target(
      name: "APNSMockHTTP2Session", dependencies: ["CAPNSMockNghttp2", "APNSMockHTTPMessage", "APNSMockPlatformLibc"],
      swiftSettings: strict),
    .target(name: "APNSMockRules", dependencies: ["APNSMockHTTPMessage", "APNSMockNotation"], swiftSettings: strict),
    .target(
      name: "APNSMockDevices",
      dependencies: [
        "APNSMockRules", "APNSMockHTTPMessage", "APNSMockNotation", "APNSMockPlatformLibc",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // Files that are part of the program: web UI, fault profiles, OpenAPI description, pages of the documentation.
    .target(name: "CAPNSMockEmbeddedFiles"),
    .target(name: "APNSMockEmbeddedFiles", dependencies: ["CAPNSMockEmbeddedFiles"], swiftSettings: strict),
    .target(
      name: "APNSMockPushQuery", dependencies: ["APNSMockRules", "APNSMockHTTPMessage", "APNSMockNotation"],
      swiftSettings: strict),
    .target(
      name: "APNSMockFaultModel",
      dependencies: [
        "APNSMockRules", "APNSMockHTTPMessage", "APNSMockNotation", "APNSMockPlatformLibc", "APNSMockPushQuery",
      ],
      swiftSettings: strict),
    .target(
      name: "APNSMockFaults",
      dependencies: [
        "APNSMockRules", "APNSMockEmbeddedFiles", "APNSMockFaultModel", "APNSMockHTTP2Session", "APNSMockHTTPMessage",
        "APNSMockNotation", "APNSMockPlatformLibc",
        "APNSMockPushQuery", "APNSMockTLSEngine",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    .target(
      name: "APNSMockInbox",
      dependencies: [
        "APNSMockRules", "CAPNSMockMemory", "APNSMockFaultModel", "APNSMockHTTPMessage", "APNSMockNotation",
        "APNSMockPlatformLibc", "APNSMockPushQuery", "APNSMockTLSEngine",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // The inbox in a file. Separate, so that the library product does not need SQLite.
    .target(
      name: "APNSMockSQLiteStore",
      dependencies: [
        "APNSMockRules", "CAPNSMockSQLiteSettings", "APNSMockInbox", "APNSMockNotation", "APNSMockPlatformLibc",
        ofProgram("GRDB", "GRDB.swift"), ofProgram("GRDBSQLite", "GRDB.swift"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // The inbox in a database that several servers share. libpq is loaded when it is needed.
    .target(
      name: "APNSMockPostgreSQLStore",
      dependencies: [
        "APNSMockRules", "APNSMockInbox", "APNSMockPlatformLibc", "APNSMockPushQuery",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // The inboxes of several servers, in schemas of one database, as one that can only be read.
    .target(
      name: "APNSMockSchemasView",
      dependencies: [
        "APNSMockInbox", "APNSMockPostgreSQLStore", .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    .target(
      name: "MockAPNS",
      dependencies: [
        "APNSMockRules", "APNSMockDevices", "APNSMockFaultModel", "APNSMockFaults", "APNSMockHTTP2Session",
        "APNSMockHTTPMessage", "APNSMockInbox", "APNSMockNotation",
        "APNSMockPlatformLibc", "APNSMockTLSEngine",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    .target(
      name: "APNSMockAdminAPI",
      dependencies: [
        "APNSMockRules", "CAPNSMockMemory", "APNSMockDevices", "APNSMockEmbeddedFiles", "APNSMockFaultModel",
        "APNSMockFaults", "APNSMockInbox", "MockAPNS", "APNSMockNotation",
        "APNSMockPlatformLibc", "APNSMockTLSEngine",
        ofProgram("Hummingbird", "hummingbird"),
        ofProgram("HummingbirdCore", "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        ofProgram("NIOHTTPTypes", "swift-nio-extras"),
        ofProgram("NIOHTTPTypesHTTP1", "swift-nio-extras"),
      ], exclude: ["OpenAPI"], swiftSettings: strict),
    // Does not depend on AdminAPI, so that the two compile at the same time.
    .target(
      name: "APNSMockClientCommands",
      dependencies: [
        "APNSMockRules", "APNSMockDevices", "APNSMockEmbeddedFiles", "APNSMockFaultModel", "APNSMockFaults",
        "APNSMockHTTP2Session", "APNSMockHTTPMessage", "APNSMockInbox",
        "MockAPNS", "APNSMockNotation", "APNSMockPlatformLibc", "APNSMockPushQuery", "APNSMockTLSEngine",
        ofProgram("ArgumentParser", "swift-argument-parser"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        ofProgram("NIOHTTPTypes", "swift-nio-extras"),
      ], swiftSettings: strict),
    .executableTarget(
      name: "APNSMockCommand",
      dependencies: [
        "APNSMockAdminAPI", "APNSMockRules", "APNSMockClientCommands", "APNSMockDevices", "APNSMockFaultModel",
        "APNSMockFaults", "APNSMockInbox", "MockAPNS", "APNSMockNotation",
        "APNSMockPlatformLibc", "APNSMockPostgreSQLStore", "APNSMockSQLiteStore", "APNSMockSchemasView",
        "APNSMockTLSEngine",
        ofProgram("ArgumentParser", "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // The trait `.apns()` of Swift Testing.
    .target(
      name: "MockAPNSTesting",
      dependencies: [
        "APNSMockInbox", "MockAPNS", "APNSMockPlatformLibc", .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    // What several test targets share: a running server, raw clients, temporary folders.
    .target(
      name: "APNSMockTestSupport",
      dependencies: [
        "APNSMockAdminAPI", "APNSMockRules", "APNSMockHTTPMessage", "APNSMockInbox", "MockAPNS", "APNSMockPlatformLibc",
        "APNSMockTLSEngine",
      ], path: "Tests/Support", swiftSettings: strict),
    .testTarget(
      name: "NotationTests", dependencies: ["APNSMockNotation", "APNSMockTestSupport"], swiftSettings: strict),
    .testTarget(
      name: "TLSEngineTests", dependencies: ["CAPNSMockOpenSSL", "APNSMockTestSupport", "APNSMockTLSEngine"],
      swiftSettings: strict),
    .testTarget(
      name: "HTTP2SessionTests", dependencies: ["APNSMockHTTP2Session", "APNSMockHTTPMessage", "APNSMockTestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "APNSRulesTests",
      dependencies: ["APNSMockRules", "APNSMockDevices", "APNSMockHTTPMessage", "APNSMockTestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "DevicesTests",
      dependencies: [
        "APNSMockRules", "APNSMockDevices", "APNSMockHTTPMessage", "APNSMockNotation", "APNSMockTestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "FaultsTests",
      dependencies: [
        "APNSMockRules", "APNSMockFaultModel", "APNSMockFaults", "APNSMockHTTPMessage", "APNSMockNotation",
        "APNSMockPushQuery", "APNSMockTestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "InboxTests",
      dependencies: [
        "APNSMockRules", "APNSMockFaultModel", "APNSMockFaults", "APNSMockHTTPMessage", "APNSMockInbox",
        "APNSMockNotation", "APNSMockPushQuery", "APNSMockTestSupport",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "SQLiteStoreTests",
      dependencies: [
        "APNSMockRules", "APNSMockFaultModel", "APNSMockHTTPMessage", "APNSMockInbox", "APNSMockNotation",
        "APNSMockSQLiteStore", "APNSMockTestSupport",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // Client tests test the store with a real database.
    .testTarget(name: "PostgreSQLStoreTests", dependencies: ["APNSMockPostgreSQLStore"], swiftSettings: strict),
    .testTarget(name: "SchemasViewTests", dependencies: ["APNSMockSchemasView"], swiftSettings: strict),
    .testTarget(
      name: "MockAPNSTests",
      dependencies: [
        "APNSMockRules", "APNSMockDevices", "APNSMockFaultModel", "APNSMockFaults", "APNSMockHTTPMessage",
        "APNSMockInbox", "MockAPNS", "APNSMockNotation", "APNSMockPlatformLibc",
        "APNSMockTestSupport", "APNSMockTLSEngine",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: strict),
    // Uses the product MockAPNS as another package would.
    .testTarget(
      name: "PublicAPITests",
      dependencies: ["MockAPNS", "APNSMockTestSupport", .product(name: "Logging", package: "swift-log")],
      packageAccess: false, swiftSettings: strict),
    .testTarget(
      name: "MockAPNSTestingTests",
      dependencies: [
        "APNSMockHTTPMessage", "APNSMockInbox", "MockAPNS", "MockAPNSTesting", "APNSMockTestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "AdminAPITests",
      dependencies: [
        "APNSMockAdminAPI", "APNSMockPushQuery", "APNSMockRules", "APNSMockDevices", "APNSMockEmbeddedFiles",
        "APNSMockFaultModel",
        "APNSMockFaults", "APNSMockHTTPMessage", "APNSMockInbox", "MockAPNS",
        "APNSMockNotation", "APNSMockTestSupport", "APNSMockTLSEngine",
        ofProgram("Hummingbird", "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        ofProgram("NIOHTTPTypes", "swift-nio-extras"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: strict),
    .testTarget(
      name: "ClientCommandsTests",
      dependencies: [
        "APNSMockAdminAPI", "APNSMockRules", "APNSMockClientCommands", "APNSMockFaultModel", "APNSMockFaults",
        "APNSMockInbox", "MockAPNS", "APNSMockNotation",
        "APNSMockTestSupport", "APNSMockTLSEngine",
        ofProgram("ArgumentParser", "swift-argument-parser"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        ofProgram("NIOHTTPTypes", "swift-nio-extras"),
      ], swiftSettings: strict),
    .testTarget(
      name: "APNSMockCommandTests",
      dependencies: [
        "APNSMockAdminAPI", "APNSMockCommand", "APNSMockRules", "APNSMockClientCommands", "APNSMockFaultModel",
        "APNSMockFaults", "APNSMockInbox", "MockAPNS", "APNSMockNotation",
        "APNSMockTestSupport",
        ofProgram("ArgumentParser", "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6],
  cLanguageStandard: .c2x
)

let fuzzDependencies: [Target.Dependency] = [
  "APNSMockAdminAPI", "APNSMockRules", "APNSMockDevices", "APNSMockFaultModel", "APNSMockFaults",
  "APNSMockHTTP2Session", "APNSMockHTTPMessage", "APNSMockInbox", "MockAPNS",
  "APNSMockNotation", "APNSMockSQLiteStore", "APNSMockTLSEngine",
  ofProgram("GRDBSQLite", "GRDB.swift"),
  ofProgram("Hummingbird", "hummingbird"),
  ofProgram("HummingbirdCore", "hummingbird"),
  .product(name: "Logging", package: "swift-log"),
  .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
  .product(name: "NIOCore", package: "swift-nio"),
  .product(name: "NIOEmbedded", package: "swift-nio"),
]
let fuzzExclusions = ["Seeds", "Dictionaries", "run"]

// Outside `make fuzz` the fuzzers are only compiled, together with the tests, so that a change that breaks them is noticed at once.
package.targets.append(
  isFuzzed
    ? .executableTarget(
      name: "Fuzz", dependencies: fuzzDependencies, path: "Fuzz", exclude: fuzzExclusions, swiftSettings: strict,
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
    : .target(
      name: "Fuzz", dependencies: fuzzDependencies, path: "Fuzz", exclude: fuzzExclusions + ["main.swift"],
      swiftSettings: strict))

// The names of targets differ from those of all other packages, because a package graph has each name once. The folders have
// short ones.
for target in package.targets
where target.path == nil && target.type != .test && target.name != "MockAPNS" && target.name != "MockAPNSTesting" {
  target.path = "Sources/" + target.name.split(separator: "APNSMock").joined()
}
