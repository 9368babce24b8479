// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopLab

exit(RunLoopCommand.run(Array(CommandLine.arguments.dropFirst())).rawValue)
