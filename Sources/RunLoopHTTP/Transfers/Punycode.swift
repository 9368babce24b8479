// SPDX-License-Identifier: Apache-2.0

/// The form in which a part of a host's name that is not ASCII is looked up (RFC 3492).
enum Punycode {
  private static let base = 36
  private static let (least, most, skew, damp) = (1, 26, 38, 700)

  /// The code of a text in lower case, without the prefix; nil if it is too long for a name.
  static func encode(_ text: String) -> String? {
    let scalars = text.unicodeScalars.map { Int($0.value) }
    guard scalars.count < 64 else { return nil }
    var output = scalars.filter { $0 < 0x80 }.map { UInt8($0) }
    let basic = output.count
    var handled = basic
    if basic > 0 { output.append(45) }
    var (next, delta, bias) = (128, 0, 72)
    while handled < scalars.count {
      guard let smallest = scalars.filter({ $0 >= next }).min() else { return nil }
      delta += (smallest - next) * (handled + 1)
      next = smallest
      for scalar in scalars {
        if scalar < next { delta += 1 }
        guard scalar == next else { continue }
        var rest = delta
        var position = base
        while true {
          let threshold = position <= bias ? least : min(max(position - bias, least), most)
          if rest < threshold { break }
          output.append(digit(threshold + (rest - threshold) % (base - threshold)))
          rest = (rest - threshold) / (base - threshold)
          position += base
        }
        output.append(digit(rest))
        bias = adapt(delta, handled + 1, isFirst: handled == basic)
        delta = 0
        handled += 1
      }
      delta += 1
      next += 1
    }
    guard output.count <= 59 else { return nil }
    return String(decoding: output, as: UTF8.self)
  }

  private static func digit(_ value: Int) -> UInt8 { UInt8(value < 26 ? 97 + value : 22 + value) }

  private static func adapt(_ delta: Int, _ count: Int, isFirst: Bool) -> Int {
    var delta = isFirst ? delta / damp : delta / 2
    delta += delta / count
    var steps = 0
    while delta > (base - least) * most / 2 {
      delta /= base - least
      steps += base
    }
    return steps + (base - least + 1) * delta / (delta + skew)
  }
}
