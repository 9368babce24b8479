// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit

extension Date {
  /// The date a number of virtual milliseconds after the virtual wall clock began, at the start of 2001.
  static func virtual(_ milliseconds: Int) -> Date {
    Date(timeIntervalSinceReferenceDate: Double(milliseconds) / 1000)
  }

  /// The virtual milliseconds of a date, or its name.
  var text: String {
    switch self {
    case .distantFuture: "future"
    case .distantPast: "past"
    default: "\(timeIntervalSinceReferenceDate * 1000)".replacing(/\.0$/, with: "")
    }
  }
}
