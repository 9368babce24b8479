// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation

/// A use of Foundation that creates a Core Foundation object, and so needs its thread-specific data.
struct Use: Sendable {
  let name: String
  let body: @Sendable () -> Void

  init(_ name: String, _ body: @escaping @Sendable () -> Void) {
    self.name = name
    self.body = body
  }

  static let all = [
    Use("NSLog") { NSLog("a use of Foundation") },
    Use("String(format:)") { keep(String(format: "%d %@", 7, "seven" as NSString)) },
    Use("NSNumber") { keep(NSNumber(value: 7.5).stringValue) },
    Use("NSString") { keep(("seven" as NSString).appending(" and eight")) },
    Use("NSArray") { keep(NSArray(array: [1, 2, 3]).count) },
    Use("NSDictionary") { keep(NSDictionary(dictionary: ["a": 1, "b": 2]).count) },
    Use("NSMutableSet") { keep(NSMutableSet(array: ["a", "b"]).count) },
    Use("DateFormatter") {
      let formatter = DateFormatter()
      formatter.dateFormat = "yyyy-MM-dd"
      keep(formatter.string(from: Date(timeIntervalSince1970: 0)))
    },
    Use("NumberFormatter") { keep(NumberFormatter().string(from: 7)) },
    Use("Calendar") { keep(Calendar(identifier: .gregorian).component(.year, from: Date())) },
    Use("Locale") { keep(Locale.current.identifier) },
    Use("TimeZone") { keep(TimeZone(identifier: "Europe/Berlin")) },
    Use("UserDefaults") { keep(UserDefaults.standard.object(forKey: "none")) },
    Use("JSONSerialization") { keep(try? JSONSerialization.data(withJSONObject: ["a": [1, 2]])) },
    Use("PropertyListSerialization") {
      keep(try? PropertyListSerialization.data(fromPropertyList: ["a": 1], format: .xml, options: 0))
    },
    Use("NSURL") { keep(NSURL(string: "file:///tmp/a")?.lastPathComponent) },
    Use("NSRegularExpression") {
      keep(try? NSRegularExpression(pattern: "a+").numberOfMatches(in: "aa", range: NSRange(location: 0, length: 2)))
    },
    Use("NSError") { keep(NSError(domain: "domain", code: 1, userInfo: ["a": 1]).localizedDescription) },
    Use("Bundle") { keep(Bundle.main.infoDictionary?.count) },
    Use("CFString") {
      let string = CFStringCreateMutable(nil, 0)
      CFStringAppendCString(string, "seven", CFStringBuiltInEncodings.UTF8.rawValue)
      keep(CFStringCreateCopy(nil, string))
    },
    Use("CFArray") { keep(CFArrayCreateMutable(nil, 0, nil)) },
    Use("threadDictionary") { Foundation.Thread.current.threadDictionary["use"] = 7 },
  ]
}

/// Keeps the compiler from removing an unused value.
@inline(never)
func keep<Value>(_ value: Value) {}

/// Runs a use when it is released.
final class Witness: Sendable {
  private let use: @Sendable () -> Void

  init(_ use: @escaping @Sendable () -> Void) { self.use = use }

  func touch() {}

  deinit { use() }
}
