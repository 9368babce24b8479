// SPDX-License-Identifier: Apache-2.0

/// A character of two columns whose width is measured.
///
/// It is written, and the terminal is queried for the cursor position after it.
struct WidthProbe: Hashable, Sendable {
  enum Measured: Hashable, Sendable {
    /// Whether the terminal knows the widths of a version of Unicode.
    case version(Int)
    /// Whether the terminal treats clusters of a kind as one character.
    case cluster(CharacterWidth.Kinds)
  }

  let text: String
  let measured: Measured

  static let all: [WidthProbe] = [
    WidthProbe(text: "\u{1FA86}", measured: .version(13)), WidthProbe(text: "\u{1FAE0}", measured: .version(14)),
    WidthProbe(text: "\u{1F6DC}", measured: .version(15)), WidthProbe(text: "❤\u{FE0F}", measured: .cluster(.emoji)),
    WidthProbe(text: "👍🏽", measured: .cluster(.emoji)), WidthProbe(text: "👩\u{200D}🚀", measured: .cluster(.emoji)),
    WidthProbe(text: "स्त्र", measured: .cluster(.letters)),
    WidthProbe(text: "\u{1100}\u{AC00}", measured: .cluster(.hangul)),
  ]
}
