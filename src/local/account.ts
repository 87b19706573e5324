// Chooses the account that Postgres runs as. Postgres refuses to run as root, and containers usually run as root, so it is the current
// user, the current user under another id (a user namespace), or an unprivileged user.

import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, lchownSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { StartError } from '../process/start-error.ts'
import { refuseForeignOwner } from './data-directory.ts'

type Owner = { uid: number; gid: number }

export type PostgresAccount = {
  /** Precedes the program on the command line. It execs, so the pid is that of Postgres. */
  prefix: string[]
  /** To run as another user. */
  user?: Owner
  /** Who must own the database files, as seen outside the user namespace; null if nothing has to be changed. */
  owner: Owner | null
}

const root: Owner = { uid: 0, gid: 0 }
const rootInUserNamespace: PostgresAccount = {
  prefix: ['unshare', '--user', '--map-user=1000', '--map-group=1000', '--'],
  owner: root,
}

/** `dataDir` exists; `databaseDir` may not exist yet. */
export function chooseAccount(dataDir: string, databaseDir: string, binaryDir: string): PostgresAccount {
  if (process.getuid?.() !== 0) {
    if (ownerOf(databaseDir)) refuseForeignOwner(databaseDir, 'give the folder to yourself')
    return { prefix: [], owner: null }
  }

  const reaches = (user: Owner) => canReach(dirname(dataDir), user) && canReach(binaryDir, user)
  const current = ownerOf(databaseDir) ?? ownerOf(dataDir)
  // A user's folder, used as root this time: its files stay theirs.
  if (current && current.uid !== 0 && reaches(current)) return asUser({ uid: current.uid, gid: current.gid })
  if (namespacesWork() && reaches(root)) return rootInUserNamespace

  const user = findUser('postgres') ?? findUser('nobody')
  if (user && reaches(user)) return asUser(user)
  throw new StartError(
    `Postgres does not run as root, and no other user can reach both ${dataDir} and ${binaryDir}. Run Usher as an ordinary ` +
      'user, or set USHER_DATA_DIR to a folder that other users can enter, and install Usher in such a folder too.',
  )
}

/** Lets the account enter the data directory, and gives it the database files, which may belong to the account of an earlier start. */
export function grantAccess(dataDir: string, databaseDir: string, account: PostgresAccount): void {
  const { owner } = account
  if (owner === null) return
  const folder = statSync(dataDir)
  if (folder.uid !== owner.uid && !maySearch(folder, owner)) {
    chownSync(dataDir, folder.uid, owner.gid)
    chmodSync(dataDir, 0o710)
  }
  const current = ownerOf(databaseDir)
  if (!current || current.uid === owner.uid) return
  for (const entry of readdirSync(databaseDir, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(databaseDir, entry), owner.uid, owner.gid)
  }
  lchownSync(databaseDir, owner.uid, owner.gid)
}

function asUser(user: Owner): PostgresAccount {
  return { prefix: [], user, owner: user }
}

function namespacesWork(): boolean {
  const [program = '', ...args] = rootInUserNamespace.prefix
  return spawnSync(program, [...args, 'true'], { stdio: 'ignore' }).status === 0
}

function canReach(path: string, user: Owner): boolean {
  const parent = dirname(path)
  return maySearch(statSync(path), user) && (parent === path || canReach(parent, user))
}

function maySearch(folder: { uid: number; gid: number; mode: number }, user: Owner): boolean {
  const bit = folder.uid === user.uid ? 0o100 : folder.gid === user.gid ? 0o010 : 0o001
  return (folder.mode & bit) !== 0
}

const ownerOf = (path: string): Owner | undefined => lstatSync(path, { throwIfNoEntry: false })

function findUser(name: string): Owner | undefined {
  const [uid, gid] = ['-u', '-g'].map((flag) => {
    const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' })
    return status === 0 ? Number(stdout) : undefined
  })
  return uid === undefined || gid === undefined ? undefined : { uid, gid }
}
