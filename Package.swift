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

let package = Package(
  name: "apns-mock",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "apns-mock", targets: ["APNSMockCommand"]),
    .library(name: "MockAPNS", targets: ["MockAPNS"]),
    .library(name: "MockAPNSTesting", targets: ["MockAPNSTesting"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CNghttp2", pkgConfig: "libnghttp2",
      providers: [.apt(["libnghttp2-dev"]), .brew(["libnghttp2"])]),
    .systemLibrary(
      name: "COpenSSL", pkgConfig: "openssl",
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(name: "CMemory"),
    .systemLibrary(name: "CSQLiteSettings"),
    // Darwin, Musl or Glibc, so that other files need no conditional imports.
    .target(name: "PlatformLibc", swiftSettings: strict),
    .target(
      name: "Notation", dependencies: [.product(name: "Yams", package: "Yams")], swiftSettings: strict),
    .target(name: "HTTPMessage", dependencies: ["PlatformLibc"], swiftSettings: strict),
    .target(name: "TLSEngine", dependencies: ["COpenSSL", "Notation", "PlatformLibc"], swiftSettings: strict),
    .target(
      name: "HTTP2Session", dependencies: ["CNghttp2", "HTTPMessage", "PlatformLibc"], swiftSettings: strict),
    .target(name: "APNSRules", dependencies: ["HTTPMessage", "Notation"], swiftSettings: strict),
    .target(
      name: "Devices",
      dependencies: [
        "APNSRules", "HTTPMessage", "Notation", "PlatformLibc",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // Files that are part of the program: web UI, fault profiles, OpenAPI description, pages of the documentation.
    .target(name: "CEmbeddedFiles"),
    .target(name: "EmbeddedFiles", dependencies: ["CEmbeddedFiles"], swiftSettings: strict),
    .target(name: "PushQuery", dependencies: ["APNSRules", "HTTPMessage", "Notation"], swiftSettings: strict),
    .target(
      name: "FaultModel", dependencies: ["APNSRules", "HTTPMessage", "Notation", "PlatformLibc", "PushQuery"],
      swiftSettings: strict),
    .target(
      name: "Faults",
      dependencies: [
        "APNSRules", "EmbeddedFiles", "FaultModel", "HTTP2Session", "HTTPMessage", "Notation", "PlatformLibc",
        "PushQuery", "TLSEngine",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    .target(
      name: "Inbox",
      dependencies: [
        "APNSRules", "CMemory", "FaultModel", "HTTPMessage", "Notation", "PlatformLibc", "PushQuery", "TLSEngine",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // The inbox in a file. Separate, so that the library product does not need SQLite.
    .target(
      name: "SQLiteStore",
      dependencies: [
        "APNSRules", "CSQLiteSettings", "Inbox", "Notation", "PlatformLibc",
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "GRDBSQLite", package: "GRDB.swift"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // The inbox in a database that several servers share. libpq is loaded when it is needed.
    .target(
      name: "PostgreSQLStore",
      dependencies: [
        "APNSRules", "Inbox", "PlatformLibc", "PushQuery",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // The inboxes of several servers, in schemas of one database, as one that can only be read.
    .target(
      name: "SchemasView",
      dependencies: [
        "Inbox", "PostgreSQLStore", .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    .target(
      name: "MockAPNS",
      dependencies: [
        "APNSRules", "Devices", "FaultModel", "Faults", "HTTP2Session", "HTTPMessage", "Inbox", "Notation",
        "PlatformLibc", "TLSEngine",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    .target(
      name: "AdminAPI",
      dependencies: [
        "APNSRules", "CMemory", "Devices", "EmbeddedFiles", "FaultModel", "Faults", "Inbox", "MockAPNS", "Notation",
        "PlatformLibc", "TLSEngine",
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
      ], exclude: ["OpenAPI"], swiftSettings: strict),
    // Does not depend on AdminAPI, so that the two compile at the same time.
    .target(
      name: "ClientCommands",
      dependencies: [
        "APNSRules", "Devices", "EmbeddedFiles", "FaultModel", "Faults", "HTTP2Session", "HTTPMessage", "Inbox",
        "MockAPNS", "Notation", "PlatformLibc", "TLSEngine",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: strict),
    .executableTarget(
      name: "APNSMockCommand",
      dependencies: [
        "AdminAPI", "APNSRules", "ClientCommands", "Devices", "FaultModel", "Faults", "Inbox", "MockAPNS", "Notation",
        "PlatformLibc", "PostgreSQLStore", "SQLiteStore", "SchemasView", "TLSEngine",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ], swiftSettings: strict),
    // The trait `.apns()` of Swift Testing.
    .target(
      name: "MockAPNSTesting",
      dependencies: ["MockAPNS", .product(name: "Logging", package: "swift-log")],
      swiftSettings: strict),
    // What several test targets share: a running server, raw clients, temporary folders.
    .target(
      name: "TestSupport",
      dependencies: [
        "AdminAPI", "APNSRules", "HTTPMessage", "Inbox", "MockAPNS", "PlatformLibc", "TLSEngine",
      ], path: "Tests/Support", swiftSettings: strict),
    .testTarget(name: "NotationTests", dependencies: ["Notation", "TestSupport"], swiftSettings: strict),
    .testTarget(name: "TLSEngineTests", dependencies: ["COpenSSL", "TestSupport", "TLSEngine"], swiftSettings: strict),
    .testTarget(
      name: "HTTP2SessionTests", dependencies: ["HTTP2Session", "HTTPMessage", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "APNSRulesTests", dependencies: ["APNSRules", "Devices", "HTTPMessage", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "DevicesTests", dependencies: ["APNSRules", "Devices", "HTTPMessage", "Notation", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "FaultsTests",
      dependencies: ["APNSRules", "FaultModel", "Faults", "HTTPMessage", "Notation", "PushQuery", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "InboxTests",
      dependencies: [
        "APNSRules", "FaultModel", "Faults", "HTTPMessage", "Inbox", "Notation", "PushQuery", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "SQLiteStoreTests",
      dependencies: [
        "APNSRules", "FaultModel", "HTTPMessage", "Inbox", "Notation", "SQLiteStore", "TestSupport",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ], swiftSettings: strict),
    // Client tests test the store with a real database.
    .testTarget(name: "PostgreSQLStoreTests", dependencies: ["PostgreSQLStore"], swiftSettings: strict),
    .testTarget(name: "SchemasViewTests", dependencies: ["SchemasView"], swiftSettings: strict),
    .testTarget(
      name: "MockAPNSTests",
      dependencies: [
        "APNSRules", "Devices", "FaultModel", "Faults", "HTTPMessage", "Inbox", "MockAPNS", "Notation", "PlatformLibc",
        "TestSupport", "TLSEngine",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: strict),
    // Uses the product MockAPNS as another package would.
    .testTarget(
      name: "PublicAPITests", dependencies: ["MockAPNS", "TestSupport"], packageAccess: false, swiftSettings: strict),
    .testTarget(
      name: "MockAPNSTestingTests", dependencies: ["HTTPMessage", "MockAPNS", "MockAPNSTesting", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "AdminAPITests",
      dependencies: [
        "AdminAPI", "APNSRules", "Devices", "EmbeddedFiles", "FaultModel", "Faults", "HTTPMessage", "Inbox", "MockAPNS",
        "Notation", "TestSupport", "TLSEngine",
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: strict),
    .testTarget(
      name: "ClientCommandsTests",
      dependencies: [
        "AdminAPI", "APNSRules", "ClientCommands", "FaultModel", "Faults", "Inbox", "MockAPNS", "Notation",
        "TestSupport", "TLSEngine",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: strict),
    .testTarget(
      name: "APNSMockCommandTests",
      dependencies: [
        "APNSMockCommand", "APNSRules", "ClientCommands", "FaultModel", "Faults", "Inbox", "MockAPNS", "Notation",
        "TestSupport",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6],
  cLanguageStandard: .c2x
)

let fuzzDependencies: [Target.Dependency] = [
  "AdminAPI", "APNSRules", "Devices", "FaultModel", "Faults", "HTTP2Session", "HTTPMessage", "Inbox", "MockAPNS",
  "Notation", "SQLiteStore", "TLSEngine",
  .product(name: "GRDBSQLite", package: "GRDB.swift"),
  .product(name: "Hummingbird", package: "hummingbird"),
  .product(name: "HummingbirdCore", package: "hummingbird"),
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
