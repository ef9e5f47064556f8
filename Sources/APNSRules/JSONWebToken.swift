internal import Foundation

/// A JWT taken apart and decoded, not yet judged: what stands in it, and where its parts are.
struct JSONWebToken {
  /// Why it is not a JWT, in words for people.
  struct Malformed: Error {
    var problem: String
  }

  private(set) var header = Header()
  private(set) var claims = Claims()
  private(set) var signature: [UInt8] = []
  /// How many bytes from the beginning are signed: `header.claims`.
  private(set) var signedCount = 0
  /// A part is padded or in the standard alphabet.
  private(set) var isStandardBase64 = false

  /// The longest one that is looked at, in bytes. One of Apple's has about 200.
  static let sizeLimit = 4096

  /// Reads the three parts of `text`.
  init(_ text: UnsafeRawBufferPointer) throws(Malformed) {
    guard text.count <= Self.sizeLimit else {
      throw Malformed(
        problem: "the provider token is \(text.count) bytes long, over \(Self.sizeLimit); one is about 200")
    }
    if let last = text.last, last <= 0x20 {
      throw Malformed(problem: "the provider token ends in white space: trim it before sending")
    }
    let parts = text.split(separator: 0x2e, maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3 else {
      let found = parts.count > 3 ? "more than three parts" : parts.count == 1 ? "one part" : "two parts"
      throw Malformed(problem: "the provider token has \(found), a JWT has three (header.claims.signature)")
    }
    header = try read(parts[0], as: "header", empty: Header())
    claims = try read(parts[1], as: "claims", empty: Claims())
    guard let third = Base64URL(UnsafeRawBufferPointer(rebasing: parts[2])) else {
      throw Malformed(problem: "the provider token's signature is not base64url")
    }
    isStandardBase64 = isStandardBase64 || third.isStandardBase64
    signature = third.bytes
    signedCount = parts[0].count + 1 + parts[1].count
  }

  private mutating func read<Part: Decodable>(
    _ text: Slice<UnsafeRawBufferPointer>, as name: String, empty: Part
  ) throws(Malformed) -> Part {
    guard let part = Base64URL(UnsafeRawBufferPointer(rebasing: text)) else {
      throw Malformed(problem: "the provider token's \(name) is not base64url")
    }
    isStandardBase64 = isStandardBase64 || part.isStandardBase64
    // JSONDecoder refuses more than 512 levels of nesting, so a hostile part costs what its 4 KB cost to read.
    guard let decoded = try? JSONDecoder().decode(Part.self, from: Data(part.bytes)) else {
      throw Malformed(problem: "the provider token's \(name) is not a JSON object")
    }
    return decoded
  }
}

extension JSONWebToken {
  /// The part before the first dot. A member that is not a text counts as absent.
  struct Header: Decodable {
    var algorithm: String?
    var keyID: String?

    init() {}

    init(from decoder: any Decoder) throws {
      let members = try decoder.container(keyedBy: Member.self)
      algorithm = try? members.decode(String.self, forKey: .alg)
      // An alg that is absent is Apple's own sample; one that is a number is nobody's.
      if algorithm == nil, members.contains(.alg) { algorithm = "(not a text)" }
      keyID = try? members.decode(String.self, forKey: .kid)
    }

    private enum Member: CodingKey { case alg, kid }
  }

  /// The part between the dots.
  struct Claims: Decodable {
    var issuer: String?
    var issuedAt: IssuedAt?

    init() {}

    init(from decoder: any Decoder) throws {
      let members = try decoder.container(keyedBy: Member.self)
      issuer = try? members.decode(String.self, forKey: .iss)
      issuedAt = try? members.decode(IssuedAt.self, forKey: .iat)
    }

    private enum Member: CodingKey { case iss, iat }
  }

  /// `iat` as it is written: documented is a whole number of seconds; libraries send more (APNS.md section 3.1).
  enum IssuedAt: Decodable {
    case whole(Int64)
    case fraction(Double)
    case text(String)

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let whole = try? value.decode(Int64.self) {
        self = .whole(whole)
      } else if let fraction = try? value.decode(Double.self) {
        self = .fraction(fraction)
      } else {
        self = .text(try value.decode(String.self))
      }
    }
  }
}
