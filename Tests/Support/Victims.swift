// SPDX-License-Identifier: Apache-2.0

import Glibc

// What the programs need that are looked at from outside.

/// Says a line to the test that has started the program, at once.
package func say(_ text: String) {
  print(text)
  fflush(nil)
}

/// Says that the test can begin.
package func ready() { say("ready") }

/// The value of what cannot fail here.
@discardableResult
package func sure<Value>(_ value: @autoclosure () throws -> Value) -> Value {
  do { return try value() } catch { fatalError("\(error)") }
}

/// Lets the calling thread wait until the process is killed.
package func waitForEnd() -> Never { while true { pause() } }
