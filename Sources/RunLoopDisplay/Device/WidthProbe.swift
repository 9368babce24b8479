// SPDX-License-Identifier: Apache-2.0

/// A character whose width a terminal is asked for: it is written, and the terminal says where the cursor is then.
struct WidthProbe: Hashable, Sendable {
  enum Measured: Hashable, Sendable {
    /// Whether the widths of a version of Unicode are known.
    case version(Int)
    /// Whether a cluster is one character.
    case cluster
  }

  let text: String
  let measured: Measured

  static let all: [WidthProbe] = [
    WidthProbe(text: "\u{1FA86}", measured: .version(13)), WidthProbe(text: "\u{1FAE0}", measured: .version(14)),
    WidthProbe(text: "\u{1F6DC}", measured: .version(15)), WidthProbe(text: "❤\u{FE0F}", measured: .cluster),
    WidthProbe(text: "👍🏽", measured: .cluster), WidthProbe(text: "👩\u{200D}🚀", measured: .cluster),
  ]
}
