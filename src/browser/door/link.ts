// The link of a door: /door#event=…&key=…. The fragment stays in the browser; no request carries it.

export type DoorLink = { event_id: string; key: string }

export function parseLink(text: string): DoorLink | null {
  const fragment = new URLSearchParams(text.slice(text.indexOf('#') + 1).trim())
  const link = { event_id: fragment.get('event') ?? '', key: fragment.get('key') ?? '' }
  return /^[0-9a-f-]{36}$/i.test(link.event_id) && /^usher_live_\w{38}$/.test(link.key) ? link : null
}

/** Takes the link out of the address bar, so that neither history nor a shared screen shows the key. */
export function takeLink(): DoorLink | null {
  const link = parseLink(location.hash)
  if (location.hash !== '') history.replaceState(null, '', location.pathname)
  return link
}
