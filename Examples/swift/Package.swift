// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "provider",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "apns-mock", path: "../..", traits: []),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.24.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
  ],
  targets: [
    .target(
      name: "Provider",
      dependencies: [
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ]),
    .testTarget(
      name: "ProviderTests",
      dependencies: ["Provider", .product(name: "MockAPNSTesting", package: "apns-mock")]),
  ])
