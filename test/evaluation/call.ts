// What a model sees of a server, for an agent with a shell: `call.ts URL KEY list` prints the instructions and the tools,
// `call.ts URL KEY TOOL 'JSON'` the answer of a call.

import { openSession } from './session.ts'

const [url, key, tool, sent = '{}'] = process.argv.slice(2)
if (url === undefined || key === undefined || tool === undefined) {
  console.error(
    "usage: node test/evaluation/call.ts URL KEY list\n       node test/evaluation/call.ts URL KEY TOOL '{…}'",
  )
  process.exit(2)
}
const session = await openSession(url, key)
try {
  if (tool === 'list') {
    console.log(session.instructions)
    for (const listed of await session.tools()) console.log(JSON.stringify(listed))
  } else {
    console.log((await session.call(tool, JSON.parse(sent))).text)
  }
} catch (error) {
  // Of the protocol, or of the JSON: a model reads it as well.
  console.log((error as Error).message)
} finally {
  await session.close()
}
