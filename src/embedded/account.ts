// Postgres refuses to run as root, and containers usually are root. Takes where the data and the program are, gives back how
// to run Postgres: as ourselves, as ourselves under another number (a user namespace), or as an unprivileged user.

import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, lchownSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { StartError } from '../start-error.ts'

type Owner = { uid: number; gid: number }

export type PostgresAccount = {
  /** What goes before the program on the command line; it execs, so the pid is Postgres's own. */
  prefix: string[]
  /** Given to spawn, when running as somebody else. */
  uid?: number
  gid?: number
  /** Who has to own the database's files, as everybody else sees it; null when that needs no arranging. */
  owner: Owner | null
}

const root: Owner = { uid: 0, gid: 0 }
const asRootUnderAnotherNumber: PostgresAccount = {
  prefix: ['unshare', '--user', '--map-user=1000', '--map-group=1000', '--'],
  owner: root,
}

/** `dataDir` exists; `databaseDir` may not yet. */
export function chooseAccount(dataDir: string, databaseDir: string, binaryDir: string): PostgresAccount {
  if (process.getuid?.() !== 0) {
    refuseForeignDatabase(databaseDir)
    return { prefix: [], owner: null }
  }

  const reaches = (user: Owner) => canReach(dirname(dataDir), user) && canReach(binaryDir, user)
  const current = ownerOf(databaseDir) ?? ownerOf(dataDir)
  // Somebody's own folder, used as root for once: what is in it stays theirs.
  if (current !== null && current.uid !== 0 && reaches(current)) return asUser(current)
  if (namespacesWork() && reaches(root)) return asRootUnderAnotherNumber

  const user = findUser('postgres') ?? findUser('nobody')
  if (user !== null && reaches(user)) return asUser(user)
  throw new StartError(
    `Postgres does not run as root, and no other user can reach both ${dataDir} and ${binaryDir}. Run Usher as an ordinary ` +
      'user, or set USHER_DATA_DIR to a folder that other users can enter and install Usher in one as well.',
  )
}

/** Lets the account into the data directory and makes the database's files its own, whoever ran it the last time. */
export function handOver(dataDir: string, databaseDir: string, account: PostgresAccount): void {
  const { owner } = account
  if (owner === null) return
  const folder = statSync(dataDir)
  if (folder.uid !== owner.uid && !maySearch(folder, owner)) {
    chownSync(dataDir, folder.uid, owner.gid)
    chmodSync(dataDir, 0o710)
  }
  const current = ownerOf(databaseDir)
  if (current === null || current.uid === owner.uid) return
  for (const entry of readdirSync(databaseDir, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(databaseDir, entry), owner.uid, owner.gid)
  }
  lchownSync(databaseDir, owner.uid, owner.gid)
}

function refuseForeignDatabase(databaseDir: string): void {
  const owner = ownerOf(databaseDir)
  if (owner === null || process.getuid === undefined || owner.uid === process.getuid()) return
  throw new StartError(
    `${databaseDir} belongs to another user (uid ${owner.uid}). Start Usher as that user, or give the folder to yourself.`,
  )
}

function asUser(user: Owner): PostgresAccount {
  return { prefix: [], uid: user.uid, gid: user.gid, owner: user }
}

function namespacesWork(): boolean {
  try {
    const [program = '', ...args] = asRootUnderAnotherNumber.prefix
    execFileSync(program, [...args, 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function canReach(path: string, user: Owner): boolean {
  const parent = dirname(path)
  return maySearch(statSync(path), user) && (parent === path || canReach(parent, user))
}

function maySearch(folder: { uid: number; gid: number; mode: number }, user: Owner): boolean {
  const bit = folder.uid === user.uid ? 0o100 : folder.gid === user.gid ? 0o010 : 0o001
  return (folder.mode & bit) !== 0
}

function ownerOf(path: string): Owner | null {
  try {
    const { uid, gid } = lstatSync(path)
    return { uid, gid }
  } catch {
    return null
  }
}

function findUser(name: string): Owner | null {
  try {
    const ask = (flag: string) => Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'] }))
    return { uid: ask('-u'), gid: ask('-g') }
  } catch {
    return null
  }
}
