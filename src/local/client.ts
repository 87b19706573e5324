// Connects to the embedded Postgres: connection strings, and a client for the duration of one function.

import { Client } from 'pg'

export function databaseUrlFor(role: string, password: string, port: number): string {
  return `postgresql://${role}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`
}

export async function withClient<T>(databaseUrl: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: databaseUrl })
  // Without a listener, a connection that breaks between two queries would end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}
