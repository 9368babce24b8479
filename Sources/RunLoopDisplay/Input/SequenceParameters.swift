// SPDX-License-Identifier: Apache-2.0

/// The numbers of a control sequence, as many as anything that is understood has.
struct SequenceParameters: Sendable {
  /// The most numbers that are kept.
  static let limit = 8

  /// The byte that makes a sequence private: `<`, `=`, `>` or `?`; 0: none.
  var marker: UInt8 = 0
  /// The byte between the numbers and the end; 0: none.
  var intermediate: UInt8 = 0
  /// Whether nothing that is understood looks like that.
  var isMalformed = false
  /// How many numbers there are, of which the last may be empty.
  private(set) var count = 0
  /// Whether anything has arrived.
  private(set) var isUntouched = true
  private var values: (Int32, Int32, Int32, Int32, Int32, Int32, Int32, Int32) = (-1, -1, -1, -1, -1, -1, -1, -1)
  /// The second number of each, after a colon.
  private var seconds: (Int32, Int32, Int32, Int32, Int32, Int32, Int32, Int32) = (-1, -1, -1, -1, -1, -1, -1, -1)
  /// The part of the first number after its second colon.
  private(set) var third: Int?
  private var part = 0

  /// The number at a place; nil if it is missing.
  subscript(index: Int) -> Int? { Self.read(values, index) }

  /// The number after the first colon of the number at a place.
  func second(_ index: Int) -> Int? { Self.read(seconds, index) }

  mutating func touch() { isUntouched = false }

  mutating func add(digit: UInt8) {
    isUntouched = false
    if count == 0 { count = 1 }
    guard count <= Self.limit, part < 3 else { return }
    let index = count - 1
    if part == 2 {
      if index == 0 { third = min(9_999_999, (third ?? 0) * 10 + Int(digit)) }
      return
    }
    func append(_ digit: UInt8, to value: inout Int32) { value = min(9_999_999, max(0, value) * 10 + Int32(digit)) }
    if part == 0 {
      Self.change(&values, index) { append(digit, to: &$0) }
    } else {
      Self.change(&seconds, index) { append(digit, to: &$0) }
    }
  }

  /// A semicolon: another number begins.
  mutating func separate() {
    isUntouched = false
    count = min(Self.limit + 1, max(1, count) + 1)
    part = 0
  }

  /// A colon: a further part of the number begins.
  mutating func divide() {
    isUntouched = false
    if count == 0 { count = 1 }
    part = min(3, part + 1)
  }

  private typealias Values = (Int32, Int32, Int32, Int32, Int32, Int32, Int32, Int32)

  private static func read(_ values: Values, _ index: Int) -> Int? {
    guard index < limit else { return nil }
    let value = withUnsafeBytes(of: values) { $0.load(fromByteOffset: index * 4, as: Int32.self) }
    return value < 0 ? nil : Int(value)
  }

  private static func change(_ values: inout Values, _ index: Int, _ body: (inout Int32) -> Void) {
    withUnsafeMutableBytes(of: &values) { bytes in
      var value = bytes.load(fromByteOffset: index * 4, as: Int32.self)
      body(&value)
      bytes.storeBytes(of: value, toByteOffset: index * 4, as: Int32.self)
    }
  }
}
