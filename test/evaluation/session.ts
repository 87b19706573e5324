// A host that a model works in: the v1 client, as most of them are built with, in the revision whose answers are text in full.

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

export type ListedTool = { name: string; description: string; inputSchema: object }
/** A call as a model made it, and the text that it read. */
export type Turn = { tool: string; args: Record<string, unknown>; text: string; isError: boolean }

export type Session = {
  instructions: string
  /** What a model is shown of each tool. */
  tools(): Promise<ListedTool[]>
  call(tool: string, args: Record<string, unknown>): Promise<Turn>
  close(): Promise<void>
}

/** @param url of the API, or of its MCP endpoint. */
export async function openSession(url: string, key: string): Promise<Session> {
  const endpoint = new URL(url.endsWith('/api/mcp') ? url : `${url}/api/mcp`)
  const client = new Client({ name: 'errands', version: '1' })
  await client.connect(
    new StreamableHTTPClientTransport(endpoint, { requestInit: { headers: { Authorization: `Bearer ${key}` } } }),
  )
  return {
    instructions: client.getInstructions() ?? '',
    async tools() {
      const { tools } = await client.listTools()
      return tools.map(({ name, description = '', inputSchema }) => ({ name, description, inputSchema }))
    },
    async call(tool, args) {
      const { content, isError } = await client.callTool({ name: tool, arguments: args })
      return { tool, args, text: textOf(content), isError: isError === true }
    },
    close: () => client.close(),
  }
}

export const textOf = (content: unknown): string =>
  (content as { type: string; text?: string }[]).map(({ type, text }) => text ?? `[${type}]`).join('\n')
