// The link of a door: /door#event=…&key=…&point=…. The fragment stays in the browser; no request carries it.

/** Where the API is: this folder is /door, and a proxy may serve all of it below a path. */
export const base = new URL('..', import.meta.url)

/** What the browser keeps by name, for its whole origin. Another Usher may be at another path of it. */
export const nameOfStore = `usher-door${base.pathname.slice(0, -1)}`

/** `point_id`: the check-in point that it was made for. */
export type DoorLink = { event_id: string; key: string; point_id?: string }

export function parseLink(text: string): DoorLink | null {
  const fragment = new URLSearchParams(text.slice(text.indexOf('#') + 1).trim())
  const [event_id, key, point_id] = ['event', 'key', 'point'].map((name) => fragment.get(name) ?? '') as [
    string,
    string,
    string,
  ]
  const link = { event_id, key, ...(point_id !== '' && { point_id }) }
  return /^[0-9a-f-]{36}$/i.test(link.event_id) && /^usher_(live|test)_\w{38}$/.test(link.key) ? link : null
}

/** Takes the link out of the address bar, so that neither history nor a shared screen shows the key. */
export function takeLink(): DoorLink | null {
  const link = parseLink(location.hash)
  if (location.hash !== '') history.replaceState(null, '', location.pathname)
  return link
}

/** Of this tab alone, while staff are asked whether the device may keep it: a reload finds it there. */
export const heldLink = (): DoorLink | null => JSON.parse(sessionStorage.getItem(nameOfStore) ?? 'null')

export function holdLink(link: DoorLink | null): void {
  if (link === null) sessionStorage.removeItem(nameOfStore)
  else sessionStorage.setItem(nameOfStore, JSON.stringify(link))
}
