// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The supported contents of a document.
struct Document: Decodable {
  var client: ClientSettings?
  var steps: [Step]
}

struct ClientSettings: Decodable {
  var ca: String?
  var timeout: Double?
  var total: Double?
  var maxRedirects: Int?
  var connections: Int?
  var maxBody: Int64?
  var retries: Int?
  var credential: [String]?
  var cookies: Bool?
  var proxy: String?
  var pins: [String]?
  var certificate: [String]?
  var allowInvalidCertificates: Bool?
  var descriptors: Int?
  var each: Bool?
}

/// A step: requests, a delay, or a stop.
struct Step: Decodable {
  var requests: [ScenarioRequest]?
  var wait: Bool?
  var sleep: Double?
  var stop: String?
}

struct ScenarioRequest: Decodable {
  struct Body: Decodable {
    var pattern: Int?
    var stream: Int?
    var known: Bool?
  }

  struct Rule: Decodable {
    var when: String
    var `do`: String
  }

  var id: String
  var method: String?
  var url: String
  var headers: [String: String]?
  var body: Body?
  var sink: String?
  var on: [Rule]?
}

/// The condition for a rule.
enum Moment: Equatable {
  case start
  case after(Double)
  case head
  case bytes(Int64)
  case end

  init(_ text: String) throws {
    let words = text.split(separator: " ")
    switch text {
    case "start": self = .start
    case "head": self = .head
    case "end": self = .end
    default:
      let number = text.replacingOccurrences(of: " ", with: "")
      if words.count == 2, words[0] == "after", let seconds = Double(words[1]), seconds.isFinite {
        self = .after(seconds)
      } else if number.hasPrefix("bytes>="), let count = Int64(number.dropFirst(7)) {
        self = .bytes(count)
      } else {
        throw Unsupported(reason: "the moment \"\(text)\"")
      }
    }
  }
}

enum Deed: String {
  case cancel, hold, release, pause, resume, note
  case pauseResume = "pause-resume"

  /// Whether another deed ends this one.
  func isEnded(by other: Deed) -> Bool { self == .pause && other == .resume || self == .hold && other == .release }
}

struct Unsupported: Error {
  let reason: String
}

extension Duration {
  /// Converts seconds of a document to a duration, limited to about thirty years.
  static func ofDocument(_ seconds: Double) -> Duration { .seconds(min(max(seconds, -1e9), 1e9)) }
}
