// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopToolKit

exit(RunLoopCommand.status(of: Array(CommandLine.arguments.dropFirst())))
