// Speaks HTTP by hand, for no client would send what is sent here, or tell what exactly came back.

import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HostileRequest } from './request.ts'

export type Answer = { status: number; headers: Map<string, string[]>; body: Buffer; isWhole: boolean }

export type Outcome = {
  answers: Answer[]
  /** How the connection ended, or that it is still good; `hang`: neither happened in time. */
  end: 'open' | 'closed' | 'reset' | 'hang' | 'refused'
  milliseconds: number
  /** What came that is no HTTP. */
  garbage?: string
}

// Twice what the server allows a request, and then a busy machine.
const patienceMs = 120_000
const maximumAnswer = 16 * 1024 * 1024

export type Connection = { socket: Socket; used: number }

/** @param address of this machine to connect from, by which limits count. */
export const openConnection = ({ hostname, port }: URL, address: string): Connection => {
  const socket = connect({ host: hostname, port: Number(port), localAddress: address, noDelay: true })
  // Each exchange has its own listener; an idle connection may break as well.
  socket.on('error', () => {})
  return { socket, used: 0 }
}

/** @param pace what pauses are multiplied by. */
export function exchangeOn(connection: Connection, request: HostileRequest, pace = 1): Promise<Outcome> {
  const { socket } = connection
  connection.used += 1
  const startedAt = performance.now()
  const reader = createReader(request.isHead)
  return new Promise((resolve) => {
    let isOver = false
    const finish = (end: Outcome['end']) => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      socket.off('data', read).off('error', fail).off('close', close)
      if (end !== 'open') socket.destroy()
      if (end === 'closed' || end === 'reset') reader.finish()
      const { answers, garbage } = reader
      resolve({ answers, end, milliseconds: performance.now() - startedAt, ...(garbage !== undefined && { garbage }) })
    }
    const timer = setTimeout(() => finish('hang'), patienceMs)
    const fail = (error: NodeJS.ErrnoException) => finish(error.code === 'ECONNREFUSED' ? 'refused' : 'reset')
    const close = () => finish('closed')
    const read = (bytes: Buffer) => {
      reader.take(bytes)
      if (reader.size > maximumAnswer || reader.garbage !== undefined) return finish('hang')
      if (reader.answers.length < request.answers[1]) return
      if (!request.isAlone) return finish(mayGoOn(reader.answers.at(-1) as Answer) ? 'open' : 'closed')
      // Whatever else the server says to these bytes, it says before it closes.
      if (!socket.writableEnded) socket.end()
    }
    // It was closed while nobody listened.
    if (socket.destroyed) return finish('closed')
    socket.on('data', read).on('error', fail).on('close', close)
    void send(socket, request.steps, pace, () => isOver)
  })
}

async function send(
  socket: Socket,
  steps: HostileRequest['steps'],
  pace: number,
  isOver: () => boolean,
): Promise<void> {
  for (const step of steps) {
    if (isOver() || socket.destroyed) return
    if (typeof step === 'number') await sleep(step * pace)
    else if (step === 'half-close') socket.end()
    else if (step === 'destroy') return void socket.destroy()
    else if (step === 'stop reading') socket.pause()
    else if (step === 'read on') socket.resume()
    else if (socket.writable) socket.write(step)
  }
}

const mayGoOn = ({ headers }: Answer): boolean => !/close/i.test(headers.get('connection')?.join() ?? '')

/** Takes bytes, gives answers. */
function createReader(isHead: boolean) {
  const answers: Answer[] = []
  let held: Buffer = Buffer.alloc(0)
  let size = 0
  let garbage: string | undefined

  function next(): boolean {
    const end = held.indexOf('\r\n\r\n')
    if (end < 0) return false
    const [first = '', ...lines] = held.subarray(0, end).toString('latin1').split('\r\n')
    const [, code] = /^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(first) ?? []
    if (code === undefined) {
      garbage = first.slice(0, 200)
      return false
    }
    const headers = new Map<string, string[]>()
    for (const line of lines) {
      const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?(.*)$/.exec(line) ?? []
      if (name === '') garbage = line.slice(0, 200)
      headers.set(name.toLowerCase(), [...(headers.get(name.toLowerCase()) ?? []), value])
    }
    const status = Number(code)
    const content = bodyIn(held.subarray(end + 4), status, headers)
    if (content === undefined) return false
    held = held.subarray(end + 4 + content.length)
    if (status >= 200) answers.push({ status, headers, body: content.body, isWhole: true })
    return true
  }

  function bodyIn(rest: Buffer, status: number, headers: Answer['headers']) {
    const none = { body: Buffer.alloc(0), length: 0 }
    if (isHead || status < 200 || status === 204 || status === 304) return none
    if (/chunked/i.test(headers.get('transfer-encoding')?.join() ?? '')) return unchunk(rest)
    const length = headers.get('content-length')?.[0]
    // Until the connection closes.
    if (length === undefined) return undefined
    return rest.length < Number(length) ? undefined : { body: rest.subarray(0, Number(length)), length: Number(length) }
  }

  return {
    answers,
    get garbage() {
      return garbage
    },
    get size() {
      return size
    },
    take(bytes: Buffer) {
      size += bytes.length
      held = held.length === 0 ? bytes : Buffer.concat([held, bytes])
      while (garbage === undefined && next());
    },
    /** The connection has closed: what is left is an answer that is not whole, or has no length. */
    finish() {
      const end = held.indexOf('\r\n\r\n')
      if (end < 0 || garbage !== undefined) return
      const head = held.subarray(0, end).toString('latin1')
      const isWhole = !/^(content-length|transfer-encoding):/im.test(head)
      const headers = new Map(
        head
          .split('\r\n')
          .slice(1)
          .map((line) => [line.split(':')[0]?.toLowerCase() ?? '', [line.replace(/^[^:]*: ?/, '')]]),
      )
      answers.push({ status: Number(head.slice(9, 12)), headers, body: held.subarray(end + 4), isWhole })
    },
  }
}

function unchunk(bytes: Buffer): { body: Buffer; length: number } | undefined {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const line = bytes.indexOf('\r\n', at)
    if (line < 0) return undefined
    const size = Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16)
    const end = line + 2 + size + 2
    if (bytes.length < end) return undefined
    if (size === 0) return { body: Buffer.concat(parts), length: end }
    parts.push(bytes.subarray(line + 2, line + 2 + size))
    at = end
  }
}
