// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "provider",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "apns-mock", path: "../..")],
  targets: [
    .testTarget(name: "ProviderTests", dependencies: [.product(name: "MockAPNS", package: "apns-mock")])
  ])
